// The readout cards of the streams, and the trigger that fills all of them at the same rate.
//
// A card has a small buffer. It writes its data to the host's memory as they arrive, and frees
// their space when the write is acknowledged. The acknowledgement at the end of a multi-fragment
// packet (MFP) may be late; until it arrives, the card keeps all later data. A full card stops the
// trigger for all streams, and the events of that time are lost.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

/// The outputs of the cards, implemented by the driver.
template <class Out>
concept ReadoutCardsOut = requires(Out& out, std::uint32_t stream, base::Time at) {
    /// Call on_timer at this time; several timers may be set for a stream.
    out.set_card_timer(stream, at);
};

/// The cards of all streams, numbered through all readout units. MFP k of every stream is complete
/// when the trigger has run for k intervals.
///
/// Invariants: MFPs are handed over one by one, the next when the host's buffer has accepted the
/// previous one; the trigger is stopped exactly while some card is full. A card with space for τ of
/// data is full when the trigger has run for τ since the end of the oldest unacknowledged MFP: an
/// acknowledgement that takes L > τ stops the trigger for L − τ.
class ReadoutCards {
  public:
    /// Time for which the trigger was stopped, by cause: what the full cards waited for.
    struct StopTimes {
        base::Time acknowledge;
        base::Time memory;  ///< for the host's buffer to accept an MFP
    };

    /// `room`: buffer of each stream, as the time in which it fills; never: no limit. `interval`:
    /// time between two MFPs; zero: as fast as the host accepts them, only for cards without limit.
    ReadoutCards(base::Time interval, const std::vector<base::Time>& room) : interval_(interval) {
        for (const base::Time each : room) {
            cards_.push_back({.room = each});
        }
    }
    ReadoutCards() = default;

    /// The time in which each stream fills `buffer` bytes, with an MFP of `mfps` bytes per
    /// interval; never for a buffer of 0 bytes, which has no limit, and for empty MFPs.
    static std::vector<base::Time> room_of(base::Bytes buffer, const std::vector<base::Bytes>& mfps,
                                           base::Time interval) {
        std::vector<base::Time> room;
        for (const base::Bytes mfp : mfps) {
            const double held = static_cast<double>(buffer) / static_cast<double>(mfp);
            room.push_back(buffer > 0 && mfp > 0
                               ? base::Time::from_seconds(held * interval.seconds())
                               : base::Time::never());
        }
        return room;
    }

    template <ReadoutCardsOut Out>
    void on_start(base::Time now, Out& out) {
        since_ = now;
        set_all_timers(out);
    }

    /// Handles a timer. Returns whether the stream's next MFP is complete, to be handed over now.
    template <ReadoutCardsOut Out>
    [[nodiscard]] bool on_timer(std::uint32_t stream, base::Time now, Out& out) {
        Card& card = cards_[stream];
        if (card.timer != now) {
            return false;  // a timer for an earlier time
        }
        card.timer = base::Time::never();
        advance(now);
        const bool complete = card.offered == card.taken && ran_ >= end_of(card.offered);
        card.offered += complete ? 1 : 0;
        if (!card.is_full && ran_ >= full_at(card)) {
            card.is_full = true;
            ++full_;
            waiting_for_memory_ += card.acknowledged == card.taken ? 1 : 0;
        }
        set_timer(stream, out);
        return complete;
    }

    /// The host's buffer has accepted the MFP that was handed over.
    template <ReadoutCardsOut Out>
    void on_taken(std::uint32_t stream, base::Time now, Out& out) {
        Card& card = cards_[stream];
        advance(now);
        waiting_for_memory_ -= card.is_full && card.acknowledged == card.taken ? 1 : 0;
        ++card.taken;
        set_timer(stream, out);
    }

    /// The stream's card receives the acknowledgement of its oldest MFP. Unused for cards without
    /// limit.
    template <ReadoutCardsOut Out>
    void on_acknowledged(std::uint32_t stream, base::Time now, Out& out) {
        Card& card = cards_[stream];
        advance(now);
        ++card.acknowledged;
        if (std::exchange(card.is_full, false) && --full_ == 0) {
            set_all_timers(out);
        } else {
            set_timer(stream, out);
        }
    }

    [[nodiscard]] bool is_limited(std::uint32_t stream) const {
        return cards_[stream].room != base::Time::never();
    }
    [[nodiscard]] StopTimes stopped(base::Time now) const {
        StopTimes all = stopped_;
        if (full_ > 0) {
            (waiting_for_memory_ > 0 ? all.memory : all.acknowledge) += now - since_;
        }
        return all;
    }

  private:
    /// Counts of MFPs: acknowledged ≤ taken ≤ offered ≤ taken + 1.
    struct Card {
        base::Time room = base::Time::never();
        std::uint64_t offered = 0;
        std::uint64_t taken = 0;
        std::uint64_t acknowledged = 0;
        base::Time timer = base::Time::never();
        bool is_full = false;
    };

    /// End of an MFP, in time of the trigger.
    [[nodiscard]] base::Time end_of(std::uint64_t mfp) const {
        return interval_ * static_cast<std::int64_t>(mfp);
    }
    [[nodiscard]] base::Time full_at(const Card& card) const {
        return card.room == base::Time::never() ? card.room : end_of(card.acknowledged) + card.room;
    }

    void advance(base::Time now) {
        if (full_ == 0) {
            ran_ += now - since_;
        } else {
            stopped_ = stopped(now);
        }
        since_ = now;
    }

    /// Sets the timer for the stream's next change of state, unless the trigger is stopped.
    template <ReadoutCardsOut Out>
    void set_timer(std::uint32_t stream, Out& out) {
        Card& card = cards_[stream];
        base::Time next = card.is_full ? base::Time::never() : full_at(card);
        if (card.offered == card.taken) {
            next = std::min(next, end_of(card.offered));
        }
        if (next == base::Time::never() || (next > ran_ && full_ > 0)) {
            return;
        }
        const base::Time at = since_ + std::max(next - ran_, base::Time::zero());
        if (at < card.timer) {
            card.timer = at;
            out.set_card_timer(stream, at);
        }
    }
    template <ReadoutCardsOut Out>
    void set_all_timers(Out& out) {
        for (std::uint32_t stream = 0; stream < cards_.size(); ++stream) {
            set_timer(stream, out);
        }
    }

    base::Time interval_;
    std::vector<Card> cards_;
    base::Time ran_;    ///< running time of the trigger, up to `since_`
    base::Time since_;  ///< time of the last input
    std::uint32_t full_ = 0;
    std::uint32_t waiting_for_memory_ = 0;  ///< full cards whose MFP is not taken in
    StopTimes stopped_;
};

}  // namespace daqloom::protocol
