// Unit loss in protocols whose builder units request fragments: the other units regroup and go on.
// faults/conservation_test.cpp checks that every event has one fate.
#include <gtest/gtest.h>

#include "infiniband/fabric_by_hand_test.hpp"
#include "systems/requested/daqpipe_system.hpp"
#include "systems/requested/pull_system.hpp"
#include "systems/run/run_control_test.hpp"

namespace daqloom::systems {
namespace {

constexpr base::Bytes kDaqpipeFragment = 64 * 1024;
constexpr std::uint32_t kReadouts = 3;
constexpr base::Bytes kPullFragment = 16 * 1024;
constexpr Time kInterval = microseconds(100);

/// DAQPIPE on a star, with a readout unit and a builder unit on each host, and spares.
DaqpipeSystemConfig controlled_daqpipe(std::uint32_t nodes = 4, std::uint32_t spares = 0) {
    DaqpipeSystemConfig config;
    fabric_of(config) = star(nodes + spares);
    config.readouts = config.builders = all_hosts(fabric_of(config));
    config.spare_slots.assign(config.readouts.begin() + nodes, config.readouts.end());
    config.spare_slots.insert(config.spare_slots.begin(), nodes, NodeIndex::none());
    config.readouts.resize(nodes);
    config.builders.resize(nodes);
    config.fragment_bytes.assign(nodes, kDaqpipeFragment);
    config.credits = 2;
    config.parallel_sends = 2;
    control(config);
    return config;
}

/// Pull building on a star: hosts of readout units, then of builder units, then spares. Events come
/// at equal intervals, the first after one interval.
PullSystemConfig controlled_pull(std::uint32_t builders = 3, std::uint32_t spares = 0) {
    PullSystemConfig config;
    fabric_of(config) = star(kReadouts + builders + spares);
    const std::vector<NodeIndex> hosts = all_hosts(fabric_of(config));
    config.readouts.assign(hosts.begin(), hosts.begin() + kReadouts);
    config.builders.assign(hosts.begin() + kReadouts, hosts.begin() + kReadouts + builders);
    config.spare_slots.assign(hosts.begin() + kReadouts + builders, hosts.end());
    config.spare_slots.insert(config.spare_slots.begin(), std::max(kReadouts, builders),
                              NodeIndex::none());
    config.event_size.mean = kReadouts * kPullFragment;
    config.arrivals.kind = protocol::ArrivalsConfig::Kind::deterministic;
    config.arrivals.rate_hz = 1 / kInterval.seconds();
    config.concurrent_events = 2;
    control(config);
    return config;
}

/// Events built between two times.
struct EventCounts {
    std::uint64_t events;
    std::uint64_t incomplete;
    base::Bytes bytes;
};
template <class System, class Config>
EventCounts built_between(Config config, Time from, Time until) {
    config.duration = until;
    const auto system = play<System>(config, from);
    const auto before = system->report();
    system->run(until);
    const auto after = system->report();
    return {after.events_built - before.events_built,
            after.events_incomplete - before.events_incomplete,
            after.bytes_built - before.bytes_built};
}
template <class System, class Config>
EventCounts built_in_the_last_of(std::int64_t milliseconds, const Config& config) {
    return built_between<System>(config, base::milliseconds(milliseconds - 1),
                                 base::milliseconds(milliseconds));
}

// ---- either protocol ----------------------------------------------------------------------------

template <class System, class Config>
void expect_no_change_without_faults(Config config, std::uint32_t members, std::uint64_t least) {
    const auto system = play<System>(config, base::milliseconds(5));
    config.run.reset();
    const auto usual = play<System>(config, base::milliseconds(5));
    EXPECT_GT(usual->report().events_built, least);
    EXPECT_EQ(system->report().events_built, usual->report().events_built);
    EXPECT_EQ(system->report().bytes_built, usual->report().bytes_built);
    EXPECT_EQ(system->latency().max(), usual->latency().max());
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{members}));
    EXPECT_EQ(system->run_control()->accounts().regroupings, 0U);
}

TEST(RequestedRegrouping, WithoutFaultsNothingChanges) {
    expect_no_change_without_faults<DaqpipeSystem>(controlled_daqpipe(), 4, 200);
    PullSystemConfig pull = controlled_pull();
    pull.arrivals.kind = protocol::ArrivalsConfig::Kind::poisson;
    expect_no_change_without_faults<PullSystem>(pull, 6, 30);
}

template <class System, class Config>
void expect_the_same_with_the_same_seed(Config config, std::uint32_t stopped) {
    config.run->restart = true;
    config.node_changes = {kill(2, microseconds(777)),
                           stop(stopped, microseconds(1500), microseconds(2500))};
    const auto one = play<System>(config, base::milliseconds(4));
    const auto other = play<System>(config, base::milliseconds(4));
    EXPECT_EQ(one->fingerprint(), other->fingerprint());
    config.seed = 2;
    EXPECT_NE(one->fingerprint(), play<System>(config, base::milliseconds(4))->fingerprint());
}

TEST(RequestedRegrouping, IsTheSameWithTheSameSeed) {
    DaqpipeSystemConfig daqpipe = controlled_daqpipe();
    daqpipe.fragment_sizes = protocol::FragmentSizes::poisson;
    expect_the_same_with_the_same_seed<DaqpipeSystem>(daqpipe, 1);
    PullSystemConfig pull = controlled_pull();
    pull.arrivals.kind = protocol::ArrivalsConfig::Kind::poisson;
    expect_the_same_with_the_same_seed<PullSystem>(pull, 4);
}

/// An event comes every 100 us. A killed unit has a spare or returns; then events are whole again.
template <class System, class Config>
void expect_whole_again(Config config, std::uint32_t killed, std::uint32_t members,
                        base::Bytes event_bytes, double tolerance) {
    const auto expect_whole = [&] {
        const EventCounts built = built_in_the_last_of<System>(4, config);
        EXPECT_NEAR(static_cast<double>(built.events), 10, tolerance);
        EXPECT_EQ(built.incomplete, 0U);
        EXPECT_EQ(built.bytes, static_cast<base::Bytes>(built.events) * event_bytes);
    };
    config.node_changes = {kill(killed, base::milliseconds(1))};
    EXPECT_EQ(members_of(*play<System>(config, base::milliseconds(4))),
              (std::vector<std::uint32_t>{members, 0, members}));
    expect_whole();
    config.spare_slots.clear();
    config.run->restart = true;
    config.launch = microseconds(200);
    EXPECT_EQ(members_of(*play<System>(config, base::milliseconds(4))),
              (std::vector<std::uint32_t>{members, 0, members - 1, 0, members}));
    expect_whole();
}

TEST(RequestedRegrouping, AKilledUnitComesBackOrASpareTakesItsPlace) {
    DaqpipeSystemConfig daqpipe = controlled_daqpipe(4, 1);
    daqpipe.event_interval = kInterval;
    expect_whole_again<DaqpipeSystem>(daqpipe, 0, 4, 4 * kDaqpipeFragment, 1);
    daqpipe.node_changes = {kill(0, base::milliseconds(1))};
    EXPECT_EQ(play<DaqpipeSystem>(daqpipe, base::milliseconds(4))
                  ->run_control()
                  ->control()
                  .roles()
                  .moved(),
              (std::vector{protocol::RoleHolders{UnitIndex(0), UnitIndex(4), UnitIndex(4)}}));
    for (const std::uint32_t killed : {1U, kReadouts + 1}) {
        expect_whole_again<PullSystem>(controlled_pull(3, 1), killed, 6, kReadouts * kPullFragment,
                                       0);
    }
}

// ---- DAQPIPE ------------------------------------------------------------------------------------

/// Sources deliver an event every 100 us, which the network can carry even without one of the
/// units.
TEST(DaqpipeRegrouping, TheOthersBuildTheEventsOfTheSources) {
    for (const std::uint32_t killed : {0U, 2U}) {  // the event manager is on host 0
        DaqpipeSystemConfig config = controlled_daqpipe();
        config.event_interval = kInterval;
        config.node_changes = {kill(killed, base::milliseconds(1))};
        const auto system = play<DaqpipeSystem>(config, base::milliseconds(6));
        EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{4, 0, 3}));
        EXPECT_EQ(lost_by(*system), (std::vector<Lost>{{base::milliseconds(1), killed}}));
        const EventCounts built = built_in_the_last_of<DaqpipeSystem>(6, config);
        EXPECT_NEAR(static_cast<double>(built.incomplete), 10, 1);
        EXPECT_EQ(built.events, 0U) << "without the fragments of the lost";
        const auto all = system->run_control()->accounts();
        EXPECT_EQ(all.units_lost, 1U);
        EXPECT_EQ(all.regroupings, 1U);
    }
}

/// In each time slot a builder unit collects a fragment of each of two events: n units build 2 n
/// events of n fragments in n slots, whatever n is.
TEST(DaqpipeRegrouping, InTimeSlotsTheOthersBuildAsManyEvents) {
    for (const bool is_push : {false, true}) {
        DaqpipeSystemConfig config = controlled_daqpipe();
        config.is_push = is_push;
        config.parallel_sends = 1;
        config.slot = microseconds(10);
        const EventCounts with = built_in_the_last_of<DaqpipeSystem>(4, config);
        EXPECT_NEAR(static_cast<double>(with.events), 200, 2 * 4);
        EXPECT_EQ(with.incomplete, 0U);
        config.node_changes = {kill(2, base::milliseconds(1))};
        const EventCounts without = built_in_the_last_of<DaqpipeSystem>(4, config);
        EXPECT_NEAR(static_cast<double>(without.incomplete), 200, 2 * 4);
        EXPECT_EQ(without.events, 0U);
    }
}

/// A lone node would build any number of events at once, because copies within a node take no time.
TEST(DaqpipeRegrouping, ANodeThatIsLeftAloneDoesNotBuild) {
    DaqpipeSystemConfig config = controlled_daqpipe(2);
    config.node_changes = {kill(0, base::milliseconds(1))};
    const auto alone = play<DaqpipeSystem>(config, base::milliseconds(3));
    EXPECT_EQ(members_of(*alone), (std::vector<std::uint32_t>{2, 0}));
    config.local_rate = base::gigabits_per_second(100);
    EXPECT_EQ(members_of(*play<DaqpipeSystem>(config, base::milliseconds(3))),
              (std::vector<std::uint32_t>{2, 0, 1}));
}

/// The node of the event manager and only builder unit stands still, so that the readout units wait
/// for its requests until they give up. They report how far they wrote all the same: events built
/// before are not built again.
TEST(DaqpipeRegrouping, UnitsThatDoNotDrainReportTheirProgress) {
    DaqpipeSystemConfig config = controlled_daqpipe(3, 1);
    config.builders.resize(1);
    config.event_interval = microseconds(50);
    config.node_changes = {stop(0, microseconds(160), base::milliseconds(2)),
                           kill(1, microseconds(316))};
    const auto system = play<DaqpipeSystem>(config, microseconds(1990));
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{3, 0, 2}));
    EXPECT_EQ(lost_by(*system),
              (std::vector<Lost>{{microseconds(316), 1}, {microseconds(650), 0}}));
    // One event every 50 us. One is stuck with its builder unit; later events lack the readout unit
    // that has no spare.
    const auto all = system->run_control()->accounts();
    EXPECT_EQ(all.begun, 40);
    EXPECT_EQ(all.built, 3);
    EXPECT_EQ(all.incomplete, 36);
    EXPECT_EQ(all.unfinished, 1);
}

// ---- pull building ------------------------------------------------------------------------------

/// The other builder units get the events of a lost one, and all their events are whole.
TEST(PullRegrouping, WithoutABuilderUnitTheOthersBuildAllEvents) {
    PullSystemConfig config = controlled_pull();
    config.node_changes = {kill(kReadouts + 1, base::milliseconds(1))};
    const auto system = play<PullSystem>(config, base::milliseconds(4));
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{6, 0, 5}));
    EXPECT_EQ(lost_by(*system), (std::vector<Lost>{{base::milliseconds(1), kReadouts + 1}}));
    const EventCounts built = built_in_the_last_of<PullSystem>(4, config);
    EXPECT_EQ(built.events, 10U);
    EXPECT_EQ(built.incomplete, 0U);
    EXPECT_EQ(built.bytes, 10 * kReadouts * kPullFragment);
}

/// Events lack the fragments of a lost readout unit, with or without the event manager on its node.
TEST(PullRegrouping, WithoutAReadoutUnitEventsLackItsFragments) {
    for (const std::uint32_t killed : {0U, 2U}) {
        PullSystemConfig config = controlled_pull();
        config.node_changes = {kill(killed, base::milliseconds(1))};
        const auto system = play<PullSystem>(config, base::milliseconds(4));
        EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{6, 0, 5}));
        const EventCounts built = built_in_the_last_of<PullSystem>(4, config);
        EXPECT_EQ(built.events, 0U);
        EXPECT_EQ(built.incomplete, 10U);
        EXPECT_EQ(built.bytes, 10 * (kReadouts - 1) * kPullFragment);
    }
}

/// Events that come while an epoch ends wait for the next one: only those in flight with the
/// builder unit can be lost.
TEST(PullRegrouping, EventsThatComeMeanwhileWait) {
    PullSystemConfig config = controlled_pull();
    config.response.mean = microseconds(150);
    config.node_changes = {kill(kReadouts + 1, microseconds(1150))};
    // One event each 100 us; the eleventh, at 1.1 ms, is for this builder unit.
    const auto system = play<PullSystem>(config, microseconds(4050));
    const auto all = system->run_control()->accounts();
    EXPECT_EQ(all.begun, 40);
    EXPECT_EQ(all.skipped, 0);
    EXPECT_EQ(all.unfinished, 1);
    EXPECT_EQ(all.built + all.incomplete + all.unfinished + all.in_flight, 40);
}

}  // namespace
}  // namespace daqloom::systems
