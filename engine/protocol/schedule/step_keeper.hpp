// Choice of the barriers at which a unit waits, by the measured lengths of its rounds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.hpp"

namespace daqloom::protocol {

/// A unit that may leave step waits at each barrier, at every fourth, every sixteenth, …, or only
/// at the last one of a round. All units always wait at this last barrier, so that they begin a
/// round together, measure the same length, and decide alike without messages.
///
/// The unit begins with a wait at each barrier, and waits at fewer as long as that makes rounds
/// shorter by more than a 64th. Each choice is judged by `rounds_judged` rounds, after one round in
/// which other units may still change theirs. The unit keeps the best choice. It begins anew after
/// `rounds_judged` successive rounds that are longer or shorter than usual by more than an eighth
/// (the network has changed), and after `rounds_between_trials` rounds (another choice may have
/// become better).
class StepKeeper {
  public:
    static constexpr std::uint32_t rounds_judged = 2;
    static constexpr std::uint32_t rounds_between_trials = 128;

    /// `furthest`: the barriers of a round, at least 1.
    explicit StepKeeper(std::uint64_t furthest) : furthest_(furthest) {}

    /// Whether the unit waits at this barrier, counted from 1 within a round.
    [[nodiscard]] bool waits_at(std::uint64_t barrier) const {
        const std::uint64_t of_round = barrier % furthest_;
        return of_round % span_ == 0;
    }
    /// Barriers from one wait to the next; 1: in step.
    [[nodiscard]] std::uint64_t span() const { return span_; }
    /// Number of barriers in a round.
    [[nodiscard]] std::uint64_t barriers_of_round() const { return furthest_; }

    /// A round has ended.
    void on_round(base::Time length) {
        ++rounds_;
        if (is_trying_) {
            if (rounds_ > 1) {
                sum_ += length;
            }
            if (rounds_ == 1 + rounds_judged) {
                judge(base::Time{sum_.ps / rounds_judged});
            }
            return;
        }
        const base::Time off = std::max(length, usual_) - std::min(length, usual_);
        unusual_ = off * unusual_part > usual_ ? unusual_ + 1 : 0;
        if (unusual_ == rounds_judged || rounds_ == rounds_between_trials) {
            usual_ = base::Time::never();
            span_ = 1;
            begin(true);
        }
    }

  private:
    static constexpr std::int64_t unusual_part = 8;
    static constexpr std::int64_t better_part = 64;
    static constexpr std::uint64_t further = 4;  ///< factor from span to span

    void judge(base::Time length) {
        const bool is_better =
            usual_ == base::Time::never() || length < usual_ - base::Time{usual_.ps / better_part};
        if (is_better) {
            usual_ = length;
            best_ = span_;
        }
        const bool goes_on = is_better && span_ < furthest_;
        span_ = goes_on ? std::min(span_ * further, furthest_) : best_;
        begin(goes_on);
    }
    void begin(bool is_trying) {
        is_trying_ = is_trying;
        rounds_ = unusual_ = 0;
        sum_ = base::Time::zero();
    }

    std::uint64_t furthest_;
    std::uint64_t span_ = 1;
    std::uint64_t best_ = 1;                  ///< best of the spans tried
    base::Time usual_ = base::Time::never();  ///< length of a round with the best span
    bool is_trying_ = true;
    std::uint32_t rounds_ = 0;             ///< rounds with this span, tried or kept
    std::uint32_t unusual_ = 0;            ///< unusual rounds in a row until now
    base::Time sum_ = base::Time::zero();  ///< sum of the rounds judged
};

}  // namespace daqloom::protocol
