// The barrier of neighbours: no participant continues before the next one has entered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "protocol/schedule/barrier_turn.hpp"

namespace daqloom::protocol {

/// Participant i notifies participant i − 1 (mod N) when it has entered, and continues when i + 1
/// has entered. Other barriers keep all participants together; here, a participant may be some
/// generations behind the next one. In linear shifting, readout unit i + 1 writes to the builder
/// unit that readout unit i needs next.
class NeighbourBarrier {
  public:
    /// Precondition: the checks of Barrier::make.
    explicit NeighbourBarrier(BarrierConfig config)
        : config_(config),
          waits_(config.participants > 1 &&
                 (!config.closes_only || config.self + 1 == config.participants)),
          sends_(config.participants > 1 && (!config.closes_only || config.self == 0)) {
        early_.reserve(16);
    }

    template <BarrierOut Out>
    void enter(BarrierTurn& turn, Out& out) {
        if (sends_) {
            turn.send(previous(), 0, out);
        }
        advance(turn, out);
    }

    template <BarrierOut Out>
    void on_message(BarrierTurn& turn, Participant from, BarrierMessage message, Out& out) {
        const std::uint64_t generation = message.generation;
        if (!waits_ || from != next() || message.round != 0 || generation < received_ ||
            generation >= received_ + most_early ||
            std::ranges::find(early_, generation) != early_.end()) {
            turn.ignore();
            return;
        }
        turn.receive();
        early_.push_back(generation);
        while (std::erase(early_, received_) > 0) {
            ++received_;
        }
        advance(turn, out);
    }

  private:
    /// Limit on messages that overtake an earlier message.
    static constexpr std::uint64_t most_early = 1024;

    template <BarrierOut Out>
    void advance(BarrierTurn& turn, Out& out) {
        if (turn.is_entered() && (received_ > turn.generation() || !waits_)) {
            turn.release(out);
        }
    }
    [[nodiscard]] Participant next() const {
        return config_.self + 1 == config_.participants ? 0 : config_.self + 1;
    }
    [[nodiscard]] Participant previous() const {
        return (config_.self == 0 ? config_.participants : config_.self) - 1;
    }

    BarrierConfig config_;
    bool waits_;
    bool sends_;
    std::uint64_t received_ = 0;        ///< generations that the next one has entered in order
    std::vector<std::uint64_t> early_;  ///< later generations that it has entered
};

}  // namespace daqloom::protocol
