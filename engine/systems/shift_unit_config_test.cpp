// A unit of linear shifting as the simulator configures it; live/node/unit_config_test.cpp plays
// the same script.
#include <gtest/gtest.h>

#include "protocol/units/shift_script_test.hpp"
#include "systems/shift_system.hpp"

namespace daqloom::systems {
namespace {

using protocol::ShiftScript;

TEST(ShiftUnitConfig, SimulatedPlaysTheScriptThatANodePlays) {
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
