#include "live/ends/duplicates.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.hpp"

namespace daqloom::live {
namespace {

TEST(DuplicateFilter, KnowsWhichOfTheLastNumbersCame) {
    base::RandomStream random(3, "numbers");
    DuplicateFilter filter;
    std::set<std::uint64_t> model;
    std::uint64_t largest = 0;
    for (int i = 0; i < 20'000; ++i) {
        const bool leaps = random.uniform_int(1'000) == 0;
        const std::uint64_t ahead = random.uniform_int(leaps ? 200'000 : 300);
        const std::uint64_t number =
            ahead < 200 ? largest - std::min(largest, ahead) : largest + ahead - 200;
        ASSERT_EQ(filter.add(number), model.insert(number).second) << number;
        largest = std::max(largest, number);
    }
}

TEST(DuplicateFilter, TakesForgottenEventsForDuplicates) {
    DuplicateFilter filter;
    EXPECT_TRUE(filter.add(0));
    EXPECT_TRUE(filter.add(65'536));
    EXPECT_FALSE(filter.add(0));
    EXPECT_TRUE(filter.add(1));
    EXPECT_TRUE(filter.add(1'000'000'000'000));
    EXPECT_FALSE(filter.add(65'537));
    EXPECT_TRUE(filter.add(999'999'999'999));
}

}  // namespace
}  // namespace daqloom::live
