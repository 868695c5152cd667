#include "live/ends/data_rates.hpp"

#include <gtest/gtest.h>

namespace daqloom::live {
namespace {

TEST(DataRates, AreOfDataThatIsGeneratedAndFoundRight) {
    const auto found = measure_data_rates(2, 500, 1'000);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_GT(found->generated_bytes_per_s, 0);
    EXPECT_GT(found->copied_bytes_per_s, 0);
    EXPECT_GT(found->checked_bytes_per_s, 0);
}

TEST(DataRates, OfImpossiblePacketsAreRefused) {
    EXPECT_FALSE(measure_data_rates(1, 0, 1'000));
    EXPECT_FALSE(measure_data_rates(1, 65'536, 1'000));
    EXPECT_FALSE(measure_data_rates(0, 500, 1'000));
}

}  // namespace
}  // namespace daqloom::live
