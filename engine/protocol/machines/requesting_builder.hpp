// Common state of builder units that request fragments (pull, DAQPIPE): the events that they
// collect, their slots, lost readout units, and the last event of an epoch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "base/index.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/machines/last_assignment.hpp"
#include "protocol/machines/slot_table.hpp"

namespace daqloom::protocol {

/// The outputs of these builder units, implemented by their driver, which they must not call back.
template <class Out>
concept RequestingOut = requires(Out& out, EventId event, SlotTable::Slot slot,
                                 ReadoutIndex readout, std::uint64_t requests) {
    /// Order the readout unit to write its fragment of the event to its place in the slot.
    out.request(event, slot, readout);
    out.built(event, slot);  ///< all fragments have arrived: process it, then call on_processed
    out.incomplete(event, slot);  ///< like `built`, but some fragments never arrive
    out.done(event);              ///< notify the event manager of the free slot
    /// At the end of an epoch: send the readout unit the total number of requests.
    out.last_request(readout, requests);
};

/// Base of builder units that request fragments. Each collected event has its own slot.
class RequestingBuilder {
  public:
    struct Counters {
        std::uint64_t assigned = 0;
        std::uint64_t requests = 0;
        std::uint64_t fragments = 0;
        base::Bytes fragment_bytes = 0;
        std::uint64_t built = 0;
        std::uint64_t done = 0;
        std::uint64_t incomplete = 0;  ///< events delivered without some fragments
        std::uint64_t dropped = 0;     ///< events that lacked some fragments
        std::uint64_t late = 0;        ///< assignments ignored while the epoch was being closed
        std::uint64_t from_lost = 0;   ///< fragments ignored because their readout unit was lost
        std::uint64_t unexpected_assignments = 0;  ///< no slot is free, or the event is held
        std::uint64_t unexpected_fragments = 0;    ///< a duplicate, too large, or never requested
        std::uint64_t unexpected_processed = 0;    ///< the event is not held, or not built
        std::uint64_t unexpected_slots = 0;        ///< time slots: untimed, or in the past
    };

    /// Sets the total number of events assigned to this builder unit in the epoch. May be called
    /// before on_close and before the last events.
    template <RequestingOut Out>
    void on_last_assignment(std::uint64_t events, Out& out) {
        if (!last_assignment_.set(events, counters_.assigned)) {
            ++counters_.unexpected_assignments;
            return;
        }
        report_last_assignment(out);
    }
    /// The event manager is lost: the events assigned until now are the last of the epoch.
    template <RequestingOut Out>
    void on_event_manager_lost(Out& out) {
        last_assignment_.end_at(counters_.assigned);
        report_last_assignment(out);
    }

    /// One more than the last event number that this builder has taken.
    [[nodiscard]] std::uint64_t next_event() const { return next_event_; }
    /// The slot of an event that the builder unit holds; otherwise `SlotTable::none`.
    [[nodiscard]] SlotTable::Slot slot_of(EventId event) const { return slot_of_.find(event); }

    [[nodiscard]] const Counters& counters() const { return counters_; }
    /// Events assigned and not yet done.
    [[nodiscard]] std::size_t events_held() const { return slots_ - free_slots_.size(); }

  protected:
    /// `slots`: events collected at a time.
    RequestingBuilder(std::uint32_t readouts, std::uint32_t slots)
        : lost_(readouts), slots_(slots), free_slots_(slots), slot_of_(slots) {
        std::iota(free_slots_.begin(), free_slots_.end(), SlotTable::Slot{0});
    }

    /// Gives an assigned event a slot. `none`: the event is refused and counted.
    SlotTable::Slot take(EventId event) {
        if (last_assignment_.is_reached(counters_.assigned)) {
            ++counters_.late;
            return SlotTable::none;
        }
        if (free_slots_.empty() || slot_of(event) != SlotTable::none) {
            ++counters_.unexpected_assignments;
            return SlotTable::none;
        }
        ++counters_.assigned;
        const SlotTable::Slot slot = free_slots_.back();
        free_slots_.pop_back();
        slot_of_.insert(event, slot);
        next_event_ = std::max(next_event_, static_cast<std::uint64_t>(event) + 1);
        return slot;
    }
    void free_slot(EventId event, SlotTable::Slot slot) {
        slot_of_.erase(event);
        free_slots_.push_back(slot);
    }
    void refuse_fragment(ReadoutIndex readout) {
        ++(is_lost(readout) ? counters_.from_lost : counters_.unexpected_fragments);
    }
    [[nodiscard]] bool is_lost(ReadoutIndex readout) const {
        return lost_.contains(readout) && lost_[readout];
    }
    /// Sends the total number of requests to all live readout units, once the epoch is closing and
    /// all events are assigned.
    template <RequestingOut Out>
    void report_last_assignment(Out& out) {
        if (!last_assignment_.is_due(counters_.assigned)) {
            return;
        }
        for (const ReadoutIndex readout : lost_.indices()) {
            if (!lost_[readout]) {
                out.last_request(readout, counters_.assigned);
            }
        }
    }

    Counters counters_;
    base::Table<ReadoutIndex, bool> lost_;
    LastAssignment last_assignment_;

  private:
    std::size_t slots_;
    std::vector<SlotTable::Slot> free_slots_;
    SlotTable slot_of_;
    std::uint64_t next_event_ = 0;
};

}  // namespace daqloom::protocol
