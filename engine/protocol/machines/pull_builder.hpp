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
#include "protocol/machines/requesting_builder.hpp"
#include "protocol/machines/slot_table.hpp"

namespace daqloom::protocol {

struct PullBuilderConfig {
    std::uint32_t readouts = 1;
    std::uint32_t outstanding_fragments = 0;  ///< requested and not yet arrived; 0: no limit
    std::uint32_t concurrent_events = 32;
    WhenIncomplete when_incomplete = WhenIncomplete::deliver;
};

/// The builder unit of the pull protocol. It requests fragments up to the limit on outstanding
/// fragments: those of the oldest event first, from readout units 0, 1, ….
///
/// Invariants: every fragment of an assigned event is requested once; an event is built once, when
/// its last fragment has arrived; outstanding fragments and held events stay within their limits.
/// Invalid input (a duplicate event or fragment, a fragment that was not requested, …) is counted
/// and otherwise ignored.
///
/// on_close ends an epoch: lost readout units are no longer awaited, and an event with the
/// fragments of all live ones is delivered or dropped. Once is_drained, no event is left.
class PullBuilder : public RequestingBuilder {
  public:
    using Config = PullBuilderConfig;

    static base::expected<PullBuilder> make(Config config);

    template <RequestingOut Out>
    void on_assigned(EventId event, Out& out) {
        const SlotTable::Slot slot = take(event);
        if (slot == SlotTable::none) {
            return;
        }
        slots_[slot] = {.event = event};
        std::fill_n(settled_of(slot), words_per_slot_, std::uint64_t{0});
        to_request_.push(slot);
        for (ReadoutIndex readout; any_is_lost_ && lost_.contains(readout); ++readout) {
            if (lost_[readout]) {
                lack(slot, readout, out);
            }
        }
        report_last_assignment(out);
        request_what_the_limit_permits(out);
    }

    template <RequestingOut Out>
    void on_fragment(EventId event, ReadoutIndex readout, base::Bytes bytes, Out& out) {
        const SlotTable::Slot slot = expected_in(event, readout);
        if (slot == SlotTable::none || bytes < 0) {
            refuse_fragment(readout);
            return;
        }
        ++counters_.fragments;
        counters_.fragment_bytes += bytes;
        --outstanding_;
        settle(slot, readout, out);
        request_what_the_limit_permits(out);
    }

    /// The readout unit has answered that it does not have the requested fragment.
    template <RequestingOut Out>
    void on_missing(EventId event, ReadoutIndex readout, Out& out) {
        const SlotTable::Slot slot = expected_in(event, readout);
        if (slot == SlotTable::none) {
            refuse_fragment(readout);
            return;
        }
        lack(slot, readout, out);
        request_what_the_limit_permits(out);
    }

    template <RequestingOut Out>
    void on_processed(EventId event, Out& out) {
        const SlotTable::Slot slot = slot_of(event);
        if (slot == SlotTable::none || slots_[slot].settled != config_.readouts) {
            ++counters_.unexpected_processed;
            return;
        }
        release(slot, out);
        ++counters_.done;
    }

    // ---- the end of an epoch ------------------------------------------------------------------

    /// Begins the end of the epoch: events are accepted up to the total of on_last_assignment, and
    /// nothing more arrives from lost readout units. Called again when more are lost. Precondition:
    /// the units in `lost` exist.
    template <RequestingOut Out>
    void on_close(std::span<const ReadoutIndex> lost, Out& out) {
        last_assignment_.close();
        for (const ReadoutIndex readout : lost) {
            lose(readout, out);
        }
        report_last_assignment(out);
        request_what_the_limit_permits(out);
    }

    /// After on_close: whether all assigned events have been delivered or dropped.
    [[nodiscard]] bool is_drained() const {
        return last_assignment_.is_reported() &&
               counters_.assigned == counters_.built + counters_.incomplete + counters_.dropped;
    }

    /// Fragments requested and not yet arrived.
    [[nodiscard]] std::uint64_t outstanding() const { return outstanding_; }

  private:
    struct Slot {
        EventId event{};
        ReadoutIndex next{};        ///< readout units before this one were requested, or are lost
        std::uint32_t settled = 0;  ///< fragments that have arrived, or never will
        std::uint32_t missing = 0;  ///< settled fragments that will never arrive
    };

    explicit PullBuilder(PullBuilderConfig config);

    template <RequestingOut Out>
    void request_what_the_limit_permits(Out& out) {
        while (outstanding_ < limit_ && !to_request_.empty()) {
            const SlotTable::Slot place = to_request_.front();
            Slot& slot = slots_[place];
            const ReadoutIndex readout = slot.next++;
            if (slot.next.value() == config_.readouts) {
                to_request_.pop();
            }
            if (any_is_lost_ && has_settled(place, readout)) {
                continue;
            }
            ++counters_.requests;
            ++outstanding_;
            out.request(slot.event, place, readout);
        }
    }

    /// Settles a fragment that has arrived or never will. Precondition: it is not yet settled.
    template <RequestingOut Out>
    void settle(SlotTable::Slot place, ReadoutIndex readout, Out& out) {
        settled_of(place)[readout.value() / 64] |= std::uint64_t{1} << (readout.value() % 64);
        Slot& slot = slots_[place];
        if (++slot.settled != config_.readouts) {
            return;
        }
        if (slot.missing > 0) {
            give_out_incomplete(place, out);
            return;
        }
        ++counters_.built;
        out.built(slot.event, place);
    }

    /// Settles a fragment that will never arrive. Precondition: the fragment is not settled.
    template <RequestingOut Out>
    void lack(SlotTable::Slot place, ReadoutIndex readout, Out& out) {
        ++slots_[place].missing;
        outstanding_ -= readout < slots_[place].next ? 1 : 0;
        settle(place, readout, out);
    }

    template <RequestingOut Out>
    void lose(ReadoutIndex readout, Out& out) {
        if (lost_[readout]) {
            return;
        }
        lost_[readout] = any_is_lost_ = true;
        for (SlotTable::Slot place = 0; place < slots_.size(); ++place) {
            if (slot_of(slots_[place].event) == place && !has_settled(place, readout)) {
                lack(place, readout, out);
            }
        }
    }

    template <RequestingOut Out>
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
            out.incomplete(slot.event, place);
        }
    }

    /// Frees the slot.
    template <RequestingOut Out>
    void release(SlotTable::Slot place, Out& out) {
        const EventId event = slots_[place].event;
        free_slot(event, place);
        out.done(event);
    }

    /// The event's slot if the fragment is requested and has not arrived; otherwise `none`.
    [[nodiscard]] SlotTable::Slot expected_in(EventId event, ReadoutIndex readout) const {
        const SlotTable::Slot slot = slot_of(event);
        const bool is_expected =
            slot != SlotTable::none && readout < slots_[slot].next && !has_settled(slot, readout);
        return is_expected ? slot : SlotTable::none;
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
    base::Ring<SlotTable::Slot>
        to_request_;  ///< slots with readout units not yet requested, oldest first
    std::uint64_t outstanding_ = 0;
    bool any_is_lost_ = false;
};

}  // namespace daqloom::protocol
