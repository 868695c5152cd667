// Whole nodes in threads, for protocols in which builder units request MFPs (DAQPIPE, pull).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "live/node/node_fixture_test.hpp"

namespace daqloom::live {
namespace {

using base::DelayDistribution;

NodeConfig daqpipe(std::uint32_t units, bool is_push) {
    NodeConfig config = folded(units);
    config.protocol = Protocol::daqpipe;
    config.is_push = is_push;
    config.credits = 3;
    config.parallel_sends = 2;
    return config;
}

/// Readout units come first, then builder units. Events of 1 kB arrive faster than they are built.
NodeConfig pull(std::uint32_t readouts, std::uint32_t builders,
                const std::string& transport = "shm") {
    const std::uint32_t units = readouts + builders;
    NodeConfig config = folded(units, transport);
    config.protocol = Protocol::pull;
    std::fill_n(config.slots.builders.begin(), readouts, UnitIndex::none());
    std::fill(config.slots.readouts.begin() + readouts, config.slots.readouts.end(),
              UnitIndex::none());
    config.fragment_bytes.resize(readouts);
    config.arrivals.rate_hz = 1e5;
    config.event_size.mean = 1'000;
    config.concurrent_events = 4;
    return config;
}

Units members_of(const NodeConfig& config) {
    return first(static_cast<std::uint32_t>(config.slots.readouts.size()));
}
/// Units with a builder unit, except the lost ones.
Units builders_of(const NodeConfig& config, const Units& lost = {}) {
    Units found(config.slots.builders.begin(), config.slots.builders.end());
    std::erase(found, UnitIndex::none());
    return without(found, lost);
}

// ---- whole events -------------------------------------------------------------------------------

struct Variant {
    const char* name;
    NodeConfig config;
    void (*adapt)(NodeConfig&) = [](NodeConfig&) {};
};
std::string name_of(const testing::TestParamInfo<Variant>& tested) { return tested.param.name; }

class RequestedEpochs : public testing::TestWithParam<Variant> {};

TEST_P(RequestedEpochs, BuildEveryEventWholeAndEndWithNoneUnderWay) {
    NodeConfig config = GetParam().config;
    GetParam().adapt(config);
    NodesUnderTest nodes(config);
    const Units members = members_of(config);
    nodes.begin(members);
    ASSERT_TRUE(nodes.counts(builders_of(config), "meps_built", 50));
    nodes.halt(members);
    nodes.expect_all_whole();
    for (const char* none : {"refused_messages", "refused_writes", "unreachable"}) {
        EXPECT_EQ(nodes.sum(none), 0U) << none;
    }
    const std::uint64_t built = nodes.sum("meps_built");
    const std::uint64_t readouts = config.fragment_bytes.size();
    EXPECT_EQ(nodes.sum("meps_incomplete"), 0);
    EXPECT_EQ(nodes.sum("mfps_received"), built * readouts);
    EXPECT_EQ(nodes.sum("mfps_written"), built * readouts);
    EXPECT_EQ(built, nodes.next_mep) << "none is left out";
}

NodeConfig timed(std::uint32_t units, bool is_push) {
    NodeConfig config = daqpipe(units, is_push);
    config.slot = base::microseconds(100);
    return config;
}

INSTANTIATE_TEST_SUITE_P(Daqpipe, RequestedEpochs,
                         testing::Values(Variant{"pull", daqpipe(4, false)},
                                         Variant{"push", daqpipe(4, true)},
                                         Variant{"alone", daqpipe(1, false)},
                                         Variant{"timed_pull", timed(2, false)},
                                         Variant{"timed_push", timed(3, true)}),
                         name_of);

INSTANTIATE_TEST_SUITE_P(
    Pull, RequestedEpochs,
    testing::Values(Variant{"three_to_one", pull(3, 1)}, Variant{"two_to_three", pull(2, 3)},
                    Variant{"over_tcp", pull(3, 2, transports().back())},
                    Variant{"one_to_one", pull(1, 1),
                            [](NodeConfig& config) {
                                config.concurrent_events = 1;
                                config.outstanding_fragments = 1;
                            }},
                    Variant{"few_outstanding", pull(4, 2),
                            [](NodeConfig& config) {
                                config.outstanding_fragments = 3;
                                config.assignment = protocol::Assignment::least_busy;
                            }},
                    Variant{"sizes_and_shares", pull(3, 2),
                            [](NodeConfig& config) {
                                config.event_size = {.kind = protocol::EventSizeConfig::Kind::gamma,
                                                     .mean = 2'000,
                                                     .spread_bytes = 1'000};
                                config.share = {1, 2, 3};
                                config.assignment = protocol::Assignment::random;
                            }},
                    Variant{"in_pieces", pull(2, 1),
                            [](NodeConfig& config) {
                                // three pieces of 50 kB from each readout unit
                                config.event_size.mean = 300'000;
                                config.stream_buffer = config.output_buffer = base::Bytes{4} << 20;
                            }},
                    Variant{"slow_readout", pull(2, 1),
                            [](NodeConfig& config) {
                                config.response = {.kind = DelayDistribution::Kind::exponential,
                                                   .mean = base::microseconds(100)};
                            }},
                    Variant{"slow_processing", pull(2, 2),
                            [](NodeConfig& config) {
                                config.processing = {{.mean = base::microseconds(50)},
                                                     {.kind = DelayDistribution::Kind::exponential,
                                                      .mean = base::microseconds(50)}};
                            }}),
    name_of);

// ---- losses -------------------------------------------------------------------------------------

/// 3 readout units, of which one is lost.
class RequestedEpochsWithLosses : public testing::TestWithParam<Variant> {
  protected:
    /// Plays an epoch in which each builder unit delivers at least `events` events.
    void deliver(NodesUnderTest& nodes, const Units& members, std::uint64_t events) const {
        nodes.begin(members);
        const Units lost = without(all_, members);
        ASSERT_TRUE(nodes.counts(builders_of(config_, lost), "meps_delivered", events));
    }

    NodeConfig config_ = GetParam().config;
    Units all_ = members_of(config_);
};

TEST_P(RequestedEpochsWithLosses, GoOnWithoutALostReadoutUnitEvenThatOfTheEventManager) {
    for (const UnitIndex lost : Units{0, 2}) {
        NodesUnderTest nodes(config_);
        deliver(nodes, all_, 30);
        nodes.kill(lost);
        nodes.halt(without(all_, {lost}), {lost});
        const std::uint64_t next = nodes.next_mep;
        EXPECT_LE(nodes.accounted(), next);
        deliver(nodes, without(all_, {lost}), 30);
        nodes.halt(without(all_, {lost}));
        EXPECT_GT(nodes.next_mep, next);
        EXPECT_GE(nodes.sum("meps_incomplete"), 2 * 30) << "none has what the lost unit held";
        nodes.expect_all_checked();
        EXPECT_TRUE(config_.protocol == Protocol::pull || nodes.sum("mfps_absent") == 0);
    }
}

TEST_P(RequestedEpochsWithLosses, DropIncompleteEventsIfConfiguredSo) {
    config_.delivers_incomplete = false;
    NodesUnderTest nodes(config_);
    deliver(nodes, all_, 30);
    nodes.kill(UnitIndex(2));
    nodes.halt(without(all_, {2}), {2});
    nodes.expect_all_whole();
    EXPECT_EQ(nodes.sum("meps_incomplete"), 0);
    EXPECT_EQ(nodes.sum("meps_built"), nodes.sum("meps_delivered"));
}

TEST_P(RequestedEpochsWithLosses, TakeALostNodeBack) {
    NodesUnderTest nodes(config_);
    deliver(nodes, all_, 10);
    nodes.halt(without(all_, {1}), {1});
    deliver(nodes, without(all_, {1}), 10);
    nodes.halt(without(all_, {1}));
    nodes.begin(all_);
    ASSERT_TRUE(nodes.counts(builders_of(config_), "meps_built", 10)) << "whole again";
    nodes.halt(all_);
    nodes.expect_all_checked();
    EXPECT_TRUE(config_.protocol == Protocol::pull || nodes.sum("mfps_absent") == 0);
}

INSTANTIATE_TEST_SUITE_P(, RequestedEpochsWithLosses,
                         testing::Values(Variant{"daqpipe_pull", daqpipe(3, false)},
                                         Variant{"daqpipe_push", daqpipe(3, true)},
                                         Variant{"pull", pull(3, 2)},
                                         Variant{"pull_over_tcp", pull(3, 2, transports().back())}),
                         name_of);

TEST(PullEpoch, GoesOnWithoutALostBuilderUnit) {
    for (const std::string& transport : transports()) {
        NodesUnderTest nodes(pull(3, 2, transport));
        nodes.begin(first(5));
        ASSERT_TRUE(nodes.counts({3, 4}, "meps_delivered", 30));
        nodes.kill(UnitIndex(3));
        nodes.halt({0, 1, 2, 4}, {3});
        const std::uint64_t next = nodes.next_mep;
        nodes.begin({0, 1, 2, 4});
        ASSERT_TRUE(nodes.counts({4}, "meps_delivered", 30));
        nodes.halt({0, 1, 2, 4});
        EXPECT_GE(nodes.sum("meps_built"), nodes.next_mep - next);
        nodes.expect_all_checked();
    }
}

// ---- sources and consumers that stop ------------------------------------------------------------

TEST(DaqpipeEpoch, ASourceThatStopsDoesNotPreventTheEnd) {
    NodeConfig config = daqpipe(2, false);
    config.source = SourceKind::user;  // and no such process attaches
    NodesUnderTest nodes(config);
    nodes.begin({0, 1});
    nodes.halt({0, 1});
    EXPECT_EQ(nodes.sum("meps_delivered"), 0);
}

/// Builder units collect as many events as they may, and receive only the fragments of unit 0. In
/// DAQPIPE the missing fragments count as empty.
TEST(RequestedEpoch, MissingFragmentsOfASourceAreEmptyOrMissingAtTheEnd) {
    for (const NodeConfig& config : {daqpipe(2, true), pull(2, 1)}) {
        const bool is_pull = config.protocol == Protocol::pull;
        SCOPED_TRACE(is_pull ? "pull" : "DAQPIPE");
        const std::uint64_t events = is_pull ? 4 : 2 * 3;
        const Units members = members_of(config);
        NodesUnderTest nodes(config, members, has_user_source_at_unit_1);
        nodes.begin(members);
        ASSERT_TRUE(until([&] { return nodes.sum("mfps_received") == events; }));
        nodes.halt(members);
        EXPECT_EQ(nodes.next_mep, events);
        EXPECT_EQ(nodes.count(UnitIndex(1), "mfps_absent"), events);
        EXPECT_EQ(nodes.sum("meps_delivered"), events);
        EXPECT_EQ(nodes.sum("meps_incomplete"), is_pull ? events : 0);
        nodes.expect_all_checked();
    }
}

/// A readout unit delivers nothing, so its builder unit stops accepting events. Events that wait in
/// the event manager when the unit is declared lost arrive again, all at once, in the next epoch.
TEST(PullEpoch, EventsThatCameBeforeALossWasKnownAreBuiltAfterwards) {
    NodeConfig config = pull(2, 1);
    config.arrivals.kind = protocol::ArrivalsConfig::Kind::deterministic;
    config.arrivals.rate_hz = 1e3;
    config.trace_arrivals = 10'000;
    NodesUnderTest nodes(config, {0, 1, 2}, has_user_source_at_unit_1);
    constexpr std::uint64_t waiting = 100;
    nodes.begin({0, 1, 2});
    ASSERT_TRUE(until([&] { return nodes.count(UnitIndex(0), "events_waiting") >= waiting; }));
    nodes.halt({0, 2}, {1});
    const std::uint64_t assigned = nodes.next_mep;
    nodes[UnitIndex(0)].take_arrivals();
    nodes.begin({0, 2});
    ASSERT_TRUE(nodes.counts({2}, "meps_delivered", waiting / 2));
    nodes.halt({0, 2});
    std::map<base::Time, std::uint64_t> at;
    for (const base::Time time : nodes[UnitIndex(0)].take_arrivals().times) {
        ++at[time];
    }
    EXPECT_GE(at.begin()->second + assigned, waiting) << "and those that were assigned before";
}

TEST(PullEpoch, CountsEventsWithoutRoomAtABuilder) {
    NodeConfig config = pull(2, 1);
    config.processing = {{.mean = base::seconds(100)}};
    NodesUnderTest nodes(config);
    nodes.begin({0, 1, 2});
    ASSERT_TRUE(until([&] { return nodes.count(UnitIndex(), "events_waiting") > 10; }));
    ASSERT_TRUE(until([&] { return nodes.sum("meps_built") == 4; })) << "held for its processing";
    nodes.halt({0, 1, 2});
    EXPECT_EQ(nodes.next_mep, 4);
    EXPECT_GT(nodes.count(UnitIndex(), "events_waiting"), 10);
}

// ---- arrivals -----------------------------------------------------------------------------------

TEST(PullEpoch, RecordsArrivalTimesAtTheEventManagerIfConfigured) {
    NodeConfig config = pull(2, 1);
    config.trace_arrivals = 1'000'000;
    NodesUnderTest nodes(config);
    const Units members = first(3);
    const base::Time before = now();
    nodes.begin(members);
    ASSERT_TRUE(nodes.counts({UnitIndex(2)}, "meps_built", 30));
    nodes.halt(members);
    const base::Time after = now();
    const ArrivalRecord::Arrivals arrivals = nodes[UnitIndex()].take_arrivals();
    EXPECT_EQ(arrivals.times.size(), nodes.next_mep + nodes.count(UnitIndex(), "events_waiting"));
    EXPECT_EQ(arrivals.beyond, 0U);
    EXPECT_TRUE(before <= arrivals.begin && arrivals.begin < arrivals.times.front());
    EXPECT_LE(arrivals.times.back(), after);
    EXPECT_TRUE(std::ranges::is_sorted(arrivals.times));
    auto planned =
        protocol::Arrivals::make(config.arrivals, base::RandomStream(config.seed, "arrivals"));
    ASSERT_TRUE(planned);
    for (const base::Time at : arrivals.times) {
        EXPECT_GE(at - arrivals.begin, planned->next());
    }
    EXPECT_TRUE(nodes[UnitIndex(1)].take_arrivals().times.empty()) << "no event manager";
}

// ---- configurations -----------------------------------------------------------------------------

TEST(RequestedNode, NamesContradictionsBeforeItBegins) {
    struct Case {
        NodeConfig config;
        void (*adapt)(NodeConfig&);
        const char* message;
    };
    const std::vector<Case> cases = {
        {daqpipe(2, false), [](NodeConfig& config) { config.credits = 1'025; },
         "1025 credits; at most 1024 events fit the immediate bits of a write, give 1 to 1024"},
        {daqpipe(2, false), [](NodeConfig& config) { config.streams = 2; },
         "2 streams; in DAQPIPE a readout unit has one, of MFPs with all it holds"},
        {pull(2, 1), [](NodeConfig& config) { config.streams = 2; },
         "2 streams; in pull building a readout unit has one, of MFPs with all it holds"},
        {pull(2, 1), [](NodeConfig& config) { config.output_buffer = 4'000; },
         "4 concurrent events of up to 1280 bytes take 5120 bytes of the output buffer, which has "
         "4000; give fewer concurrent events or a larger output buffer"},
        {pull(2, 1), [](NodeConfig& config) { config.share = {1}; },
         "1 shares of 2 readout units; give one for each"},
        {pull(2, 1), [](NodeConfig& config) { config.event_size.mean = base::Bytes{1} << 40; },
         "a fragment of 549755813888 bytes; give at most 4294836225: smaller events, or more "
         "readout units"},
    };
    for (const Case& each : cases) {
        NodeConfig config = each.config;
        each.adapt(config);
        EXPECT_EQ(Node::make(config).error().message, each.message);
    }
}

}  // namespace
}  // namespace daqloom::live
