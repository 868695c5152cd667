// Pull building in a world that delays and reorders whatever it may, and loses units.
#include "protocol/units/pull_unit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace daqloom::protocol {
namespace {

using base::Time;

struct Scene {
    std::uint32_t readouts = 3;
    std::uint32_t builders = 2;
    PullRules rules = {};
    WhenIncomplete when_incomplete = WhenIncomplete::deliver;
    std::uint64_t events = 200;  ///< that sources deliver
    std::uint64_t seed = 1;
};

/// All nodes: readout units, then builder units. What is under way arrives in any order.
class Play {
  public:
    explicit Play(const Scene& setup) : setup_(setup), random_(setup.seed, "play") {
        setup_.rules.arrivals.rate_hz = 1e6;
        setup_.rules.arrivals.kind = ArrivalsConfig::Kind::deterministic;
        for (std::uint32_t node = 0; node < setup.readouts + setup.builders; ++node) {
            auto unit = PullUnit::make({.rules = setup_.rules,
                                        .readout = readout_of(node),
                                        .builder = builder_of(node),
                                        .readouts = setup.readouts,
                                        .builders = setup.builders,
                                        .when_incomplete = setup.when_incomplete,
                                        .seed = setup.seed});
            EXPECT_TRUE(unit);
            nodes_.push_back(std::make_unique<Node>(*this, node, std::move(*unit)));
        }
    }

    /// Until so many events are given out.
    void run(std::uint64_t events) {
        while (given_out_.size() < events && step()) {
        }
        EXPECT_GE(given_out_.size(), events);
    }
    void lose(std::uint32_t node) { nodes_[node]->is_lost = true; }
    /// All live nodes learn, in any order, who is lost; then all that is under way is done.
    void close() {
        std::vector<ReadoutIndex> readouts;
        std::vector<BuilderIndex> builders;
        for (const auto& node : nodes_) {
            if (node->is_lost && readout_of(node->number) != ReadoutIndex::none()) {
                readouts.push_back(readout_of(node->number));
            } else if (node->is_lost) {
                builders.push_back(builder_of(node->number));
            }
        }
        for (const auto& each : nodes_) {
            Node* node = each.get();
            under_way_.push_back({node->number, [=, this] {
                                      node->unit.on_close(readouts, builders, now_, node->world);
                                  }});
        }
        while (step()) {
        }
        for (const auto& node : nodes_) {
            EXPECT_TRUE(node->is_lost || node->unit.is_drained()) << "node " << node->number;
            EXPECT_EQ(node->unit.unexpected_messages(), 0U);
        }
    }

    /// By event: from how many readout units it has something.
    std::map<std::uint64_t, std::uint32_t> given_out_;
    std::uint64_t refused = 0;
    std::uint64_t dropped() const {
        std::uint64_t all = 0;
        for (const auto& node : nodes_) {
            all += node->unit.builder() != nullptr ? node->unit.builder()->counters().dropped : 0;
        }
        return all;
    }
    /// Fragments of one builder unit that were asked for and had not come, at most.
    std::uint64_t outstanding_peak() const {
        std::uint64_t most = 0;
        for (const auto& node : nodes_) {
            if (node->unit.builder() != nullptr) {
                most = std::max(most, node->unit.builder()->counters().outstanding_peak);
            }
        }
        return most;
    }
    Time now() const { return now_; }
    [[nodiscard]] std::uint64_t next_event() const {
        std::uint64_t next = 0;
        for (const auto& node : nodes_) {
            next = std::max(next, node->is_lost ? 0 : node->unit.next_event());
        }
        return next;
    }

  private:
    struct Node;

    struct World {
        Play& play;
        Node& node;

        void send(ReadoutIndex to, const UnitMessage& said) { play.post(node, to.value(), said); }
        void send(BuilderIndex to, const UnitMessage& said) {
            play.post(node, play.setup_.readouts + to.value(), said);
        }
        base::Bytes held(EventId event) const {
            return static_cast<std::uint64_t>(event) < node.taken ? 100 : 0;
        }
        void write(EventId event, BuilderIndex to, base::Bytes offset) {
            play.write(node, event, to, offset, held(event));
        }
        void give_back(std::uint32_t count) { node.given_back += count; }
        void assigned(EventId /*event*/) {}
        void collect(EventId event, std::uint32_t slot) {
            if (node.event_in.contains(slot) && node.event_in[slot] == event) {
                return;
            }
            node.event_in[slot] = event;
            node.here[slot].clear();
        }
        base::Bytes place(std::uint32_t slot, ReadoutIndex readout) const {
            return slot * play.setup_.readouts + readout.value();
        }
        void deliver(EventId event, std::uint32_t slot) {
            const auto number = static_cast<std::uint64_t>(event);
            EXPECT_FALSE(play.given_out_.contains(number)) << "event " << number << " twice";
            play.given_out_[number] = static_cast<std::uint32_t>(node.here[slot].size());
            play.under_way_.push_back(
                {node.number, [this, event] { node.unit.on_consumed(event, play.now_, *this); }});
        }
    };

    struct Node {
        Node(Play& play, std::uint32_t its_number, PullUnit its_unit)
            : number(its_number), unit(std::move(its_unit)), world{play, *this} {}

        std::uint32_t number;
        PullUnit unit;
        World world;
        bool is_lost = false;
        std::uint64_t taken = 0;
        std::uint64_t given_back = 0;
        std::map<std::uint32_t, EventId> event_in;
        std::map<std::uint32_t, std::set<std::uint32_t>> here;  ///< readout units, by slot
    };

    struct UnderWay {
        std::uint32_t to;
        std::function<void()> happen;
    };

    ReadoutIndex readout_of(std::uint32_t node) const {
        return node < setup_.readouts ? ReadoutIndex(node) : ReadoutIndex::none();
    }
    BuilderIndex builder_of(std::uint32_t node) const {
        return node < setup_.readouts ? BuilderIndex::none() : BuilderIndex(node - setup_.readouts);
    }

    void post(const Node& from, std::uint32_t to, const UnitMessage& said) {
        const std::vector<base::Bytes> values(said.values.begin(), said.values.end());
        const std::uint32_t number = from.number;
        under_way_.push_back({to, [=, this] {
                                  Node& node = *nodes_[to];
                                  refused += node.unit.on_message(
                                                 readout_of(number), builder_of(number),
                                                 {said.kind, said.round, said.number, values}, now_,
                                                 node.world)
                                                 ? 0
                                                 : 1;
                              }});
    }

    void write(Node& from, EventId event, BuilderIndex to, base::Bytes offset, base::Bytes bytes) {
        const std::uint32_t builder = setup_.readouts + to.value();
        const std::uint32_t readout = from.number;
        under_way_.push_back(
            {builder, [=, this] {
                 Node& node = *nodes_[builder];
                 const auto slot = static_cast<std::uint32_t>(offset / setup_.readouts);
                 EXPECT_EQ(offset % setup_.readouts, readout);
                 if (node.event_in[slot] != event) {
                     EXPECT_TRUE(nodes_[readout]->is_lost);  // and refused
                     return;
                 }
                 if (bytes > 0) {
                     EXPECT_TRUE(node.here[slot].insert(readout).second);
                 }
                 node.unit.on_fragment(event, ReadoutIndex(readout), bytes, now_, node.world);
             }});
        under_way_.push_back(
            {readout,
             [=, this] { nodes_[readout]->unit.on_write_done(event, nodes_[readout]->world); }});
    }

    /// Something that may happen. False: nothing can any more.
    bool step() {
        for (const auto& node : nodes_) {
            const bool reads = readout_of(node->number) != ReadoutIndex::none();
            if (reads && !node->is_lost && node->taken < setup_.events &&
                node->taken - node->given_back < node->unit.window() && node->unit.wants_data() &&
                random_.uniform_int(4) == 0) {
                ++node->taken;
                node->unit.on_data(now_, node->world);
            }
        }
        if (under_way_.empty() || random_.uniform_int(4) == 0) {
            return wait() || !under_way_.empty();
        }
        const auto which = static_cast<std::ptrdiff_t>(random_.uniform_int(under_way_.size()));
        const UnderWay next = std::move(under_way_[static_cast<std::size_t>(which)]);
        under_way_.erase(under_way_.begin() + which);
        if (!nodes_[next.to]->is_lost) {
            next.happen();
        }
        return true;
    }

    /// Until something is due. False: nothing is.
    bool wait() {
        Time due = Time::never();
        for (const auto& node : nodes_) {
            due = node->is_lost ? due : std::min(due, node->unit.next_timer());
        }
        if (due == Time::never()) {
            return false;
        }
        now_ = std::max(now_, due);
        for (const auto& node : nodes_) {
            if (!node->is_lost) {
                node->unit.on_time(now_, node->world);
            }
        }
        return true;
    }

    Scene setup_;
    base::RandomStream random_;
    Time now_ = Time::zero();
    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<UnderWay> under_way_;
};

void expect_whole(const Play& play, std::uint32_t readouts) {
    for (const auto& [event, here] : play.given_out_) {
        EXPECT_EQ(here, readouts) << "event " << event;
    }
    EXPECT_EQ(play.refused, 0U);
}

TEST(PullUnit, BuildsEveryEventOnceInAnyOrderOfMessages) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        Scene setup{.readouts = 3, .builders = 2, .seed = seed};
        setup.rules.concurrent_events = 1 + seed % 4;
        setup.rules.outstanding_fragments = seed % 5;
        setup.rules.response = {.kind = base::DelayDistribution::Kind::exponential,
                                .mean = base::microseconds(3)};
        setup.rules.processing = {{.mean = base::microseconds(5)}};
        Play play(setup);
        play.run(60);
        play.close();
        expect_whole(play, 3);
        EXPECT_EQ(play.given_out_.size(), play.next_event()) << "none is left out";
        if (setup.rules.outstanding_fragments > 0) {
            EXPECT_LE(play.outstanding_peak(), setup.rules.outstanding_fragments);
        }
    }
}

TEST(PullUnit, AfterTheLossOfAnyNodeEveryOtherEndsWithAllItsEventsGivenOut) {
    for (std::uint32_t seed = 1; seed <= 40; ++seed) {
        const std::uint32_t lost = seed % 5;  // 0 to 2 read out, 3 and 4 build
        Scene setup{.readouts = 3, .builders = 2, .seed = seed};
        setup.rules.concurrent_events = 3;
        setup.rules.outstanding_fragments = seed % 4;
        setup.rules.response = {.kind = base::DelayDistribution::Kind::exponential,
                                .mean = base::microseconds(3)};
        Play play(setup);
        play.run(30);
        play.lose(lost);
        play.close();
        for (const auto& [event, here] : play.given_out_) {
            EXPECT_GE(here, 1U);
            EXPECT_LE(here, 3U);
        }
        EXPECT_GE(play.next_event(), play.given_out_.empty() ? 0 : play.given_out_.rbegin()->first)
            << "the next epoch builds none of them again";
        EXPECT_EQ(play.refused, 0U);
    }
}

TEST(PullUnit, DropsWhatALostReadoutUnitKeepsFromBeingWholeIfItIsToldSo) {
    std::uint64_t dropped = 0;
    for (std::uint32_t seed = 1; seed <= 10; ++seed) {
        Play play({.when_incomplete = WhenIncomplete::drop, .seed = seed});
        play.run(30);
        play.lose(2);
        play.close();
        expect_whole(play, 3);
        dropped += play.dropped();
    }
    EXPECT_GT(dropped, 0U);
}

TEST(PullUnit, GivesOutWithoutWhatTheSourceHasNotDeliveredWhenTheEpochEnds) {
    Scene setup{.events = 10};  // and no more
    setup.rules.concurrent_events = 4;
    Play play(setup);
    play.run(10);
    const Time before = play.now();
    play.close();
    EXPECT_GE(play.now(), before + PullUnit::patience);
    for (const auto& [event, here] : play.given_out_) {
        EXPECT_EQ(here, event < 10 ? 3U : 0U);
    }
    EXPECT_EQ(play.given_out_.size(), 10U);
    EXPECT_GT(play.dropped(), 0U) << "of the others, nothing has come";
}

TEST(PullUnit, RefusesWhatNobodySays) {
    auto unit = PullUnit::make({.readout = ReadoutIndex(1), .readouts = 2, .builders = 1});
    ASSERT_TRUE(unit);
    struct Nothing {
        void send(ReadoutIndex /*to*/, const UnitMessage& /*said*/) {}
        void send(BuilderIndex /*to*/, const UnitMessage& /*said*/) {}
        base::Bytes held(EventId /*event*/) const { return 0; }
        void write(EventId /*event*/, BuilderIndex /*to*/, base::Bytes /*offset*/) {}
        void give_back(std::uint32_t /*count*/) {}
        void assigned(EventId /*event*/) {}
        void collect(EventId /*event*/, std::uint32_t /*slot*/) {}
        base::Bytes place(std::uint32_t /*slot*/, ReadoutIndex /*readout*/) const { return 0; }
        void deliver(EventId /*event*/, std::uint32_t /*slot*/) {}
    } world;
    using Kind = UnitMessage::Kind;
    const base::Bytes offset = 0;
    const auto is_heard = [&](ReadoutIndex readout, BuilderIndex builder, const UnitMessage& said) {
        return unit->on_message(readout, builder, said, Time::zero(), world);
    };
    const auto nobody = ReadoutIndex::none();
    EXPECT_TRUE(is_heard(nobody, BuilderIndex(), {Kind::request, 0, 5, {&offset, 1}}));
    EXPECT_FALSE(is_heard(nobody, BuilderIndex(), {Kind::request, 0, 5, {&offset, 1}})) << "twice";
    EXPECT_FALSE(is_heard(nobody, BuilderIndex(), {Kind::request, 0, 6, {}})) << "to no place";
    EXPECT_FALSE(is_heard(nobody, BuilderIndex(), {Kind::request, 0, 1'000, {&offset, 1}}))
        << "nobody has been given that event yet";
    EXPECT_FALSE(is_heard(nobody, BuilderIndex(1), {Kind::request, 0, 6, {&offset, 1}}))
        << "there is one builder unit";
    EXPECT_FALSE(is_heard(ReadoutIndex(), BuilderIndex::none(), {Kind::assign, 0, 1, {}}))
        << "it builds nothing";
    EXPECT_FALSE(is_heard(nobody, BuilderIndex(), {Kind::done, 0, 1, {}})) << "it manages nothing";
    EXPECT_FALSE(is_heard(nobody, BuilderIndex(), {Kind::last_answer, 0, 0, {}}))
        << "it has made more requests";
    EXPECT_TRUE(is_heard(nobody, BuilderIndex(), {Kind::last_answer, 0, 1, {}}));
}

}  // namespace
}  // namespace daqloom::protocol
