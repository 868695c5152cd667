// The builder unit of the pull protocol: requests an event's fragments from all readout units,
// collects them, and reports the event when it has been processed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "base/ring.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/machines/last_assignment.hpp"
#include "protocol/machines/slot_table.hpp"

namespace daqloom::protocol {

struct PullBuilderConfig {
    std::uint32_t readouts = 1;
    std::uint32_t outstanding_fragments = 0;  ///< requested and not yet arrived; 0: no limit
    std::uint32_t concurrent_events = 32;
    WhenIncomplete when_incomplete = WhenIncomplete::deliver;
};

/// The outputs of a builder unit, which the driver implements. They must not call the unit back.
template <class Out>
concept PullBuilderOut = requires(Out& out, EventId event, ReadoutIndex readout) {
    out.request(event, readout);
    out.built(event);  ///< all fragments have arrived: process it, then call on_processed
    out.done(event);   ///< notify the event manager of the free slot
};

/// Further outputs where readout units can be lost, and epochs end.
template <class Out>
concept PullBuilderClosingOut =
    PullBuilderOut<Out> &&
    requires(Out& out, EventId event, ReadoutIndex readout, std::uint64_t requests) {
        /// Send the readout unit the total number of requests from this builder.
        out.last_request(readout, requests);
        /// Like `built`, but the event lacks some fragments.
        out.incomplete(event);
    };

/// Requests go out oldest event first, readout units in the order 0, 1, …, as many at once as the
/// limit on outstanding fragments permits.
///
/// Invariants: every fragment of an assigned event is requested once; an event is built once, when
/// its last fragment has arrived; outstanding fragments and held events stay within their limits.
/// Invalid input (a duplicate event or fragment, a fragment that was not requested, …) is counted
/// and otherwise ignored.
///
/// An epoch ends with on_close: lost readout units are not awaited any more, and an event with all
/// fragments of the others is delivered or dropped. When is_drained, no event is left.
class PullBuilder {
  public:
    struct Counters {
        std::uint64_t assigned = 0;
        std::uint64_t requests = 0;
        std::uint64_t fragments = 0;
        std::uint64_t fragment_bytes = 0;
        std::uint64_t built = 0;
        std::uint64_t done = 0;
        std::uint64_t outstanding_peak = 0;
        std::uint64_t incomplete = 0;  ///< events delivered without some fragments
        std::uint64_t dropped = 0;     ///< events that lacked some fragments
        std::uint64_t late = 0;        ///< assignments ignored while the epoch was being closed
        std::uint64_t from_lost = 0;   ///< fragments ignored because their readout unit was lost
        std::uint64_t unexpected_assignments =
            0;                                   ///< no slot is free, or the event is already held
        std::uint64_t unexpected_fragments = 0;  ///< a duplicate, or never requested
        std::uint64_t unexpected_processed = 0;  ///< the event is not held, or not built
    };

    static base::expected<PullBuilder> make(PullBuilderConfig config);

    template <PullBuilderOut Out>
    void on_assigned(EventId event, Out& out) {
        if (last_assignment_.is_reached(counters_.assigned)) {
            ++counters_.late;
            return;
        }
        if (free_slots_.empty() || slot_of_.find(event) != SlotTable::none) {
            ++counters_.unexpected_assignments;
            return;
        }
        ++counters_.assigned;
        const SlotTable::Slot slot = free_slots_.back();
        free_slots_.pop_back();
        slot_of_.insert(event, slot);
        slots_[slot] = {.event = event};
        std::fill_n(settled_of(slot), words_per_slot_, std::uint64_t{0});
        next_event_ = std::max(next_event_, static_cast<std::uint64_t>(event) + 1);
        to_request_.push(slot);
        if constexpr (PullBuilderClosingOut<Out>) {
            for (const ReadoutIndex readout : lost_) {
                lack(slot, readout, out);
            }
            report_last_assignment(out);
        }
        request_what_the_limit_permits(out);
    }

    template <PullBuilderOut Out>
    void on_fragment(EventId event, ReadoutIndex readout, base::Bytes bytes, Out& out) {
        const SlotTable::Slot slot = expected_in(event, readout);
        if (slot == SlotTable::none || bytes < 0) {
            refuse(readout);
            return;
        }
        ++counters_.fragments;
        counters_.fragment_bytes += static_cast<std::uint64_t>(bytes);
        --outstanding_;
        settle(slot, readout, out);
        request_what_the_limit_permits(out);
    }

    /// The readout unit has answered that it has no such fragment.
    template <PullBuilderClosingOut Out>
    void on_missing(EventId event, ReadoutIndex readout, Out& out) {
        const SlotTable::Slot slot = expected_in(event, readout);
        if (slot == SlotTable::none) {
            refuse(readout);
            return;
        }
        lack(slot, readout, out);
        request_what_the_limit_permits(out);
    }

    template <PullBuilderOut Out>
    void on_processed(EventId event, Out& out) {
        const SlotTable::Slot slot = slot_of_.find(event);
        if (slot == SlotTable::none || slots_[slot].settled != config_.readouts) {
            ++counters_.unexpected_processed;
            return;
        }
        release(slot, out);
        ++counters_.done;
    }

    // ---- the end of an epoch ------------------------------------------------------------------

    /// The epoch is being closed: no events are taken beyond the number of on_last_assignment, and
    /// nothing arrives from lost readout units any more. Called again when more are lost.
    /// Precondition: these units exist.
    template <PullBuilderClosingOut Out>
    void on_close(std::span<const ReadoutIndex> lost, Out& out) {
        last_assignment_.close();
        for (const ReadoutIndex readout : lost) {
            lose(readout, out);
        }
        report_last_assignment(out);
        request_what_the_limit_permits(out);
    }

    /// The total number of events assigned to this builder. May come before on_close, and before
    /// the last events.
    template <PullBuilderClosingOut Out>
    void on_last_assignment(std::uint64_t events, Out& out) {
        if (!last_assignment_.set(events, counters_.assigned)) {
            ++counters_.unexpected_assignments;
            return;
        }
        report_last_assignment(out);
    }
    /// Ends the epoch's assignments at the events assigned until now.
    template <PullBuilderClosingOut Out>
    void on_event_manager_lost(Out& out) {
        last_assignment_.end_at(counters_.assigned);
        report_last_assignment(out);
    }

    /// After on_close: all assigned events have been delivered or dropped.
    [[nodiscard]] bool is_drained() const {
        return last_assignment_.is_reported() &&
               counters_.assigned == counters_.built + counters_.incomplete + counters_.dropped;
    }

    /// One more than the last event number that this builder has taken.
    [[nodiscard]] std::uint64_t next_event() const { return next_event_; }
    /// The slot of a held event: below `concurrent_events`, and of no other event meanwhile;
    /// otherwise `SlotTable::none`.
    [[nodiscard]] SlotTable::Slot slot_of(EventId event) const { return slot_of_.find(event); }

    [[nodiscard]] const Counters& counters() const { return counters_; }
    /// Fragments requested and not yet arrived.
    [[nodiscard]] std::uint64_t outstanding() const { return outstanding_; }
    /// Events assigned and not yet done.
    [[nodiscard]] std::size_t events_held() const { return slots_.size() - free_slots_.size(); }

  private:
    struct Slot {
        EventId event{};
        ReadoutIndex next{};        ///< readout units before this one were requested, or are lost
        std::uint32_t settled = 0;  ///< fragments that have arrived, or never will
        std::uint32_t missing = 0;  ///< settled fragments that will never arrive
    };

    explicit PullBuilder(PullBuilderConfig config);

    template <PullBuilderOut Out>
    void request_what_the_limit_permits(Out& out) {
        while (outstanding_ < limit_ && !to_request_.empty()) {
            const SlotTable::Slot place = to_request_.front();
            Slot& slot = slots_[place];
            const ReadoutIndex readout = slot.next++;
            if (slot.next.value() == config_.readouts) {
                to_request_.pop();
            }
            if (!lost_.empty() && has_settled(place, readout)) {
                continue;
            }
            ++counters_.requests;
            ++outstanding_;
            counters_.outstanding_peak = std::max(counters_.outstanding_peak, outstanding_);
            out.request(slot.event, readout);
        }
    }

    /// Settles a fragment: it has arrived, or never will. Precondition: it is not settled.
    template <PullBuilderOut Out>
    void settle(SlotTable::Slot place, ReadoutIndex readout, Out& out) {
        settled_of(place)[readout.value() / 64] |= std::uint64_t{1} << (readout.value() % 64);
        Slot& slot = slots_[place];
        if (++slot.settled != config_.readouts) {
            return;
        }
        if constexpr (PullBuilderClosingOut<Out>) {
            if (slot.missing > 0) {
                give_out_incomplete(place, out);
                return;
            }
        }
        ++counters_.built;
        out.built(slot.event);
    }

    /// Settles a fragment that will never arrive. Precondition: it is not settled.
    template <PullBuilderClosingOut Out>
    void lack(SlotTable::Slot place, ReadoutIndex readout, Out& out) {
        ++slots_[place].missing;
        outstanding_ -= readout < slots_[place].next ? 1 : 0;
        settle(place, readout, out);
    }

    template <PullBuilderClosingOut Out>
    void lose(ReadoutIndex readout, Out& out) {
        if (std::ranges::find(lost_, readout) != lost_.end()) {
            return;
        }
        lost_.push_back(readout);
        for (SlotTable::Slot place = 0; place < slots_.size(); ++place) {
            if (slot_of_.find(slots_[place].event) == place && !has_settled(place, readout)) {
                lack(place, readout, out);
            }
        }
    }

    template <PullBuilderClosingOut Out>
    void give_out_incomplete(SlotTable::Slot place, Out& out) {
        const Slot& slot = slots_[place];
        for (std::uint32_t i = 0; slot.next.value() < config_.readouts; ++i) {
            if (to_request_[i] == place) {  // no live readout unit is left to request from
                to_request_.erase(i);
                break;
            }
        }
        if (config_.when_incomplete == WhenIncomplete::drop || slot.missing == config_.readouts) {
            ++counters_.dropped;
            release(place, out);
        } else {
            ++counters_.incomplete;
            out.incomplete(slot.event);
        }
    }

    /// Frees the slot.
    template <PullBuilderOut Out>
    void release(SlotTable::Slot place, Out& out) {
        const EventId event = slots_[place].event;
        slot_of_.erase(event);
        free_slots_.push_back(place);
        out.done(event);
    }

    /// Sends the totals to all readout units, when all events are assigned.
    template <PullBuilderClosingOut Out>
    void report_last_assignment(Out& out) {
        if (!last_assignment_.is_due(counters_.assigned)) {
            return;
        }
        for (ReadoutIndex readout; readout.value() < config_.readouts; ++readout) {
            if (std::ranges::find(lost_, readout) == lost_.end()) {
                out.last_request(readout, counters_.assigned);
            }
        }
    }

    /// The slot of an event whose fragment was requested and has not arrived; otherwise `none`.
    [[nodiscard]] SlotTable::Slot expected_in(EventId event, ReadoutIndex readout) const {
        const SlotTable::Slot slot = slot_of_.find(event);
        const bool is_expected =
            slot != SlotTable::none && readout < slots_[slot].next && !has_settled(slot, readout);
        return is_expected ? slot : SlotTable::none;
    }
    void refuse(ReadoutIndex readout) {
        ++(std::ranges::find(lost_, readout) != lost_.end() ? counters_.from_lost
                                                            : counters_.unexpected_fragments);
    }

    [[nodiscard]] bool has_settled(SlotTable::Slot place, ReadoutIndex readout) const {
        return (settled_[place * words_per_slot_ + readout.value() / 64] >> (readout.value() % 64) &
                1) != 0;
    }

    /// Settled fragments of a slot, one bit per readout unit.
    [[nodiscard]] std::uint64_t* settled_of(SlotTable::Slot slot) {
        return settled_.data() + std::size_t{slot} * words_per_slot_;
    }

    PullBuilderConfig config_;
    std::uint64_t limit_;  ///< limit on outstanding fragments
    std::size_t words_per_slot_;
    std::vector<Slot> slots_;
    std::vector<std::uint64_t> settled_;
    std::vector<SlotTable::Slot> free_slots_;
    SlotTable slot_of_;
    base::Ring<SlotTable::Slot>
        to_request_;  ///< slots with readout units not yet requested, oldest first
    std::uint64_t outstanding_ = 0;
    std::vector<ReadoutIndex> lost_;
    LastAssignment last_assignment_;
    std::uint64_t next_event_ = 0;
    Counters counters_;
};

}  // namespace daqloom::protocol
