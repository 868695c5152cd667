// The centralised barrier and the tournament: reports travel up a tree, the release back down.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "protocol/schedule/barrier_turn.hpp"

namespace daqloom::protocol {

/// Each participant reports to its parent when it has entered and all its children have reported;
/// the release travels down the same tree. Centralised: all are children of the master. Tournament:
/// the bracket, in which the even one of each pair wins, is the binomial tree: the parent of i is i
/// without its lowest one-bit, and the root is 0.
class TreeBarrier {
  public:
    /// Precondition: the checks of Barrier::make.
    explicit TreeBarrier(BarrierConfig config);

    template <BarrierOut Out>
    void enter(BarrierTurn& turn, Out& out) {
        go_up_when_complete(turn, out);
    }

    template <BarrierOut Out>
    void on_message(BarrierTurn& turn, Participant from, BarrierMessage message, Out& out) {
        // No valid message is of another generation: a child enters the next generation after the
        // release, which only its parent sends.
        if (message.generation != turn.generation()) {
            turn.ignore();
        } else if (message.round == release && from == parent_ && reported_) {
            turn.receive();
            go_down(turn, out);
        } else if (const auto child = place_of(from);
                   message.round == arrive && child != none && !has_arrived_[child]) {
            turn.receive();
            has_arrived_[child] = true;
            ++arrived_;
            go_up_when_complete(turn, out);
        } else {
            turn.ignore();
        }
    }

  private:
    static constexpr std::uint32_t arrive = 0;
    static constexpr std::uint32_t release = 1;
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

    template <BarrierOut Out>
    void go_up_when_complete(BarrierTurn& turn, Out& out) {
        if (!turn.is_entered() || arrived_ < children_.size()) {
            return;
        }
        if (parent_ == none) {
            go_down(turn, out);
            return;
        }
        reported_ = true;
        turn.send(parent_, arrive, out);
    }

    template <BarrierOut Out>
    void go_down(BarrierTurn& turn, Out& out) {
        for (const Participant child : children_) {
            turn.send(child, release, out);
        }
        reported_ = false;
        has_arrived_.assign(children_.size(), false);
        arrived_ = 0;
        turn.release(out);
    }

    /// Index of a child in `children_`, or `none`.
    [[nodiscard]] std::uint32_t place_of(Participant from) const;

    BarrierConfig config_;
    Participant parent_ = none;
    std::vector<Participant> children_;  ///< in the order of their release: largest subtree first
    std::vector<bool> has_arrived_;      ///< per child
    std::uint32_t arrived_ = 0;
    bool reported_ = false;
};

}  // namespace daqloom::protocol
