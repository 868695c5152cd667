// The dissemination barrier: in each round, messages go twice as far as in the previous round.
#pragma once

#include <bit>
#include <cstdint>

#include "protocol/schedule/barrier_turn.hpp"

namespace daqloom::protocol {

/// In round k participant i sends a message to (i + 2^k) mod N, and continues when it has the
/// message of (i − 2^k) mod N. After the last round, i knows directly or indirectly that all
/// participants have entered (Hensgen, Finkel and Manber 1988).
class DisseminationBarrier {
  public:
    /// Precondition: the checks of Barrier::make.
    explicit DisseminationBarrier(BarrierConfig config)
        : config_(config),
          rounds_(static_cast<std::uint32_t>(std::bit_width(config.participants - 1))) {}

    template <BarrierOut Out>
    void enter(BarrierTurn& turn, Out& out) {
        round_ = 0;
        if (rounds_ > 0) {
            send_signal(turn, out);
        }
        advance(turn, out);
    }

    template <BarrierOut Out>
    void on_message(BarrierTurn& turn, Participant from, BarrierMessage message, Out& out) {
        // Another participant is at most one generation ahead, and only after this one has entered:
        // a generation ends for no participant before all have entered it.
        const std::uint64_t latest = turn.generation() + (turn.is_entered() ? 1 : 0);
        if (message.generation < turn.generation() || message.generation > latest ||
            message.round >= rounds_ || from != sender(message.round)) {
            turn.ignore();
            return;
        }
        std::uint32_t& received = received_[message.generation % 2];
        const std::uint32_t bit = std::uint32_t{1} << message.round;
        if ((received & bit) != 0) {
            turn.ignore();
            return;
        }
        turn.receive();
        received |= bit;
        if (turn.is_entered()) {
            advance(turn, out);
        }
    }

  private:
    template <BarrierOut Out>
    void send_signal(BarrierTurn& turn, Out& out) {
        const std::uint64_t to = config_.self + (std::uint64_t{1} << round_);
        turn.send(static_cast<Participant>(to % config_.participants), round_, out);
    }

    template <BarrierOut Out>
    void advance(BarrierTurn& turn, Out& out) {
        std::uint32_t& received = received_[turn.generation() % 2];
        while (round_ < rounds_ && (received >> round_ & 1) != 0) {
            if (++round_ < rounds_) {
                send_signal(turn, out);
            }
        }
        if (round_ == rounds_) {
            received = 0;
            turn.release(out);
        }
    }

    /// The participant that sends to this one in a round. Precondition: 2^round is below N.
    [[nodiscard]] Participant sender(std::uint32_t round) const {
        const Participant distance = Participant{1} << round;
        return config_.self >= distance ? config_.self - distance
                                        : config_.self + (config_.participants - distance);
    }

    BarrierConfig config_;
    std::uint32_t rounds_;
    std::uint32_t round_ = 0;             ///< current round
    std::uint32_t received_[2] = {0, 0};  ///< received: a bit per round, by the generation's parity
};

}  // namespace daqloom::protocol
