#include "protocol/run/unit_lease.hpp"

#include <gtest/gtest.h>

namespace daqloom::protocol {

namespace {

using base::seconds;

TEST(UnitLease, ItCountsFromWhenTheReportWasSentThatWasReceived) {
    UnitLease lease;
    lease.set_length(seconds(2));
    lease.begin(1);
    EXPECT_EQ(lease.sending(seconds(10)), 1U);
    EXPECT_EQ(lease.sending(seconds(11)), 2U);
    EXPECT_EQ(lease.sending(seconds(12)), 3U);
    const auto second = lease.renew(1, 2, 500);
    EXPECT_EQ(second.mep_end, 500U);
    EXPECT_EQ(second.until, seconds(13));
    // The first report is confirmed late, which does not shorten the lease.
    EXPECT_EQ(lease.renew(1, 1, 400).until, seconds(13));
    EXPECT_EQ(lease.renew(1, 3, 400).until, seconds(14));
    EXPECT_EQ(lease.renew(1, 3, 400).mep_end, 500U);
}

TEST(UnitLease, OfANewEpochNothingIsLeasedYet) {
    UnitLease lease;
    lease.set_length(seconds(2));
    lease.begin(1);
    lease.sending(seconds(1));
    EXPECT_EQ(lease.renew(1, 1, 500).mep_end, 500U);
    lease.begin(2);
    lease.sending(seconds(2));
    const auto late = lease.renew(1, 2, 600);  // which was said of the last epoch
    EXPECT_EQ(late.mep_end, 0U);
    EXPECT_EQ(late.until, seconds(4));
    EXPECT_EQ(lease.renew(2, 2, 700).mep_end, 700U);
}

TEST(UnitLease, AReportThatWasNeverSentLeasesNoTime) {
    UnitLease lease;
    lease.set_length(seconds(2));
    EXPECT_EQ(lease.renew(0, 77, 10).until, base::Time::zero());
}

TEST(UnitLease, UnconfirmedReportsAreForgotten) {
    UnitLease lease;
    lease.set_length(seconds(1));
    for (std::size_t report = 0; report <= UnitLease::most_unconfirmed; ++report) {
        lease.sending(seconds(1));
    }
    EXPECT_EQ(lease.renew(0, 1, 0).until, base::Time::zero());
    EXPECT_EQ(lease.renew(0, 2, 0).until, seconds(2));
}

}  // namespace

}  // namespace daqloom::protocol
