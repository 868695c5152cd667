// The process of a unit, with a node simulated by the test.
#include "protocol/run/unit_process.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "protocol/run/units_by_hand_test.hpp"

namespace daqloom::protocol {

namespace {

using base::seconds;

/// Records its calls.
class PlayedNode final : public UnitNodes {
  public:
    std::vector<std::string> calls;
    std::vector<UnitIndex> unreachable;
    std::vector<UnitIndex> lost;
    std::optional<std::uint64_t> next_mep;  ///< it has drained
    std::vector<std::pair<base::Time, base::Time>> waits;
    NamedCounters counted;
    UnitLease::Lease leased;
    bool reports_counters = true;

    std::vector<std::byte> prepare(UnitIndex unit, const orders::Prepare& /*order*/) override {
        calls.emplace_back("prepare");
        return {std::byte(unit.value())};
    }
    std::vector<UnitIndex> connect(UnitIndex /*unit*/, const orders::Connect& /*order*/) override {
        calls.emplace_back("connect");
        return unreachable;
    }
    void start(UnitIndex /*unit*/, std::uint64_t first_mep, UnitLease::Lease lease) override {
        leased = lease;
        calls.emplace_back("start " + std::to_string(first_mep));
    }
    void lease(UnitIndex /*unit*/, UnitLease::Lease lease) override {
        leased = lease;
        calls.emplace_back("lease");
    }
    void close(UnitIndex /*unit*/, std::span<const UnitIndex> without) override {
        lost.assign(without.begin(), without.end());
        calls.emplace_back("close");
    }
    std::optional<std::uint64_t> drain(UnitIndex /*unit*/, base::Time wait_until,
                                       base::Time until) override {
        waits.emplace_back(wait_until, until);
        return next_mep;
    }
    std::optional<NamedCounters> shut(UnitIndex /*unit*/) override {
        calls.emplace_back("shut");
        return reports_counters ? std::optional(counted) : std::nullopt;
    }
    std::vector<UnitIndex> suspects(UnitIndex /*unit*/) const override { return unreachable; }
    NamedCounters counters(UnitIndex /*unit*/) const override { return counted; }
};

class UnitProcesses : public testing::Test {
  public:
    UnitProcess::Answer gets(const Order& order) {
        return process.on_order(now, ++number, order, &node);
    }
    /// Brings the unit to a state, by the orders that lead to it.
    void bring_to(UnitState state, std::uint32_t epoch = 1) {
        gets(orders::Configure{.lease = seconds(2)});
        if (state == UnitState::error) {
            static_cast<void>(process.on_failure(++number, "no memory"));
        } else if (state != UnitState::not_ready) {
            gets(orders::Prepare{.epoch = epoch});
            gets(orders::Connect{});
            if (state == UnitState::running) {
                gets(orders::Start{.first_mep = 100, .mep_end = 500});
            }
        }
        ASSERT_EQ(process.state(), state);
        node.calls.clear();
    }
    void expect_calls(const std::vector<std::string>& expected) {
        EXPECT_EQ(std::exchange(node.calls, {}), expected);
    }
    std::vector<reports::Report> sends(UnitProcess::Answer answer = {}) {
        return process.reports(now, std::move(answer), &node);
    }
    reports::Heartbeat heartbeat() { return std::get<reports::Heartbeat>(sends().back()); }

    UnitProcess process{unit_at(5)};
    PlayedNode node;
    base::Time now = seconds(10);
    std::uint64_t number = 0;
};

const orders::Halt halts{.lost = units_at({3}), .timeout = seconds(4)};

TEST_F(UnitProcesses, FinalCountersAreKeptUntilALeaseConfirmsThem) {
    PlayedNode node_of_run;
    UnitProcess unit(unit_at(1));
    node_of_run.counted = {{{"meps_built", 7}}};
    unit.shut(&node_of_run);
    EXPECT_TRUE(unit.unconfirmed().empty()) << "not sent yet";
    const auto sent = unit.reports(seconds(1), {}, nullptr);
    ASSERT_EQ(sent.size(), 2U);
    const std::uint64_t sent_number = std::get<reports::Heartbeat>(sent[0]).number;
    ASSERT_EQ(unit.reports(seconds(2), {}, nullptr).size(), 1U) << "sent once";
    const auto again = unit.unconfirmed();
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(std::get<reports::Heartbeat>(again[0]).number, sent_number);
    unit.on_order(seconds(3), 0, orders::Renew{1, 9, sent_number - 1, 5}, nullptr);
    EXPECT_EQ(unit.unconfirmed().size(), 1U);
    unit.on_order(seconds(3), 0, orders::Renew{1, 9, sent_number, 6}, nullptr);
    EXPECT_TRUE(unit.unconfirmed().empty());
    EXPECT_EQ(unit.leased().beat, 6U);
}

TEST_F(UnitProcesses, OrdersBecomeCallsAndAnswers) {
    EXPECT_EQ(gets(orders::Configure{})->order, 1U);
    const auto prepared = gets(orders::Prepare{.epoch = 4});
    EXPECT_EQ(prepared->address, std::vector(1, std::byte{5}));
    EXPECT_EQ(prepared->order, 2U);
    EXPECT_EQ(process.epoch(), 4U);
    node.unreachable = units_at({2});
    const auto connected = gets(orders::Connect{});
    EXPECT_EQ(connected->missing, units_at({2}));
    EXPECT_EQ(connected->state, UnitState::ready);
    EXPECT_EQ(gets(orders::Start{.first_mep = 9})->state, UnitState::running);
    EXPECT_FALSE(gets(halts));
    EXPECT_EQ(node.lost, units_at({3}));
    node.next_mep = 20;
    const auto halted = process.on_drain(now, &node);
    EXPECT_EQ(halted->order, 5U);
    EXPECT_EQ(halted->next_mep, 20U);
    EXPECT_EQ(halted->missing, units_at({2}));
    EXPECT_EQ(halted->state, UnitState::not_ready);
    EXPECT_EQ(gets(orders::Exit{})->state, UnitState::not_ready);
    expect_calls({"prepare", "connect", "start 9", "close", "shut"});
}

/// The state after each order, for a unit in each state; `error`: the order is refused.
TEST_F(UnitProcesses, AnOrderThatTheStateDoesNotAllowMakesNoCallAndLeavesTheUnitInError) {
    using enum UnitState;
    struct Case {
        Order order;
        UnitState after_not_ready, after_ready, after_running, after_error;
        std::string refusal;
    };
    const std::vector<Case> cases = {
        {orders::Prepare{.epoch = 1}, not_ready, not_ready, not_ready, error, "halted"},
        {orders::Connect{}, ready, error, error, error, "connected"},
        {orders::Start{}, error, running, error, error, "started"},
        {halts, not_ready, not_ready, running, error, "halted"},
        {orders::Reset{}, not_ready, not_ready, not_ready, not_ready, ""},
        {orders::Exit{}, not_ready, not_ready, not_ready, not_ready, ""},
    };
    for (const Case& each : cases) {
        for (const auto& [before, after] :
             {std::pair(not_ready, each.after_not_ready), std::pair(ready, each.after_ready),
              std::pair(running, each.after_running), std::pair(error, each.after_error)}) {
            SCOPED_TRACE(std::string(name_of(each.order)) + " to " + std::string(name_of(before)));
            gets(orders::Reset{});
            bring_to(before);
            const auto answer = gets(each.order);
            EXPECT_EQ(process.state(), after);
            EXPECT_EQ(answer.has_value(), after != running || before != running);
            if (answer) {
                EXPECT_EQ(answer->state, after);
                EXPECT_EQ(answer->failure, after != error
                                               ? ""
                                               : "a unit that is " + std::string(name_of(before)) +
                                                     " cannot be " + each.refusal);
            }
            EXPECT_TRUE(after != error || node.calls.empty());
        }
    }
}

TEST_F(UnitProcesses, OrdersToAUnitWithoutANodeAreRefused) {
    for (const Order& order : {Order(orders::Prepare{}), Order(orders::Connect{}),
                               Order(orders::Start{}), Order(orders::Halt{})}) {
        const auto answer = process.on_order(now, 1, order, nullptr);
        EXPECT_EQ(answer->failure, "it has not been configured") << name_of(order);
        EXPECT_EQ(answer->state, UnitState::error);
    }
    EXPECT_FALSE(process.on_order(now, 0, orders::Renew{}, nullptr));
    EXPECT_EQ(process.on_order(now, 7, orders::Reset{}, nullptr)->state, UnitState::not_ready);
}

TEST_F(UnitProcesses, AFailureIsAnsweredAndLeavesTheUnitInErrorUntilAReset) {
    bring_to(UnitState::running);
    gets(halts);
    const auto answer = process.on_failure(8, "no memory");
    EXPECT_EQ(answer.order, 8U);
    EXPECT_EQ(answer.failure, "no memory");
    EXPECT_EQ(answer.state, UnitState::error);
    EXPECT_FALSE(process.is_halting());
    EXPECT_EQ(gets(orders::Reset{})->state, UnitState::not_ready);
    EXPECT_EQ(process.epoch(), 0U);
}

TEST_F(UnitProcesses, AUnitThatIsRegroupedBeforeItsStartIsConnectedAnew) {
    gets(orders::Configure{});
    for (const std::uint32_t epoch : {1, 2}) {
        EXPECT_EQ(gets(orders::Prepare{.epoch = epoch})->state, UnitState::not_ready);
        EXPECT_EQ(gets(orders::Connect{})->state, UnitState::ready);
    }
    const auto halted = gets(halts);
    EXPECT_EQ(halted->state, UnitState::not_ready);
    EXPECT_EQ(halted->next_mep, 0U);
    expect_calls({"prepare", "connect", "prepare", "connect"});
}

TEST_F(UnitProcesses, AHaltWaitsForNoConsumerFromHalfItsTimeOnAndThenGivesUp) {
    bring_to(UnitState::running);
    EXPECT_FALSE(gets(halts));
    EXPECT_EQ(process.hurries_at(), seconds(12));
    EXPECT_EQ(process.gives_up_at(), seconds(14));
    EXPECT_FALSE(process.on_drain(now, &node));
    expect_calls({"close"});
    now += seconds(2);
    EXPECT_FALSE(process.on_drain(now, &node));
    EXPECT_FALSE(process.on_drain(now, &node));
    expect_calls({"close"});
    EXPECT_EQ(node.lost, units_at({}));
    now += seconds(2);
    node.unreachable = units_at({1, 2});
    const auto answer = process.on_drain(now, &node);
    EXPECT_EQ(answer->missing, units_at({1, 2}));
    EXPECT_EQ(answer->next_mep, 100U) << "the first MEP of the epoch";
    EXPECT_EQ(answer->state, UnitState::not_ready);
    EXPECT_FALSE(process.on_drain(now, &node)) << "it does not halt any more";
    const base::Time hurries = seconds(12), gives_up = seconds(14);
    EXPECT_EQ(
        node.waits,
        (std::vector<std::pair<base::Time, base::Time>>{
            {hurries, gives_up}, {hurries, gives_up}, {gives_up, gives_up}, {gives_up, gives_up}}));
    expect_calls({});
}

TEST_F(UnitProcesses, AnotherOrderReplacesAHalt) {
    for (const Order& other : {Order(orders::Prepare{.epoch = 2}), Order(orders::Reset{})}) {
        bring_to(UnitState::running);
        EXPECT_FALSE(gets(halts));
        EXPECT_EQ(gets(other)->state, UnitState::not_ready);
        node.next_mep = 200;
        EXPECT_FALSE(process.on_drain(now, &node));
    }
}

TEST_F(UnitProcesses, ALeaseCountsFromTheSendingOfAReportThatWasReceived) {
    bring_to(UnitState::ready);
    const std::uint64_t first = heartbeat().number;
    now += seconds(1);
    gets(orders::Start{.first_mep = 9, .mep_end = 500, .last_report = first});
    EXPECT_EQ(node.leased.mep_end, 500U);
    EXPECT_EQ(node.leased.until, seconds(12));
    const std::uint64_t second = heartbeat().number;
    EXPECT_EQ(second, first + 1);
    now += seconds(1);
    EXPECT_FALSE(gets(orders::Renew{.epoch = 1, .mep_end = 700, .last_report = second}));
    EXPECT_EQ(node.leased.mep_end, 700U);
    EXPECT_EQ(node.leased.until, seconds(13));
    EXPECT_EQ(process.leased().until, seconds(13));
    EXPECT_FALSE(gets(orders::Renew{.epoch = 7, .mep_end = 900, .last_report = second}));
    EXPECT_EQ(node.leased.mep_end, 700U) << "a lease of another epoch";
    gets(halts);
    gets(orders::Prepare{.epoch = 2});
    EXPECT_EQ(process.leased().mep_end, 0U) << "nothing is leased of a new epoch";
}

TEST_F(UnitProcesses, AHeartbeatShowsProgressAndSuspectsOnlyOfAUnitThatRuns) {
    node.counted.by_name = {{"beats", 7}, {"waits", 1}, {"next_mep", 9}, {"streams_broken", 1}};
    node.unreachable = units_at({4, 2});
    bring_to(UnitState::not_ready);
    reports::Pulse pulse = heartbeat().pulse;
    EXPECT_EQ(pulse.state, UnitState::not_ready);
    EXPECT_FALSE(pulse.beats);
    EXPECT_FALSE(pulse.waits);
    EXPECT_TRUE(pulse.suspects.empty());
    EXPECT_EQ(pulse.next_mep, 9U);
    node.counted.by_name.erase("streams_broken");
    bring_to(UnitState::running);
    pulse = heartbeat().pulse;
    EXPECT_EQ(pulse.state, UnitState::running);
    EXPECT_EQ(pulse.epoch, 1U);
    EXPECT_EQ(pulse.beats, 7U);
    EXPECT_FALSE(pulse.steps) << "not counted";
    EXPECT_TRUE(pulse.waits);
    EXPECT_EQ(pulse.suspects, units_at({2, 4}));
    EXPECT_EQ(heartbeat().counters.by_name, node.counted.by_name);
    node.counted.by_name["streams_broken"] = 2;
    pulse = heartbeat().pulse;
    EXPECT_EQ(pulse.state, UnitState::error);
    EXPECT_EQ(pulse.failure,
              "2 streams have invalid descriptors; correct the program that writes to the buffer");
    EXPECT_EQ(process.state(), UnitState::running);
}

TEST_F(UnitProcesses, FinalCountersOfEachNodeAreSentOnceBeforeTheNextReport) {
    bring_to(UnitState::running, 3);
    node.counted.by_name = {{"meps_built", 5}};
    gets(orders::Reset{});
    node.counted.by_name = {{"meps_built", 0}};
    const auto answer = gets(orders::Reset{});
    node.counted.by_name = {{"meps_built", 1}};
    const auto sent = sends(answer);
    ASSERT_EQ(sent.size(), 3U);
    for (const std::size_t place : {0U, 1U}) {
        const auto& last = std::get<reports::Heartbeat>(sent[place]);
        EXPECT_EQ(last.ended, 3U);
        EXPECT_EQ(last.counters.count("meps_built"), place == 0 ? 5 : 0);
        EXPECT_EQ(last.number, place + 1);
    }
    const auto& last = std::get<reports::Answer>(sent[2]);
    EXPECT_EQ(last.number, 3U);
    EXPECT_EQ(last.order, number);
    EXPECT_EQ(last.counters.count("meps_built"), 1);
    EXPECT_EQ(sends().size(), 1U);
    node.reports_counters = false;
    process.shut(&node);
    EXPECT_EQ(sends().size(), 1U) << "the run control reads them itself";
    EXPECT_TRUE(std::get<reports::Heartbeat>(process.reports(now, {}, nullptr)[0])
                    .counters.by_name.empty());
}

}  // namespace

}  // namespace daqloom::protocol
