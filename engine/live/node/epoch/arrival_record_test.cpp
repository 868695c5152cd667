#include "live/node/epoch/arrival_record.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace daqloom::live {
namespace {

using base::microseconds;
using base::Time;
using Times = std::vector<Time>;

TEST(ArrivalRecord, HasEveryArrivalOnceAndItsBegin) {
    ArrivalRecord record(4);
    record.begin(microseconds(10));
    record.add(microseconds(12));
    record.add(microseconds(12));
    record.add(microseconds(17));
    const auto arrivals = record.take();
    EXPECT_EQ(arrivals.begin, microseconds(10));
    EXPECT_EQ(arrivals.times, (Times{microseconds(12), microseconds(12), microseconds(17)}));
    EXPECT_EQ(arrivals.beyond, 0U);
    EXPECT_EQ(record.take().times, Times());
    record.add(microseconds(20));
    EXPECT_EQ(record.take().begin, microseconds(10)) << "the epoch goes on";
}

TEST(ArrivalRecord, KeepsTheFirstOnesAndCountsTheOthers) {
    ArrivalRecord record(2);
    for (std::int64_t at = 1; at <= 5; ++at) {
        record.add(microseconds(at));
    }
    auto arrivals = record.take();
    EXPECT_EQ(arrivals.times, (Times{microseconds(1), microseconds(2)}));
    EXPECT_EQ(arrivals.beyond, 3U);
    record.add(microseconds(6));
    arrivals = record.take();
    EXPECT_EQ(arrivals.times, Times{microseconds(6)});
    EXPECT_EQ(arrivals.beyond, 0U);
    ArrivalRecord none(0);
    EXPECT_FALSE(none.is_on());
    EXPECT_EQ(none.take().times, Times());
}

TEST(ArrivalRecord, CountsFromTheFirstEpochOfWhichItHoldsAny) {
    ArrivalRecord record(4);
    record.begin(microseconds(1));
    record.begin(microseconds(5));
    record.add(microseconds(6));
    record.begin(microseconds(9));
    EXPECT_EQ(record.take().begin, microseconds(5));
    record.begin(microseconds(20));
    EXPECT_EQ(record.take().begin, microseconds(20));
}

}  // namespace
}  // namespace daqloom::live
