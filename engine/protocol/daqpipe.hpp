// DAQPIPE's event building: a few events in parallel per builder, a few fragments of each in
// flight, in the order of a barrel shifter, without barriers.
//
// The event manager (event_manager.hpp) gives a builder as many events at a time as it has credits:
// EventManagerConfig::concurrent_events. What follows is a message per fragment that says where in
// the builder's memory it belongs, and the fragment, written there.
//
// - Pull: the builder sends these messages one by one, as its fragments come in.
// - Push: it sends them all when it gets the event, and the readout units pace themselves.
// - Timed: a fragment goes only in the time slot in which it is its turn, by a common clock: slot n
//   is that of the readout unit n places beyond the builder. Pull or push alike.
//
// All three are the same two machines with other limits: in the pull the builder has one
// (`parallel_sends`), in the push the readout unit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/expected.hpp"
#include "base/ring.hpp"
#include "base/units.hpp"
#include "protocol/identifiers.hpp"
#include "protocol/slot_table.hpp"

namespace daqloom::protocol {

struct DaqpipeBuilderConfig {
    BuilderIndex self = 0;
    std::uint32_t sources = 1;         ///< readout units
    std::uint32_t credits = 1;         ///< events in parallel
    std::uint32_t parallel_sends = 1;  ///< fragments of one event in flight; 0: no limit (push)
    base::Bytes largest_fragment = base::Bytes{1} << 20;  ///< each has a place of this size
    bool is_timed = false;                                ///< asks when on_slot says so
};

/// What a builder asks of its driver. None of the three may call the builder back.
template <class Out>
concept DaqpipeBuilderOut =
    requires(Out& out, EventId event, SourceIndex source, base::Bytes place) {
        /// Tell the readout unit to write its fragment to this offset of the builder's memory.
        out.request(event, source, place);
        out.built(event);  ///< all fragments are here: process it, then call on_processed
        out.done(event);   ///< tell the event manager that there is a credit again
    };

/// Untimed, the k-th request of an event goes to source (self + k) mod sources: builders that run
/// in step, which nothing enforces, never ask the same one.
///
/// Invariants: every fragment of an event is requested once, to a place that overlaps no other's;
/// at most `parallel_sends` of an event are in flight; an event is built once, when the last of
/// them came. Whatever does not fit is counted and otherwise ignored.
class DaqpipeBuilder {
  public:
    struct Counters {
        std::uint64_t assigned = 0;
        std::uint64_t requests = 0;
        std::uint64_t fragments = 0;
        base::Bytes fragment_bytes = 0;
        std::uint64_t built = 0;
        std::uint64_t done = 0;
        std::uint64_t unexpected_assignments = 0;  ///< no credit is left, or the event is here
        std::uint64_t unexpected_fragments = 0;    ///< a duplicate, too large, or never requested
        std::uint64_t unexpected_processed = 0;    ///< the event is not here, or not built
        std::uint64_t unexpected_slots = 0;        ///< untimed, or a slot of the past
    };

    static base::expected<DaqpipeBuilder> make(DaqpipeBuilderConfig config);

    /// Bytes of memory that the fragments of `credits` events take.
    [[nodiscard]] base::Bytes memory() const {
        return config_.largest_fragment * config_.sources * config_.credits;
    }

    template <DaqpipeBuilderOut Out>
    void on_assigned(EventId event, Out& out) {
        if (free_.empty() || slot_of_.find(event) != SlotTable::none) {
            ++counters_.unexpected_assignments;
            return;
        }
        ++counters_.assigned;
        const SlotTable::Slot slot = free_.back();
        free_.pop_back();
        slot_of_.insert(event, slot);
        events_[slot] = {.event = event};
        std::fill_n(fragments_of(slot), config_.sources, Fragment::to_request);
        in_turn_.push(slot);
        request_what_the_limits_permit(slot, out);
    }

    template <DaqpipeBuilderOut Out>
    void on_fragment(EventId event, SourceIndex source, base::Bytes bytes, Out& out) {
        const SlotTable::Slot slot = slot_of_.find(event);
        if (slot == SlotTable::none || source >= config_.sources || bytes < 0 ||
            bytes > config_.largest_fragment || fragments_of(slot)[source] != Fragment::in_flight) {
            ++counters_.unexpected_fragments;
            return;
        }
        fragments_of(slot)[source] = Fragment::here;
        ++counters_.fragments;
        counters_.fragment_bytes += bytes;
        --events_[slot].in_flight;
        if (++events_[slot].here == config_.sources) {
            ++counters_.built;
            out.built(event);
            return;
        }
        request_what_the_limits_permit(slot, out);
    }

    template <DaqpipeBuilderOut Out>
    void on_processed(EventId event, Out& out) {
        const SlotTable::Slot slot = slot_of_.find(event);
        if (slot == SlotTable::none || events_[slot].here != config_.sources) {
            ++counters_.unexpected_processed;
            return;
        }
        slot_of_.erase(event);
        free_.push_back(slot);
        std::uint32_t place = 0;
        while (in_turn_[place] != slot) {
            ++place;
        }
        in_turn_.erase(place);
        ++counters_.done;
        out.done(event);
    }

    /// Timed: a time slot begins, counted from 0.
    template <DaqpipeBuilderOut Out>
    void on_slot(std::uint64_t slot, Out& out) {
        if (!config_.is_timed || (now_ && slot <= *now_)) {
            ++counters_.unexpected_slots;
            return;
        }
        now_ = slot;
        for (std::uint32_t place = 0; place < in_turn_.size(); ++place) {
            request_what_the_limits_permit(in_turn_[place], out);
        }
    }

    [[nodiscard]] const Counters& counters() const { return counters_; }
    /// Events assigned and not yet done.
    [[nodiscard]] std::size_t events_held() const { return events_.size() - free_.size(); }

  private:
    enum class Fragment : std::uint8_t { to_request, in_flight, here };

    struct Event {
        EventId event{};
        std::uint32_t requested = 0;
        std::uint32_t in_flight = 0;
        std::uint32_t here = 0;
    };

    explicit DaqpipeBuilder(DaqpipeBuilderConfig config);

    template <DaqpipeBuilderOut Out>
    void request_what_the_limits_permit(SlotTable::Slot slot, Out& out) {
        Event& event = events_[slot];
        while (event.requested < config_.sources && event.in_flight < limit_) {
            const std::optional<SourceIndex> source = next_source(slot);
            if (!source) {
                return;
            }
            fragments_of(slot)[*source] = Fragment::in_flight;
            ++event.requested;
            ++event.in_flight;
            ++counters_.requests;
            out.request(event.event, *source, place_of(slot, *source));
        }
    }

    /// None: it is not the turn of one that has still to be asked.
    [[nodiscard]] std::optional<SourceIndex> next_source(SlotTable::Slot slot) const {
        if (!config_.is_timed) {
            return beyond_self(events_[slot].requested);
        }
        if (!now_) {
            return std::nullopt;
        }
        const SourceIndex source = beyond_self(*now_);
        const bool is_to_request = fragments_[first_of(slot) + source] == Fragment::to_request;
        return is_to_request ? std::optional(source) : std::nullopt;
    }

    [[nodiscard]] SourceIndex beyond_self(std::uint64_t places) const {
        return static_cast<SourceIndex>((config_.self + places % config_.sources) %
                                        config_.sources);
    }
    [[nodiscard]] base::Bytes place_of(SlotTable::Slot slot, SourceIndex source) const {
        return config_.largest_fragment * static_cast<base::Bytes>(first_of(slot) + source);
    }
    [[nodiscard]] std::size_t first_of(SlotTable::Slot slot) const {
        return std::size_t{slot} * config_.sources;
    }
    [[nodiscard]] Fragment* fragments_of(SlotTable::Slot slot) {
        return fragments_.data() + first_of(slot);
    }

    DaqpipeBuilderConfig config_;
    std::uint32_t limit_;  ///< on fragments of an event in flight
    std::vector<Event> events_;
    std::vector<Fragment> fragments_;
    std::vector<SlotTable::Slot> free_;
    SlotTable slot_of_;
    base::Ring<SlotTable::Slot> in_turn_;  ///< events held, in the order they came
    std::optional<std::uint64_t> now_;     ///< time slot
    Counters counters_;
};

struct DaqpipeReadoutConfig {
    SourceIndex self = 0;
    std::uint32_t builders = 1;
    std::uint32_t credits = 1;  ///< of a builder: so many of its requests may wait
    /// Fragments in flight; 0: no limit (pull). For the load of a pull: its credits × parallel
    /// sends.
    std::uint32_t parallel_sends = 0;
    bool is_timed = false;  ///< sends when on_slot says so
};

struct DaqpipeWrite {
    EventId event;
    BuilderIndex builder;
    base::Bytes place;  ///< offset in the builder's memory
    base::Bytes bytes;

    friend constexpr bool operator==(const DaqpipeWrite&, const DaqpipeWrite&) = default;
};

/// What a readout unit asks of its driver. It must not call the unit back.
template <class Out>
concept DaqpipeReadoutOut = requires(Out& out, const DaqpipeWrite& write) {
    /// Write, tell the builder when it is there, and call on_write_done.
    out.write(write);
};

/// Untimed, builders are served in turn, from its own number downwards, as they ask in the pull's
/// barrel order; one that waits for nothing loses its turn. Requests of a builder are served in the
/// order they came. Timed, in slot n only builder (self − n) mod builders is served.
///
/// Invariants: a request is served once, while fragments in flight keep within their limit;
/// whatever does not fit is counted and otherwise ignored.
class DaqpipeReadout {
  public:
    struct Counters {
        std::uint64_t requests = 0;
        std::uint64_t fragments = 0;  ///< written
        base::Bytes fragment_bytes = 0;
        std::uint64_t unexpected_requests = 0;     ///< more than the builder has credits for, …
        std::uint64_t unexpected_completions = 0;  ///< more than writes under way
        std::uint64_t unexpected_slots = 0;        ///< untimed, or a slot of the past
    };

    static base::expected<DaqpipeReadout> make(DaqpipeReadoutConfig config);

    /// `bytes`: what this source holds of the event.
    template <DaqpipeReadoutOut Out>
    void on_request(EventId event, BuilderIndex builder, base::Bytes place, base::Bytes bytes,
                    Out& out) {
        if (builder >= config_.builders || waiting_[builder].size() == config_.credits ||
            place < 0 || bytes < 0) {
            ++counters_.unexpected_requests;
            return;
        }
        ++counters_.requests;
        ++requests_waiting_;
        waiting_[builder].push({event, builder, place, bytes});
        write_what_the_limits_permit(out);
    }

    template <DaqpipeReadoutOut Out>
    void on_write_done(Out& out) {
        if (in_flight_ == 0) {
            ++counters_.unexpected_completions;
            return;
        }
        --in_flight_;
        write_what_the_limits_permit(out);
    }

    /// Timed: a time slot begins, counted from 0.
    template <DaqpipeReadoutOut Out>
    void on_slot(std::uint64_t slot, Out& out) {
        if (!config_.is_timed || (now_ && slot <= *now_)) {
            ++counters_.unexpected_slots;
            return;
        }
        now_ = slot;
        in_turn_ = before_self(slot);
        write_what_the_limits_permit(out);
    }

    [[nodiscard]] const Counters& counters() const { return counters_; }
    [[nodiscard]] std::uint64_t requests_waiting() const { return requests_waiting_; }
    [[nodiscard]] std::uint64_t in_flight() const { return in_flight_; }

  private:
    explicit DaqpipeReadout(DaqpipeReadoutConfig config);

    template <DaqpipeReadoutOut Out>
    void write_what_the_limits_permit(Out& out) {
        while (requests_waiting_ > 0 && in_flight_ < limit_ && find_who_is_next()) {
            const DaqpipeWrite write = waiting_[in_turn_].front();
            waiting_[in_turn_].pop();
            if (!config_.is_timed) {
                in_turn_ = one_before(in_turn_);
            }
            --requests_waiting_;
            ++in_flight_;
            ++counters_.fragments;
            counters_.fragment_bytes += write.bytes;
            out.write(write);
        }
    }

    /// Puts `in_turn_` on the builder to be served. False: timed, and it does not wait for
    /// anything.
    bool find_who_is_next() {
        if (config_.is_timed) {
            return now_ && !waiting_[in_turn_].empty();
        }
        while (waiting_[in_turn_].empty()) {
            in_turn_ = one_before(in_turn_);
        }
        return true;
    }

    [[nodiscard]] BuilderIndex before_self(std::uint64_t places) const {
        const auto back = static_cast<BuilderIndex>(places % config_.builders);
        return (config_.self % config_.builders + config_.builders - back) % config_.builders;
    }
    [[nodiscard]] BuilderIndex one_before(BuilderIndex builder) const {
        return builder == 0 ? config_.builders - 1 : builder - 1;
    }

    DaqpipeReadoutConfig config_;
    std::uint64_t limit_;                            ///< on fragments in flight
    std::vector<base::Ring<DaqpipeWrite>> waiting_;  ///< per builder
    std::uint64_t requests_waiting_ = 0;
    std::uint64_t in_flight_ = 0;
    BuilderIndex in_turn_;
    std::optional<std::uint64_t> now_;  ///< time slot
    Counters counters_;
};

}  // namespace daqloom::protocol
