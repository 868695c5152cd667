#include "live/memory/polling.hpp"

#include <gtest/gtest.h>

namespace daqloom::live {
namespace {

/// Number of waits in a row, all of them futile, that began with polling.
int polls_in(Polling& polling, int waits) {
    int polled = 0;
    for (int i = 0; i < waits; ++i) {
        polled += polling.length() > base::Time::zero() ? 1 : 0;
        polling.on_slept();
    }
    return polled;
}

TEST(Polling, PollsForAsLongAsItMayWhileThatPays) {
    Polling polling;
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(polling.length(), Polling::kMost);
        i % 3 == 2 ? polling.on_found() : polling.on_slept();
    }
}

TEST(Polling, IsGivenUpAfterThreeTimesInVainAndTriedAgainNowAndThen) {
    Polling polling;
    EXPECT_EQ(polls_in(polling, 3), 3);
    EXPECT_EQ(polls_in(polling, 61), 0);
    EXPECT_EQ(polls_in(polling, 1), 1);
    const int more = polls_in(polling, 610);
    EXPECT_GE(more, 9);
    EXPECT_LE(more, 11);
}

TEST(Polling, GoesOnOnceATrialHasPaid) {
    Polling polling;
    polls_in(polling, 64);
    EXPECT_EQ(polling.length(), Polling::kMost);
    polling.on_found();
    EXPECT_EQ(polls_in(polling, 3), 3);
}

}  // namespace
}  // namespace daqloom::live
