// DAQPIPE whose units are lost: the others regroup and go on. faults_conservation_test.cpp checks
// that every event has one fate.
#include <gtest/gtest.h>

#include "infiniband/fabric_by_hand_test.hpp"
#include "systems/daqpipe_system.hpp"
#include "systems/run_control_test.hpp"

namespace daqloom::systems {
namespace {

constexpr base::Bytes kDaqpipeFragment = 64 * 1024;

/// A unit of either kind on each host, and spares, on a star.
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

/// Events delivered in the last of some milliseconds: all whole, or all incomplete.
double built_at_last(DaqpipeSystemConfig config, std::int64_t milliseconds, bool whole = true) {
    config.duration = base::milliseconds(milliseconds);
    const auto system = play<DaqpipeSystem>(config, base::milliseconds(milliseconds - 1));
    const DaqpipeReport before = system->report();
    system->run(base::milliseconds(milliseconds));
    const DaqpipeReport after = system->report();
    const std::uint64_t built = after.events_built - before.events_built;
    const std::uint64_t incomplete = after.events_incomplete - before.events_incomplete;
    EXPECT_EQ(whole ? incomplete : built, 0U);
    return static_cast<double>(whole ? built : incomplete);
}

TEST(DaqpipeRegrouping, WithoutFaultsNothingChanges) {
    DaqpipeSystemConfig config = controlled_daqpipe();
    const auto system = play<DaqpipeSystem>(config, base::milliseconds(5));
    config.run.reset();
    const auto usual = play<DaqpipeSystem>(config, base::milliseconds(5));
    EXPECT_GT(usual->report().events_built, 200U);
    EXPECT_EQ(system->report().events_built, usual->report().events_built);
    EXPECT_EQ(system->report().bytes_built, usual->report().bytes_built);
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{4}));
    EXPECT_EQ(system->run_control()->accounts().regroupings, 0U);
}

/// A source that delivers an event each 100 us, which the network carries with any of the units.
TEST(DaqpipeRegrouping, TheOthersBuildWhatTheSourcesDeliver) {
    for (const std::uint32_t killed : {0U, 2U}) {  // the event manager is on host 0
        DaqpipeSystemConfig config = controlled_daqpipe();
        config.event_interval = microseconds(100);
        config.node_changes = {kill(killed, base::milliseconds(1))};
        const auto system = play<DaqpipeSystem>(config, base::milliseconds(6));
        EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{4, 0, 3}));
        EXPECT_EQ(lost_by(*system), (std::vector<Lost>{{base::milliseconds(1), killed}}));
        EXPECT_NEAR(built_at_last(config, 6, false), 10, 1) << "without the fragments of the lost";
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
        EXPECT_NEAR(built_at_last(config, 4), 200, 2 * 4);
        config.node_changes = {kill(2, base::milliseconds(1))};
        EXPECT_NEAR(built_at_last(config, 4, false), 200, 2 * 4);
    }
}

TEST(DaqpipeRegrouping, AKilledUnitComesBackOrASpareTakesItsPlace) {
    DaqpipeSystemConfig config = controlled_daqpipe(4, 1);
    config.event_interval = microseconds(100);
    config.node_changes = {kill(0, base::milliseconds(1))};
    const auto spared = play<DaqpipeSystem>(config, base::milliseconds(4));
    EXPECT_EQ(members_of(*spared), (std::vector<std::uint32_t>{4, 0, 4}));
    EXPECT_EQ(spared->run_control()->control().roles().moved(),
              (std::vector{protocol::Moved{UnitIndex(0), UnitIndex(4), UnitIndex(4)}}));
    EXPECT_NEAR(built_at_last(config, 4), 10, 1);

    config.spare_slots.clear();
    config.run->restart = true;
    config.launch = microseconds(200);
    EXPECT_EQ(members_of(*play<DaqpipeSystem>(config, base::milliseconds(4))),
              (std::vector<std::uint32_t>{4, 0, 3, 0, 4}));
    EXPECT_NEAR(built_at_last(config, 4), 10, 1);
}

/// A lone node would build any number of events in no time: copies within a node take none here.
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
TEST(DaqpipeRegrouping, UnitsThatDoNotDrainTellHowFarTheyWrote) {
    DaqpipeSystemConfig config = controlled_daqpipe(3, 1);
    config.builders.resize(1);
    config.event_interval = microseconds(50);
    config.node_changes = {stop(0, microseconds(160), base::milliseconds(2)),
                           kill(1, microseconds(316))};
    const auto system = play<DaqpipeSystem>(config, microseconds(1990));
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{3, 0, 2}));
    EXPECT_EQ(lost_by(*system),
              (std::vector<Lost>{{microseconds(316), 1}, {microseconds(650), 0}}));
    // One each 50 us. One stands still with its builder unit; those after it lack the readout unit
    // for which there is no spare.
    const auto all = system->run_control()->accounts();
    EXPECT_EQ(all.begun, 40);
    EXPECT_EQ(all.built, 3);
    EXPECT_EQ(all.incomplete, 36);
    EXPECT_EQ(all.unfinished, 1);
}

TEST(DaqpipeRegrouping, IsTheSameWithTheSameSeed) {
    DaqpipeSystemConfig config = controlled_daqpipe();
    config.run->restart = true;
    config.is_poissonian = true;
    config.node_changes = {kill(2, microseconds(777)),
                           stop(1, microseconds(1500), microseconds(2500))};
    const auto one = play<DaqpipeSystem>(config, base::milliseconds(4));
    const auto other = play<DaqpipeSystem>(config, base::milliseconds(4));
    EXPECT_EQ(one->fingerprint(), other->fingerprint());
    config.seed = 2;
    EXPECT_NE(one->fingerprint(),
              play<DaqpipeSystem>(config, base::milliseconds(4))->fingerprint());
}

}  // namespace
}  // namespace daqloom::systems
