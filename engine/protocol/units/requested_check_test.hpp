// For tests and fuzzing: units whose builder units request fragments, on nodes in virtual time,
// until nodes are lost and the epoch is closed. Encoded messages and writes take any time; sources
// may stop; messages and fragments may arrive that no unit has sent. All invariants of the units
// are checked against a plain model.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
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
#include "protocol/data/mep.hpp"
#include "protocol/machines/timers_by_hand_test.hpp"
#include "protocol/machines/unit_fates_test.hpp"
#include "protocol/schedule/event_manager.hpp"
#include "protocol/units/unit_message.hpp"

namespace daqloom::protocol {

/// Rules of a protocol (`daqpipe_check_test.hpp`, `pull_check_test.hpp`), drawn from bytes, and its
/// additional invariants beyond those checked here.
template <class U>
class CheckedProtocol {
  public:
    using Unit = U;
    using Rules = decltype(typename Unit::Config().rules);
    static constexpr bool has_slots = false;
    /// Whether requests go out for the oldest event first, in the order of readout units.
    static constexpr bool requests_in_order = false;
    static constexpr bool gives_out_at_the_end = false;  ///< what lacks fragments

    void choose(std::uint8_t /*choice*/) {}
    [[nodiscard]] const Rules& rules() const { return rules_; }
    [[nodiscard]] base::Time slot() const { return base::Time::zero(); }
    [[nodiscard]] Assignment assignment() const { return Assignment::round_robin; }
    // ---- limits of fragments in flight; 0: none
    [[nodiscard]] std::uint64_t limit_per_event() const { return 0; }
    [[nodiscard]] std::uint64_t limit_per_builder() const { return 0; }
    [[nodiscard]] std::uint64_t limit_per_readout() const { return 0; }
    [[nodiscard]] std::uint32_t strange_inputs() const { return 0; }
    static bool is_empty(const Unit& /*unit*/) { return true; }

  protected:
    Rules rules_;
};

template <class Protocol>
class RequestedCheck {
  public:
    using Unit = typename Protocol::Unit;

    struct Summary {
        std::string broken_promise;  ///< the first; or nothing
        std::uint64_t built = 0;
        std::uint64_t incomplete = 0;
        std::uint64_t dropped = 0;
        std::uint64_t lost_requests = 0;
        std::uint64_t from_lost = 0;
        std::uint64_t late = 0;
        std::uint64_t absent = 0;   ///< fragments that sources had not delivered
        std::uint64_t strange = 0;  ///< messages and fragments that no unit has sent
    };
    static constexpr auto sums = {&Summary::built,         &Summary::incomplete, &Summary::dropped,
                                  &Summary::lost_requests, &Summary::from_lost,  &Summary::late,
                                  &Summary::absent,        &Summary::strange};

    /// Sums over `runs` random runs, up to the first run that breaks an invariant.
    static Summary play_random(std::uint64_t runs) {
        Summary all;
        for (std::uint64_t seed = 0; seed < runs && all.broken_promise.empty(); ++seed) {
            const Summary run = play(base::random_bytes(seed, 50, 1'000));
            if (!run.broken_promise.empty()) {
                all.broken_promise = run.broken_promise + ", seed " + std::to_string(seed);
            }
            for (const auto sum : sums) {
                all.*sum += run.*sum;
            }
        }
        return all;
    }

    /// Plays a run. The first bytes select the configuration; each later byte is a delay.
    static Summary play(std::span<const std::uint8_t> input) {
        RequestedCheck check(input);
        check.run();
        return check.summary_;
    }

  private:
    using Bytes = base::Bytes;
    using Time = base::Time;
    using Kind = UnitMessage::Kind;
    using NodeIndex = base::Index<struct RequestedCheckTag>;
    using NodeFate = Fate<NodeIndex>;

    static constexpr std::uint64_t events = Protocol::events;
    /// Slots become longer when the epoch should be over, because nodes wait for data for a second.
    static constexpr Time long_slot = base::milliseconds(10);
    static constexpr std::uint64_t short_slots = 1'000;
    static constexpr std::uint64_t most_slots = 2'000;

    struct Node {
        ReadoutIndex readout;
        BuilderIndex builder;
        Unit unit;
        std::uint64_t source_has;  ///< and then it stops
        std::uint64_t taken = 0;
        std::uint64_t given_back = 0;
        std::uint64_t written = 0;                       ///< and completed
        bool is_fed = false;                             ///< its source is about to deliver
        std::map<std::uint32_t, EventId> collects = {};  ///< by slot
        std::deque<EventId> to_request = {};             ///< taken, oldest first
        Time timer = Time::never();                      ///< on_time is called then
        std::uint64_t strange_messages = 0;
        std::uint64_t strange_inputs = 0;  ///< of its builder unit
    };
    /// An event as the model knows it.
    struct Event {
        std::optional<NodeIndex> builder;      ///< that has taken it
        std::map<ReadoutIndex, Bytes> places;  ///< asked for
        std::set<ReadoutIndex> written;
        std::set<ReadoutIndex> here;
        std::set<ReadoutIndex> absent;  ///< reported to have none
        bool is_built = false;
        bool is_incomplete = false;
    };

    /// See RequestedWorld.
    struct World {
        RequestedCheck& check;
        NodeIndex self;

        void send(ReadoutIndex to, const UnitMessage& message) {
            const NodeIndex node = check.readout_node_[to];
            if (message.kind == Kind::request) {
                check.requested(self, EventId{message.number}, to, message.values[0]);
            } else if (message.kind == Kind::done) {
                check.release(self, EventId{message.number});
            }
            check.promise(message.kind == Kind::done || !check.fates_[self].sees_lost[node],
                          "no message goes to a lost readout unit");
            check.post(self, node, message);
        }
        void send(BuilderIndex to, const UnitMessage& message) {
            if (message.kind == Kind::assign) {
                check.assigned(EventId{message.number}, to);
            }
            check.post(self, check.builder_node_[to], message);
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
            check.promise(check.is_closing_ || node.given_back <= node.written,
                          "a fragment is kept until it is written");
            check.feed(self);
        }
        void arrived(base::Time /*at*/) {}
        void assigned(EventId, BuilderIndex) {}
        void collect(EventId event, std::uint32_t slot) {
            const auto [held, is_new] = check.nodes_[self].collects.emplace(slot, event);
            check.promise(held->second == event && slot < Unit::slots(check.protocol_.rules()),
                          "an event has memory of its own");
        }
        [[nodiscard]] Bytes place(std::uint32_t slot, ReadoutIndex readout) const {
            return Bytes{slot} * 4 + readout.value();
        }
        void deliver(EventId event, std::uint32_t slot) { check.deliver(self, event, slot); }
    };

    explicit RequestedCheck(std::span<const std::uint8_t> input)
        : input_(input),
          readouts_(1U + input_.byte() % 4),
          builders_(1U + input_.byte() % 4),
          protocol_(input_) {
        const std::uint8_t choice = input_.byte();
        protocol_.choose(choice);
        when_incomplete_ = static_cast<WhenIncomplete>(choice >> 3 & 1);
        const bool is_folded = (choice >> 4 & 1) != 0;
        const std::uint32_t nodes =
            is_folded ? std::max(readouts_, builders_) : readouts_ + builders_;
        const std::uint32_t first_builder = is_folded ? 0 : readouts_;
        for (std::uint32_t n = 0; n < nodes; ++n) {
            const bool builds = n >= first_builder && n < first_builder + builders_;
            const auto readout = n < readouts_ ? ReadoutIndex(n) : ReadoutIndex::none();
            const auto builder = builds ? BuilderIndex(n - first_builder) : BuilderIndex::none();
            nodes_.push_back({readout, builder,
                              *Unit::make({.rules = protocol_.rules(),
                                           .readout = readout,
                                           .builder = builder,
                                           .readouts = readouts_,
                                           .builders = builders_,
                                           .largest_fragment = 10,
                                           .when_incomplete = when_incomplete_}),
                              events});
            if (n < readouts_) {
                readout_node_.push_back(NodeIndex(n));
                const std::uint8_t stops = input_.byte();
                nodes_[NodeIndex(n)].source_has = stops % 4 == 3 ? (stops >> 2) % events : events;
            }
            if (builds) {
                builder_node_.push_back(NodeIndex(n));
            }
        }
        in_flight_ = base::Table<BuilderIndex, std::uint32_t>(builders_);
        last_assigned_ = BuilderIndex(builders_ - 1);
        fates_ = choose_fates<NodeIndex, NodeIndex>(nodes, nodes, input_);
    }

    // ---- the run ------------------------------------------------------------------------------

    void run() {
        for (const NodeIndex n : nodes_.indices()) {
            await_timer(n);
        }
        for (const NodeIndex node : readout_node_) {
            feed(node);
        }
        if (protocol_.slot() > Time::zero()) {
            begin_slot(0);
        }
        const Time first = base::nanoseconds(24 * input_.byte());
        timers_.at(first, [this] { close(1); });
        timers_.at(first + base::nanoseconds(8 * input_.byte()), [this] { close(2); });
        for (std::uint32_t n = 0; n < protocol_.strange_inputs(); ++n) {
            timers_.at(base::nanoseconds(24 * input_.byte()), [this] { disturb(); });
        }
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

    /// Gives an input to the node's unit, by a call of `input(unit, world)`.
    template <class Input>
    void give(NodeIndex n, Input input) {
        World world{*this, n};
        input(nodes_[n].unit, world);
        compare_state(n);
        await_timer(n);
    }

    /// The source delivers while it has fragments and the unit has given back enough memory.
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
                give(n, [&](Unit& unit, World& world) { unit.on_data(timers_.now(), world); });
                feed(n);
            }
        });
    }

    void begin_slot(std::uint64_t slot) {
        if constexpr (Protocol::has_slots) {
            slot_ = slot;
            for (const NodeIndex n : nodes_.indices()) {
                if (!fates_[n].is_dead() && nodes_[n].unit.keeps_slots()) {
                    give(n, [&](Unit& unit, World& world) {
                        unit.on_slot(slot, timers_.now(), world);
                    });
                }
            }
            if (slot < most_slots && !next_event_) {
                timers_.after(slot < short_slots ? protocol_.slot() : long_slot,
                              [this, slot] { begin_slot(slot + 1); });
            }
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
                give(n, [&](Unit& unit, World& world) {
                    unit.on_close(readouts, builders, timers_.now(), world);
                });
            });
        }
    }

    void await_timer(NodeIndex n) {
        const Time due = nodes_[n].unit.next_timer();
        if (due >= nodes_[n].timer) {
            return;
        }
        nodes_[n].timer = due;
        timers_.at(std::max(due, timers_.now()), [this, n, due] {
            if (nodes_[n].timer != due) {  // it has an earlier one
                return;
            }
            nodes_[n].timer = Time::never();
            if (!fates_[n].is_dead() && (!next_event_ || !fates_[n].is_lost)) {
                give(n, [&](Unit& unit, World& world) { unit.on_time(timers_.now(), world); });
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
            const Unit& unit = nodes_[n].unit;
            next = std::max(next, fates_[n].is_lost ? 0 : unit.next_event());
            promise(fates_[n].is_lost || Protocol::is_empty(unit),
                    "nothing is left in a readout unit that has drained");
        }
        next_event_ = next;
        for (const NodeIndex n : nodes_.indices()) {
            if (!fates_[n].is_lost && nodes_[n].unit.builder() != nullptr) {
                give(n, [&](Unit& unit, World& world) { unit.on_end(timers_.now(), world); });
                summary_.dropped += nodes_[n].unit.builder()->counters().dropped;
            }
        }
    }

    /// Delivers a message to a node, unless the node is dead or the epoch has ended. Lost nodes
    /// receive messages after the end, too.
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

    void post(NodeIndex from, NodeIndex to, const UnitMessage& outgoing) {
        ++outputs_;
        std::vector<std::byte> bytes(encoded_bytes(outgoing));
        encode_message(outgoing, bytes);
        message(to, [this, from, to, bytes = std::move(bytes)] {
            std::array<Bytes, 1> values{};
            const auto decoded = decode_message(bytes, values);
            promise(decoded.has_value(), "a message is read as it was written");
            receive(from, to, *decoded);
        });
    }

    void receive(NodeIndex from, NodeIndex to, const UnitMessage& message) {
        Node& node = nodes_[to];
        const auto* builder = node.unit.builder();
        const std::uint64_t before = builder != nullptr ? builder->counters().assigned : 0;
        const EventId id{message.number};
        if (message.kind == Kind::assign) {
            node.to_request.push_back(id);
            event(id).builder = to;
        } else if (message.kind == Kind::done) {
            --in_flight_[nodes_[from].builder];
        }
        bool counts = false;
        give(to, [&](Unit& unit, World& world) {
            counts = unit.on_message(nodes_[from].readout, nodes_[from].builder, message,
                                     timers_.now(), world);
            if (message.kind == Kind::assign && builder->counters().assigned == before) {
                std::erase(node.to_request, id);  // it came too late
                event(id).builder.reset();
            }
        });
        promise(counts || fates_[from].is_lost || fates_[to].is_lost,
                "no message of a live node is refused");
    }

    // ---- inputs that no unit has sent ----------------------------------------------------------

    void disturb() {
        const NodeIndex n(input_.byte() % nodes_.size());
        if (next_event_ || fates_[n].is_dead()) {
            return;
        }
        Node& node = nodes_[n];
        const std::uint64_t before = outputs_;
        const EventId unknown{events * 2 + input_.byte()};
        const NodeIndex from(input_.byte() % nodes_.size());
        const auto is_accepted = [&](const UnitMessage& message, BuilderIndex builder) {
            bool is = false;
            give(n, [&](Unit& unit, World& world) {
                is = unit.on_message(nodes_[from].readout, builder, message, timers_.now(), world);
            });
            return is;
        };
        ++summary_.strange;
        switch (input_.byte() % 6) {
            case 0:
                promise(!is_accepted({Kind::grant, 0, 0, {}}, nodes_[from].builder),
                        "a message of another protocol is refused");
                break;
            case 1:
                promise(!is_accepted({Kind::request, 0, number(unknown), {}}, nodes_[from].builder),
                        "a request to no place is refused");
                break;
            case 2:
                promise(!is_accepted({Kind::last_answer, 0, 0, {}}, BuilderIndex(builders_)),
                        "a builder unit that there is not is refused");
                break;
            case 3:
                promise(
                    nodes_[from].readout == ReadoutIndex() ||
                        !is_accepted({Kind::assign, 0, number(unknown), {}}, BuilderIndex::none()),
                    "an assignment by another than the event manager is refused");
                break;
            case 4:
                if (node.unit.builder() != nullptr &&
                    !fates_[n].sees_lost[readout_node_[ReadoutIndex()]]) {
                    ++node.strange_inputs;
                    give(n, [&](Unit& unit, World& world) {
                        unit.on_fragment(unknown, ReadoutIndex(), 1, timers_.now(), world);
                    });
                }
                break;
            default:
                if (!node.collects.empty()) {
                    const std::uint64_t unexpected = node.unit.unexpected_messages();
                    const std::uint64_t late = node.unit.builder()->counters().late;
                    const EventId known = node.collects.begin()->second;
                    give(n, [&](Unit& unit, World& world) {
                        unit.on_message(ReadoutIndex(), BuilderIndex::none(),
                                        {Kind::assign, 0, number(known), {}}, timers_.now(), world);
                    });
                    node.strange_messages += node.unit.unexpected_messages() - unexpected;
                    promise(node.unit.unexpected_messages() - unexpected +
                                    node.unit.builder()->counters().late - late ==
                                1,
                            "an event that is here already is not taken again");
                }
                break;
        }
        promise(outputs_ == before, "an input that no unit has sent has no effect");
    }

    // ---- outputs ------------------------------------------------------------------------------

    void assigned(EventId id, BuilderIndex builder) {
        promise(number(id) == next_to_assign_++,
                "events are assigned in the order in which they came, each once");
        const auto is_free = [this](BuilderIndex b) {
            return in_flight_[b] < Unit::slots(protocol_.rules());
        };
        promise(is_free(builder), "the builder unit has room for the event");
        if (protocol_.assignment() == Assignment::round_robin) {
            BuilderIndex next = last_assigned_;
            do {
                next = in_flight_.contains(next + 1) ? next + 1 : BuilderIndex();
            } while (!is_free(next) && next != last_assigned_);
            promise(builder == next, "round robin takes the next builder unit with room");
        } else if (protocol_.assignment() == Assignment::least_busy) {
            promise(in_flight_[builder] == *std::ranges::min_element(in_flight_),
                    "no other builder unit is less busy");
        }
        ++in_flight_[builder];
        last_assigned_ = builder;
    }

    void requested(NodeIndex b, EventId id, ReadoutIndex readout, Bytes place) {
        Node& node = nodes_[b];
        if constexpr (Protocol::requests_in_order) {
            while (!node.to_request.empty() && node.to_request.front() != id) {
                promise(has_requested_all(b, node.to_request.front()),
                        "requests go out for the oldest event that lacks some");
                node.to_request.pop_front();
            }
            promise(event(id).places.empty() || event(id).places.rbegin()->first < readout,
                    "requests go out readout unit by readout unit");
        }
        if constexpr (Protocol::has_slots) {
            promise(protocol_.is_push() || fates_[b].is_closed ||
                        protocol_.is_turn(readout, node.builder, slot_, readouts_),
                    "a readout unit is asked in its slot");
        }
        promise(event(id).places.emplace(readout, place).second, "a fragment is asked for once");
        promise(taken_.emplace(b, place).second, "its place is its own");
        promise(protocol_.limit_per_event() == 0 || in_flight(b, id) <= protocol_.limit_per_event(),
                "fragments of an event in flight keep within their limit");
        promise(
            protocol_.limit_per_builder() == 0 || outstanding(b) <= protocol_.limit_per_builder(),
            "fragments of a builder unit in flight keep within their limit");
    }

    /// Releases the event's memory.
    void release(NodeIndex b, EventId id) {
        for (const auto& [readout, place] : event(id).places) {
            taken_.erase({b, place});
        }
        std::erase_if(nodes_[b].collects, [id](const auto& held) { return held.second == id; });
    }

    void write(NodeIndex r, EventId id, BuilderIndex to, Bytes offset, Bytes bytes) {
        ++outputs_;
        const NodeIndex b = builder_node_[to];
        const ReadoutIndex readout = nodes_[r].readout;
        promise(!fates_[r].sees_lost[b], "nothing is written to a lost builder");
        if constexpr (Protocol::has_slots) {
            promise(!protocol_.is_push() || fates_[r].is_closed ||
                        protocol_.is_turn(readout, to, slot_, builders_),
                    "a builder unit is written to in its slot");
        }
        promise(event(id).written.insert(readout).second, "a fragment is written once");
        promise(event(id).places.at(readout) == offset, "a fragment is written to its place");
        promise(protocol_.limit_per_readout() == 0 ||
                    nodes_[r].unit.unanswered() <= protocol_.limit_per_readout(),
                "writes under way keep within their limit");
        promise(bytes > 0 || !nodes_[r].unit.wants_data(), "a source is waited for");
        promise(bytes > 0 || number(id) >= nodes_[r].source_has, "what the source has is written");
        summary_.absent += bytes == 0 ? 1 : 0;
        message(b, [this, r, b, readout, id, bytes] {
            const bool is_live = !fates_[b].sees_lost[r];
            const bool counts = is_live && (bytes > 0 || Unit::takes_empty_fragments);
            if (is_live) {
                (counts ? event(id).here : event(id).absent).insert(readout);
            }
            const auto& counters = nodes_[b].unit.builder()->counters();
            const std::uint64_t before = counters.fragments;
            give(b, [&](Unit& unit, World& world) {
                unit.on_fragment(id, readout, bytes, timers_.now(), world);
            });
            promise(counters.fragments - before == (counts ? 1U : 0U),
                    "each fragment of a live readout unit counts");
        });
        message(r, [this, r, b, to, id] {
            if (!fates_[b].is_lost || input_.coin()) {
                ++nodes_[r].written;
                give(r, [&](Unit& unit, World& world) { unit.on_write_done(id, to, world); });
            }
        });
    }

    void deliver(NodeIndex b, EventId id, std::uint32_t slot) {
        ++outputs_;
        Event& here = event(id);
        promise(!here.is_built && !here.is_incomplete, "an event is given out once");
        promise(nodes_[b].collects.contains(slot) && nodes_[b].collects[slot] == id,
                "an event is where it was collected");
        if (here.here.size() == readout_node_.size()) {
            here.is_built = true;
            ++summary_.built;
        } else {
            const bool may_be_given_out =
                Protocol::gives_out_at_the_end ? next_event_.has_value() : fates_[b].is_closed;
            promise(may_be_given_out && !here.here.empty() &&
                        when_incomplete_ == WhenIncomplete::deliver,
                    "what lacks fragments is given out at the end");
            here.is_incomplete = true;
            ++summary_.incomplete;
        }
        if constexpr (requires { nodes_[b].unit.builder()->is_here(id, ReadoutIndex()); }) {
            for (const ReadoutIndex r : readout_node_.indices()) {
                promise(nodes_[b].unit.builder()->is_here(id, r) == here.here.contains(r),
                        "an event has what was written");
            }
        }
        later([this, b, id] {
            if (!fates_[b].is_dead()) {
                give(b,
                     [&](Unit& unit, World& world) { unit.on_consumed(id, timers_.now(), world); });
            }
        });
    }

    // ---- model --------------------------------------------------------------------------------

    /// Fragments of the event that the builder unit has requested and that have not arrived.
    [[nodiscard]] std::uint64_t in_flight(NodeIndex b, EventId id) {
        const Event& asked = event(id);
        return static_cast<std::uint64_t>(std::ranges::count_if(asked.places, [&](const auto& of) {
            return !asked.here.contains(of.first) && !asked.absent.contains(of.first) &&
                   !fates_[b].sees_lost[readout_node_[of.first]];
        }));
    }
    [[nodiscard]] std::uint64_t outstanding(NodeIndex b) {
        std::uint64_t all = 0;
        for (const auto& [slot, id] : nodes_[b].collects) {
            all += in_flight(b, id);
        }
        return all;
    }
    [[nodiscard]] bool has_requested_all(NodeIndex b, EventId id) {
        return std::ranges::all_of(readout_node_.indices(), [&](ReadoutIndex r) {
            return event(id).places.contains(r) || fates_[b].sees_lost[readout_node_[r]];
        });
    }

    void compare_state(NodeIndex n) {
        if (const auto* manager = nodes_[n].unit.manager(); manager != nullptr) {
            promise(is_closing_ || manager->backlog() == 0 ||
                        std::ranges::all_of(in_flight_,
                                            [this](std::uint32_t held) {
                                                return held >= Unit::slots(protocol_.rules());
                                            }),
                    "no event waits while a builder unit has room");
        }
        if constexpr (Protocol::requests_in_order) {
            if (const auto* builder = nodes_[n].unit.builder(); builder != nullptr) {
                promise(builder->outstanding() == outstanding(n),
                        "outstanding fragments are counted");
                const bool waits = std::ranges::any_of(
                    nodes_[n].to_request, [&](EventId id) { return !has_requested_all(n, id); });
                promise(!waits || outstanding(n) == protocol_.limit_per_builder(),
                        "nothing waits while the limit permits it");
            }
        }
    }

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
            const Node& node = nodes_[n];
            // A lost event manager may have sent messages that the unit no longer expects.
            promise(fates_[n].sees_lost[readout_node_[ReadoutIndex()]] ||
                        node.unit.unexpected_messages() == node.strange_messages,
                    "a unit meets nothing unexpected");
            if (const auto* builder = node.unit.builder()) {
                const auto& c = builder->counters();
                promise(fates_[n].is_lost || builder->events_held() == 0,
                        "nothing is left in the live builder units");
                promise(c.unexpected_fragments + c.unexpected_processed + c.unexpected_slots ==
                            node.strange_inputs,
                        "a builder unit meets nothing unexpected");
                summary_.from_lost += c.from_lost;
                summary_.late += c.late;
            }
            if constexpr (requires { node.unit.readout(); }) {
                if (const auto* readout = node.unit.readout()) {
                    const auto& c = readout->counters();
                    promise(c.unexpected_completions + c.unexpected_slots == 0,
                            "a readout unit meets nothing unexpected");
                    summary_.from_lost += c.from_lost;
                    summary_.lost_requests += c.lost_requests;
                }
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
            promise(fates_[readout_node_[r]].is_lost || here.here.contains(r) ||
                        here.absent.contains(r),
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
    std::uint32_t readouts_;
    std::uint32_t builders_;
    Protocol protocol_;
    WhenIncomplete when_incomplete_ = WhenIncomplete::deliver;
    base::Table<NodeIndex, Node> nodes_;
    base::Table<NodeIndex, NodeFate> fates_;
    base::Table<ReadoutIndex, NodeIndex> readout_node_;
    base::Table<BuilderIndex, NodeIndex> builder_node_;
    TimersByHand timers_;

    std::vector<Event> events_ = std::vector<Event>(events);
    std::set<std::pair<NodeIndex, Bytes>> taken_;
    std::uint64_t outputs_ = 0;
    std::uint64_t slot_ = 0;
    std::uint64_t next_to_assign_ = 0;
    base::Table<BuilderIndex, std::uint32_t> in_flight_;  ///< events, as the event manager knows
    BuilderIndex last_assigned_;
    bool is_closing_ = false;
    std::optional<std::uint64_t> next_event_;  ///< of the next epoch, when this one is over
    Summary summary_;
};

}  // namespace daqloom::protocol
