#include "live/node/epoch/stage_trace.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace daqloom::live {
namespace {

std::vector<std::uint64_t> steps_of(StageTrace& trace) {
    std::vector<std::uint64_t> steps;
    for (const StageRecord& record : trace.take()) {
        steps.push_back(record.step);
    }
    return steps;
}

void add(StageTrace& trace, std::uint64_t step) {
    trace.add(
        {.at = base::seconds(1), .step = step, .epoch = 0, .to = UnitIndex::none(), .stage = {}});
}

using Steps = std::vector<std::uint64_t>;

TEST(StageTrace, HasEveryRecordOnceAndInItsOrder) {
    StageTrace trace(4);
    EXPECT_EQ(steps_of(trace), Steps());
    add(trace, 1);
    add(trace, 2);
    EXPECT_EQ(steps_of(trace), (Steps{1, 2}));
    add(trace, 3);
    EXPECT_EQ(steps_of(trace), Steps{3});
}

TEST(StageTrace, KeepsTheLastOnes) {
    StageTrace trace(4);
    for (std::uint64_t step = 0; step < 10; ++step) {
        add(trace, step);
    }
    EXPECT_EQ(steps_of(trace), (Steps{6, 7, 8, 9}));
    for (std::uint64_t step = 20; step < 24; ++step) {
        add(trace, step);
    }
    EXPECT_EQ(steps_of(trace), (Steps{20, 21, 22, 23}));
    StageTrace none(0);
    EXPECT_FALSE(none.is_on());
    EXPECT_EQ(steps_of(none), Steps());
}

}  // namespace
}  // namespace daqloom::live
