// For tests and fuzzing: DAQPIPE's event manager, builder and readout units in virtual time, until
// units are lost and the epoch is closed. Messages and writes take any time; every promise about
// the end of an epoch is checked against a plain model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/byte_source_test.hpp"
#include "protocol/machines/daqpipe.hpp"
#include "protocol/machines/unit_fates_test.hpp"
#include "protocol/schedule/event_manager.hpp"

namespace daqloom::protocol {

class DaqpipeCheck {
  public:
    struct Summary {
        std::string broken_promise;  ///< the first; or nothing
        std::uint64_t built = 0;
        std::uint64_t incomplete = 0;
        std::uint64_t dropped = 0;
        std::uint64_t lost_requests = 0;
        std::uint64_t from_lost = 0;
        std::uint64_t late = 0;
    };

    /// The first bytes choose the configuration, each later one a delay.
    static Summary play(std::span<const std::uint8_t> input) {
        DaqpipeCheck check(input);
        check.run();
        return check.summary_;
    }

  private:
    using Bytes = base::Bytes;
    using Time = base::Time;

    static constexpr std::uint64_t events = 40;
    static constexpr Bytes largest = 10;
    static constexpr Time slot_length = base::nanoseconds(200);
    static constexpr std::uint64_t most_slots = 5'000;

    struct Step {
        Time due;
        std::uint64_t number;
        std::function<void()> action;
        bool operator<(const Step& other) const {
            return std::tie(due, number) > std::tie(other.due, other.number);
        }
    };
    /// An event as the model knows it.
    struct Event {
        std::optional<BuilderIndex> builder;   ///< that has taken it
        std::map<ReadoutIndex, Bytes> places;  ///< asked for
        std::set<ReadoutIndex> written;
        std::set<ReadoutIndex> here;
        bool is_built = false;
        bool is_incomplete = false;
    };

    struct ManagerOut {
        DaqpipeCheck& check;
        void assign(EventId event, BuilderIndex builder) {
            check.message(check.builder_fates_[builder], [&c = check, event, builder] {
                BuilderOut out{c, builder};
                const std::uint64_t before = c.builders_[builder].counters().assigned;
                c.builders_[builder].on_assigned(event, out);
                if (c.builders_[builder].counters().assigned > before) {
                    c.event(event).builder = builder;
                }
            });
        }
        void last_assignment(BuilderIndex builder, std::uint64_t count) {
            check.message(check.builder_fates_[builder], [&c = check, builder, count] {
                BuilderOut out{c, builder};
                if (!c.is_manager_lost_) {  // else the builder may have been told
                    c.builders_[builder].on_last_assignment(count, out);
                }
            });
        }
    };
    struct BuilderOut {
        DaqpipeCheck& check;
        BuilderIndex self;
        void request(EventId event, ReadoutIndex readout, Bytes place) {
            check.requested(self, event, readout, place);
        }
        void built(EventId event) { check.built(self, event); }
        void done(EventId) {
            ManagerOut out{check};
            if (!check.is_manager_lost_) {
                check.manager_.on_builder_done(self, out);
            }
        }
        void last_request(ReadoutIndex readout, std::uint64_t requests) {
            check.promise(!check.builder_fates_[self].sees_lost[readout],
                          "nothing is said to a lost unit");
            check.message(check.readout_fates_[readout], [&c = check, b = self, readout, requests] {
                c.readouts_[readout].on_last_request(b, requests);
            });
        }
        void incomplete(EventId event) { check.incomplete(self, event); }
    };
    struct ReadoutOut {
        DaqpipeCheck& check;
        ReadoutIndex self;
        void write(const DaqpipeWrite& write) { check.write(self, write); }
    };

    explicit DaqpipeCheck(std::span<const std::uint8_t> input) : input_(input) {
        const std::uint32_t readouts = 1U + input_.byte() % 4;
        const std::uint32_t builders = 1U + input_.byte() % 4;
        const std::uint32_t credits = 1U + input_.byte() % 3;
        const std::uint32_t sends = 1U + input_.byte() % 3;
        const std::uint8_t choice = input_.byte();
        is_push_ = (choice & 1) != 0;
        is_timed_ = (choice & 6) == 6;
        when_incomplete_ = static_cast<WhenIncomplete>(choice >> 3 & 1);
        manager_ = *EventManager::make({.builders = builders, .concurrent_events = credits},
                                       base::RandomStream(1, "assignment"));
        for (const BuilderIndex b : base::IndexRange<BuilderIndex>(builders)) {
            builders_.push_back(*DaqpipeBuilder::make({.self = b,
                                                       .readouts = readouts,
                                                       .credits = credits,
                                                       .parallel_sends = is_push_ ? 0 : sends,
                                                       .largest_fragment = largest,
                                                       .is_timed = is_timed_ && !is_push_,
                                                       .when_incomplete = when_incomplete_}));
        }
        for (const ReadoutIndex r : base::IndexRange<ReadoutIndex>(readouts)) {
            readouts_.push_back(*DaqpipeReadout::make({.self = r,
                                                       .builders = builders,
                                                       .credits = credits,
                                                       .parallel_sends = is_push_ ? sends : 0,
                                                       .is_timed = is_timed_ && is_push_}));
        }
        sends_ = sends;
        readout_fates_ = choose_fates<ReadoutIndex, BuilderIndex>(readouts, builders, input_);
        builder_fates_ = choose_fates<BuilderIndex, ReadoutIndex>(builders, readouts, input_);
    }

    // ---- the run ------------------------------------------------------------------------------

    void run() {
        for (std::uint64_t id = 0; id < events; ++id) {
            ManagerOut out{*this};
            manager_.on_event(EventId{id}, out);
        }
        if (is_timed_) {
            begin_slot(0);
        }
        const Time first = base::nanoseconds(24 * input_.byte());
        at(first, [this] { close(1); });
        at(first + base::nanoseconds(8 * input_.byte()), [this] { close(2); });
        while (summary_.broken_promise.empty() && !steps_.empty()) {
            const Step step = steps_.top();
            steps_.pop();
            now_ = step.due;
            step.action();
            if (is_closing_ && !next_event_ && is_drained()) {
                end();
            }
        }
        compare_at_the_end();
    }

    void begin_slot(std::uint64_t slot) {
        for (const BuilderIndex b : builders_.indices()) {
            BuilderOut out{*this, b};
            if (!is_push_ && !builder_fates_[b].is_dead()) {
                builders_[b].on_slot(slot, out);
            }
        }
        for (const ReadoutIndex r : readouts_.indices()) {
            ReadoutOut out{*this, r};
            if (is_push_ && !readout_fates_[r].is_dead()) {
                readouts_[r].on_slot(slot, out);
            }
        }
        if (slot < most_slots && !next_event_) {
            at(now_ + slot_length, [this, slot] { begin_slot(slot + 1); });
        }
    }

    void close(std::uint32_t wave) {
        if (next_event_) {
            return;
        }
        is_closing_ = true;
        const auto lost_readouts = lose(readout_fates_, wave);
        const auto lost_builders = lose(builder_fates_, wave);
        is_manager_lost_ = is_manager_lost_ || input_.byte() % 2 == 0;
        later([this] {
            if (!is_manager_lost_) {
                ManagerOut out{*this};
                manager_.on_close(out);
            }
        });
        for (const BuilderIndex b : builders_.indices()) {
            message(builder_fates_[b],
                    [this, b, lost_readouts, is_manager_lost = is_manager_lost_] {
                        builder_fates_[b].learns(lost_readouts);
                        BuilderOut out{*this, b};
                        builders_[b].on_close(lost_readouts, out);
                        if (is_manager_lost) {
                            builders_[b].on_event_manager_lost(out);
                        }
                    });
        }
        for (const ReadoutIndex r : readouts_.indices()) {
            message(readout_fates_[r], [this, r, lost_builders] {
                readout_fates_[r].learns(lost_builders);
                ReadoutOut out{*this, r};
                readouts_[r].on_close(lost_builders, out);
            });
        }
    }

    [[nodiscard]] bool is_drained() const {
        for (const BuilderIndex b : builders_.indices()) {
            if (!builder_fates_[b].is_lost && !builders_[b].is_drained()) {
                return false;
            }
        }
        for (const ReadoutIndex r : readouts_.indices()) {
            if (!readout_fates_[r].is_lost && !readouts_[r].is_drained()) {
                return false;
            }
        }
        return true;
    }

    void end() {
        std::uint64_t next = 0;
        for (const ReadoutIndex r : readouts_.indices()) {
            next = std::max(next, readout_fates_[r].is_lost ? 0 : readouts_[r].next_event());
            promise(readout_fates_[r].is_lost ||
                        (readouts_[r].in_flight() == 0 && readouts_[r].requests_waiting() == 0),
                    "nothing is left in a readout unit that has drained");
        }
        for (const BuilderIndex b : builders_.indices()) {
            next = std::max(next, builder_fates_[b].is_lost ? 0 : builders_[b].next_event());
        }
        next_event_ = next;
        for (const BuilderIndex b : builders_.indices()) {
            if (!builder_fates_[b].is_lost) {
                BuilderOut out{*this, b};
                builders_[b].on_end(out);
                summary_.dropped += builders_[b].counters().dropped;
            }
        }
    }

    /// A message needs a live receiver, and the transport of
    /// the epoch; those that are lost may keep theirs.
    template <class Other>
    void message(const Fate<Other>& to, std::function<void()> action) {
        later([this, &to, action = std::move(action)] {
            if (!to.is_dead() && (!next_event_ || to.is_lost)) {
                action();
            }
        });
    }
    void later(std::function<void()> action) {
        at(now_ + base::nanoseconds(input_.byte()), std::move(action));
    }
    void at(Time due, std::function<void()> action) {
        steps_.push({due, next_step_++, std::move(action)});
    }

    // ---- outputs ------------------------------------------------------------------------------

    void requested(BuilderIndex b, EventId id, ReadoutIndex readout, Bytes place) {
        promise(!builder_fates_[b].sees_lost[readout], "nothing is asked of a lost readout unit");
        promise(event(id).places.emplace(readout, place).second, "a fragment is asked for once");
        promise(taken_.emplace(b, place).second, "its place is its own");
        promise(builders_[b].place_of(id, readout) == place, "its place can be asked for");
        if (!is_push_) {
            const auto under_way = std::ranges::count_if(event(id).places, [&](const auto& asked) {
                return !event(id).here.contains(asked.first) &&
                       !builder_fates_[b].sees_lost[asked.first];
            });
            promise(under_way <= sends_, "fragments in flight keep within their limit");
        }
        message(readout_fates_[readout], [this, b, id, readout, place] {
            ReadoutOut out{*this, readout};
            readouts_[readout].on_request(id, b, place, readout.value(), out);
        });
    }

    void write(ReadoutIndex r, const DaqpipeWrite& w) {
        promise(!readout_fates_[r].sees_lost[w.builder], "nothing is written to a lost builder");
        promise(event(w.event).written.insert(r).second, "a fragment is written once");
        promise(event(w.event).places.at(r) == w.place, "a fragment is written to its place");
        promise(!is_push_ || readouts_[r].in_flight() <= sends_,
                "writes under way keep within their limit");
        message(builder_fates_[w.builder], [this, r, w] {
            const bool counts = !builder_fates_[w.builder].sees_lost[r];
            if (counts) {
                event(w.event).here.insert(r);
            }
            const std::uint64_t before = builders_[w.builder].counters().fragments;
            BuilderOut out{*this, w.builder};
            builders_[w.builder].on_fragment(w.event, r, w.bytes, out);
            promise(builders_[w.builder].counters().fragments - before == (counts ? 1U : 0U),
                    "each fragment of a live readout unit counts");
        });
        message(readout_fates_[r], [this, r, w] {
            if (!builder_fates_[w.builder].is_lost || input_.coin()) {
                ReadoutOut out{*this, r};
                readouts_[r].on_write_done(w.builder, out);
            }
        });
    }

    void built(BuilderIndex b, EventId id) {
        Event& here = event(id);
        promise(!here.is_built && !here.is_incomplete && here.here.size() == readouts_.size(),
                "an event is built once, from all its fragments");
        here.is_built = true;
        ++summary_.built;
        process(b, id);
    }

    void incomplete(BuilderIndex b, EventId id) {
        Event& here = event(id);
        promise(next_event_ && !here.is_built && !here.is_incomplete &&
                    here.here.size() < readouts_.size() && !here.here.empty() &&
                    when_incomplete_ == WhenIncomplete::deliver,
                "what lacks fragments at the end is given out once");
        here.is_incomplete = true;
        ++summary_.incomplete;
        for (const ReadoutIndex r : readouts_.indices()) {
            promise(builders_[b].is_here(id, r) == here.here.contains(r),
                    "an event has what was written");
        }
        process(b, id);
    }

    void process(BuilderIndex b, EventId id) {
        later([this, b, id] {
            if (builder_fates_[b].is_dead()) {
                return;
            }
            for (const auto& [readout, place] : event(id).places) {
                taken_.erase({b, place});
            }
            BuilderOut out{*this, b};
            builders_[b].on_processed(id, out);
        });
    }

    // ---- model --------------------------------------------------------------------------------

    void compare_at_the_end() {
        promise(next_event_.has_value(), "all live units drain");
        if (!summary_.broken_promise.empty()) {
            return;
        }
        const bool anybody_reads_out =
            std::ranges::any_of(readout_fates_, [](const auto& fate) { return !fate.is_lost; });
        const bool all_build =
            !is_manager_lost_ && std::ranges::none_of(builder_fates_, &Fate<ReadoutIndex>::is_lost);
        for (std::uint64_t id = 0; id < events; ++id) {
            compare_event(EventId{id}, anybody_reads_out);
            promise(!all_build || event(EventId{id}).builder || id >= *next_event_,
                    "every event before the next epoch is taken");
        }
        for (const BuilderIndex b : builders_.indices()) {
            const auto& c = builders_[b].counters();
            promise(builder_fates_[b].is_lost || builders_[b].events_held() == 0,
                    "nothing is left in the live builder units");
            promise(c.unexpected_assignments + c.unexpected_fragments + c.unexpected_processed +
                            c.unexpected_slots ==
                        0,
                    "a builder unit meets nothing unexpected");
            summary_.from_lost += c.from_lost;
            summary_.late += c.late;
        }
        for (const DaqpipeReadout& readout : readouts_) {
            const auto& c = readout.counters();
            promise(c.unexpected_requests + c.unexpected_completions + c.unexpected_slots == 0,
                    "a readout unit meets nothing unexpected");
            summary_.from_lost += c.from_lost;
            summary_.lost_requests += c.lost_requests;
        }
    }

    void compare_event(EventId id, bool anybody_reads_out) {
        const Event& here = event(id);
        const bool is_before = static_cast<std::uint64_t>(id) < *next_event_;
        promise(!here.is_built || is_before || !anybody_reads_out,
                "what was built anywhere does not come again in the next epoch");
        if (!here.builder || builder_fates_[*here.builder].is_lost) {
            return;
        }
        promise(is_before, "what was taken does not come again in the next epoch");
        promise(here.is_built || here.is_incomplete || here.here.empty() ||
                    when_incomplete_ == WhenIncomplete::drop,
                "every event that was taken is built, given out incomplete, or dropped");
        for (const ReadoutIndex r : readouts_.indices()) {
            promise(readout_fates_[r].is_lost || here.here.contains(r),
                    "an event has the fragments of all live readout units");
        }
    }

    Event& event(EventId id) { return events_.at(static_cast<std::size_t>(id)); }

    void promise(bool kept, const char* text) {
        if (!kept && summary_.broken_promise.empty()) {
            summary_.broken_promise = text;
        }
    }

    base::ByteSource input_;
    bool is_push_ = false;
    bool is_timed_ = false;
    std::uint32_t sends_ = 1;
    WhenIncomplete when_incomplete_ = WhenIncomplete::deliver;
    EventManager manager_ = *EventManager::make({}, base::RandomStream(1, "assignment"));
    base::Table<BuilderIndex, DaqpipeBuilder> builders_;
    base::Table<ReadoutIndex, DaqpipeReadout> readouts_;
    Fates<ReadoutIndex, BuilderIndex> readout_fates_;
    Fates<BuilderIndex, ReadoutIndex> builder_fates_;

    Time now_ = Time::zero();
    std::uint64_t next_step_ = 0;
    std::priority_queue<Step> steps_;

    std::vector<Event> events_ = std::vector<Event>(events);
    std::set<std::pair<BuilderIndex, Bytes>> taken_;
    bool is_closing_ = false;
    bool is_manager_lost_ = false;
    std::optional<std::uint64_t> next_event_;  ///< of the next epoch, when this one is over
    Summary summary_;
};

}  // namespace daqloom::protocol
