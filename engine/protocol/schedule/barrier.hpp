// Barriers: no participant continues before all (neighbour barrier: the next one) have entered.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>

#include "base/expected.hpp"
#include "protocol/schedule/barrier_turn.hpp"
#include "protocol/schedule/dissemination_barrier.hpp"
#include "protocol/schedule/neighbour_barrier.hpp"
#include "protocol/schedule/tree_barrier.hpp"

namespace daqloom::protocol {

/// A participant's part of a barrier of any kind.
///
/// Invariants, for any delays and any order of messages (neighbour: if fewer than 1024 messages
/// overtake another one): no participant is released from a generation before all participants
/// (neighbour: it and the next one) have entered this generation; when all have entered, all are
/// released. Invalid input (an entry out of turn, a duplicate message, a message of a wrong sender,
/// …) is counted and otherwise ignored.
class Barrier {
  public:
    static base::expected<Barrier> make(BarrierConfig config);

    /// Enters a generation. The next generation may be entered after the release from this one.
    template <BarrierOut Out>
    void enter(std::uint64_t generation, Out& out) {
        if (turn_.enter(generation)) {
            std::visit([&](auto& barrier) { barrier.enter(turn_, out); }, kind_);
        }
    }

    template <BarrierOut Out>
    void on_message(Participant from, BarrierMessage message, Out& out) {
        std::visit([&](auto& barrier) { barrier.on_message(turn_, from, message, out); }, kind_);
    }

    [[nodiscard]] const BarrierCounters& counters() const { return turn_.counters(); }
    /// The generation of the next release.
    [[nodiscard]] std::uint64_t generation() const { return turn_.generation(); }

  private:
    using Kind = std::variant<TreeBarrier, DisseminationBarrier, NeighbourBarrier>;

    explicit Barrier(Kind kind) : kind_(std::move(kind)) {}

    BarrierTurn turn_;
    Kind kind_;
};

}  // namespace daqloom::protocol
