// Units as the simulator configures them; live/node/epoch/unit_config_test.cpp plays the same
// scripts.
#include <gtest/gtest.h>

#include "protocol/units/daqpipe_script_test.hpp"
#include "protocol/units/pull_script_test.hpp"
#include "protocol/units/shift_script_test.hpp"
#include "systems/requested/daqpipe_system.hpp"
#include "systems/requested/pull_system.hpp"
#include "systems/shift/shift_system.hpp"

namespace daqloom::systems {
namespace {

using protocol::DaqpipeScript;
using protocol::PullScript;
using protocol::ShiftScript;

/// Configuration of the first unit, as made by the system of two nodes.
template <class Config>
auto first_of_two(Config config) {
    config.readouts = config.builders = {NodeIndex(0), NodeIndex(1)};
    auto unit = unit_config(config);
    unit.readout = protocol::ReadoutIndex(0);
    unit.builder = protocol::BuilderIndex(0);
    return unit;
}

TEST(UnitConfig, OfPullBuildingPlaysTheScriptThatANodePlays) {
    PullSystemConfig config;
    static_cast<protocol::PullRules&>(config) = PullScript::rules();
    EXPECT_EQ(PullScript::play(first_of_two(config)), PullScript::expected);
}

TEST(UnitConfig, OfDaqpipePlaysTheScriptThatANodePlays) {
    DaqpipeSystemConfig config;
    static_cast<protocol::DaqpipeRules&>(config) = DaqpipeScript::rules;
    config.fragment_bytes.assign(DaqpipeScript::nodes, 128);
    EXPECT_EQ(DaqpipeScript::play(first_of_two(config)), DaqpipeScript::expected);
}

TEST(UnitConfig, OfLinearShiftingPlaysTheScriptThatANodePlays) {
    ShiftSystemConfig config;
    config.streams = ShiftScript::streams;
    config.mfp_bytes.assign(ShiftScript::nodes * ShiftScript::streams, 128);
    auto unit = unit_config(config, *protocol::LinearShift::folded(ShiftScript::nodes),
                            base::gigabits_per_second(100));
    unit.self = protocol::ReadoutIndex(0);
    unit.builder.self = protocol::BuilderIndex(0);
    EXPECT_EQ(ShiftScript::play(unit), ShiftScript::expected);
}

}  // namespace
}  // namespace daqloom::systems
