// Several consumers of a unit's output: each multi-event packet (MEP) goes to one of them
// (exclusive), or to all of them (shared).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/memory/buffer.hpp"
#include "live/memory/buffer_server.hpp"
#include "live/memory/counter.hpp"
#include "live/memory/doorbell.hpp"

namespace daqloom::live {

/// Number of processes that may consume an output.
enum class Consumers {
    one,        ///< one process, which reads the output buffer itself
    exclusive,  ///< several; each MEP goes to the one with the fewest MEPs
    shared,     ///< several; each MEP goes to all that are attached when it is built
};

struct FanOutConfig {
    bool is_shared = false;  ///< each piece goes to all consumers, not to one of them
    /// Time in which a consumer that holds pieces must acknowledge one; zero: no limit.
    base::Time patience = base::Time::zero();
};

/// Written by a FanOut under its lock, read by any thread. Counters of a slot include its earlier
/// processes.
struct FanOutCounters {
    static constexpr std::size_t slots = 16;  ///< limit on consumers of an output

    std::array<Counter, slots> acknowledged;  ///< pieces acknowledged, by slot
    /// Pieces given and not acknowledged when the process ended, detached or was revoked.
    std::array<Counter, slots> returned;
    Counter attached;
    Counter revoked;
};

/// The reader of a buffer, which passes its pieces to any number of consumers without copying: each
/// has a ring of its own beside the buffer's area.
///
/// Pieces are acknowledged to the writer in their order, each when every consumer that has it has
/// acknowledged it, and at least one has. A consumer that ends, or acknowledges nothing for
/// `patience`, loses its pieces: exclusive pieces go to another consumer, shared ones are left to
/// the others. Without consumers, pieces wait in the buffer.
///
/// An acknowledgement decides: a consumer whose side was revoked cannot acknowledge any more, so
/// that each exclusive piece is acknowledged once.
class FanOut final : public Attendant {
  public:
    /// `bell`: the reader's doorbell of `buffer`. All must outlive this object.
    FanOut(Buffer& buffer, const Doorbell& bell, FanOutConfig config, FanOutCounters& counters);
    /// Closes the rings of consumers. Precondition: no server calls this object any more.
    ~FanOut() override;
    FanOut(const FanOut&) = delete;
    FanOut& operator=(const FanOut&) = delete;

    /// Passes all committed pieces to the consumers that are attached, and ends the thread.
    void finish();

    base::expected<const Buffer*> admit(std::size_t slot, pid_t peer) override;
    void leave(std::size_t slot) override;

  private:
    struct Consumer {
        explicit Consumer(Buffer its) : buffer(std::move(its)) {}
        Buffer buffer;
        BufferWriter writer{buffer};
        std::uint64_t acknowledged = 0;
        std::deque<std::uint64_t> held = {};    ///< numbers of unacknowledged pieces, oldest first
        base::Time since = base::Time::zero();  ///< last acknowledgement, or first piece held
        bool is_revoked = false;
    };
    /// A piece that is not acknowledged to the writer.
    struct Held {
        Piece piece;
        std::uint32_t holders = 0;
        bool is_acknowledged = false;  ///< by a consumer
    };

    void run(const std::stop_token& stop);
    /// Does all pending work. False: there was none.
    bool turn();
    bool collect(std::size_t slot, base::Time now);
    void take_back(std::size_t slot, std::uint64_t acknowledged, base::Time now);
    void revoke(std::size_t slot);
    void give(Consumer& consumer, std::uint64_t number);
    void assign();
    [[nodiscard]] Held& held(std::uint64_t number) { return pieces_[number - first_]; }

    Buffer& buffer_;
    const Doorbell& bell_;
    FanOutConfig config_;
    FanOutCounters& counters_;
    BufferReader reader_;
    std::mutex mutex_;  ///< guards the members below
    std::array<std::optional<Consumer>, FanOutCounters::slots> consumers_;
    std::deque<Held> pieces_;
    std::uint64_t first_ = 0;             ///< number of the oldest of `pieces_`
    std::set<std::uint64_t> unassigned_;  ///< pieces without a consumer
    std::jthread thread_;
};

}  // namespace daqloom::live
