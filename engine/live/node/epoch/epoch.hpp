// One epoch of a unit: from the start with a fixed set of members until all of them have drained.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/memory/buffer.hpp"
#include "live/memory/counters.hpp"
#include "live/memory/sample_tap.hpp"
#include "live/node/epoch/arrival_record.hpp"
#include "live/node/epoch/lease.hpp"
#include "live/node/epoch/members.hpp"
#include "live/node/epoch/stage_trace.hpp"
#include "live/node/node_config.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

/// The parts of a unit that an epoch uses. All of them must outlive the epoch.
struct EpochParts {
    const NodeConfig* config = nullptr;
    Transport* transport = nullptr;
    std::span<Buffer> streams;  ///< buffers of the readout unit
    Buffer* output = nullptr;   ///< buffer of the builder unit
    SampleTap* tap = nullptr;   ///< samplers of the output
    NodeCounters* counters = nullptr;
    StageTrace* trace = nullptr;
    ArrivalRecord* arrivals = nullptr;
    std::uint32_t epoch = 0;
    std::uint64_t first_mep = 0;            ///< number in the run of the epoch's MEP 0
    base::Time start = base::Time::zero();  ///< by time: start of the first window
    /// Epoch::unanswered of the previous epoch.
    base::Time unanswered = base::Time::zero();
};

/// Used by the unit's data thread alone.
class Epoch : public TransportEvents {
  public:
    virtual void begin() = 0;
    /// Does all pending work, except for the inputs of the transport. False: no work was pending.
    virtual bool step(base::Time now) = 0;
    /// The next time at which `step` has work without an input.
    [[nodiscard]] virtual base::Time next_timer() const = 0;
    /// Units that the transport could not reach.
    [[nodiscard]] virtual std::span<const UnitIndex> suspects() const = 0;
    /// Permits answers to MEPs of the run before this number, until the next call.
    virtual void on_lease(std::uint64_t mep_end) = 0;
    /// Passes the run control's last beat on to another unit, if it is time to. Returns the end of
    /// the lease that the run control has granted `until` some time.
    virtual base::Time keep_contact(base::Time now, base::Time until, std::uint64_t beat) = 0;
    /// The thread has slept for this time.
    virtual void on_slept(base::Time duration) = 0;
    /// Begins the end of the epoch; lost units are not waited for. Called again when more are lost.
    virtual void on_close(std::span<const UnitIndex> lost) = 0;
    /// After on_close: whether the members' granted MFPs are written and their MEPs built.
    [[nodiscard]] virtual bool is_drained() const = 0;
    /// Ends the drained epoch, once: MEPs that lack MFPs are delivered or dropped.
    virtual void end() = 0;
    /// Time before on_close in which MEPs arrived and none was answered, because units were lost.
    [[nodiscard]] virtual base::Time unanswered() const { return base::Time::zero(); }
    /// Whether the consumer has processed everything.
    [[nodiscard]] virtual bool is_consumed() const = 0;
    /// The number in the run of the first MEP that the next epoch may take, as far as this unit
    /// knows. Precondition: is_drained.
    [[nodiscard]] virtual std::uint64_t next_mep() const = 0;
};

/// Checks a configuration of linear shifting.
base::expected<void> check_shift(const NodeConfig& config);
base::expected<std::unique_ptr<Epoch>> make_shift_epoch(const EpochParts& parts, Members members);
/// Checks a configuration of a protocol in which builder units request MFPs.
base::expected<void> check_requested(const NodeConfig& config);
base::expected<std::unique_ptr<Epoch>> make_requested_epoch(const EpochParts& parts,
                                                            Members members);
/// Checks what a protocol demands of its configuration, as far as possible without an epoch.
inline base::expected<void> check_epoch(const NodeConfig& config) {
    return config.protocol == Protocol::shift ? check_shift(config) : check_requested(config);
}
/// Makes an epoch of the protocol in the configuration.
inline base::expected<std::unique_ptr<Epoch>> make_epoch(const EpochParts& parts, Members members) {
    return parts.config->protocol == Protocol::shift
               ? make_shift_epoch(parts, std::move(members))
               : make_requested_epoch(parts, std::move(members));
}

/// The exchange of commands and states between the control thread and the data thread of an epoch.
class Halt {
  public:
    struct State {
        bool is_drained = false;
        bool is_consumed = false;
        std::uint64_t next_mep = 0;
        std::vector<UnitIndex> suspects;
    };

    // ---- control thread: ring the doorbell after each call
    void close(std::span<const UnitIndex> lost);
    /// The thread ends immediately, drained or not.
    void abandon() { is_abandoned_.store(true, std::memory_order_release); }
    /// Waits until drained (and consumed, if requested), or `until`. Returns the epoch's state.
    State wait(bool consumed, base::Time until);
    [[nodiscard]] State state() const {
        const std::lock_guard lock(mutex_);
        return state_;
    }

    // ---- data thread
    [[nodiscard]] std::uint32_t requests() const {
        return requests_.load(std::memory_order_acquire);
    }
    [[nodiscard]] bool is_abandoned() const {
        return is_abandoned_.load(std::memory_order_acquire);
    }
    [[nodiscard]] std::vector<UnitIndex> lost();
    void publish(const State& state);

  private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<UnitIndex> lost_;
    State state_;
    std::atomic<std::uint32_t> requests_ = 0;
    std::atomic<bool> is_abandoned_ = false;
};

/// Runs the data thread until the epoch is abandoned: a drained unit still serves other units.
void run_epoch(Epoch& epoch, Transport& transport, NodeCounters& counters, const Lease& lease,
               Halt& halt);

}  // namespace daqloom::live
