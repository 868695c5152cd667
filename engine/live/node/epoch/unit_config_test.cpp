// Protocol units with a node's configuration. systems/unit_config_test.cpp has the same scripts.
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
    const auto members = Members::of(config.slots, Units{0, 1});
    ASSERT_TRUE(members);
    EXPECT_EQ(ShiftScript::play(shift_unit_config(config, *members, 100)), ShiftScript::expected);
}

/// Outputs of the script, for a unit that a node configures.
template <class Script>
std::string play_live(NodeConfig config) {
    config.slots.readouts = config.slots.builders = Units{0, 1};
    const auto members = Members::of(config.slots, Units{0, 1});
    const auto memory = EventMemory::of<typename Script::Unit>(
        config, {Script::nodes, Script::nodes, members->readouts_in_run});
    return Script::play(requested_unit_config<typename Script::Unit>(config, *members, *memory));
}

TEST(DaqpipeUnitConfig, LivePlaysTheScriptThatTheSimulatorPlays) {
    NodeConfig config;
    config.protocol = Protocol::daqpipe;
    static_cast<protocol::DaqpipeRules&>(config) = DaqpipeScript::rules;
    EXPECT_EQ(play_live<DaqpipeScript>(config), DaqpipeScript::expected);
}

TEST(PullUnitConfig, LivePlaysTheScriptThatTheSimulatorPlays) {
    NodeConfig config;
    config.protocol = Protocol::pull;
    static_cast<protocol::PullRules&>(config) = PullScript::rules();
    config.event_size.mean = 128;
    EXPECT_EQ(play_live<PullScript>(config), PullScript::expected);
}

}  // namespace
}  // namespace daqloom::live
