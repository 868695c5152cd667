// Tests of every transport: an idle unit sleeps and can be woken.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "live/memory/clock.hpp"
#include "live/transport/conformance_test.hpp"

namespace daqloom::live {
namespace {

TEST_P(TransportConformance, AUnitWithNothingToDoSleepsUntilItsDeadline) {
    for (const Waiting waiting : {Waiting::blocking, Waiting::adaptive}) {
        TestRun run(GetParam(), 2, {.waiting = waiting});
        run.settle();
        int waits = 0;
        for (const auto until = now() + base::milliseconds(100); now() < until; ++waits) {
            run[0].poll();
            run[0].transport().wait(until);
        }
        EXPECT_GE(run[0].transport().counters().sleeps, 1U);
        EXPECT_LE(waits, GetParam().most_waits) << "it does not sleep";
    }
}

TEST_P(TransportConformance, AUnitThatSpinsNeverSleeps) {
    TestRun run(GetParam(), 2, {.waiting = Waiting::spinning});
    for (int i = 0; i < 100; ++i) {
        run[0].poll();
        run[0].transport().wait(test_deadline());
    }
    EXPECT_EQ(run[0].transport().counters().sleeps, 0U);
}

TEST_P(TransportConformance, AUnitThatSleepsIsWokenByAMessageAWriteAndItsDoorbell) {
    for (const Waiting waiting : {Waiting::blocking, Waiting::adaptive}) {
        TestRun run(GetParam(), 2, {.waiting = waiting});
        constexpr std::size_t kRounds = 300;
        std::atomic<std::size_t> rung = 0;
        std::atomic<std::size_t> received = 0;
        std::atomic<bool> is_over = false;
        // Unit 0 sends, unit 1 writes, unit 0 sends, …: each can continue only if it is woken.
        std::thread writer([&] {
            for (std::size_t i = 0; i < kRounds; ++i) {
                EXPECT_TRUE(run_until(run[1], [&] { return run[1].messages.size() == i + 1; }));
                EXPECT_TRUE(run[1].transport().write(
                    {.to = UnitIndex(0), .bytes = run[1].source().first(5000), .context = i}));
                EXPECT_TRUE(run_until(run[1], [&] { return run[1].done.size() == i + 1; }));
            }
            for (std::size_t i = 0; i < kRounds; ++i) {
                EXPECT_TRUE(run_until(run[1], [&] { return rung > i; }));
                received = i + 1;
                run[0].doorbell().ring();
            }
            while (!is_over) {
                run[1].poll();  // a network's last bytes
                std::this_thread::yield();
            }
        });
        for (std::size_t i = 0; i < kRounds; ++i) {
            EXPECT_TRUE(run[0].transport().send(UnitIndex(1), pattern(10, i)));
            EXPECT_TRUE(run_until(run[0], [&] { return run[0].written.size() == i + 1; }));
        }
        for (std::size_t i = 0; i < kRounds; ++i) {
            rung = i + 1;
            run[1].doorbell().ring();
            EXPECT_TRUE(run_until(run[0], [&] { return received > i; }));
        }
        is_over = true;
        writer.join();
        EXPECT_EQ(run[0].written.size(), kRounds);
        EXPECT_EQ(received, kRounds);
    }
}

TEST_P(TransportConformance, ASenderThatIsHeldBackIsWokenWhenThereIsRoom) {
    TestRun run(GetParam(), 2);
    constexpr std::size_t kMessages = 20'000;
    std::atomic<bool> is_over = false;
    std::thread reader([&] {
        EXPECT_TRUE(run_until(run[1], [&] { return run[1].messages.size() >= kMessages; }));
        is_over = true;
        run[0].doorbell().ring();
    });
    const auto message = pattern(1000, 1);
    for (std::size_t i = 0; i < kMessages; ++i) {
        ASSERT_TRUE(
            run_until(run[0], [&] { return run[0].transport().send(UnitIndex(1), message); }));
    }
    EXPECT_TRUE(run_until(run[0], [&] { return is_over.load(); }));  // what it has taken is sent
    reader.join();
    EXPECT_EQ(run[1].messages.size(), kMessages);
}

TEST_P(TransportConformance, UnitsInThreadsOfTheirOwnExchangeAllWithAll) {
    constexpr std::uint32_t kUnits = 4;
    const std::uint32_t rounds_each = GetParam().rounds;
    constexpr std::size_t kBytes = 20'000;
    TestRun run(GetParam(), kUnits);
    std::atomic<std::uint32_t> finished = 0;
    const auto work = [&](std::uint32_t self) {
        TestUnit& unit = run[self];
        const auto deadline = test_deadline();
        fill_pattern(unit.source(), self);
        std::uint32_t rounds[kUnits] = {};
        const auto all_made = [&] {
            return std::ranges::all_of(rounds, [&](std::uint32_t r) { return r == rounds_each; });
        };
        bool is_finished = false;
        while (finished < kUnits && now() < deadline) {
            bool something = unit.poll();
            for (std::uint32_t to = 0; to < kUnits; ++to) {
                // One message and one write per round; each unit writes to its own place.
                if (rounds[to] < rounds_each &&
                    unit.transport().write({.to = UnitIndex(to),
                                            .bytes = unit.source().first(kBytes),
                                            .offset = static_cast<base::Bytes>(self * kBytes),
                                            .immediate = rounds[to]})) {
                    while (!unit.transport().send(UnitIndex(to), as_message(rounds[to])) &&
                           now() < deadline) {
                        unit.poll();
                    }
                    ++rounds[to];
                    something = true;
                }
            }
            if (!is_finished && all_made() && unit.messages.size() == rounds_each * kUnits &&
                unit.written.size() == rounds_each * kUnits &&
                unit.done.size() == rounds_each * kUnits) {
                is_finished = true;
                ++finished;
                for (std::uint32_t other = 0; other < kUnits; ++other) {
                    run[other].doorbell().ring();
                }
            }
            if (!something) {
                unit.transport().wait(deadline);
            }
        }
        EXPECT_LT(now(), deadline);
    };
    std::vector<std::thread> threads;
    for (std::uint32_t self = 0; self < kUnits; ++self) {
        threads.emplace_back(work, self);
    }
    for (auto& thread : threads) {
        thread.join();
    }
    for (std::uint32_t to = 0; to < kUnits; ++to) {
        std::uint32_t next[kUnits] = {};
        ASSERT_EQ(run[to].messages.size(), rounds_each * kUnits);
        for (const auto& message : run[to].messages) {
            std::uint32_t round = 0;
            ASSERT_EQ(message.bytes.size(), sizeof round);
            std::memcpy(&round, message.bytes.data(), sizeof round);
            EXPECT_EQ(round, next[message.from.value()]++);
        }
        for (std::uint32_t from = 0; from < kUnits; ++from) {
            EXPECT_TRUE(has_pattern(run[to].arena().subspan(from * kBytes, kBytes), from));
        }
    }
}

}  // namespace
}  // namespace daqloom::live
