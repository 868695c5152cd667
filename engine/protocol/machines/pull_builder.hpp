// The builder unit of the pull protocol: requests an event's fragments from all readout units,
// collects them, and reports the event when it has been processed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/expected.hpp"
#include "base/ring.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/machines/slot_table.hpp"

namespace daqloom::protocol {

struct PullBuilderConfig {
    std::uint32_t readouts = 1;
    std::uint32_t outstanding_fragments = 0;  ///< requested and not yet here; 0: no limit
    std::uint32_t concurrent_events = 32;
};

/// The outputs of a builder unit, which the driver implements. None may call the builder unit back.
template <class Out>
concept PullBuilderOut = requires(Out& out, EventId event, ReadoutIndex readout) {
    out.request(event, readout);
    out.built(event);  ///< all fragments are here: process it, then call on_processed
    out.done(event);   ///< the slot is free again: tell the event manager
};

/// Requests go out oldest event first, readout units in the order 0, 1, …, as many at once as the
/// limit on outstanding fragments permits.
///
/// Invariants: every fragment of an assigned event is requested once; an event is built once, when
/// its last fragment has arrived; outstanding fragments and held events stay within their limits.
/// Invalid input (a duplicate event or fragment, a fragment that was not requested, …) is counted
/// and otherwise ignored.
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
        std::uint64_t unexpected_assignments =
            0;                                   ///< no slot is free, or the event is here already
        std::uint64_t unexpected_fragments = 0;  ///< a duplicate, or never requested
        std::uint64_t unexpected_processed = 0;  ///< the event is not here, or not built
    };

    static base::expected<PullBuilder> make(PullBuilderConfig config);

    template <PullBuilderOut Out>
    void on_assigned(EventId event, Out& out) {
        if (free_slots_.empty() || slot_of_.find(event) != SlotTable::none) {
            ++counters_.unexpected_assignments;
            return;
        }
        ++counters_.assigned;
        const SlotTable::Slot slot = free_slots_.back();
        free_slots_.pop_back();
        slot_of_.insert(event, slot);
        slots_[slot] = {.event = event};
        std::fill_n(received_of(slot), words_per_slot_, std::uint64_t{0});
        to_request_.push(slot);
        request_what_the_limit_permits(out);
    }

    template <PullBuilderOut Out>
    void on_fragment(EventId event, ReadoutIndex readout, base::Bytes bytes, Out& out) {
        const SlotTable::Slot slot = slot_of_.find(event);
        if (slot == SlotTable::none || readout >= slots_[slot].next || bytes < 0) {
            ++counters_.unexpected_fragments;
            return;
        }
        std::uint64_t& word = received_of(slot)[readout.value() / 64];
        const std::uint64_t bit = std::uint64_t{1} << (readout.value() % 64);
        if ((word & bit) != 0) {
            ++counters_.unexpected_fragments;
            return;
        }
        word |= bit;
        ++counters_.fragments;
        counters_.fragment_bytes += static_cast<std::uint64_t>(bytes);
        --outstanding_;
        if (++slots_[slot].received == config_.readouts) {
            ++counters_.built;
            out.built(event);
        }
        request_what_the_limit_permits(out);
    }

    template <PullBuilderOut Out>
    void on_processed(EventId event, Out& out) {
        const SlotTable::Slot slot = slot_of_.find(event);
        if (slot == SlotTable::none || slots_[slot].received != config_.readouts) {
            ++counters_.unexpected_processed;
            return;
        }
        slot_of_.erase(event);
        free_slots_.push_back(slot);
        ++counters_.done;
        out.done(event);
    }

    [[nodiscard]] const Counters& counters() const { return counters_; }
    /// Fragments requested and not yet here.
    [[nodiscard]] std::uint64_t outstanding() const { return outstanding_; }
    /// Events assigned and not yet done.
    [[nodiscard]] std::size_t events_held() const { return slots_.size() - free_slots_.size(); }

  private:
    struct Slot {
        EventId event{};
        ReadoutIndex next{};  ///< the readout units before this one were asked
        std::uint32_t received = 0;
    };

    explicit PullBuilder(PullBuilderConfig config);

    template <PullBuilderOut Out>
    void request_what_the_limit_permits(Out& out) {
        while (outstanding_ < limit_ && !to_request_.empty()) {
            Slot& slot = slots_[to_request_.front()];
            const ReadoutIndex readout = slot.next++;
            if (slot.next.value() == config_.readouts) {
                to_request_.pop();
            }
            ++counters_.requests;
            ++outstanding_;
            counters_.outstanding_peak = std::max(counters_.outstanding_peak, outstanding_);
            out.request(slot.event, readout);
        }
    }

    /// One bit per readout unit.
    [[nodiscard]] std::uint64_t* received_of(SlotTable::Slot slot) {
        return received_.data() + std::size_t{slot} * words_per_slot_;
    }

    PullBuilderConfig config_;
    std::uint64_t limit_;  ///< on outstanding fragments
    std::size_t words_per_slot_;
    std::vector<Slot> slots_;
    std::vector<std::uint64_t> received_;
    std::vector<SlotTable::Slot> free_slots_;
    SlotTable slot_of_;
    base::Ring<SlotTable::Slot>
        to_request_;  ///< slots with readout units not yet asked, oldest first
    std::uint64_t outstanding_ = 0;
    Counters counters_;
};

}  // namespace daqloom::protocol
