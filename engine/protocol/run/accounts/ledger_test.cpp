// Fates of a run's MEPs, derived from invented counters.
#include "protocol/run/accounts/ledger.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "base/random.hpp"
#include "protocol/run/units_by_hand_test.hpp"

namespace daqloom::protocol {

namespace {

/// The counters of some units.
class Books {
  public:
    void set(std::uint32_t unit, std::int64_t built, std::int64_t granted,
             NamedCounters others = {}) {
        others.by_name[counter_names::meps_built] = built;
        others.by_name[counter_names::meps_granted] = granted;
        counters_[UnitIndex(unit)] = others;
    }
    void set(std::uint32_t unit, std::int64_t built) { set(unit, built, built); }

    [[nodiscard]] Ledger::Totals totals() const {
        return [this](UnitIndex unit) {
            const auto found = counters_.find(unit);
            return found == counters_.end() ? MepCounts() : MepCounts::of(found->second);
        };
    }

  private:
    std::map<UnitIndex, NamedCounters> counters_;
};

/// MEPs 0 to 6 of three units that take turns: their shares are 3, 2 and 2 MEPs.
TEST(Ledger, UnitsThatBuiltTheirShareLeaveNothing) {
    Books books;
    Ledger ledger(true);
    ledger.begin(0, units_at({0, 1, 2}), books.totals());
    books.set(0, 3);
    books.set(1, 2);
    books.set(2, 2);
    EXPECT_EQ(ledger.balance(7, books.totals()), Balance());
}

/// Unit 1 granted 2 of its 5 MEPs and built 1. In the next epoch another 2 MEPs are in flight.
TEST(Ledger, TheBalanceOfEndedEpochsLeavesOutMepsInFlight) {
    Books books;
    Ledger ledger(true);
    ledger.begin(0, units_at({0, 1}), books.totals());
    books.set(0, 5);
    books.set(1, 1, 2);
    EXPECT_EQ(ledger.ended(books.totals()), Balance());
    ledger.begin(10, units_at({0}), books.totals());
    books.set(0, 8, 10);
    EXPECT_EQ(ledger.ended(books.totals()), (Balance{.unfinished = 1, .skipped = 3}));
    EXPECT_EQ(ledger.balance(15, books.totals()), (Balance{.unfinished = 3, .skipped = 3}));
}

/// MEPs 0 to 11, six of them of unit 1, which granted 4, built 2, dropped 1 and was then killed.
TEST(Ledger, GrantedAndNotBuiltIsUnfinishedAndNeverGrantedIsSkipped) {
    Books books;
    Ledger ledger(true);
    ledger.begin(0, units_at({0, 1}), books.totals());
    books.set(0, 5, 5, {{{counter_names::meps_discarded, 1}}});
    books.set(1, 2, 4, {{{counter_names::meps_dropped, 1}}});
    EXPECT_EQ(ledger.balance(12, books.totals()), Balance({.unfinished = 1, .skipped = 2}));
}

TEST(Ledger, MepsBuiltTwiceDoNotMakeUpForUnbuiltOnes) {
    Books books;
    Ledger ledger(true);
    ledger.begin(0, units_at({0, 1}), books.totals());
    books.set(0, 8);
    books.set(1, 2);
    EXPECT_EQ(ledger.balance(10, books.totals()), Balance({.skipped = 3, .twice = 3}));
}

TEST(Ledger, WhereNoTurnsAreTakenOnlyAllUnitsTogetherHaveAShare) {
    Books books;
    Ledger ledger(false);
    ledger.begin(0, units_at({0, 1}), books.totals());
    books.set(0, 8);
    books.set(1, 1, 2);
    EXPECT_EQ(ledger.balance(12, books.totals()), Balance({.unfinished = 1, .skipped = 2}));
    books.set(1, 6);
    EXPECT_EQ(ledger.balance(12, books.totals()), Balance({.twice = 2}));
}

/// Unit 1 is lost after an epoch of MEPs 0 to 9 with units 0 and 1; epochs without it follow.
TEST(Ledger, LateCountsOfALostUnitBelongToItsEpoch) {
    Books books;
    Ledger ledger(true);
    ledger.begin(0, units_at({0, 1}), books.totals());
    books.set(0, 5);
    books.set(1, 2, 3);
    ledger.begin(10, units_at({0}), books.totals());
    books.set(0, 15);
    EXPECT_EQ(ledger.balance(20, books.totals()), Balance({.unfinished = 1, .skipped = 2}));
    books.set(1, 4);  // its last words
    EXPECT_EQ(ledger.balance(20, books.totals()), Balance({.skipped = 1}));
    ledger.begin(20, units_at({0, 1}), books.totals());
    books.set(0, 16);
    books.set(1, 5);
    EXPECT_EQ(ledger.balance(22, books.totals()), Balance({.skipped = 1}));
}

/// Gives each MEP of each epoch a random fate. The ledger must find those that no counter shows.
TEST(Ledger, AllThatWasBegunHasAFate) {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        base::RandomStream random(seed, "fates");
        Ledger ledger(random.uniform_int(2) == 0);
        struct Fates {
            std::int64_t built = 0;
            std::int64_t incomplete = 0;
            std::int64_t granted = 0;
        };
        std::vector<Fates> fates(4);
        const Ledger::Totals totals = [&](UnitIndex unit) {
            const Fates& of = fates[unit.value()];
            return MepCounts::of({{{counter_names::meps_built, of.built},
                                   {counter_names::meps_incomplete, of.incomplete},
                                   {counter_names::meps_granted, of.granted}}});
        };
        Balance expected;
        std::uint64_t first = 0;
        const std::uint64_t epochs = 1 + random.uniform_int(5);
        for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
            std::vector<UnitIndex> builders;
            for (std::uint32_t unit = 0; unit < 4; ++unit) {
                if (random.uniform_int(2) == 0 || (unit == 3 && builders.empty())) {
                    builders.emplace_back(unit);
                }
            }
            ledger.begin(first, builders, totals);
            const std::uint64_t meps = random.uniform_int(13);
            for (std::uint64_t mep = 0; mep < meps; ++mep, ++first) {
                Fates& unit = fates[builders[mep % builders.size()].value()];
                switch (random.uniform_int(4)) {
                    case 0:
                        ++unit.built;
                        ++unit.granted;
                        break;
                    case 1:
                        ++unit.incomplete;
                        ++unit.granted;
                        break;
                    case 2:
                        ++expected.unfinished;
                        ++unit.granted;
                        break;
                    default:
                        ++expected.skipped;
                }
            }
        }
        EXPECT_EQ(ledger.balance(first, totals), expected) << "seed " << seed;
    }
}

}  // namespace

}  // namespace daqloom::protocol
