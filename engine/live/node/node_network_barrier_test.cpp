// Whole nodes in step by barriers that libfabric's provider carries out.
#include <gtest/gtest.h>

#include <string>

#include "base/failure_test.hpp"
#include "live/node/node_fixture_test.hpp"

/// LeakSanitizer's suppressions: libfabric 1.17 frees no collective operation that was under way
/// when its endpoint was closed.
extern "C" const char* __lsan_default_suppressions();   // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
    return "leak:libfabric.so";
}

namespace daqloom::live {
namespace {

const std::string kProvider = "libfabric:tcp;ofi_rxm";

NodeConfig in_step(std::uint32_t units) {
    NodeConfig config = folded(units, kProvider);
    config.barrier = protocol::ShiftBarrier::network;
    return config;
}

class NetworkBarrier : public NodesOver {
  protected:
    void SetUp() override {
        if (std::ranges::count(transport_names(), kProvider) == 0) {
            GTEST_SKIP() << "libfabric has no provider tcp;ofi_rxm here";
        }
    }
};
INSTANTIATE_TEST_SUITE_P(Libfabric, NetworkBarrier, testing::Values(kProvider),
                         [](const auto&) { return "Tcp"; });

TEST_P(NetworkBarrier, BuildsEveryEventOnce) {
    NodeConfig config = in_step(3);
    config.meps_per_phase = 3;
    expect_right(config, first(3));
}

TEST_P(NetworkBarrier, IsThatOfAGroup) {
    NodeConfig config = in_step(5);
    config.barrier_groups = {0, 0, 1, 1, 2};
    config.barrier_slack = 1;
    expect_right(config, first(5));
}

TEST_P(NetworkBarrier, KeepsUnitsTogether) {
    NodesUnderTest run(in_step(3));
    run.begin(first(3));
    EXPECT_TRUE(run.builds(first(3)));
    run.halt(first(3));
    // A unit leaves a barrier when all have entered it, so it is one ahead at most.
    const auto [fewest, most] = std::ranges::minmax({run.count(UnitIndex(0), "barriers"),
                                                     run.count(UnitIndex(1), "barriers"),
                                                     run.count(UnitIndex(2), "barriers")});
    EXPECT_GT(fewest, 0U);
    EXPECT_LE(most, fewest + 1);
}

TEST_P(NetworkBarrier, NeverEndsWithoutALostUnitSoTheOthersRegroup) {
    NodesUnderTest run(in_step(3));
    run.play({0, 1, 2}, {2});
    run.play({0, 1});
    run.play({0, 1, 2});
    run.expect_all_checked();
    EXPECT_LE(run.accounted(), run.next_mep);
}

TEST(NetworkBarrierRefusal, NamesATransportThatHasOne) {
    for (const std::string name : {"shm", "tcp"}) {
        NodeConfig config = folded(2, name);
        config.barrier = protocol::ShiftBarrier::network;
        const auto node = Node::make(std::move(config));
        ASSERT_TRUE(node);
        EXPECT_TRUE(base::fails_with("the transport '" + name + "' has no barrier of the network",
                                     (*node)->prepare(1, first(2))));
    }
}

TEST(NetworkBarrierRefusal, NamesTheProviderWithoutCollectiveOperations) {
    if (std::ranges::count(transport_names(), "libfabric:shm") == 0) {
        GTEST_SKIP() << "libfabric has no provider shm here";
    }
    NodeConfig config = folded(2, "libfabric:shm");
    config.barrier = protocol::ShiftBarrier::network;
    const auto node = Node::make(std::move(config));
    ASSERT_TRUE(node);
    EXPECT_TRUE(base::fails_with("libfabric's provider 'shm' has no collective operations",
                                 (*node)->prepare(1, first(2))));
}

}  // namespace
}  // namespace daqloom::live
