// A unit of DAQPIPE as the simulator configures it; live/node/unit_config_test.cpp plays the same
// script.
#include <gtest/gtest.h>

#include "protocol/units/daqpipe_script_test.hpp"
#include "systems/daqpipe_system.hpp"

namespace daqloom::systems {
namespace {

using protocol::DaqpipeScript;

TEST(DaqpipeUnitConfig, SimulatedPlaysTheScriptThatANodePlays) {
    DaqpipeSystemConfig config;
    static_cast<protocol::DaqpipeRules&>(config) = DaqpipeScript::rules;
    config.readouts = config.builders = {NodeIndex(0), NodeIndex(1)};
    config.fragment_bytes.assign(DaqpipeScript::nodes, 128);
    auto unit = unit_config(config);
    unit.readout = protocol::ReadoutIndex(0);
    unit.builder = protocol::BuilderIndex(0);
    EXPECT_EQ(DaqpipeScript::play(unit), DaqpipeScript::expected);
}

}  // namespace
}  // namespace daqloom::systems
