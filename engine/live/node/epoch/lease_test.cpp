#include "live/node/epoch/lease.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "live/node/node_fixture_test.hpp"

namespace daqloom::live {
namespace {

constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

TEST(Lease, IsUnlimitedUntilItIsSetAndThenEndsAtItsTime) {
    Lease lease;
    EXPECT_EQ(lease.mep_end(base::seconds(1'000'000)), kUnlimited);
    lease.set(40, base::seconds(10));
    EXPECT_EQ(lease.mep_end(base::seconds(10) - base::Time{1}), 40U);
    EXPECT_EQ(lease.mep_end(base::seconds(10)), 0U);
}

/// Nodes with a lease, for each building protocol.
class NodesWithLease : public testing::TestWithParam<Protocol> {
  protected:
    NodesWithLease() : run(config()) {}

    static NodeConfig config() {
        NodeConfig made = folded(3);
        made.protocol = GetParam();
        made.credits = 2;
        made.parallel_sends = 3;
        return made;
    }
    void lease(std::uint64_t mep_end, base::Time until = base::Time::never()) {
        for (const UnitIndex unit : members) {
            run[unit].lease(mep_end, until);
        }
    }
    /// Removes the limit. Then all members build, and no MEP is left out.
    void finish() {
        lease(kUnlimited);
        EXPECT_TRUE(run.builds(members));
        run.halt(members);
        run.expect_all_checked();
        EXPECT_EQ(run.accounted(), run.next_mep) << "none was left out";
    }
    /// Waits until every data thread has completed a few loops, and so has seen all its inputs.
    bool goes_round() { return run.counts(members, "beats", 3); }

    const Units members = first(3);
    NodesUnderTest run;
};

INSTANTIATE_TEST_SUITE_P(Protocols, NodesWithLease,
                         testing::Values(Protocol::shift, Protocol::daqpipe), [](const auto& name) {
                             return std::string(name.param == Protocol::shift ? "Shift"
                                                                              : "Daqpipe");
                         });

TEST_P(NodesWithLease, BuildLeasedMepsAndNoMore) {
    lease(40);
    run.begin(members);
    EXPECT_TRUE(until([&] { return run.sum("meps_granted") == 40; }));
    EXPECT_TRUE(goes_round());
    EXPECT_EQ(run.sum("meps_granted"), 40U);
    finish();
}

TEST_P(NodesWithLease, BeginNothingOnceItIsOverAndGoOnWithTheNext) {
    run.begin(members);
    EXPECT_TRUE(run.builds(members));
    lease(kUnlimited, now());
    EXPECT_TRUE(until([&] { return run.sum("leases_over") == members.size(); }));
    const std::uint64_t granted = run.sum("meps_granted");
    EXPECT_TRUE(goes_round());
    EXPECT_EQ(run.sum("meps_granted"), granted);
    finish();
}

TEST_P(NodesWithLease, CountBeyondAnsweredMepsWhenTheyAreShut) {
    lease(40);
    run.begin(members);
    EXPECT_TRUE(until([&] { return run.sum("meps_granted") == 40; }));
    std::uint64_t next = 0;
    for (const UnitIndex unit : members) {
        run[unit].shut();
        next = std::max(next, run.count(unit, "next_mep"));
    }
    EXPECT_EQ(next, 40U);
}

}  // namespace
}  // namespace daqloom::live
