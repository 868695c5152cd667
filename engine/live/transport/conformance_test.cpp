#include "live/transport/conformance.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/random.hpp"
#include "live/clock.hpp"

// The thread sanitizer brings its own operators and does not let us count.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DAQLOOM_UNCOUNTED_ALLOCATIONS
#endif
#elif defined(__SANITIZE_THREAD__)
#define DAQLOOM_UNCOUNTED_ALLOCATIONS
#endif

#ifndef DAQLOOM_UNCOUNTED_ALLOCATIONS
namespace {

thread_local std::uint64_t allocations = 0;

void* count_and_allocate(std::size_t bytes) {
    ++allocations;
    if (void* block = std::malloc(std::max<std::size_t>(bytes, 1))) {
        return block;
    }
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return count_and_allocate(bytes); }
void* operator new[](std::size_t bytes) { return count_and_allocate(bytes); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t /*bytes*/) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t /*bytes*/) noexcept { std::free(block); }
#endif

namespace daqloom::live {

base::Time test_deadline() { return now() + base::seconds(60); }

namespace {

template <class T>
T or_throw(base::expected<T> made) {
    if (!made) {
        throw std::runtime_error(made.error().message);
    }
    return std::move(*made);
}

std::uint64_t pattern_word(std::uint64_t seed, std::uint64_t place) {
    const std::uint64_t mixed = (seed + 1) * 0x9e3779b97f4a7c15 + place * 0xbf58476d1ce4e5b9;
    return mixed ^ mixed >> 29;
}

std::byte pattern_byte(std::uint64_t seed, std::uint64_t place) {
    return static_cast<std::byte>(pattern_word(seed, place / 8) >> 8 * (place % 8));
}

}  // namespace

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = pattern_byte(seed, i);
    }
}

bool has_pattern(std::span<const std::byte> bytes, std::uint64_t seed) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] != pattern_byte(seed, i)) {
            return false;
        }
    }
    return true;
}

TestUnit::TestUnit(const TransportUnderTest& transport, UnitIndex self, std::uint32_t units,
                   const Options& options)
    : arena_(or_throw(SharedMemory::create("test-arena", options.arena))),
      source_(or_throw(SharedMemory::create("test-source", options.source))),
      doorbell_(or_throw(Doorbell::create())),
      transport_(or_throw(transport.make({.self = self,
                                          .units = units,
                                          .token = options.token,
                                          .epoch = options.epoch,
                                          .arena = &arena_,
                                          .sources = {source_.bytes()},
                                          .doorbell = &*doorbell_,
                                          .waiting = options.waiting}))) {}

void TestUnit::on_message(UnitIndex from, std::span<const std::byte> bytes) {
    if (keeps) {
        messages.push_back({from, {bytes.begin(), bytes.end()}});
    }
    if (at_message) {
        at_message(from, bytes);
    }
}

void TestUnit::on_written(UnitIndex from, std::uint32_t immediate) {
    if (keeps) {
        written.push_back({from, immediate});
    }
    if (at_written) {
        at_written(from, immediate);
    }
}

void TestUnit::on_write_done(std::uint64_t context) {
    if (keeps) {
        done.push_back(context);
    }
    if (at_done) {
        at_done(context);
    }
}

void TestUnit::on_unreachable(UnitIndex unit) { unreachable.push_back(unit); }

std::vector<std::vector<UnitIndex>> connect_all(std::span<TestUnit* const> units,
                                                base::Time until) {
    std::vector<Transport::Peer> peers;
    for (UnitIndex i = 0; i < units.size(); ++i) {
        peers.push_back({i, units[i]->transport().address()});
    }
    std::vector<std::vector<UnitIndex>> missing(units.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < units.size(); ++i) {
        threads.emplace_back([&, i] {
            auto others = peers;
            others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
            const auto answer = units[i]->transport().connect(others, until);
            EXPECT_TRUE(answer) << answer.error().message;
            missing[i] = answer.value_or(std::vector<UnitIndex>{});
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    return missing;
}

TestRun::TestRun(const TransportUnderTest& transport, std::uint32_t units,
                 const TestUnit::Options& options) {
    std::vector<TestUnit*> all;
    for (UnitIndex i = 0; i < units; ++i) {
        units_.push_back(std::make_unique<TestUnit>(transport, i, units, options));
        all.push_back(units_.back().get());
    }
    for (const auto& missing : connect_all(all, test_deadline())) {
        EXPECT_TRUE(missing.empty());
    }
}

bool TestRun::poll_until(const std::function<bool()>& is_so) {
    for (const auto deadline = test_deadline(); !is_so();) {
        if (now() > deadline) {
            return false;
        }
        for (const auto& unit : units_) {
            unit->poll();
        }
    }
    return true;
}

void TestRun::settle() {
    // Quiet for so many turns: a network's bytes may be on their way.
    for (int quiet = 0; quiet < 100;) {
        bool something = false;
        for (const auto& unit : units_) {
            something |= unit->poll();
        }
        quiet = something ? 0 : quiet + 1;
    }
}

namespace {

std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed) {
    std::vector<std::byte> made(bytes);
    fill_pattern(made, seed);
    return made;
}

/// Sends, polling all while there is no room.
void send(TestRun& run, UnitIndex from, UnitIndex to, std::span<const std::byte> bytes) {
    ASSERT_TRUE(run.poll_until([&] { return run[from].transport().send(to, bytes); }));
}

void write(TestRun& run, UnitIndex from, const Write& write) {
    ASSERT_TRUE(run.poll_until([&] { return run[from].transport().write(write); }));
}

template <class T>
std::span<const std::byte> as_message(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

TEST_P(TransportConformance, MessagesArriveOnceAndInOrderFromEachToEach) {
    constexpr std::uint32_t kUnits = 4;
    constexpr std::uint64_t kMessages = 300;
    TestRun run(GetParam(), kUnits);
    base::RandomStream random(1, "messages");

    for (std::uint64_t i = 0; i < kMessages; ++i) {
        for (UnitIndex from = 0; from < kUnits; ++from) {
            for (UnitIndex to = 0; to < kUnits; ++to) {
                send(run, from, to, pattern(random.uniform_int(1000), 1000 * i + 10 * from + to));
            }
        }
    }
    const auto all_there = [&] {
        for (UnitIndex to = 0; to < kUnits; ++to) {
            if (run[to].messages.size() < kMessages * kUnits) {
                return false;
            }
        }
        return true;
    };
    ASSERT_TRUE(run.poll_until(all_there));
    run.settle();

    for (UnitIndex to = 0; to < kUnits; ++to) {
        ASSERT_EQ(run[to].messages.size(), kMessages * kUnits);
        std::array<std::uint64_t, kUnits> next{};
        for (const auto& message : run[to].messages) {
            const std::uint64_t i = next.at(message.from)++;
            EXPECT_TRUE(has_pattern(message.bytes, 1000 * i + 10 * message.from + to));
        }
        EXPECT_EQ(run[to].transport().counters().messages_received, kMessages * kUnits);
        EXPECT_EQ(run[to].transport().counters().messages_sent, kMessages * kUnits);
    }
}

TEST_P(TransportConformance, MessagesOfEverySizeArriveWhole) {
    TestRun run(GetParam(), 2);
    std::vector<std::size_t> sizes;
    for (std::size_t size = 0; size < Transport::most_message; size += size < 300 ? 1 : 61) {
        sizes.push_back(size);
    }
    sizes.push_back(Transport::most_message);
    for (const std::size_t size : sizes) {
        send(run, 0, 1, pattern(size, size));
    }
    ASSERT_TRUE(run.poll_until([&] { return run[1].messages.size() == sizes.size(); }));
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        EXPECT_EQ(run[1].messages[i].bytes.size(), sizes[i]);
        EXPECT_TRUE(has_pattern(run[1].messages[i].bytes, sizes[i]));
    }
}

TEST_P(TransportConformance, AMessageThatIsTooLongIsNotSent) {
    TestRun run(GetParam(), 2);
    EXPECT_FALSE(run[0].transport().send(1, pattern(Transport::most_message + 1, 0)));
    run.settle();
    EXPECT_TRUE(run[1].messages.empty());
    EXPECT_TRUE(run[0].unreachable.empty());
}

TEST_P(TransportConformance, WritesOfEverySizeArriveWholeAndTouchNothingElse) {
    TestRun run(GetParam(), 2, {.arena = 16 << 20, .source = 16 << 20});
    base::RandomStream random(2, "writes");
    for (const std::size_t size :
         {0, 1, 2, 7, 63, 64, 65, 1000, 4095, 4096, 4097, 65'537, 1'000'003, 9'999'999}) {
        SCOPED_TRACE(size);
        const std::size_t offset = 1 + random.uniform_int(10'000);
        const std::size_t at = 1 + random.uniform_int(10'000);
        fill_pattern(run[1].arena(), 5);
        const auto bytes = run[0].source().subspan(at, size);
        fill_pattern(bytes, size);

        write(run, 0,
              {.to = 1,
               .bytes = bytes,
               .offset = static_cast<base::Bytes>(offset),
               .immediate = static_cast<std::uint32_t>(size) ^ 0xf0f0f0f0,
               .context = size});
        ASSERT_TRUE(
            run.poll_until([&] { return run[1].written.size() == 1 && run[0].done.size() == 1; }));

        EXPECT_TRUE(run[1].written[0].from == 0U || run[1].written[0].from == unknown_unit);
        EXPECT_EQ(run[1].written[0].immediate, static_cast<std::uint32_t>(size) ^ 0xf0f0f0f0);
        EXPECT_EQ(run[0].done[0], size);
        auto expected = pattern(run[1].arena().size(), 5);
        std::ranges::copy(bytes, expected.begin() + static_cast<std::ptrdiff_t>(offset));
        EXPECT_TRUE(std::ranges::equal(run[1].arena(), expected));
        run[1].written.clear();
        run[0].done.clear();
    }
}

TEST_P(TransportConformance, AWriteMayEndWhereTheArenaEnds) {
    TestRun run(GetParam(), 2, {.arena = 10'000, .source = 10'000});
    fill_pattern(run[0].source(), 3);
    write(run, 0, {.to = 1, .bytes = run[0].source().first(100), .offset = 9'900, .immediate = 1});
    ASSERT_TRUE(run.poll_until([&] { return run[1].written.size() == 1; }));
    EXPECT_TRUE(has_pattern(run[1].arena().subspan(9'900), 3));
    EXPECT_TRUE(run[0].unreachable.empty());
}

TEST_P(TransportConformance, AWriteOutsideTheArenaMakesTheUnitUnreachableAndHurtsNobody) {
    for (const base::Bytes offset : {base::Bytes{9'901}, base::Bytes{1} << 40, base::Bytes{-1}}) {
        SCOPED_TRACE(offset);
        TestRun run(GetParam(), 3, {.arena = 10'000, .source = 10'000});
        EXPECT_TRUE(run[0].transport().write(
            {.to = 1, .bytes = run[0].source().first(100), .offset = offset, .context = 1}));
        ASSERT_TRUE(run.poll_until([&] { return !run[0].unreachable.empty(); }));
        run.settle();

        EXPECT_EQ(run[0].unreachable, std::vector<UnitIndex>{1});
        EXPECT_TRUE(run[0].done.empty());
        EXPECT_TRUE(run[1].written.empty());
        EXPECT_GE(run[0].transport().counters().refused_malformed, 1U);
        EXPECT_TRUE(
            std::ranges::all_of(run[1].arena(), [](std::byte b) { return b == std::byte{}; }));
        send(run, 0, 2, pattern(10, 1));
        ASSERT_TRUE(run.poll_until([&] { return run[2].messages.size() == 1; }));
    }
}

TEST_P(TransportConformance, WhatIsSentToAUnitThatIsUnreachableIsDropped) {
    TestRun run(GetParam(), 2, {.arena = 10'000, .source = 10'000});
    EXPECT_TRUE(
        run[0].transport().write({.to = 1, .bytes = run[0].source(), .offset = 1, .context = 1}));
    ASSERT_TRUE(run.poll_until([&] { return !run[0].unreachable.empty(); }));
    EXPECT_TRUE(run[0].transport().send(1, pattern(10, 1)));
    EXPECT_TRUE(run[0].transport().write({.to = 1, .bytes = run[0].source(), .context = 2}));
    run.settle();
    EXPECT_TRUE(run[0].done.empty());
    EXPECT_TRUE(run[1].messages.empty());
    EXPECT_EQ(run[0].unreachable.size(), 1U);
}

TEST_P(TransportConformance, ASenderIsHeldBackUntilTheOtherSideReads) {
    TestRun run(GetParam(), 2);
    const auto message = pattern(1000, 0);
    std::size_t sent = 0;
    while (run[0].transport().send(1, message)) {
        run[0].poll();
        ASSERT_LT(++sent, 200'000U) << "nothing holds the sender back";
    }
    EXPECT_TRUE(run[1].messages.empty());
    ASSERT_TRUE(run.poll_until([&] { return run[1].messages.size() == sent; }));
    send(run, 0, 1, message);
    ASSERT_TRUE(run.poll_until([&] { return run[1].messages.size() == sent + 1; }));
}

TEST_P(TransportConformance, EveryWriteOfManyIsDoneOnceAndToldOnce) {
    constexpr std::uint32_t kWrites = 5'000;
    constexpr std::size_t kBytes = 700;
    TestRun run(GetParam(), 3);
    fill_pattern(run[0].source(), 1);
    bool was_held_back = false;
    for (std::uint32_t i = 0; i < kWrites; ++i) {
        const std::size_t at = i % 1000 * kBytes;
        const Write one{.to = 1 + i % 2,
                        .bytes = run[0].source().subspan(at, kBytes),
                        .offset = static_cast<base::Bytes>(at),
                        .immediate = i,
                        .context = i};
        while (!run[0].transport().write(one)) {
            was_held_back = true;
            ASSERT_TRUE(run.poll_until([&] { return true; }));
            for (UnitIndex unit = 0; unit < 3; ++unit) {
                run[unit].poll();
            }
        }
    }
    const auto told = [&] { return run[1].written.size() + run[2].written.size(); };
    ASSERT_TRUE(run.poll_until([&] { return told() >= kWrites && run[0].done.size() >= kWrites; }));
    run.settle();

    EXPECT_TRUE(was_held_back);
    std::set<std::uint64_t> told_immediates;
    for (UnitIndex unit = 1; unit < 3; ++unit) {
        EXPECT_EQ(run[unit].written.size(), kWrites / 2);
        for (const auto& write : run[unit].written) {
            EXPECT_EQ(1 + write.immediate % 2, unit);
            told_immediates.insert(write.immediate);
        }
        EXPECT_EQ(run[unit].transport().counters().writes_received, kWrites / 2);
    }
    EXPECT_EQ(told_immediates.size(), kWrites);
    EXPECT_EQ(std::set(run[0].done.begin(), run[0].done.end()).size(), kWrites);
    EXPECT_EQ(run[0].done.size(), kWrites);
    EXPECT_EQ(run[0].transport().counters().writes, kWrites);
    EXPECT_EQ(run[0].transport().counters().written_bytes, base::Bytes{kWrites * kBytes});
    for (std::size_t i = 0; i < 1000; ++i) {
        const auto piece = run[0].source().subspan(i * kBytes, kBytes);
        EXPECT_TRUE(std::ranges::equal(run[1 + i % 2].arena().subspan(i * kBytes, kBytes), piece));
    }
}

TEST_P(TransportConformance, SendsAndWritesMayBeMadeFromWithinWhatATransportTells) {
    TestRun run(GetParam(), 2);
    constexpr std::uint32_t kRounds = 1000;
    std::uint32_t messages = 0;
    std::uint32_t writes = 0;
    const auto answer_message = [&](UnitIndex self) {
        run[self].at_message = [&, self](UnitIndex from, std::span<const std::byte> bytes) {
            if (++messages < kRounds) {
                EXPECT_TRUE(run[self].transport().send(from, bytes));
            }
        };
        run[self].at_written = [&, self](UnitIndex /*from*/, std::uint32_t immediate) {
            if (immediate < kRounds) {
                EXPECT_TRUE(run[self].transport().write({.to = 1 - self,
                                                         .bytes = run[self].source().first(10),
                                                         .immediate = immediate + 1}));
            }
        };
        run[self].at_done = [&, self](std::uint64_t context) {
            ++writes;
            if (context < kRounds && context != 0) {
                EXPECT_TRUE(run[self].transport().write({.to = 1 - self,
                                                         .bytes = run[self].source().first(5000),
                                                         .immediate = kRounds,
                                                         .context = context + 1}));
            }
        };
    };
    answer_message(0);
    answer_message(1);
    send(run, 0, 1, pattern(20, 1));
    write(run, 0, {.to = 1, .bytes = run[0].source().first(10), .immediate = 1});
    write(run, 0,
          {.to = 1, .bytes = run[0].source().first(10), .immediate = kRounds, .context = 1});
    // The chain of immediates 1 … kRounds, and the chain of contexts 1 … kRounds.
    EXPECT_TRUE(run.poll_until([&] { return messages == kRounds && writes == 2 * kRounds; }));
}

TEST_P(TransportConformance, AUnitReachesItself) {
    TestRun run(GetParam(), 2);
    fill_pattern(run[1].source(), 4);
    send(run, 1, 1, pattern(100, 9));
    write(run, 1, {.to = 1, .bytes = run[1].source(), .offset = 0, .immediate = 77, .context = 78});
    ASSERT_TRUE(run.poll_until([&] {
        return !run[1].messages.empty() && !run[1].written.empty() && !run[1].done.empty();
    }));
    EXPECT_EQ(run[1].messages[0].from, 1U);
    EXPECT_TRUE(has_pattern(run[1].messages[0].bytes, 9));
    EXPECT_EQ(run[1].written[0].from, 1U);
    EXPECT_EQ(run[1].written[0].immediate, 77U);
    EXPECT_EQ(run[1].done[0], 78U);
    EXPECT_TRUE(has_pattern(run[1].arena(), 4));
    EXPECT_TRUE(run[0].messages.empty());
}

TEST_P(TransportConformance, ARunOfOneUnitConnectsToNobody) {
    TestRun run(GetParam(), 1);
    send(run, 0, 0, pattern(10, 1));
    EXPECT_TRUE(run.poll_until([&] { return run[0].messages.size() == 1; }));
}

/// Two units of a run and a third one that is not as they are: all three connect.
struct WithAnOddOne {
    std::unique_ptr<TestUnit> unit[3];
    std::vector<std::vector<UnitIndex>> missing;

    WithAnOddOne(const TransportUnderTest& transport, const TestUnit::Options& odd) {
        unit[0] = std::make_unique<TestUnit>(transport, 0, 3);
        unit[1] = std::make_unique<TestUnit>(transport, 1, 3);
        unit[2] = std::make_unique<TestUnit>(transport, 2, 3, odd);
        TestUnit* all[] = {unit[0].get(), unit[1].get(), unit[2].get()};
        missing = connect_all(all, now() + base::seconds(2));
    }

    void expect_that_the_two_go_on() const {
        EXPECT_EQ(missing[0], std::vector<UnitIndex>{2});
        EXPECT_EQ(missing[1], std::vector<UnitIndex>{2});
        EXPECT_EQ(missing[2].size(), 2U);
        while (!unit[0]->transport().send(1, pattern(10, 1))) {
            unit[0]->poll();
        }
        for (const auto deadline = test_deadline(); unit[1]->messages.empty();) {
            ASSERT_LT(now(), deadline);
            for (const auto& each : unit) {
                each->poll();
            }
        }
        EXPECT_EQ(unit[1]->messages[0].from, 0U);
        EXPECT_TRUE(unit[2]->messages.empty());
    }
    /// By that unit; polls all until it is above 0.
    [[nodiscard]] std::uint64_t refused(int i, Counter TransportCounters::*why) const {
        const auto& counters = unit[i]->transport().counters();
        for (const auto deadline = test_deadline(); counters.*why == 0 && now() < deadline;) {
            for (const auto& each : unit) {
                each->poll();
            }
        }
        return counters.*why;
    }
};

TEST_P(TransportConformance, AUnitThatDoesNotKnowTheTokenIsRefusedAndCounted) {
    const WithAnOddOne run(GetParam(), {.token = {std::byte{8}}});
    run.expect_that_the_two_go_on();
    EXPECT_GE(run.refused(0, &TransportCounters::refused_strangers), 1U);
    EXPECT_GE(run.refused(1, &TransportCounters::refused_strangers), 1U);
}

TEST_P(TransportConformance, AUnitOfAnotherEpochIsRefusedAndCounted) {
    const WithAnOddOne run(GetParam(), {.epoch = 2});
    run.expect_that_the_two_go_on();
    EXPECT_GE(run.refused(0, &TransportCounters::refused_epoch), 1U);
    EXPECT_GE(run.refused(1, &TransportCounters::refused_epoch), 1U);
    EXPECT_GE(run.refused(2, &TransportCounters::refused_epoch), 1U);
}

TEST_P(TransportConformance, AUnitThatDoesNotConnectIsReturnedAtTheDeadline) {
    TestUnit a(GetParam(), 0, 3);
    TestUnit b(GetParam(), 1, 3);
    const TestUnit silent(GetParam(), 2, 3);
    const auto silent_address = const_cast<TestUnit&>(silent).transport().address();
    std::vector<UnitIndex> missing[2];
    const auto until = now() + base::seconds(1);
    const auto connect = [&](TestUnit& self, TestUnit& other, UnitIndex other_index,
                             std::vector<UnitIndex>& answer) {
        const Transport::Peer peers[] = {{other_index, other.transport().address()},
                                         {2, silent_address}};
        answer = self.transport().connect(peers, until).value();
    };
    std::thread thread([&] { connect(a, b, 1, missing[0]); });
    connect(b, a, 0, missing[1]);
    thread.join();
    EXPECT_EQ(missing[0], std::vector<UnitIndex>{2});
    EXPECT_EQ(missing[1], std::vector<UnitIndex>{2});
    EXPECT_TRUE(a.transport().send(1, pattern(10, 1)));
    for (const auto deadline = test_deadline(); b.messages.empty();) {
        ASSERT_LT(now(), deadline);
        a.poll();
        b.poll();
    }
}

TEST_P(TransportConformance, AnAddressThatMakesNoSenseIsAUnitThatDoesNotAnswer) {
    TestUnit a(GetParam(), 0, 4);
    const Transport::Peer peers[] = {{1, pattern(1024, 1)}, {2, {}}, {3, pattern(20, 2)}};
    const auto missing = a.transport().connect(peers, now() + base::milliseconds(100));
    EXPECT_EQ(missing.value(), (std::vector<UnitIndex>{1, 2, 3}));
}

TEST_P(TransportConformance, ASecondUnitOfTheSameNumberIsRefusedAndCounted) {
    TestUnit a(GetParam(), 0, 2);
    TestUnit b(GetParam(), 1, 2);
    TestUnit impostor(GetParam(), 1, 2);
    const auto until = now() + base::seconds(2);
    const auto connect = [until](TestUnit& self, UnitIndex other, TestUnit& to) {
        const Transport::Peer peers[] = {{other, to.transport().address()}};
        return self.transport().connect(peers, until).value();
    };
    std::vector<UnitIndex> missing[3];
    std::atomic<bool> has_tried = false;
    std::thread threads[] = {std::thread([&] {
                                 missing[0] = connect(a, 1, b);
                                 while (!has_tried) {  // a network's unit hears only what it polls
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
    // Whose address the run control gave is let in.
    EXPECT_TRUE(missing[0].empty());
    EXPECT_TRUE(missing[1].empty());
    EXPECT_EQ(missing[2], std::vector<UnitIndex>{0});
    for (const auto deadline = test_deadline();
         a.transport().counters().refused_malformed + a.transport().counters().refused_strangers ==
         0;) {
        ASSERT_LT(now(), deadline);
        a.poll();
    }
    ASSERT_TRUE(a.transport().send(1, pattern(10, 1)));
    for (const auto deadline = test_deadline(); b.messages.empty();) {
        ASSERT_LT(now(), deadline);
        a.poll();
        b.poll();
        impostor.poll();
    }
    EXPECT_TRUE(impostor.messages.empty());
}

TEST_P(TransportConformance, AStrangersGarbageIsRefusedAndCountedAndHurtsNobody) {
    std::vector<std::unique_ptr<TestUnit>> units;
    std::vector<TestUnit*> all;
    for (UnitIndex i = 0; i < 3; ++i) {
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
    for (UnitIndex from = 0; from < 3; ++from) {
        for (UnitIndex to = 0; to < 3; ++to) {
            ASSERT_TRUE(all[from]->transport().send(to, pattern(100, from)));
        }
    }
    const auto deadline = test_deadline();
    const auto refused = [&] {
        const auto& counters = all[0]->transport().counters();
        return counters.refused_strangers + counters.refused_malformed;
    };
    while (all[0]->messages.size() < 3 || all[1]->messages.size() < 3 ||
           all[2]->messages.size() < 3 || refused() < 8) {
        ASSERT_LT(now(), deadline) << refused() << " refused";
        for (TestUnit* unit : all) {
            unit->poll();
        }
    }
    for (TestUnit* unit : all) {
        EXPECT_TRUE(unit->unreachable.empty());
        for (const auto& message : unit->messages) {
            EXPECT_TRUE(has_pattern(message.bytes, message.from));
        }
    }
}

TEST_P(TransportConformance, AUnitThatIsClosedIsToldOfOnceAfterAllThatItSaid) {
    if (!GetParam().tells_of_death) {
        GTEST_SKIP() << "left to the units' own deadlines";
    }
    TestRun run(GetParam(), 3);
    ASSERT_TRUE(run[1].transport().send(0, pattern(10, 1)));
    run[1].close();
    const auto deadline = test_deadline();
    while (run[0].unreachable.empty() || run[2].unreachable.empty()) {
        ASSERT_LT(now(), deadline);
        for (const UnitIndex i : {0U, 2U}) {
            run[i].poll();
            run[i].transport().wait(now() + base::milliseconds(50));
        }
    }
    EXPECT_EQ(run[0].messages.size(), 1U);
    ASSERT_TRUE(run[0].transport().send(2, pattern(10, 1)));
    while (run[2].messages.empty()) {
        ASSERT_LT(now(), deadline);
        run[0].poll();
        run[2].poll();
    }
    EXPECT_EQ(run[0].unreachable, std::vector<UnitIndex>{1});
    EXPECT_EQ(run[2].unreachable, std::vector<UnitIndex>{1});
}

#ifndef DAQLOOM_UNCOUNTED_ALLOCATIONS
TEST_P(TransportConformance, NothingIsAllocatedPerMessageOrWrite) {
    TestRun run(GetParam(), 2);
    for (UnitIndex unit = 0; unit < 2; ++unit) {
        run[unit].keeps = false;
    }
    std::uint64_t messages = 0;
    std::uint64_t writes = 0;
    run[1].at_message = [&](UnitIndex, std::span<const std::byte>) { ++messages; };
    run[1].at_written = [&](UnitIndex, std::uint32_t) { ++writes; };
    const auto message = pattern(500, 1);
    std::uint64_t sent_messages = 0;
    std::uint64_t sent_writes = 0;
    const auto exchange = [&](std::uint64_t count) {
        const std::uint64_t goal = sent_messages + count;
        while (messages < goal || writes < goal) {
            if (sent_messages < goal && run[0].transport().send(1, message)) {
                ++sent_messages;
            }
            if (sent_writes < goal &&
                run[0].transport().write({.to = 1, .bytes = run[0].source().first(10'000)})) {
                ++sent_writes;
            }
            run[0].poll();
            run[1].poll();
            run[1].transport().wait(now());
        }
    };
    exchange(2000);
    const std::uint64_t before = allocations;
    exchange(5000);
    EXPECT_EQ(allocations, before);
}
#endif

// ---- Waiting

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
        const auto deadline = test_deadline();
        std::atomic<std::size_t> rung = 0;
        std::atomic<std::size_t> heard = 0;
        std::atomic<bool> is_over = false;
        const auto wait_until = [&](TestUnit& unit, const std::function<bool()>& is_so) {
            while (!is_so() && now() < deadline) {
                if (!unit.poll()) {
                    unit.transport().wait(deadline);
                }
            }
        };
        // 0 sends, 1 writes, 0 sends, … : each can go on only when it is woken.
        std::thread writer([&] {
            for (std::size_t i = 0; i < kRounds; ++i) {
                wait_until(run[1], [&] { return run[1].messages.size() == i + 1; });
                EXPECT_TRUE(run[1].transport().write(
                    {.to = 0, .bytes = run[1].source().first(5000), .context = i}));
                wait_until(run[1], [&] { return run[1].done.size() == i + 1; });
            }
            for (std::size_t i = 0; i < kRounds; ++i) {
                wait_until(run[1], [&] { return rung > i; });
                heard = i + 1;
                run[0].doorbell().ring();
            }
            while (!is_over) {
                run[1].poll();  // a network's last bytes
                std::this_thread::yield();
            }
        });
        for (std::size_t i = 0; i < kRounds; ++i) {
            EXPECT_TRUE(run[0].transport().send(1, pattern(10, i)));
            wait_until(run[0], [&] { return run[0].written.size() == i + 1; });
        }
        for (std::size_t i = 0; i < kRounds; ++i) {
            rung = i + 1;
            run[1].doorbell().ring();
            wait_until(run[0], [&] { return heard > i; });
        }
        is_over = true;
        writer.join();
        EXPECT_EQ(run[0].written.size(), kRounds);
        EXPECT_EQ(heard, kRounds);
        EXPECT_LT(now(), deadline) << "somebody was not woken";
    }
}

TEST_P(TransportConformance, ASenderThatIsHeldBackIsWokenWhenThereIsRoom) {
    TestRun run(GetParam(), 2);
    constexpr std::size_t kMessages = 20'000;
    const auto deadline = test_deadline();
    std::thread reader([&] {
        while (run[1].messages.size() < kMessages && now() < deadline) {
            if (!run[1].poll()) {
                run[1].transport().wait(deadline);
            }
        }
    });
    const auto message = pattern(1000, 1);
    for (std::size_t i = 0; i < kMessages && now() < deadline;) {
        if (run[0].transport().send(1, message)) {
            ++i;
        } else if (!run[0].poll()) {
            run[0].transport().wait(deadline);
        }
    }
    run[0].transport().wait(now());  // whoever is owed a ring gets it
    reader.join();
    EXPECT_EQ(run[1].messages.size(), kMessages);
    EXPECT_LT(now(), deadline) << "somebody was not woken";
}

TEST_P(TransportConformance, UnitsInThreadsOfTheirOwnExchangeAllWithAll) {
    constexpr std::uint32_t kUnits = 4;
    const std::uint32_t rounds_each = GetParam().rounds;
    constexpr std::size_t kBytes = 20'000;
    TestRun run(GetParam(), kUnits);
    std::atomic<std::uint32_t> finished = 0;
    const auto work = [&](UnitIndex self) {
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
            for (UnitIndex to = 0; to < kUnits; ++to) {
                // One message and one write a round, each to a place of its own.
                if (rounds[to] < rounds_each &&
                    unit.transport().write({.to = to,
                                            .bytes = unit.source().first(kBytes),
                                            .offset = static_cast<base::Bytes>(self * kBytes),
                                            .immediate = rounds[to]})) {
                    while (!unit.transport().send(to, as_message(rounds[to])) && now() < deadline) {
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
                for (UnitIndex other = 0; other < kUnits; ++other) {
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
    for (UnitIndex self = 0; self < kUnits; ++self) {
        threads.emplace_back(work, self);
    }
    for (auto& thread : threads) {
        thread.join();
    }
    for (UnitIndex to = 0; to < kUnits; ++to) {
        std::uint32_t next[kUnits] = {};
        ASSERT_EQ(run[to].messages.size(), rounds_each * kUnits);
        for (const auto& message : run[to].messages) {
            std::uint32_t round = 0;
            ASSERT_EQ(message.bytes.size(), sizeof round);
            std::memcpy(&round, message.bytes.data(), sizeof round);
            EXPECT_EQ(round, next[message.from]++);
        }
        for (UnitIndex from = 0; from < kUnits; ++from) {
            EXPECT_TRUE(has_pattern(run[to].arena().subspan(from * kBytes, kBytes), from));
        }
    }
}

// ---- Processes

/// A process of its own, made before this one has any transport, and the way to talk to it.
class Child {
  public:
    /// The other end, in the process.
    class Parent {
      public:
        explicit Parent(int fd) : fd_(fd) {}
        void tell(std::span<const std::byte> bytes) const {
            if (::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) {
                ::_exit(3);
            }
        }
        [[nodiscard]] std::vector<std::byte> hear() const {
            pollfd watched{fd_, POLLIN, 0};
            std::vector<std::byte> bytes(4096);
            if (::poll(&watched, 1, 60'000) <= 0) {
                return {};
            }
            const auto length = ::recv(fd_, bytes.data(), bytes.size(), 0);
            bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
            return bytes;
        }

        [[nodiscard]] bool has_said_something() const {
            pollfd watched{fd_, POLLIN, 0};
            return ::poll(&watched, 1, 0) > 0;
        }

      private:
        int fd_;
    };

    explicit Child(const std::function<void(const Parent&)>& body) {
        int ends[2];
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
            throw std::runtime_error("no sockets");
        }
        pid_ = ::fork();
        if (pid_ == 0) {
            ::close(ends[0]);
            body(Parent(ends[1]));
            ::_exit(0);
        }
        ::close(ends[1]);
        end_ = OwnedFd(ends[0]);
    }
    ~Child() { kill(); }
    Child(const Child&) = delete;

    [[nodiscard]] Parent end() const { return Parent(end_.get()); }
    void kill() {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
            pid_ = 0;
        }
    }
    void stop() const {
        ::kill(pid_, SIGSTOP);
        int status = 0;
        ::waitpid(pid_, &status, WUNTRACED);
    }
    void go_on() const { ::kill(pid_, SIGCONT); }

  private:
    OwnedFd end_;
    pid_t pid_ = 0;
};

/// In a child: a unit that connects when it has heard the addresses of all units, in their order.
std::unique_ptr<TestUnit> join_run(const Child::Parent& parent, const TransportUnderTest& transport,
                                   UnitIndex self, std::uint32_t units,
                                   const TestUnit::Options& options = {}) {
    auto unit = std::make_unique<TestUnit>(transport, self, units, options);
    parent.tell(unit->transport().address());
    std::vector<Transport::Peer> peers;
    for (UnitIndex other = 0; other < units; ++other) {
        auto address = parent.hear();
        if (other != self) {
            peers.push_back({other, std::move(address)});
        }
    }
    if (!unit->transport().connect(peers, test_deadline()).value().empty()) {
        ::_exit(4);
    }
    return unit;
}

/// Here: unit 0, whose peers 1, 2, … are the children.
std::unique_ptr<TestUnit> join_children(const TransportUnderTest& transport,
                                        std::span<Child* const> children,
                                        const TestUnit::Options& options = {}) {
    const auto units = static_cast<std::uint32_t>(children.size() + 1);
    auto unit = std::make_unique<TestUnit>(transport, 0, units, options);
    std::vector<Transport::Peer> peers;
    for (UnitIndex i = 0; i < children.size(); ++i) {
        peers.push_back({i + 1, children[i]->end().hear()});
    }
    for (const Child* child : children) {
        child->end().tell(unit->transport().address());
        for (const auto& peer : peers) {
            child->end().tell(peer.address);
        }
    }
    EXPECT_TRUE(unit->transport().connect(peers, test_deadline()).value().empty());
    return unit;
}

/// Sends back what it is sent, until it is killed.
void echo(TestUnit& unit) {
    unit.at_message = [&](UnitIndex from, std::span<const std::byte> bytes) {
        static_cast<void>(unit.transport().send(from, bytes));
    };
    unit.keeps = false;
    for (const auto deadline = test_deadline(); now() < deadline;) {
        if (!unit.poll()) {
            unit.transport().wait(deadline);
        }
    }
}

TEST_P(TransportConformance, AKilledUnitIsToldOfAndTheRestGoesOn) {
    const auto& transport = GetParam();
    Child one([&](const Child::Parent& parent) { echo(*join_run(parent, transport, 1, 3)); });
    Child two([&](const Child::Parent& parent) { echo(*join_run(parent, transport, 2, 3)); });
    Child* children[] = {&one, &two};
    const auto unit = join_children(transport, children);
    const auto deadline = test_deadline();
    const auto echo_of = [&](UnitIndex from) {
        const std::size_t before = unit->messages.size();
        while (!unit->transport().send(from, pattern(100, before)) && now() < deadline) {
            unit->poll();
        }
        while (unit->messages.size() == before && now() < deadline) {
            if (!unit->poll()) {
                unit->transport().wait(deadline);
            }
        }
        return unit->messages.size() == before + 1 && unit->messages[before].from == from &&
               has_pattern(unit->messages[before].bytes, before);
    };
    EXPECT_TRUE(echo_of(1));
    EXPECT_TRUE(echo_of(2));
    EXPECT_TRUE(unit->transport().write(
        {.to = 1, .bytes = unit->source(), .offset = 0, .immediate = 1, .context = 1}));
    unit->poll();
    one.kill();

    for (int i = 0; i < 1000; ++i) {
        static_cast<void>(unit->transport().send(1, pattern(1000, 1)));
        static_cast<void>(unit->transport().write({.to = 1, .bytes = unit->source().first(1000)}));
        unit->poll();
    }
    EXPECT_TRUE(echo_of(2));
    while (transport.tells_of_death && unit->unreachable.empty() && now() < deadline) {
        unit->poll();
        unit->transport().wait(now() + base::milliseconds(10));
    }
    EXPECT_TRUE(echo_of(2));
    EXPECT_LE(unit->unreachable.size(), 1U);
    EXPECT_TRUE(!transport.tells_of_death || unit->unreachable == std::vector<UnitIndex>{1});
    EXPECT_LT(now(), deadline);
}

TEST_P(TransportConformance, AUnitStoppedInsideACopyDoesNotTouchTheNextEpoch) {
    const auto& transport = GetParam();
    const TestUnit::Options first{.arena = 8 << 20, .source = 8 << 20, .epoch = 1};
    const TestUnit::Options second{.arena = 8 << 20, .source = 8 << 20, .epoch = 2};
    // Writes its whole source again and again; when it was stopped and goes on, for some more.
    Child stopped([&](const Child::Parent& parent) {
        const auto unit = join_run(parent, transport, 1, 2, first);
        fill_pattern(unit->source(), 1);
        std::uint64_t polls_after = 0;
        bool was_told = false;
        while (polls_after < 20'000 && unit->unreachable.empty()) {
            static_cast<void>(unit->transport().write({.to = 0, .bytes = unit->source()}));
            static_cast<void>(unit->transport().send(0, pattern(10, 1)));
            unit->poll();
            unit->messages.clear();
            unit->done.clear();
            was_told = was_told || parent.has_said_something();
            polls_after += was_told ? 1 : 0;
        }
        parent.tell(parent.hear());
    });
    Child next([&](const Child::Parent& parent) {
        const auto unit = join_run(parent, transport, 1, 2, second);
        fill_pattern(unit->source(), 2);
        while (!unit->transport().write({.to = 0, .bytes = unit->source(), .immediate = 2})) {
            unit->poll();
        }
        echo(*unit);
    });
    const auto deadline = test_deadline();
    Child* first_children[] = {&stopped};
    auto old = join_children(transport, first_children, first);
    while (old->written.size() < 3 && now() < deadline) {
        old->poll();
    }
    stopped.stop();
    old.reset();

    Child* second_children[] = {&next};
    const auto unit = join_children(transport, second_children, second);
    while (unit->written.empty() && now() < deadline) {
        unit->poll();
    }
    EXPECT_TRUE(has_pattern(unit->arena(), 2));
    stopped.end().tell(pattern(1, 0));
    stopped.go_on();
    EXPECT_EQ(stopped.end().hear().size(), 1U) << "it did not go on";

    for (int i = 0; i < 1000; ++i) {
        unit->poll();
    }
    EXPECT_TRUE(has_pattern(unit->arena(), 2));
    ASSERT_EQ(unit->written.size(), 1U);
    EXPECT_EQ(unit->written[0].immediate, 2U);
    EXPECT_TRUE(unit->messages.empty());
    EXPECT_TRUE(unit->unreachable.empty());
}

}  // namespace
}  // namespace daqloom::live
