#include "protocol/run/accounts/named_counters.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace daqloom::protocol {

namespace {

TEST(NamedCounters, AnUnknownCounterIsZero) {
    const NamedCounters counters{{{"meps_built", 3}, {"elapsed_s", 1.5}}};
    EXPECT_EQ(counters.count("meps_built"), 3);
    EXPECT_EQ(counters.count("meps"), 0);
    EXPECT_EQ(counters.number("elapsed_s"), 1.5);
    EXPECT_EQ(counters.number("meps_built"), 3.0);
    EXPECT_EQ(counters.number("meps"), 0.0);
}

TEST(NamedCounters, ACountIsAWholeNumberWhateverAUnitReports) {
    const NamedCounters counters{{{"a", 2.9}, {"b", 1e300}, {"c", -1e300}}};
    EXPECT_EQ(counters.count("a"), 2);
    EXPECT_EQ(counters.count("b"), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(counters.count("c"), std::numeric_limits<std::int64_t>::min());
}

/// EIO is error 5, ENOSPC error 28.
TEST(NamedCounters, CausesOfLossAreNamedInWords) {
    NamedCounters counters{{{"not_written.ENOSPC", 2}, {"not_written.EIO", 0}}};
    EXPECT_EQ(counters.causes_of_loss(), "No space left on device");
    counters.by_name["not_written.EIO"] = 1;
    EXPECT_EQ(counters.causes_of_loss(), "Input/output error and No space left on device");
    counters.by_name["not_written.ENOIDEA"] = 1;
    EXPECT_EQ(counters.causes_of_loss(),
              "Input/output error and No space left on device and ENOIDEA");
    EXPECT_EQ(NamedCounters{}.causes_of_loss(), "unknown cause");
}

}  // namespace

}  // namespace daqloom::protocol
