// A unit of pull building as the simulator configures it, in virtual and in real time;
// live/node/unit_config_test.cpp plays the same script.
#include <gtest/gtest.h>

#include "protocol/units/pull_script_test.hpp"
#include "systems/pull_system.hpp"

namespace daqloom::systems {
namespace {

using protocol::PullScript;

protocol::PullUnitConfig simulated() {
    PullSystemConfig config;
    static_cast<protocol::PullRules&>(config) = PullScript<true>::rules();
    config.readouts = config.builders = {NodeIndex(0), NodeIndex(1)};
    auto unit = unit_config(config);
    unit.readout = protocol::ReadoutIndex(0);
    unit.builder = protocol::BuilderIndex(0);
    return unit;
}

TEST(PullUnitConfig, SimulatedPlaysTheScriptThatANodePlays) {
    EXPECT_EQ(PullScript<false>::play(simulated()), PullScript<false>::expected());
}

TEST(PullUnitConfig, InVirtualTimePlaysTheSameScriptWithoutCompletions) {
    EXPECT_EQ(PullScript<true>::play(simulated()), PullScript<true>::expected());
}

}  // namespace
}  // namespace daqloom::systems
