// The accepted events of a builder unit on their way to storage units.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/machines/slot_table.hpp"
#include "protocol/schedule/storage_rules.hpp"

namespace daqloom::protocol {

/// The outputs of a storage sender, implemented by its driver, which it must not call back.
template <class Out>
concept StoringOut = requires(Out& out, EventId event, SlotTable::Slot slot, StorageIndex unit,
                              base::Time at, std::uint32_t attempt) {
    /// Send the event in the slot to the storage unit, which acknowledges it (on_stored).
    out.store(event, slot, unit);
    out.set_deadline(at, event, attempt);  ///< call on_deadline at this time
    out.release(event);                    ///< the slot is no longer needed
};

/// Sends accepted events to storage units, and holds their slots until they are stored.
///
/// Invariants: accepted = stored + given_up + held. An event goes to the next storage unit when the
/// deadline of the last one is over, and is given up when no storage unit is left, so that it holds
/// its slot for units × timeout at most. A late acknowledgement of an event that is held counts
/// like another; of any other event, it is counted and otherwise ignored.
class StorageSender {
  public:
    struct Counters {
        std::uint64_t accepted = 0;
        std::uint64_t sent = 0;      ///< copies of events, one for each attempt
        std::uint64_t stored = 0;    ///< events acknowledged
        std::uint64_t given_up = 0;  ///< events that no storage unit acknowledged in time
        std::uint64_t late = 0;      ///< acknowledgements of events that are not held
    };

    /// `slots`: events that the builder unit holds at a time.
    StorageSender(StorageRules rules, std::uint64_t seed, std::uint32_t slots)
        : rules_(rules), seed_(seed), held_(slots) {}

    /// The event in the slot has been processed. False: it is not accepted, and nothing is done.
    template <StoringOut Out>
    bool on_processed(EventId event, SlotTable::Slot slot, base::Time now, Out& out) {
        if (!rules_.accepts(event, seed_)) {
            return false;
        }
        if (is_held(slot)) {
            return true;
        }
        ++counters_.accepted;
        held_[slot] = {.is_held = true};
        send(event, slot, now, out);
        return true;
    }
    /// A storage unit has stored the event, which is in this slot, or in none. False: the event is
    /// not held.
    template <StoringOut Out>
    bool on_stored(EventId event, SlotTable::Slot slot, Out& out) {
        if (!is_held(slot)) {
            ++counters_.late;
            return false;
        }
        ++counters_.stored;
        release(event, slot, out);
        return true;
    }
    /// The deadline of an attempt is over.
    template <StoringOut Out>
    void on_deadline(EventId event, SlotTable::Slot slot, std::uint32_t attempt, base::Time now,
                     Out& out) {
        if (!is_held(slot) || held_[slot].attempts != attempt + 1) {
            return;
        }
        if (held_[slot].attempts < rules_.units) {
            send(event, slot, now, out);
            return;
        }
        ++counters_.given_up;
        release(event, slot, out);
    }

    [[nodiscard]] const Counters& counters() const { return counters_; }
    /// Events accepted, and neither stored nor given up.
    [[nodiscard]] std::uint64_t held() const {
        return counters_.accepted - counters_.stored - counters_.given_up;
    }

  private:
    struct Held {
        bool is_held = false;
        std::uint32_t attempts = 0;
    };

    [[nodiscard]] bool is_held(SlotTable::Slot slot) const {
        return slot != SlotTable::none && held_[slot].is_held;
    }
    template <class Out>
    void send(EventId event, SlotTable::Slot slot, base::Time now, Out& out) {
        const std::uint32_t attempt = held_[slot].attempts++;
        ++counters_.sent;
        out.set_deadline(now + rules_.timeout, event, attempt);
        out.store(event, slot, rules_.unit_of(event, attempt));
    }
    template <class Out>
    void release(EventId event, SlotTable::Slot slot, Out& out) {
        held_[slot].is_held = false;
        out.release(event);
    }

    StorageRules rules_;
    std::uint64_t seed_;
    std::vector<Held> held_;  ///< by slot
    Counters counters_;
};

}  // namespace daqloom::protocol
