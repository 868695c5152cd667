// One epoch of a unit: from the start with a fixed set of members until all of them have drained.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/buffer.hpp"
#include "live/counters.hpp"
#include "live/members.hpp"
#include "live/node_config.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

/// What an epoch needs of its unit. All of it outlives the epoch.
struct EpochParts {
    const NodeConfig* config = nullptr;
    Transport* transport = nullptr;
    std::span<Buffer> streams;  ///< of the readout unit
    Buffer* output = nullptr;   ///< of the builder unit
    NodeCounters* counters = nullptr;
    std::uint32_t epoch = 0;
    std::uint64_t first_mep = 0;            ///< number in the run of the epoch's MEP 0
    base::Time start = base::Time::zero();  ///< by time: of the first window
};

/// Driven by the unit's data thread alone.
class Epoch : public TransportEvents {
  public:
    virtual void begin() = 0;
    /// Everything that is to be done now, other than what the transport tells. False: nothing.
    virtual bool step(base::Time now) = 0;
    /// The next instant at which `step` has something to do without being told.
    [[nodiscard]] virtual base::Time next_timer() const = 0;
    /// The thread has slept so long.
    virtual void on_slept(base::Time duration) = 0;
    /// The epoch ends; from now on these units are not waited for. May come again, with more.
    virtual void on_close(std::span<const UnitIndex> lost) = 0;
    [[nodiscard]] virtual bool is_drained() const = 0;
    /// The number in the run of the first MEP that no builder unit has answered, as far as this
    /// unit knows.
    [[nodiscard]] virtual std::uint64_t next_mep() const = 0;
    /// Whom it waits for while it closes.
    [[nodiscard]] virtual std::vector<UnitIndex> waits_for() const = 0;
};

base::expected<std::unique_ptr<Epoch>> make_shift_epoch(const EpochParts& parts, Members members);

/// How other threads tell the data thread to end an epoch.
class Halt {
  public:
    void close(std::span<const UnitIndex> lost) {
        const std::lock_guard lock(mutex_);
        lost_.insert(lost_.end(), lost.begin(), lost.end());
        requests_.fetch_add(1, std::memory_order_release);
    }
    /// At once, drained or not.
    void abandon() { abandoned_.store(true, std::memory_order_release); }

    [[nodiscard]] std::uint32_t requests() const {
        return requests_.load(std::memory_order_acquire);
    }
    [[nodiscard]] bool is_abandoned() const { return abandoned_.load(std::memory_order_acquire); }
    [[nodiscard]] std::vector<UnitIndex> lost() {
        const std::lock_guard lock(mutex_);
        return lost_;
    }

  private:
    std::mutex mutex_;
    std::vector<UnitIndex> lost_;
    std::atomic<std::uint32_t> requests_ = 0;
    std::atomic<bool> abandoned_ = false;
};

/// The data thread's loop: until the epoch is drained, or abandoned.
void run_epoch(Epoch& epoch, Transport& transport, NodeCounters& counters, Halt& halt);

}  // namespace daqloom::live
