// Pull building whose units are lost: the others regroup and go on. faults_conservation_test.cpp
// checks that every event has one fate.
#include <gtest/gtest.h>

#include "infiniband/fabric_by_hand_test.hpp"
#include "systems/pull_system.hpp"
#include "systems/run_control_test.hpp"

namespace daqloom::systems {
namespace {

constexpr std::uint32_t kReadouts = 3;
constexpr base::Bytes kPullFragment = 16 * 1024;
constexpr Time kInterval = microseconds(100);

/// Readout units, then builder units, then spares, each on a host of a star. Events come in equal
/// intervals, the first after one of them.
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
struct Built {
    std::uint64_t events;
    std::uint64_t incomplete;
    base::Bytes bytes;
};
Built built_between(PullSystemConfig config, Time from, Time until) {
    config.duration = until;
    const auto system = play<PullSystem>(config, from);
    const PullReport before = system->report();
    system->run(until);
    const PullReport after = system->report();
    return {after.events_built - before.events_built,
            after.events_incomplete - before.events_incomplete,
            after.bytes_built - before.bytes_built};
}

TEST(PullRegrouping, WithoutFaultsNothingChanges) {
    PullSystemConfig config = controlled_pull();
    config.arrivals.kind = protocol::ArrivalsConfig::Kind::poisson;
    const auto system = play<PullSystem>(config, base::milliseconds(5));
    config.run.reset();
    const auto usual = play<PullSystem>(config, base::milliseconds(5));
    EXPECT_GT(usual->report().events_built, 30U);
    EXPECT_EQ(system->report().events_built, usual->report().events_built);
    EXPECT_EQ(system->report().bytes_built, usual->report().bytes_built);
    EXPECT_EQ(system->latency().max(), usual->latency().max());
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{6}));
}

/// The others get the events of a builder unit that is lost, all of them whole.
TEST(PullRegrouping, WithoutABuilderUnitTheOthersBuildAllEvents) {
    PullSystemConfig config = controlled_pull();
    config.node_changes = {kill(kReadouts + 1, base::milliseconds(1))};
    const auto system = play<PullSystem>(config, base::milliseconds(4));
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{6, 0, 5}));
    EXPECT_EQ(lost_by(*system), (std::vector<Lost>{{base::milliseconds(1), kReadouts + 1}}));
    const Built built = built_between(config, base::milliseconds(3), base::milliseconds(4));
    EXPECT_EQ(built.events, 10U);
    EXPECT_EQ(built.incomplete, 0U);
    EXPECT_EQ(built.bytes, 10 * kReadouts * kPullFragment);
}

/// Events lack its fragments, of equal size, from then on: also where it had the event manager.
TEST(PullRegrouping, WithoutAReadoutUnitEventsLackItsFragments) {
    for (const std::uint32_t killed : {0U, 2U}) {
        PullSystemConfig config = controlled_pull();
        config.node_changes = {kill(killed, base::milliseconds(1))};
        const auto system = play<PullSystem>(config, base::milliseconds(4));
        EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{6, 0, 5}));
        const Built built = built_between(config, base::milliseconds(3), base::milliseconds(4));
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

TEST(PullRegrouping, AKilledUnitComesBackOrASpareTakesItsPlace) {
    for (const std::uint32_t killed : {1U, kReadouts + 1}) {
        PullSystemConfig config = controlled_pull(3, 1);
        config.node_changes = {kill(killed, base::milliseconds(1))};
        const auto spared = play<PullSystem>(config, base::milliseconds(4));
        EXPECT_EQ(members_of(*spared), (std::vector<std::uint32_t>{6, 0, 6}));
        const Built with = built_between(config, base::milliseconds(3), base::milliseconds(4));
        EXPECT_EQ(with.events, 10U) << "a spare has its readout unit";
        EXPECT_EQ(with.bytes, 10 * kReadouts * kPullFragment);

        config.spare_slots.clear();
        config.run->restart = true;
        config.launch = microseconds(200);
        EXPECT_EQ(members_of(*play<PullSystem>(config, base::milliseconds(4))),
                  (std::vector<std::uint32_t>{6, 0, 5, 0, 6}));
        const Built again = built_between(config, base::milliseconds(3), base::milliseconds(4));
        EXPECT_EQ(again.events, 10U);
        EXPECT_EQ(again.bytes, 10 * kReadouts * kPullFragment);
    }
}

TEST(PullRegrouping, IsTheSameWithTheSameSeed) {
    PullSystemConfig config = controlled_pull();
    config.arrivals.kind = protocol::ArrivalsConfig::Kind::poisson;
    config.run->restart = true;
    config.node_changes = {kill(2, microseconds(777)),
                           stop(4, microseconds(1500), microseconds(2500))};
    const auto one = play<PullSystem>(config, base::milliseconds(4));
    const auto other = play<PullSystem>(config, base::milliseconds(4));
    EXPECT_EQ(one->fingerprint(), other->fingerprint());
    config.seed = 2;
    EXPECT_NE(one->fingerprint(), play<PullSystem>(config, base::milliseconds(4))->fingerprint());
}

}  // namespace
}  // namespace daqloom::systems
