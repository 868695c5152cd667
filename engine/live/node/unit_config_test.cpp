// Units as a node configures them. systems/shift_unit_config_test.cpp plays the same script.
#include "live/node/unit_config.hpp"

#include <gtest/gtest.h>

#include "live/transport/units_test.hpp"
#include "protocol/units/shift_script_test.hpp"

namespace daqloom::live {
namespace {

using protocol::ShiftScript;

TEST(ShiftUnitConfig, LivePlaysTheScriptThatTheSimulatorPlays) {
    NodeConfig config;
    config.streams = ShiftScript::streams;
    config.readout_in_slot = config.builder_in_slot = Units{0, 1};
    const auto members = Members::of(config, Units{0, 1});
    ASSERT_TRUE(members);
    EXPECT_EQ(ShiftScript::play(shift_unit_config(config, *members, 100)), ShiftScript::expected);
}

}  // namespace
}  // namespace daqloom::live
