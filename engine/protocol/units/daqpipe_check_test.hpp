// For tests and fuzzing: DAQPIPE's units on nodes in virtual time, until nodes are lost and the
// epoch is closed. Messages, which travel encoded, and writes take any time; sources may stop.
// Every promise about the end of an epoch is checked against a plain model.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_source_test.hpp"
#include "base/index.hpp"
#include "protocol/machines/timers_by_hand_test.hpp"
#include "protocol/machines/unit_fates_test.hpp"
#include "protocol/units/daqpipe_unit.hpp"

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
        std::uint64_t absent = 0;  ///< fragments that sources had not delivered
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
    using Kind = UnitMessage::Kind;
    using NodeIndex = base::Index<struct DaqpipeCheckTag>;
    using NodeFate = Fate<NodeIndex>;

    static constexpr std::uint64_t events = 40;
    static constexpr Bytes largest = 10;
    /// Slots are longer when the epoch should long be over, as nodes have patience.
    static constexpr Time slot_length = base::nanoseconds(200);
    static constexpr Time long_slot = base::milliseconds(10);
    static constexpr std::uint64_t short_slots = 1'000;
    static constexpr std::uint64_t most_slots = 2'000;

    struct Node {
        ReadoutIndex readout;
        BuilderIndex builder;
        DaqpipeUnit unit;
        std::uint64_t source_has;  ///< and then it stops
        std::uint64_t taken;
        std::uint64_t given_back;
        bool is_fed;                                ///< its source is about to deliver
        std::map<std::uint32_t, EventId> collects;  ///< by slot
    };
    /// An event as the model knows it.
    struct Event {
        std::optional<NodeIndex> builder;      ///< that has taken it
        std::map<ReadoutIndex, Bytes> places;  ///< asked for
        std::set<ReadoutIndex> written;
        std::set<ReadoutIndex> here;
        bool is_built = false;
        bool is_incomplete = false;
    };

    /// See DaqpipeWorld.
    struct World {
        DaqpipeCheck& check;
        NodeIndex self;

        void send(ReadoutIndex to, const UnitMessage& said) {
            const NodeIndex node = check.readout_node_[to];
            if (said.kind == Kind::request) {
                check.requested(self, EventId{said.number}, to, said.values[0]);
            }
            check.promise(said.kind == Kind::done || !check.fates_[self].sees_lost[node],
                          "nothing is said to a lost readout unit");
            check.post(self, node, said);
        }
        void send(BuilderIndex to, const UnitMessage& said) {
            check.post(self, check.builder_node_[to], said);
        }
        [[nodiscard]] Bytes held(EventId event) const {
            const Node& node = check.nodes_[self];
            return number(event) < node.taken ? 1 + node.readout.value() : 0;
        }
        void write(EventId event, BuilderIndex to, Bytes offset, Bytes bytes) {
            check.write(self, event, to, offset, bytes);
        }
        void give_back(std::uint32_t count) {
            Node& node = check.nodes_[self];
            node.given_back += count;
            check.promise(node.given_back <= node.taken, "what was taken is given back");
            check.feed(self);
        }
        void assigned(EventId, BuilderIndex) {}
        void collect(EventId event, std::uint32_t slot) {
            const auto [held, is_new] = check.nodes_[self].collects.emplace(slot, event);
            check.promise(held->second == event && slot < check.rules_.credits,
                          "an event has memory of its own");
        }
        [[nodiscard]] Bytes place(std::uint32_t slot, ReadoutIndex readout) const {
            return Bytes{slot} * 4 + readout.value();
        }
        void deliver(EventId event, std::uint32_t slot) { check.deliver(self, event, slot); }
    };

    explicit DaqpipeCheck(std::span<const std::uint8_t> input) : input_(input) {
        const std::uint32_t readouts = 1U + input_.byte() % 4;
        const std::uint32_t builders = 1U + input_.byte() % 4;
        rules_.credits = 1U + input_.byte() % 3;
        rules_.parallel_sends = 1U + input_.byte() % 3;
        const std::uint8_t choice = input_.byte();
        rules_.is_push = (choice & 1) != 0;
        rules_.slot = (choice & 6) == 6 ? slot_length : Time::zero();
        when_incomplete_ = static_cast<WhenIncomplete>(choice >> 3 & 1);
        const bool is_folded = (choice >> 4 & 1) != 0;
        const std::uint32_t nodes = is_folded ? std::max(readouts, builders) : readouts + builders;
        const std::uint32_t first_builder = is_folded ? 0 : readouts;
        for (std::uint32_t n = 0; n < nodes; ++n) {
            const bool builds = n >= first_builder && n < first_builder + builders;
            const auto readout = n < readouts ? ReadoutIndex(n) : ReadoutIndex::none();
            const auto builder = builds ? BuilderIndex(n - first_builder) : BuilderIndex::none();
            DaqpipeUnit unit = *DaqpipeUnit::make({.rules = rules_,
                                                   .readout = readout,
                                                   .builder = builder,
                                                   .readouts = readouts,
                                                   .builders = builders,
                                                   .largest_fragment = largest,
                                                   .when_incomplete = when_incomplete_});
            nodes_.push_back({readout, builder, std::move(unit), events, 0, 0, false, {}});
            if (n < readouts) {
                readout_node_.push_back(NodeIndex(n));
                const std::uint8_t stops = input_.byte();
                nodes_[NodeIndex(n)].source_has = stops % 4 == 3 ? (stops >> 2) % events : events;
            }
            if (builds) {
                builder_node_.push_back(NodeIndex(n));
            }
        }
        fates_ = choose_fates<NodeIndex, NodeIndex>(nodes, nodes, input_);
    }

    // ---- the run ------------------------------------------------------------------------------

    void run() {
        for (const NodeIndex node : readout_node_) {
            feed(node);
        }
        if (rules_.slot > Time::zero()) {
            begin_slot(0);
        }
        const Time first = base::nanoseconds(24 * input_.byte());
        timers_.at(first, [this] { close(1); });
        timers_.at(first + base::nanoseconds(8 * input_.byte()), [this] { close(2); });
        const auto is_over = [this] {
            if (is_closing_ && !next_event_ && is_drained()) {
                end();
            }
            return !summary_.broken_promise.empty();
        };
        timers_.run(is_over);
        if (!is_over()) {  // the last of all may have been what was waited for
            timers_.run(is_over);
        }
        compare_at_the_end();
    }

    /// The source delivers as long as it has something and is given back what it needs.
    void feed(NodeIndex n) {
        Node& node = nodes_[n];
        if (std::exchange(node.is_fed, true)) {
            return;
        }
        message(n, [this, n, &node] {
            node.is_fed = false;
            if (node.taken < node.source_has && node.unit.wants_data() &&
                node.taken - node.given_back < node.unit.window()) {
                ++node.taken;
                World world{*this, n};
                node.unit.on_data(timers_.now(), world);
                feed(n);
            }
        });
    }

    void begin_slot(std::uint64_t slot) {
        for (const NodeIndex n : nodes_.indices()) {
            if (!fates_[n].is_dead() && nodes_[n].unit.keeps_slots()) {
                World world{*this, n};
                nodes_[n].unit.on_slot(slot, world);
            }
        }
        if (slot < most_slots && !next_event_) {
            timers_.after(slot < short_slots ? slot_length : long_slot,
                          [this, slot] { begin_slot(slot + 1); });
        }
    }

    void close(std::uint32_t wave) {
        if (next_event_) {
            return;
        }
        is_closing_ = true;
        const auto lost = lose(fates_, wave);
        std::vector<ReadoutIndex> readouts;
        std::vector<BuilderIndex> builders;
        for (const NodeIndex n : lost) {
            if (nodes_[n].readout != ReadoutIndex::none()) {
                readouts.push_back(nodes_[n].readout);
            }
            if (nodes_[n].builder != BuilderIndex::none()) {
                builders.push_back(nodes_[n].builder);
            }
        }
        for (const NodeIndex n : nodes_.indices()) {
            if (fates_[n].is_lost) {
                continue;
            }
            message(n, [this, n, lost, readouts, builders] {
                fates_[n].learns(lost);
                World world{*this, n};
                nodes_[n].unit.on_close(readouts, builders, timers_.now(), world);
                await_timer(n);
            });
        }
    }
    void await_timer(NodeIndex n) {
        const Time due = nodes_[n].unit.next_timer();
        if (due == Time::never()) {
            return;
        }
        timers_.at(due, [this, n] {
            World world{*this, n};
            if (!fates_[n].is_dead() && !next_event_) {
                nodes_[n].unit.on_time(timers_.now(), world);
            }
        });
    }

    [[nodiscard]] bool is_drained() const {
        return std::ranges::all_of(nodes_.indices(), [this](NodeIndex n) {
            return fates_[n].is_lost || nodes_[n].unit.is_drained();
        });
    }

    void end() {
        std::uint64_t next = 0;
        for (const NodeIndex n : nodes_.indices()) {
            const DaqpipeUnit& unit = nodes_[n].unit;
            next = std::max(next, fates_[n].is_lost ? 0 : unit.next_event());
            promise(fates_[n].is_lost || unit.readout() == nullptr ||
                        (unit.unanswered() == 0 && unit.readout()->requests_waiting() == 0),
                    "nothing is left in a readout unit that has drained");
        }
        next_event_ = next;
        for (const NodeIndex n : nodes_.indices()) {
            if (!fates_[n].is_lost && nodes_[n].unit.builder() != nullptr) {
                World world{*this, n};
                nodes_[n].unit.on_end(world);
                summary_.dropped += nodes_[n].unit.builder()->counters().dropped;
            }
        }
    }

    /// What happens on a node needs that node, and the transport of the epoch; those that are lost
    /// may keep theirs.
    void message(NodeIndex to, std::function<void()> action) {
        later([this, to, action = std::move(action)] {
            if (!fates_[to].is_dead() && (!next_event_ || fates_[to].is_lost)) {
                action();
            }
        });
    }
    void later(std::function<void()> action) {
        timers_.after(base::nanoseconds(input_.byte()), std::move(action));
    }

    void post(NodeIndex from, NodeIndex to, const UnitMessage& said) {
        std::vector<std::byte> bytes(encoded_bytes(said));
        encode_message(said, bytes);
        message(to, [this, from, to, bytes = std::move(bytes)] {
            std::array<Bytes, 1> values{};
            const auto heard = decode_message(bytes, values);
            promise(heard.has_value(), "a message is read as it was written");
            Node& node = nodes_[to];
            const auto* builder = node.unit.builder();
            const std::uint64_t before = builder != nullptr ? builder->counters().assigned : 0;
            World world{*this, to};
            const bool counts = node.unit.on_message(nodes_[from].readout, nodes_[from].builder,
                                                     *heard, timers_.now(), world);
            promise(counts || fates_[from].is_lost || fates_[to].is_lost,
                    "nothing is refused that a live node says");
            if (builder != nullptr && builder->counters().assigned > before) {
                event(EventId{heard->number}).builder = to;
            }
        });
    }

    // ---- outputs ------------------------------------------------------------------------------

    void requested(NodeIndex b, EventId id, ReadoutIndex readout, Bytes place) {
        promise(event(id).places.emplace(readout, place).second, "a fragment is asked for once");
        promise(taken_.emplace(b, place).second, "its place is its own");
        if (!rules_.is_push) {
            const auto under_way = std::ranges::count_if(event(id).places, [&](const auto& asked) {
                return !event(id).here.contains(asked.first) &&
                       !fates_[b].sees_lost[readout_node_[asked.first]];
            });
            promise(under_way <= rules_.parallel_sends,
                    "fragments in flight keep within their limit");
        }
    }

    void write(NodeIndex r, EventId id, BuilderIndex to, Bytes offset, Bytes bytes) {
        const NodeIndex b = builder_node_[to];
        const ReadoutIndex readout = nodes_[r].readout;
        promise(!fates_[r].sees_lost[b], "nothing is written to a lost builder");
        promise(event(id).written.insert(readout).second, "a fragment is written once");
        promise(event(id).places.at(readout) == offset, "a fragment is written to its place");
        promise(!rules_.is_push || nodes_[r].unit.unanswered() <=
                                       std::uint64_t{rules_.credits} * rules_.parallel_sends,
                "writes under way keep within their limit");
        promise(bytes > 0 || !nodes_[r].unit.wants_data(), "a source is waited for");
        summary_.absent += bytes == 0 ? 1 : 0;
        message(b, [this, r, b, readout, id, bytes] {
            const bool counts = !fates_[b].sees_lost[r];
            if (counts) {
                event(id).here.insert(readout);
            }
            const auto& counters = nodes_[b].unit.builder()->counters();
            const std::uint64_t before = counters.fragments;
            World world{*this, b};
            nodes_[b].unit.on_fragment(id, readout, bytes, timers_.now(), world);
            promise(counters.fragments - before == (counts ? 1U : 0U),
                    "each fragment of a live readout unit counts");
        });
        message(r, [this, r, b, id] {
            if (!fates_[b].is_lost || input_.coin()) {
                World world{*this, r};
                nodes_[r].unit.on_write_done(id, world);
            }
        });
    }

    void deliver(NodeIndex b, EventId id, std::uint32_t slot) {
        Event& here = event(id);
        promise(!here.is_built && !here.is_incomplete, "an event is given out once");
        promise(nodes_[b].collects.contains(slot) && nodes_[b].collects[slot] == id,
                "an event is where it was collected");
        if (here.here.size() == readout_node_.size()) {
            here.is_built = true;
            ++summary_.built;
        } else {
            promise(
                next_event_ && !here.here.empty() && when_incomplete_ == WhenIncomplete::deliver,
                "what lacks fragments is given out at the end");
            here.is_incomplete = true;
            ++summary_.incomplete;
        }
        for (const ReadoutIndex r : readout_node_.indices()) {
            promise(nodes_[b].unit.builder()->is_here(id, r) == here.here.contains(r),
                    "an event has what was written");
        }
        later([this, b, id, slot] {
            if (fates_[b].is_dead()) {
                return;
            }
            for (const auto& [readout, place] : event(id).places) {
                taken_.erase({b, place});
            }
            nodes_[b].collects.erase(slot);
            World world{*this, b};
            nodes_[b].unit.on_consumed(id, timers_.now(), world);
        });
    }

    // ---- model --------------------------------------------------------------------------------

    void compare_at_the_end() {
        promise(next_event_.has_value(), "all live units drain");
        if (!summary_.broken_promise.empty()) {
            return;
        }
        const bool anybody_reads_out = std::ranges::any_of(
            readout_node_, [this](NodeIndex node) { return !fates_[node].is_lost; });
        const bool all_build = !fates_[readout_node_[ReadoutIndex()]].is_lost &&
                               std::ranges::none_of(builder_node_, [this](NodeIndex node) {
                                   return fates_[node].is_lost;
                               });
        for (std::uint64_t id = 0; id < events; ++id) {
            compare_event(EventId{id}, anybody_reads_out);
            promise(!all_build || event(EventId{id}).builder || id >= *next_event_,
                    "every event before the next epoch is taken");
        }
        for (const NodeIndex n : nodes_.indices()) {
            // A lost event manager may say what a builder unit does not wait for any more.
            promise(fates_[n].sees_lost[readout_node_[ReadoutIndex()]] ||
                        nodes_[n].unit.unexpected_messages() == 0,
                    "a unit meets nothing unexpected");
            if (const auto* builder = nodes_[n].unit.builder()) {
                const auto& c = builder->counters();
                promise(fates_[n].is_lost || builder->events_held() == 0,
                        "nothing is left in the live builder units");
                promise(c.unexpected_fragments + c.unexpected_processed + c.unexpected_slots == 0,
                        "a builder unit meets nothing unexpected");
                summary_.from_lost += c.from_lost;
                summary_.late += c.late;
            }
            if (const auto* readout = nodes_[n].unit.readout()) {
                const auto& c = readout->counters();
                promise(c.unexpected_completions + c.unexpected_slots == 0,
                        "a readout unit meets nothing unexpected");
                summary_.from_lost += c.from_lost;
                summary_.lost_requests += c.lost_requests;
            }
        }
    }

    void compare_event(EventId id, bool anybody_reads_out) {
        const Event& here = event(id);
        const bool is_before = number(id) < *next_event_;
        promise(!here.is_built || is_before || !anybody_reads_out,
                "what was built anywhere does not come again in the next epoch");
        if (!here.builder || fates_[*here.builder].is_lost) {
            return;
        }
        promise(is_before, "what was taken does not come again in the next epoch");
        promise(here.is_built || here.is_incomplete || here.here.empty() ||
                    when_incomplete_ == WhenIncomplete::drop,
                "every event that was taken is built, given out incomplete, or dropped");
        for (const ReadoutIndex r : readout_node_.indices()) {
            promise(fates_[readout_node_[r]].is_lost || here.here.contains(r),
                    "an event has the fragments of all live readout units");
        }
    }

    static std::uint64_t number(EventId id) { return static_cast<std::uint64_t>(id); }
    Event& event(EventId id) { return events_.at(static_cast<std::size_t>(id)); }

    void promise(bool kept, const char* text) {
        if (!kept && summary_.broken_promise.empty()) {
            summary_.broken_promise = text;
        }
    }

    base::ByteSource input_;
    DaqpipeRules rules_;
    WhenIncomplete when_incomplete_ = WhenIncomplete::deliver;
    base::Table<NodeIndex, Node> nodes_;
    base::Table<NodeIndex, NodeFate> fates_;
    base::Table<ReadoutIndex, NodeIndex> readout_node_;
    base::Table<BuilderIndex, NodeIndex> builder_node_;
    TimersByHand timers_;

    std::vector<Event> events_ = std::vector<Event>(events);
    std::set<std::pair<NodeIndex, Bytes>> taken_;
    bool is_closing_ = false;
    std::optional<std::uint64_t> next_event_;  ///< of the next epoch, when this one is over
    Summary summary_;
};

}  // namespace daqloom::protocol
