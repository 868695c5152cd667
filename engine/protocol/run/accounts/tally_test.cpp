#include "protocol/run/accounts/tally.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "base/random.hpp"

namespace daqloom::protocol {

namespace {

TEST(Tally, ACounterThatHasBecomeSmallerHasBegunAnew) {
    Tally tally;
    for (const std::int64_t phases : {3, 7, 2, 5}) {  // 7 of the first process, 5 of the second
        tally.read({{{"phases", phases}}});
    }
    EXPECT_EQ(tally.totals().count("phases"), 12);
}

TEST(Tally, AReadingOfAnotherProcessIsKnownByItsShorterLife) {
    Tally tally;
    tally.read({{{"elapsed_s", 5.0}, {"meps_built", 10}, {"phases", 1}}});
    EXPECT_TRUE(tally.begins_anew({{{"elapsed_s", 4.0}}}));
    EXPECT_FALSE(tally.begins_anew({{{"elapsed_s", 5.0}}}));
    // Counts 12 and 7 of the new process are all new, though not below the previous ones.
    tally.read({{{"elapsed_s", 4.0}, {"meps_built", 12}, {"phases", 7}}});
    EXPECT_EQ(tally.totals().number("elapsed_s"), 9.0);
    EXPECT_EQ(tally.totals().count("meps_built"), 22);
    EXPECT_EQ(tally.totals().count("phases"), 8);
}

/// Counter pages have no age, but all readings have the time at which their node was made.
TEST(Tally, AReadingOfAnotherNodeIsKnownByTheTimeItWasMade) {
    Tally tally({"made_s"});
    tally.read({{{"made_s", 8.5}, {"elapsed_s", 5.0}, {"meps_built", 10}}});
    EXPECT_FALSE(tally.begins_anew({{{"made_s", 8.5}, {"elapsed_s", 4.0}}}));
    EXPECT_TRUE(tally.begins_anew({{{"made_s", 9.5}, {"elapsed_s", 7.0}}}));
    tally.read({{{"made_s", 9.5}, {"meps_built", 12}}});
    EXPECT_EQ(tally.totals().count("meps_built"), 22);
    tally.read({{{"made_s", 9.5}, {"meps_built", 12}}});
    EXPECT_EQ(tally.totals().count("meps_built"), 22) << "a page may be read twice";
}

TEST(Tally, ContinuesFromItsState) {
    Tally tally;
    tally.read({{{"elapsed_s", 5.0}, {"meps_built", 10}}});
    Tally other;
    other.resume(tally.snapshot());
    other.read({{{"elapsed_s", 6.0}, {"meps_built", 13}}});
    EXPECT_EQ(other.totals().count("meps_built"), 13);
}

TEST(Tally, OfAGaugeTheLastReadingCounts) {
    Tally tally({"next_mep"});
    for (const std::int64_t value : {100, 300, 200}) {
        tally.read({{{"next_mep", value}, {"meps_built", value}}});
    }
    EXPECT_EQ(tally.totals().count("next_mep"), 200);
    EXPECT_EQ(tally.totals().count("meps_built"), 500);
}

TEST(Tally, NoSumIsBeyondTheLargestNumber) {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    Tally tally;
    for (const std::int64_t value : {most, std::int64_t{0}, most, std::int64_t{1}}) {
        tally.read({{{"meps_built", value}}});
        EXPECT_EQ(tally.totals().count("meps_built"), most);
    }
}

TEST(Tally, OfProcessesOneAfterTheOtherTheSumIsThatOfTheirLastReadings) {
    base::RandomStream random(1, "processes");
    Tally tally;
    std::int64_t expected = 0;
    double life_s = 1e6;
    for (int process = 0; process < 100; ++process) {
        std::int64_t count = 0;
        life_s -= 1;  // less than that of the last, by which it is known
        const std::uint64_t readings = 1 + random.uniform_int(5);
        for (std::uint64_t reading = 0; reading < readings; ++reading) {
            const auto more = static_cast<std::int64_t>(random.uniform_int(1000));
            count += more;
            expected += more;
            tally.read({{{"phases", count}, {"elapsed_s", life_s}}});
        }
    }
    EXPECT_EQ(tally.totals().count("phases"), expected);
}

}  // namespace

}  // namespace daqloom::protocol
