// Linear shifting with spare hosts, to which the work of lost units moves.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/failure_test.hpp"
#include "systems/shift/run_control_test.hpp"

namespace daqloom::systems {
namespace {

using protocol::RoleHolders;

std::vector<RoleHolders> moved_in(const ShiftSystem& system) {
    return system.run_control()->control().roles().moved();
}

/// MEPs built in the last of four milliseconds.
double built_at_last(ShiftSystemConfig config) {
    config.duration = base::milliseconds(4);
    const auto system = play(config, base::milliseconds(3));
    const std::uint64_t before = system->report().meps_built;
    system->run(base::milliseconds(4));
    return static_cast<double>(system->report().meps_built - before);
}

/// The spare's slot is a dummy until the loss; the killed unit's slot is a dummy afterwards.
TEST(Spares, ASpareBuildsAsMuchAsTheUnitThatItReplaces) {
    ShiftSystemConfig config = controlled(4, 1);
    const double usual = built_at_last(config);
    config.node_changes = {kill(2, base::milliseconds(1))};
    EXPECT_NEAR(built_at_last(config) / usual, 1, 0.01);
    const auto system = play(config, base::milliseconds(4));
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{4, 0, 4}));
    EXPECT_EQ(moved_in(*system),
              (std::vector{RoleHolders{UnitIndex(2), UnitIndex(4), UnitIndex(4)}}));
    // The spare's process is running: it takes part as soon as granted MFPs are drained.
    const auto& members = system->run_control()->members();
    EXPECT_EQ(members[1].at, base::milliseconds(1));
    EXPECT_LE((members[2].at - members[1].at).ps, (transfer(config) * (2 * 5)).ps);
}

/// One of four phases is a copy within the node. With a dummy for the lost unit, there are five
/// phases, one of which is such a copy.
TEST(Spares, BehindTheOthersASpareTakesNoPhaseUntilItIsNeeded) {
    ShiftSystemConfig config = controlled(4, 1);
    config.slots.resize(4);
    const double usual = built_at_last(controlled(4));
    EXPECT_NEAR(built_at_last(config) / usual, 1, 0.01);
    config.node_changes = {kill(2, base::milliseconds(1))};
    EXPECT_NEAR(built_at_last(config) / usual, 3.0 / 4, 0.02);
    config.keeps_lost_slots = false;
    EXPECT_NEAR(built_at_last(config) / usual, 1, 0.02);
}

/// The readout and the builder unit of the killed node move to two spares. With a single spare,
/// only the readout unit moves, and three units build the whole events of four readout units.
TEST(Spares, ApartTheReadoutUnitAndTheBuilderUnitGoOnOnTwoHostsOrTheReadoutUnitOnOne) {
    for (const std::uint32_t spares : {2U, 1U}) {
        ShiftSystemConfig config = controlled(4, spares);
        config.run->moves_apart = true;
        const double usual = built_at_last(config);
        config.node_changes = {kill(0, base::milliseconds(1))};
        EXPECT_NEAR(built_at_last(config) / usual, spares == 2 ? 1 : 0.75, 0.02);
        const auto system = play(config, base::milliseconds(4));
        EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{4, 0, 3 + spares}));
        const auto builder = spares == 2 ? UnitIndex(5) : UnitIndex::none();
        EXPECT_EQ(moved_in(*system),
                  (std::vector{RoleHolders{UnitIndex(0), UnitIndex(4), builder}}));
    }
}

TEST(Spares, AUnitThatComesBackIsTheSpareOfTheNext) {
    ShiftSystemConfig config = controlled(4, 1);
    config.run->restart = true;
    config.launch = microseconds(200);
    config.node_changes = {kill(2, base::milliseconds(1)), kill(3, base::milliseconds(4))};
    const auto system = play(config, base::milliseconds(6));
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{4, 0, 4, 0, 4}))
        << "its coming back stops nobody";
    EXPECT_EQ(moved_in(*system),
              (std::vector{RoleHolders{UnitIndex(2), UnitIndex(4), UnitIndex(4)},
                           RoleHolders{UnitIndex(3), UnitIndex(2), UnitIndex(2)}}));
}

TEST(Spares, AHostIsASpareOrHasUnits) {
    ShiftSystemConfig config = controlled(4, 1);
    config.spare_slots.back() = config.slots.front();
    EXPECT_TRUE(base::fails_with("is a spare and has units", ShiftSystem::make(config)));
}

}  // namespace
}  // namespace daqloom::systems
