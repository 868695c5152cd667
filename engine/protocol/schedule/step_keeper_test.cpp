#include "protocol/schedule/step_keeper.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace daqloom::protocol {
namespace {

using Spans = std::vector<std::uint64_t>;

/// Length of rounds in a network, as a function of the unit's span.
using LengthOf = std::function<std::int64_t(std::uint64_t)>;

/// Plays a number of rounds, and returns their spans.
Spans play(StepKeeper& keeper, std::uint32_t rounds, const LengthOf& length_us) {
    Spans spans;
    for (std::uint32_t round = 0; round < rounds; ++round) {
        spans.push_back(keeper.span());
        keeper.on_round(base::microseconds(length_us(keeper.span())));
    }
    return spans;
}
std::int64_t always(std::uint64_t) { return 1000; }

/// Rounds of 20 barriers.
TEST(StepKeeper, WaitsAtEveryBarrierInStepAndAtTheLastOneOfARoundAlways) {
    StepKeeper keeper(20);
    for (std::uint64_t barrier = 1; barrier <= 60; ++barrier) {
        EXPECT_TRUE(keeper.waits_at(barrier));
    }
    play(keeper, 3, always);
    ASSERT_EQ(keeper.span(), 4U);
    for (std::uint64_t barrier = 1; barrier <= 60; ++barrier) {
        EXPECT_EQ(keeper.waits_at(barrier), barrier % 4 == 0);
    }
    StepKeeper of_six(6);
    play(of_six, 3, always);
    for (std::uint64_t barrier = 1; barrier <= 18; ++barrier) {
        EXPECT_EQ(of_six.waits_at(barrier), barrier % 6 == 0 || barrier % 6 == 4) << barrier;
    }
}

/// Three rounds with a wait at each barrier, three at every fourth; two of each three are judged.
TEST(StepKeeper, TriesToLeaveStepAndComesBackWhereThatIsNotBetter) {
    for (const std::int64_t out_of_step : {985, 1000, 2000}) {  // a 64th of 1000 is 15.6
        StepKeeper keeper(100);
        EXPECT_EQ(play(keeper, 9, [&](auto span) { return span == 1 ? 1000 : out_of_step; }),
                  (Spans{1, 1, 1, 4, 4, 4, 1, 1, 1}));
    }
    StepKeeper keeper(100);
    EXPECT_EQ(play(keeper, 7, [](auto span) { return span == 1 ? 1000 : 984; }),
              (Spans{1, 1, 1, 4, 4, 4, 16}));
}

TEST(StepKeeper, LeavesStepAsFarAsRoundsGetShorter) {
    StepKeeper keeper(100);
    const auto length = [](std::uint64_t span) { return span <= 16 ? 1000 - 10 * 2 * span : 900; };
    EXPECT_EQ(play(keeper, 15, length),
              (Spans{1, 1, 1, 4, 4, 4, 16, 16, 16, 64, 64, 64, 16, 16, 16}));

    StepKeeper to_the_end(40);
    EXPECT_EQ(play(to_the_end, 14, [](auto span) { return 1000 - 10 * span; }),
              (Spans{1, 1, 1, 4, 4, 4, 16, 16, 16, 40, 40, 40, 40, 40}));
}

/// In the first round other units may still have another span, and initially no sizes are known.
TEST(StepKeeper, DoesNotJudgeTheFirstRoundOfASpan) {
    StepKeeper keeper(100);
    std::uint32_t round = 0;
    EXPECT_EQ(play(keeper, 8, [&](auto) { return round++ % 3 == 0 ? 1 + 10'000 * round : 1000; }),
              (Spans{1, 1, 1, 4, 4, 4, 1, 1}));
}

/// A failure makes all rounds longer, most of all those with a wait at each barrier.
TEST(StepKeeper, BeginsAnewWhenTheLengthOfItsRoundsChangesAndComesBackWhenItIsAsItWas) {
    StepKeeper keeper(100);
    std::int64_t in_step = 1000;
    std::int64_t out_of_step = 1000;
    const auto length = [&](std::uint64_t span) {
        return span == 1 ? in_step : span == 4 ? out_of_step : 5000;
    };
    play(keeper, 6, length);
    EXPECT_EQ(play(keeper, 20, length), Spans(20, 1)) << "healthy: in step";
    in_step = 2000;
    out_of_step = 1500;
    EXPECT_EQ(play(keeper, 12, length), (Spans{1, 1,        // the failure is noticed
                                               1, 1, 1,     // and judged in step
                                               4, 4, 4,     // out of step
                                               16, 16, 16,  // and further, which does not help
                                               4}));
    EXPECT_EQ(play(keeper, 20, length), Spans(20, 4));
    in_step = 1000;
    out_of_step = 1000;
    EXPECT_EQ(play(keeper, 9, length), (Spans{4, 4, 1, 1, 1, 4, 4, 4, 1}));
    EXPECT_EQ(play(keeper, 20, length), Spans(20, 1));
}

/// An eighth of 1000 is 125.
TEST(StepKeeper, KeepsToItsChoiceWhileRoundsChangeByAnEighthOrAreUnusualByThemselves) {
    StepKeeper keeper(100);
    const auto kept = StepKeeper::rounds_between_trials - 1;
    play(keeper, 6, always);
    EXPECT_EQ(play(keeper, kept, [](auto) { return 1125; }), Spans(kept, 1));
    play(keeper, 7, always);
    EXPECT_EQ(play(keeper, kept, [](auto) { return 875; }), Spans(kept, 1));
    play(keeper, 7, always);
    std::uint32_t round = 0;
    EXPECT_EQ(play(keeper, kept, [&](auto) { return ++round % 2 == 0 ? 4000 : 1000; }),
              Spans(kept, 1));
}

TEST(StepKeeper, TriesAgainAfterManyRoundsThoughNothingHasChanged) {
    StepKeeper keeper(100);
    play(keeper, 6, always);
    EXPECT_EQ(play(keeper, StepKeeper::rounds_between_trials, always),
              Spans(StepKeeper::rounds_between_trials, 1));
    EXPECT_EQ(play(keeper, 7, always), (Spans{1, 1, 1, 4, 4, 4, 1}));
}

TEST(StepKeeper, OfRoundsWithOneBarrierWaitsAtIt) {
    StepKeeper keeper(1);
    EXPECT_EQ(play(keeper, 300, always), Spans(300, 1));
    EXPECT_TRUE(keeper.waits_at(7));
}

}  // namespace
}  // namespace daqloom::protocol
