// Common parts of all kinds of barrier: messages, and a participant's turn to enter a generation.
#pragma once

#include <cstdint>

namespace daqloom::protocol {

/// Number of a participant, 0 … participants − 1.
using Participant = std::uint32_t;

enum class BarrierKind {
    centralised,    ///< all report to participant 0, the master, which releases them one after the
                    ///< other: O(N)
    tournament,     ///< the losers of a binary bracket report to the winners; the root's release
                    ///< travels back down: O(log N)
    dissemination,  ///< ⌈log2 N⌉ rounds: in round k each sends to the one 2^k places further on
    neighbour,      ///< each waits for the next one only, and the last for the first: O(1)
};

struct BarrierConfig {
    BarrierKind kind = BarrierKind::tournament;
    std::uint32_t participants = 1;
    Participant self = 0;
    /// Neighbour only: each participant is kept behind the next one by other means, so that only
    /// the last participant waits (for the first).
    bool closes_only = false;
};

/// A message of one generation: a barrier is entered repeatedly, in generations 0, 1, …
struct BarrierMessage {
    std::uint64_t generation = 0;
    /// Dissemination: round 0 … ⌈log2 N⌉ − 1. Other barriers: 0 for arrival, 1 for release.
    std::uint32_t round = 0;

    friend constexpr bool operator==(BarrierMessage, BarrierMessage) = default;
};

/// The outputs of a participant, implemented by its driver. They must not call the participant
/// back.
template <class Out>
concept BarrierOut =
    requires(Out& out, Participant to, BarrierMessage message, std::uint64_t generation) {
        out.send_barrier(to, message);
        out.released(generation);
    };

struct BarrierCounters {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint64_t released = 0;
    std::uint64_t unexpected = 0;  ///< entries and messages ignored: of the wrong generation, …
};

/// The generation that a participant is in, or enters next.
class BarrierTurn {
  public:
    /// Enters a generation. False: the entry is out of turn, and is counted.
    bool enter(std::uint64_t generation) {
        if (entered_ || generation != generation_) {
            ignore();
            return false;
        }
        return entered_ = true;
    }
    template <BarrierOut Out>
    void send(Participant to, std::uint32_t round, Out& out) {
        ++counters_.sent;
        out.send_barrier(to, {generation_, round});
    }
    void receive() { ++counters_.received; }
    void ignore() { ++counters_.unexpected; }
    template <BarrierOut Out>
    void release(Out& out) {
        entered_ = false;
        ++counters_.released;
        out.released(generation_++);
    }

    [[nodiscard]] bool is_entered() const { return entered_; }
    /// The generation of the next release.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }
    [[nodiscard]] const BarrierCounters& counters() const { return counters_; }

  private:
    bool entered_ = false;
    std::uint64_t generation_ = 0;
    BarrierCounters counters_;
};

}  // namespace daqloom::protocol
