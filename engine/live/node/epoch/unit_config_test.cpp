// Units as a node configures them. systems/unit_config_test.cpp plays the same scripts.
#include "live/node/epoch/unit_config.hpp"

#include <gtest/gtest.h>

#include "live/transport/units_test.hpp"
#include "protocol/units/daqpipe_script_test.hpp"
#include "protocol/units/pull_script_test.hpp"
#include "protocol/units/shift_script_test.hpp"

namespace daqloom::live {
namespace {

using protocol::DaqpipeScript;
using protocol::PullScript;
using protocol::ShiftScript;

TEST(ShiftUnitConfig, LivePlaysTheScriptThatTheSimulatorPlays) {
    NodeConfig config;
    config.streams = ShiftScript::streams;
    config.slots.readouts = config.slots.builders = Units{0, 1};
    const auto members = Members::of(config, Units{0, 1});
    ASSERT_TRUE(members);
    EXPECT_EQ(ShiftScript::play(shift_unit_config(config, *members, 100)), ShiftScript::expected);
}

TEST(DaqpipeUnitConfig, LivePlaysTheScriptThatTheSimulatorPlays) {
    NodeConfig config;
    config.protocol = Protocol::daqpipe;
    static_cast<protocol::DaqpipeRules&>(config) = DaqpipeScript::rules;
    config.slots.readouts = config.slots.builders = Units{0, 1};
    const auto members = Members::of(config, Units{0, 1});
    ASSERT_TRUE(members);
    const auto memory = EventMemory::of(
        config, {DaqpipeScript::nodes, DaqpipeScript::nodes, members->readouts_in_run});
    ASSERT_TRUE(memory);
    EXPECT_EQ(DaqpipeScript::play(daqpipe_unit_config(config, *members, *memory)),
              DaqpipeScript::expected);
}

TEST(PullUnitConfig, LivePlaysTheScriptThatTheSimulatorPlays) {
    NodeConfig config;
    config.protocol = Protocol::pull;
    static_cast<protocol::PullRules&>(config) = PullScript::rules();
    config.event_size.mean = 128;
    config.slots.readouts = config.slots.builders = Units{0, 1};
    const auto members = Members::of(config, Units{0, 1});
    ASSERT_TRUE(members);
    const auto memory =
        EventMemory::of(config, {PullScript::nodes, PullScript::nodes, members->readouts_in_run});
    ASSERT_TRUE(memory);
    EXPECT_EQ(PullScript::play(pull_unit_config(config, *members, *memory)), PullScript::expected);
}

}  // namespace
}  // namespace daqloom::live
