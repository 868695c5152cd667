// DAQPIPE's event building: each builder unit collects a few events in parallel, with a few
// fragments of each in flight, in the order of a barrel shifter, without barriers.
//
// The event manager (event_manager.hpp) assigns a builder unit as many events at a time as it has
// credits. For each fragment, a request message names a place in the builder unit's memory, to
// which the readout unit writes the fragment.
//
// - Pull: the builder unit sends the requests one by one, as fragments arrive. - Push: it sends all
// requests of an event together, and readout units limit their writes. - Timed (pull or push): in
// slot n of a common clock, readout unit (b + n) mod readouts sends to builder unit b.
//
// In pull, `parallel_sends` limits the builder unit's requests; in push, the readout unit's writes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
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

struct DaqpipeBuilderConfig {
    BuilderIndex self{};
    std::uint32_t readouts = 1;        ///< readout units
    std::uint32_t credits = 1;         ///< events in parallel
    std::uint32_t parallel_sends = 1;  ///< fragments of one event in flight; 0: no limit (push)
    base::Bytes largest_fragment = base::Bytes{1} << 20;
    bool is_timed = false;  ///< requests in time slots
    WhenIncomplete when_incomplete = WhenIncomplete::deliver;
};

/// The builder unit of DAQPIPE. Untimed, the k-th request of an event goes to readout unit (self +
/// k) mod readouts: builder units in step (nothing enforces this) never use the same readout unit.
///
/// Invariants: every fragment of an event is requested once, to memory that overlaps no other
/// fragment; at most `parallel_sends` fragments of an event are in flight; an event is built once,
/// when its last fragment has arrived. Invalid input is counted and otherwise ignored.
///
/// on_close ends an epoch. Once is_drained, every assigned event has the fragments of all live
/// readout units. on_end delivers or drops the events that lack fragments of lost units.
class DaqpipeBuilder : public RequestingBuilder {
  public:
    using Config = DaqpipeBuilderConfig;

    static base::expected<DaqpipeBuilder> make(Config config);

    template <RequestingOut Out>
    void on_assigned(EventId event, Out& out) {
        const SlotTable::Slot slot = take(event);
        if (slot == SlotTable::none) {
            return;
        }
        events_[slot] = {.event = event};
        std::fill_n(&fragment(slot, ReadoutIndex()), config_.readouts, Fragment::to_request);
        in_turn_.push(slot);
        for (const ReadoutIndex readout : lost_.indices()) {
            if (lost_[readout]) {
                fragment(slot, readout) = Fragment::lost;
                ++events_[slot].requested;
            }
        }
        request_what_the_limits_permit(slot, out);
        report_last_assignment(out);
    }

    template <RequestingOut Out>
    void on_fragment(EventId event, ReadoutIndex readout, base::Bytes bytes, Out& out) {
        const SlotTable::Slot slot = slot_of(event);
        if (slot == SlotTable::none || !lost_.contains(readout) || bytes < 0 ||
            bytes > config_.largest_fragment || fragment(slot, readout) != Fragment::in_flight) {
            refuse_fragment(readout);
            return;
        }
        fragment(slot, readout) = Fragment::here;
        ++counters_.fragments;
        counters_.fragment_bytes += bytes;
        --events_[slot].in_flight;
        if (++events_[slot].here == config_.readouts) {
            events_[slot].is_given_out = true;
            ++counters_.built;
            out.built(event, slot);
            return;
        }
        request_what_the_limits_permit(slot, out);
    }

    template <RequestingOut Out>
    void on_processed(EventId event, Out& out) {
        const SlotTable::Slot slot = slot_of(event);
        if (slot == SlotTable::none || !events_[slot].is_given_out) {
            ++counters_.unexpected_processed;
            return;
        }
        std::uint32_t place = 0;
        while (in_turn_[place] != slot) {
            ++place;
        }
        release(place);
        ++counters_.done;
        out.done(event);
    }

    /// Timed: begins time slot `slot`, counted from 0.
    template <RequestingOut Out>
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

    // ---- the end of an epoch ------------------------------------------------------------------

    /// Begins the end of the epoch: events are accepted up to the total of on_last_assignment, and
    /// nothing more arrives from lost readout units. Called again when more are lost. Precondition:
    /// the units in `lost` exist.
    template <RequestingOut Out>
    void on_close(std::span<const ReadoutIndex> lost, Out& out) {
        for (const ReadoutIndex readout : lost) {
            lose(readout);
        }
        last_assignment_.close();
        report_last_assignment(out);
        for (std::uint32_t place = 0; place < in_turn_.size(); ++place) {
            request_what_the_limits_permit(in_turn_[place], out);
        }
    }

    /// After on_close: whether all assigned events have the fragments of all live readout units.
    [[nodiscard]] bool is_drained() const;

    /// Ends the epoch: events that lack fragments are delivered or dropped (`when_incomplete`), in
    /// the order of their assignment. Precondition: is_drained.
    template <RequestingOut Out>
    void on_end(Out& out) {
        for (std::uint32_t place = 0; place < in_turn_.size();) {
            const SlotTable::Slot slot = in_turn_[place];
            Event& event = events_[slot];
            if (event.is_given_out) {
                ++place;
            } else if (config_.when_incomplete == WhenIncomplete::deliver && has_any(slot)) {
                ++place;
                ++counters_.incomplete;
                event.is_given_out = true;
                out.incomplete(event.event, slot);
            } else {
                ++counters_.dropped;
                release(place);
            }
        }
    }

    /// For a held event: whether the readout unit's fragment has arrived.
    [[nodiscard]] bool is_here(EventId event, ReadoutIndex readout) const {
        return fragments_[place_in_table(slot_of(event), readout)] == Fragment::here;
    }

  private:
    enum class Fragment : std::uint8_t { to_request, in_flight, here, lost };

    struct Event {
        EventId event{};
        std::uint32_t next = 0;       ///< untimed: next readout unit to request from, beyond self
        std::uint32_t requested = 0;  ///< fragments requested, or lost before
        std::uint32_t in_flight = 0;
        std::uint32_t here = 0;
        bool is_given_out = false;
    };

    explicit DaqpipeBuilder(DaqpipeBuilderConfig config);

    void lose(ReadoutIndex readout);
    /// Releases the event at this place of `in_turn_`.
    void release(std::uint32_t place);

    template <RequestingOut Out>
    void request_what_the_limits_permit(SlotTable::Slot slot, Out& out) {
        Event& event = events_[slot];
        while (event.requested < config_.readouts && event.in_flight < limit_) {
            const std::optional<ReadoutIndex> readout = next_readout(slot);
            if (!readout) {
                return;
            }
            fragment(slot, *readout) = Fragment::in_flight;
            ++event.requested;
            ++event.in_flight;
            ++counters_.requests;
            out.request(event.event, slot, *readout);
        }
    }

    /// Readout unit of the next request. Timed: none if the slot's fragment is requested or lost.
    [[nodiscard]] std::optional<ReadoutIndex> next_readout(SlotTable::Slot slot) {
        if (!config_.is_timed) {
            std::uint32_t& next = events_[slot].next;
            while (fragment(slot, beyond_self(next)) != Fragment::to_request) {
                ++next;
            }
            return beyond_self(next);
        }
        if (!now_) {
            return std::nullopt;
        }
        const ReadoutIndex readout = beyond_self(*now_);
        const bool is_to_request = fragment(slot, readout) == Fragment::to_request;
        return is_to_request ? std::optional(readout) : std::nullopt;
    }

    [[nodiscard]] ReadoutIndex beyond_self(std::uint64_t places) const {
        return ReadoutIndex((config_.self.value() + places % config_.readouts) % config_.readouts);
    }
    [[nodiscard]] std::size_t first_of(SlotTable::Slot slot) const {
        return std::size_t{slot} * config_.readouts;
    }
    [[nodiscard]] std::size_t place_in_table(SlotTable::Slot slot, ReadoutIndex readout) const {
        return first_of(slot) + readout.value();
    }
    /// Whether any of the event's fragments has arrived.
    [[nodiscard]] bool has_any(SlotTable::Slot slot) const {
        const auto first = fragments_.begin() + static_cast<std::ptrdiff_t>(first_of(slot));
        const auto end = first + config_.readouts;
        return std::find(first, end, Fragment::here) != end;
    }
    [[nodiscard]] Fragment& fragment(SlotTable::Slot slot, ReadoutIndex readout) {
        return fragments_[place_in_table(slot, readout)];
    }

    DaqpipeBuilderConfig config_;
    std::uint32_t limit_;  ///< on fragments of an event in flight
    std::vector<Event> events_;
    std::vector<Fragment> fragments_;
    base::Ring<SlotTable::Slot> in_turn_;  ///< events held, in the order of their assignment
    std::optional<std::uint64_t> now_;     ///< current time slot
};

struct DaqpipeReadoutConfig {
    ReadoutIndex self{};
    std::uint32_t builders = 1;
    std::uint32_t credits = 1;  ///< credits of a builder: limit on its waiting requests
    /// Limit on fragments in flight; 0: no limit (pull). A push with the pull's credits ×
    /// `parallel_sends` here causes the same load.
    std::uint32_t parallel_sends = 0;
    bool is_timed = false;  ///< sends in time slots
};

struct DaqpipeWrite {
    EventId event;
    BuilderIndex builder{};
    base::Bytes place;  ///< offset in the builder's memory
    base::Bytes bytes;

    friend constexpr bool operator==(const DaqpipeWrite&, const DaqpipeWrite&) = default;
};

/// The outputs of a readout unit, implemented by its driver. They must not call the unit back.
template <class Out>
concept DaqpipeReadoutOut = requires(Out& out, const DaqpipeWrite& write) {
    /// Write the fragment, notify the builder unit of its arrival, and call on_write_done.
    out.write(write);
};

/// The readout unit of DAQPIPE. Untimed, it serves builder units in turn, from its own number
/// downwards (barrel order), and skips those without a pending request. Requests of one builder
/// unit are served in order of arrival. Timed, only builder unit (self − n) mod builders is served
/// in slot n.
///
/// Invariants: a request is served once; fragments in flight stay within their limit. Invalid input
/// is counted and otherwise ignored.
///
/// on_close ends an epoch. Once is_drained, all requests of live builder units have been served.
class DaqpipeReadout {
  public:
    struct Counters {
        std::uint64_t requests = 0;
        std::uint64_t fragments = 0;  ///< written
        base::Bytes fragment_bytes = 0;
        std::uint64_t lost_requests = 0;        ///< dropped because their builder was lost
        std::uint64_t from_lost = 0;            ///< requests ignored because their builder was lost
        std::uint64_t unexpected_requests = 0;  ///< more than the builder's credits, …
        std::uint64_t unexpected_completions = 0;  ///< more than writes under way
        std::uint64_t unexpected_slots = 0;        ///< untimed, or a past slot
    };

    static base::expected<DaqpipeReadout> make(DaqpipeReadoutConfig config);

    /// `bytes`: size of this readout unit's fragment of the event.
    template <DaqpipeReadoutOut Out>
    void on_request(EventId event, BuilderIndex builder, base::Bytes place, base::Bytes bytes,
                    Out& out) {
        if (!builders_.contains(builder) || builders_[builder].is_lost ||
            builders_[builder].waiting.size() == config_.credits || place < 0 || bytes < 0) {
            ignore_request(builder);
            return;
        }
        ++counters_.requests;
        ++requests_waiting_;
        ++builders_[builder].requests;
        builders_[builder].waiting.push({event, builder, place, bytes});
        write_what_the_limits_permit(out);
    }

    /// A write to this builder is done.
    template <DaqpipeReadoutOut Out>
    void on_write_done(BuilderIndex builder, Out& out) {
        if (!builders_.contains(builder) || builders_[builder].in_flight == 0) {
            ++counters_.unexpected_completions;
            return;
        }
        --builders_[builder].in_flight;
        if (builders_[builder].is_lost) {
            return;
        }
        --in_flight_;
        write_what_the_limits_permit(out);
    }

    /// Timed: begins time slot `slot`, counted from 0.
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

    // ---- the end of an epoch ------------------------------------------------------------------

    /// Sets the total number of fragments that the builder unit requests in this epoch. May be
    /// called before on_close and before the last requests arrive.
    void on_last_request(BuilderIndex builder, std::uint64_t requests);

    /// Begins the end of the epoch: requests of lost builder units are dropped, and writes to them
    /// are not awaited. Called again when more are lost. Precondition: the units in `lost` exist.
    template <DaqpipeReadoutOut Out>
    void on_close(std::span<const BuilderIndex> lost, Out& out) {
        is_closing_ = true;
        for (const BuilderIndex builder : lost) {
            lose(builders_[builder]);
        }
        write_what_the_limits_permit(out);
    }

    /// After on_close: whether all fragments requested by live builder units have been written.
    [[nodiscard]] bool is_drained() const;
    /// Whether the builder unit is lost, or has received all that it requests in this epoch but for
    /// `waiting` fragments, whose requests have not been given to on_request.
    [[nodiscard]] bool is_served(BuilderIndex builder, std::uint64_t waiting) const;

    /// One more than the last event number whose fragment was written. The next epoch begins with
    /// the largest value of all live units.
    [[nodiscard]] std::uint64_t next_event() const { return next_event_; }

    [[nodiscard]] const Counters& counters() const { return counters_; }
    [[nodiscard]] std::uint64_t requests_waiting() const { return requests_waiting_; }
    /// Writes under way to builders that are not lost.
    [[nodiscard]] std::uint64_t in_flight() const { return in_flight_; }

  private:
    static constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();

    struct Builder {
        base::Ring<DaqpipeWrite> waiting;
        std::uint64_t in_flight = 0;
        std::uint64_t requests = 0;
        std::uint64_t last_request = unknown;  ///< as in on_last_request
        bool is_lost = false;
    };

    void ignore_request(BuilderIndex builder);
    void lose(Builder& builder);

    explicit DaqpipeReadout(DaqpipeReadoutConfig config);

    template <DaqpipeReadoutOut Out>
    void write_what_the_limits_permit(Out& out) {
        while (requests_waiting_ > 0 && in_flight_ < limit_ && find_who_is_next()) {
            Builder& builder = builders_[in_turn_];
            const DaqpipeWrite write = builder.waiting.front();
            builder.waiting.pop();
            ++builder.in_flight;
            if (!config_.is_timed) {
                in_turn_ = one_before(in_turn_);
            }
            --requests_waiting_;
            ++in_flight_;
            ++counters_.fragments;
            counters_.fragment_bytes += write.bytes;
            next_event_ = std::max(next_event_, static_cast<std::uint64_t>(write.event) + 1);
            out.write(write);
        }
    }

    /// Sets `in_turn_` to the builder unit to serve. False: timed, and it has no request.
    bool find_who_is_next() {
        if (config_.is_timed) {
            return now_ && !builders_[in_turn_].waiting.empty();
        }
        while (builders_[in_turn_].waiting.empty()) {
            in_turn_ = one_before(in_turn_);
        }
        return true;
    }

    [[nodiscard]] BuilderIndex before_self(std::uint64_t places) const {
        const std::uint32_t builders = config_.builders;
        return BuilderIndex((config_.self.value() % builders + builders - places % builders) %
                            builders);
    }
    [[nodiscard]] BuilderIndex one_before(BuilderIndex builder) const {
        return BuilderIndex((builder == BuilderIndex() ? config_.builders : builder.value()) - 1);
    }

    DaqpipeReadoutConfig config_;
    std::uint64_t limit_;  ///< limit on fragments in flight
    base::Table<BuilderIndex, Builder> builders_;
    std::uint64_t requests_waiting_ = 0;
    std::uint64_t in_flight_ = 0;  ///< writes under way to builders that are not lost
    BuilderIndex in_turn_;
    std::optional<std::uint64_t> now_;  ///< current time slot
    bool is_closing_ = false;
    std::uint64_t next_event_ = 0;
    Counters counters_;
};

}  // namespace daqloom::protocol
