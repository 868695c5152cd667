// Linear shifting whose units are lost: the others regroup and go on, and every MEP has one fate.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "systems/shift_on_paper_test.hpp"

namespace daqloom::systems {
namespace {

using base::microseconds;

constexpr Time kHeartbeat = microseconds(100);
constexpr Time kTimeout = microseconds(500);

/// Four nodes under a run control with short times; MFPs of 64 kB, 2.7 us on their wires.
ShiftSystemConfig controlled(std::uint32_t nodes = 4) {
    ShiftSystemConfig config = system_on(star_200(nodes));
    config.barrier = ShiftBarrier::centralised;
    rdma_of(config).retry_timeout = microseconds(100);
    config.run.emplace();
    config.run->heartbeat = kHeartbeat;
    config.run->fault_timeout = kTimeout;
    config.run->restart = false;
    return config;
}

NodeChange kill(std::uint32_t host, Time at) {
    return {.at = at, .host = NodeIndex(host), .what = NodeChange::What::kill};
}
NodeChange stop(std::uint32_t host, Time at, Time until) {
    return {.at = at, .host = NodeIndex(host), .what = NodeChange::What::stop, .until = until};
}

std::vector<std::uint32_t> members_of(const ShiftSystem& system) {
    std::vector<std::uint32_t> all;
    for (const auto& each : system.run_control()->members()) {
        all.push_back(each.members);
    }
    return all;
}

/// As they were written, if the system was run to its end.
double meps_per_second(const ShiftSystem& system, const ShiftReport& before, Time span) {
    return static_cast<double>(system.report().meps_built - before.meps_built) / span.seconds();
}

TEST(Regrouping, WithoutFaultsNothingChanges) {
    ShiftSystemConfig config = controlled();
    const auto system = play(config, base::milliseconds(2));
    config.run.reset();
    const auto usual = play(config, base::milliseconds(2));
    EXPECT_EQ(system->report().meps_built, usual->report().meps_built);
    EXPECT_EQ(system->report().steps, usual->report().steps);
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{4}));
    EXPECT_EQ(system->run_control()->accounts().regroupings, 0);
}

TEST(Regrouping, TheOthersGoOnWithoutAKilledUnit) {
    ShiftSystemConfig config = controlled();
    config.node_changes = {kill(2, base::milliseconds(1))};
    config.duration = base::milliseconds(3);
    const auto system = play(config, base::milliseconds(2));
    EXPECT_EQ(members_of(*system), (std::vector<std::uint32_t>{4, 0, 3}));
    const auto& losses = system->run_control()->losses();
    ASSERT_EQ(losses.size(), 1);
    EXPECT_EQ(losses[0].at, base::milliseconds(1)) << "its process is seen to end";
    EXPECT_EQ(system->host_of(UnitIndex(losses[0].unit)), NodeIndex(2));
    const ShiftReport before = system->report();
    system->run(base::milliseconds(3));
    EXPECT_TRUE(system->check_conservation());
    // Three of four slots are taken: in a phase as long as before, three MEPs in place of four.
    const double each = 1 / (transfer(config).seconds() * 4);
    const double rate = meps_per_second(*system, before, base::milliseconds(1));
    EXPECT_GT(rate, 3 * each * 0.5);
    EXPECT_LT(rate, 3 * each);
}

}  // namespace
}  // namespace daqloom::systems
