// Tests of every transport: processes that are not part of the run are refused and do no harm.
#include <algorithm>
#include <atomic>
#include <thread>

#include "base/random.hpp"
#include "live/memory/clock.hpp"
#include "live/transport/conformance_test.hpp"

namespace daqloom::live {
namespace {

/// Two units of a run, and a third one with a different configuration. All three connect.
struct WithAnOddOne {
    std::unique_ptr<TestUnit> unit[3];
    std::vector<TestUnit*> all;
    std::vector<std::vector<UnitIndex>> missing;

    WithAnOddOne(const TransportUnderTest& transport, const TestUnit::Options& odd) {
        for (std::uint32_t i = 0; i < 3; ++i) {
            unit[i] =
                std::make_unique<TestUnit>(transport, i, 3, i == 2 ? odd : TestUnit::Options{});
            all.push_back(unit[i].get());
        }
        missing = connect_all(all, now() + base::seconds(2));
    }

    void expect_that_the_two_go_on() const {
        EXPECT_EQ(missing[0], Units{2});
        EXPECT_EQ(missing[1], Units{2});
        EXPECT_EQ(missing[2].size(), 2U);
        ASSERT_TRUE(poll_until(
            all, [&] { return unit[0]->transport().send(UnitIndex(1), pattern(10, 1)); }));
        ASSERT_TRUE(poll_until(all, [&] { return !unit[1]->messages.empty(); }));
        EXPECT_EQ(unit[1]->messages[0].from, UnitIndex(0));
        EXPECT_TRUE(unit[2]->messages.empty());
    }
    /// Whether unit `i` counts this refusal while all units are polled.
    [[nodiscard]] bool refuses(int i, Counter TransportCounters::*why) const {
        return poll_until(all, [&] { return unit[i]->transport().counters().*why > 0; });
    }
};

TEST_P(TransportConformance, AUnitThatDoesNotKnowTheTokenIsRefusedAndCounted) {
    const WithAnOddOne run(GetParam(), {.token = {std::byte{8}}});
    run.expect_that_the_two_go_on();
    EXPECT_TRUE(run.refuses(0, &TransportCounters::refused_strangers));
    EXPECT_TRUE(run.refuses(1, &TransportCounters::refused_strangers));
}

TEST_P(TransportConformance, AUnitOfAnotherEpochIsRefusedAndCounted) {
    const WithAnOddOne run(GetParam(), {.epoch = 2});
    run.expect_that_the_two_go_on();
    for (const int unit : {0, 1, 2}) {
        EXPECT_TRUE(run.refuses(unit, &TransportCounters::refused_epoch));
    }
}

TEST_P(TransportConformance, AUnitThatDoesNotConnectIsReturnedAtTheDeadline) {
    TestUnit a(GetParam(), 0, 3);
    TestUnit b(GetParam(), 1, 3);
    const TestUnit silent(GetParam(), 2, 3);
    const auto silent_address = const_cast<TestUnit&>(silent).transport().address();
    std::vector<UnitIndex> missing[2];
    const auto until = now() + base::seconds(1);
    const auto connect = [&](TestUnit& self, TestUnit& other, std::uint32_t other_index,
                             std::vector<UnitIndex>& answer) {
        const Transport::Peer peers[] = {{UnitIndex(other_index), other.transport().address()},
                                         {UnitIndex(2), silent_address}};
        answer = self.transport().connect(peers, until).value();
    };
    std::thread thread([&] { connect(a, b, 1, missing[0]); });
    connect(b, a, 0, missing[1]);
    thread.join();
    EXPECT_EQ(missing[0], Units{2});
    EXPECT_EQ(missing[1], Units{2});
    EXPECT_TRUE(a.transport().send(UnitIndex(1), pattern(10, 1)));
    TestUnit* const both[] = {&a, &b};
    EXPECT_TRUE(poll_until(both, [&] { return !b.messages.empty(); }));
}

TEST_P(TransportConformance, AnAddressThatMakesNoSenseIsAUnitThatDoesNotAnswer) {
    TestUnit a(GetParam(), 0, 4);
    const Transport::Peer peers[] = {
        {UnitIndex(1), pattern(1024, 1)}, {UnitIndex(2), {}}, {UnitIndex(3), pattern(20, 2)}};
    const auto missing = a.transport().connect(peers, now() + base::milliseconds(100));
    EXPECT_EQ(missing.value(), (Units{1, 2, 3}));
}

TEST_P(TransportConformance, ASecondUnitOfTheSameNumberIsRefusedAndCounted) {
    TestUnit a(GetParam(), 0, 2);
    TestUnit b(GetParam(), 1, 2);
    TestUnit impostor(GetParam(), 1, 2);
    const auto until = now() + base::seconds(2);
    const auto connect = [until](TestUnit& self, std::uint32_t other, TestUnit& to) {
        const Transport::Peer peers[] = {{UnitIndex(other), to.transport().address()}};
        return self.transport().connect(peers, until).value();
    };
    std::vector<UnitIndex> missing[3];
    std::atomic<bool> has_tried = false;
    std::thread threads[] = {std::thread([&] {
                                 missing[0] = connect(a, 1, b);
                                 while (!has_tried) {  // a network's unit has only what it polls
                                     a.poll();
                                     std::this_thread::yield();
                                 }
                             }),
                             std::thread([&] { missing[1] = connect(b, 0, a); }), std::thread([&] {
                                 missing[2] = connect(impostor, 0, a);
                                 has_tried = true;
                             })};
    for (auto& thread : threads) {
        thread.join();
    }
    // The unit whose address comes from the run control is accepted.
    EXPECT_TRUE(missing[0].empty());
    EXPECT_TRUE(missing[1].empty());
    EXPECT_EQ(missing[2], Units{0});
    TestUnit* const all[] = {&a, &b, &impostor};
    const TransportCounters& counters = a.transport().counters();
    ASSERT_TRUE(poll_until(std::span(all).first(1), [&] {
        return counters.refused_malformed + counters.refused_strangers > 0;
    }));
    ASSERT_TRUE(a.transport().send(UnitIndex(1), pattern(10, 1)));
    ASSERT_TRUE(poll_until(all, [&] { return !b.messages.empty(); }));
    EXPECT_TRUE(impostor.messages.empty());
}

TEST_P(TransportConformance, AStrangersGarbageIsRefusedAndCountedWithoutHarm) {
    std::vector<std::unique_ptr<TestUnit>> units;
    std::vector<TestUnit*> all;
    for (std::uint32_t i = 0; i < 3; ++i) {
        units.push_back(std::make_unique<TestUnit>(GetParam(), i, 3));
        all.push_back(units.back().get());
    }
    const auto address = all[0]->transport().address();
    base::RandomStream random(3, "stranger");
    for (const std::size_t size : {1, 8, 32, 33, 500, 4000}) {
        GetParam().disturb(address, pattern(size, random()));
    }
    for (const auto& missing : connect_all(all, test_deadline())) {
        EXPECT_TRUE(missing.empty());
    }
    GetParam().disturb(address, pattern(32, 5));
    GetParam().disturb(address, pattern(4000, 6));
    for (std::uint32_t from = 0; from < 3; ++from) {
        for (std::uint32_t to = 0; to < 3; ++to) {
            ASSERT_TRUE(all[from]->transport().send(UnitIndex(to), pattern(100, from)));
        }
    }
    const TransportCounters& counters = all[0]->transport().counters();
    ASSERT_TRUE(poll_until(all,
                           [&] {
                               return std::ranges::all_of(
                                          all,
                                          [](auto* unit) { return unit->messages.size() >= 3; }) &&
                                      counters.refused_strangers + counters.refused_malformed >= 8;
                           }))
        << counters.refused_strangers << " strangers refused, " << counters.refused_malformed
        << " malformed";
    for (TestUnit* unit : all) {
        EXPECT_TRUE(unit->unreachable.empty());
        for (const auto& message : unit->messages) {
            EXPECT_TRUE(has_pattern(message.bytes, message.from.value()));
        }
    }
}

}  // namespace
}  // namespace daqloom::live
