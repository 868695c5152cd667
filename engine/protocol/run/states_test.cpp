#include "protocol/run/states.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

namespace daqloom::protocol {

namespace {

constexpr std::array states = {UnitState::not_ready, UnitState::ready, UnitState::running,
                               UnitState::error};
constexpr std::array steps = {UnitStep::connected, UnitStep::started, UnitStep::halted,
                              UnitStep::failed, UnitStep::reset};

TEST(States, AUnitGoesFromNotReadyOverReadyToRunningAndBack) {
    EXPECT_EQ(after(UnitState::not_ready, UnitStep::connected).value(), UnitState::ready);
    EXPECT_EQ(after(UnitState::ready, UnitStep::started).value(), UnitState::running);
    EXPECT_EQ(after(UnitState::running, UnitStep::halted).value(), UnitState::not_ready);
}

TEST(States, AUnitMayFailAndBeResetAtAnyTimeAndHaltUnlessItHasFailed) {
    for (const UnitState state : states) {
        EXPECT_EQ(after(state, UnitStep::failed).value(), UnitState::error);
        EXPECT_EQ(after(state, UnitStep::reset).value(), UnitState::not_ready);
        EXPECT_EQ(after(state, UnitStep::halted).has_value(), state != UnitState::error);
    }
}

/// Allowed of 20 transitions: 1 to connect, 1 to start, 3 to halt, 4 to fail, 4 to reset.
TEST(States, AllOtherTransitionsAreRefused) {
    std::size_t allowed = 0;
    for (const UnitState state : states) {
        for (const UnitStep step : steps) {
            allowed += after(state, step).has_value() ? 1 : 0;
        }
    }
    EXPECT_EQ(allowed, 13U);
    EXPECT_EQ(transitions().size(), 13U);
    EXPECT_EQ(after(UnitState::running, UnitStep::started).error().message,
              "a unit that is running cannot be started");
}

TEST(States, NamesAreTheWordsOfTheMessages) {
    EXPECT_EQ(name_of(UnitState::not_ready), "not_ready");
    EXPECT_EQ(name_of(UnitState::error), "error");
    EXPECT_EQ(name_of(UnitStep::reset), "reset");
    EXPECT_EQ(name_of(Standing::available), "available");
    EXPECT_EQ(name_of(Standing::lost), "lost");
    EXPECT_EQ(name_of(RunPhase::waiting), "waiting");
    EXPECT_EQ(name_of(RunPhase::halting), "halting");
    EXPECT_EQ(name_of(RunPhase::ended), "ended");
    EXPECT_EQ(name_of(RunGoal::idle), "idle");
    EXPECT_EQ(name_of(RunGoal::ended), "ended");
}

}  // namespace

}  // namespace daqloom::protocol
