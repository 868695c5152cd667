#include "live/transport/conformance_test.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <set>
#include <thread>

#include "base/expected_test.hpp"
#include "base/random.hpp"
#include "live/memory/clock.hpp"

// The thread sanitizer has its own operators new and delete, so allocations cannot be counted.
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

void* count_and_allocate(std::size_t bytes) noexcept {
    ++allocations;
    return std::malloc(std::max<std::size_t>(bytes, 1));
}

void* count_and_allocate_or_throw(std::size_t bytes) {
    if (void* block = count_and_allocate(bytes)) {
        return block;
    }
    throw std::bad_alloc();
}

}  // namespace

/// All forms, because a block of a form that is missing here would be freed by one that is not.
void* operator new(std::size_t bytes) { return count_and_allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return count_and_allocate_or_throw(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
    return count_and_allocate(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
    return count_and_allocate(bytes);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t /*bytes*/) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t /*bytes*/) noexcept { std::free(block); }
#endif

namespace daqloom::live {

std::uint64_t allocations_here() {
#ifndef DAQLOOM_UNCOUNTED_ALLOCATIONS
    return allocations;
#else
    return 0;
#endif
}

base::Time test_deadline() { return now() + base::seconds(60); }

namespace {

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

TestUnit::TestUnit(const TransportUnderTest& transport, std::uint32_t self, std::uint32_t units,
                   const Options& options)
    : arena_(base::value_of(SharedMemory::create("test-arena", options.arena))),
      source_(base::value_of(SharedMemory::create("test-source", options.source))),
      doorbell_(base::value_of(Doorbell::create())),
      transport_(base::value_of(transport.make({.self = UnitIndex(self),
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
    for (std::uint32_t i = 0; i < units.size(); ++i) {
        peers.push_back({UnitIndex(i), units[i]->transport().address()});
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
    for (std::uint32_t i = 0; i < units; ++i) {
        units_.push_back(std::make_unique<TestUnit>(transport, i, units, options));
    }
    for (const auto& missing : connect_all(all(), test_deadline())) {
        EXPECT_TRUE(missing.empty());
    }
}

bool poll_until(std::span<TestUnit* const> units, const std::function<bool()>& is_so) {
    for (const auto deadline = test_deadline(); !is_so();) {
        if (now() > deadline) {
            return false;
        }
        for (TestUnit* const unit : units) {
            unit->poll();
        }
    }
    return true;
}

bool run_until(TestUnit& unit, const std::function<bool()>& is_so) {
    for (const auto deadline = test_deadline(); !is_so();) {
        if (now() > deadline) {
            return false;
        }
        if (!unit.poll()) {
            unit.transport().wait(deadline);
        }
    }
    return true;
}

void TestRun::settle() {
    // Requires a number of quiet turns, because a network may still deliver bytes.
    for (int quiet = 0; quiet < 100;) {
        bool something = false;
        for (const auto& unit : units_) {
            something |= unit->poll();
        }
        quiet = something ? 0 : quiet + 1;
    }
}

std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed) {
    std::vector<std::byte> made(bytes);
    fill_pattern(made, seed);
    return made;
}

void send(TestRun& run, std::uint32_t from, std::uint32_t to, std::span<const std::byte> bytes) {
    ASSERT_TRUE(run.poll_until([&] { return run[from].transport().send(UnitIndex(to), bytes); }));
}

void write(TestRun& run, std::uint32_t from, const Write& write) {
    ASSERT_TRUE(run.poll_until([&] { return run[from].transport().write(write); }));
}

namespace {

TEST_P(TransportConformance, MessagesArriveOnceAndInOrderFromEachToEach) {
    constexpr std::uint32_t kUnits = 4;
    constexpr std::uint64_t kMessages = 300;
    TestRun run(GetParam(), kUnits);
    base::RandomStream random(1, "messages");

    for (std::uint64_t i = 0; i < kMessages; ++i) {
        for (std::uint32_t from = 0; from < kUnits; ++from) {
            for (std::uint32_t to = 0; to < kUnits; ++to) {
                send(run, from, to, pattern(random.uniform_int(1000), 1000 * i + 10 * from + to));
            }
        }
    }
    for (std::uint32_t to = 0; to < kUnits; ++to) {
        ASSERT_TRUE(run.poll_until([&] { return run[to].messages.size() >= kMessages * kUnits; }));
    }
    run.settle();

    for (std::uint32_t to = 0; to < kUnits; ++to) {
        ASSERT_EQ(run[to].messages.size(), kMessages * kUnits);
        std::array<std::uint64_t, kUnits> next{};
        for (const auto& message : run[to].messages) {
            const std::uint64_t i = next.at(message.from.value())++;
            EXPECT_TRUE(has_pattern(message.bytes, 1000 * i + 10 * message.from.value() + to));
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
    EXPECT_FALSE(run[0].transport().send(UnitIndex(1), pattern(Transport::most_message + 1, 0)));
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
              {.to = UnitIndex(1),
               .bytes = bytes,
               .offset = static_cast<base::Bytes>(offset),
               .immediate = static_cast<std::uint32_t>(size) ^ 0xf0f0f0f0,
               .context = size});
        ASSERT_TRUE(
            run.poll_until([&] { return run[1].written.size() == 1 && run[0].done.size() == 1; }));

        const UnitIndex from = run[1].written[0].from;
        EXPECT_TRUE(from == UnitIndex(0) || from == UnitIndex::none());
        EXPECT_EQ(run[1].written[0].immediate, static_cast<std::uint32_t>(size) ^ 0xf0f0f0f0);
        EXPECT_EQ(run[0].done[0], size);
        auto expected = pattern(run[1].arena().size(), 5);
        std::ranges::copy(bytes, expected.begin() + static_cast<std::ptrdiff_t>(offset));
        EXPECT_TRUE(std::ranges::equal(run[1].arena(), expected));
        run[1].written.clear();
        run[0].done.clear();
    }
}

/// Over TCP, a socket takes megabytes before the other side has read a byte.
TEST_P(TransportConformance, AWriteThatIsDoneIsInTheOthersMemory) {
    constexpr std::size_t kSize = 1'000'000;
    TestRun run(GetParam(), 2, {.arena = 2 << 20, .source = 2 << 20});
    for (std::uint64_t turn = 0; turn < 10; ++turn) {
        fill_pattern(run[1].arena(), 1);
        const auto bytes = run[0].source().first(kSize);
        fill_pattern(bytes, 2 + turn);
        write(run, 0, {.to = UnitIndex(1), .bytes = bytes, .immediate = 1, .context = turn});
        ASSERT_TRUE(run.poll_until([&] { return run[0].done.size() == 1; }));
        ASSERT_TRUE(std::ranges::equal(run[1].arena().first(kSize), bytes)) << turn;
        ASSERT_TRUE(run.poll_until([&] { return run[1].written.size() == 1; }));
        run[1].written.clear();
        run[0].done.clear();
    }
}

/// Unit 0 begins to write all of its source to unit 1, sends unit 1 a message, and is not polled
/// any more. The part of the write that the connection cannot hold stays at unit 0. Then unit 0 is
/// gone, while much of what it sent is still unread.
TEST_P(TransportConformance, AMessageDoesNotWaitBehindAWriteNorAUnitThatClosesForOneToIt) {
    constexpr base::Bytes kSize = 64 << 20;
    if (!GetParam().crash_in_write.empty()) {
        GTEST_SKIP() << GetParam().crash_in_write;
    }
    TestRun run(GetParam(), 2, {.arena = kSize, .source = kSize});
    EXPECT_TRUE(run[0].transport().write(
        {.to = UnitIndex(1), .bytes = run[0].source(), .immediate = 1, .context = 1}));
    EXPECT_TRUE(run[0].transport().send(UnitIndex(1), as_message(5)));
    TestUnit* const receiver[] = {&run[1]};
    EXPECT_TRUE(poll_until(receiver, [&] { return run[1].messages.size() == 1; }));
    run[0].poll();
    run[0].close();
    run[1].close();
}

TEST_P(TransportConformance, AWriteMayEndWhereTheArenaEnds) {
    TestRun run(GetParam(), 2, {.arena = 10'000, .source = 10'000});
    fill_pattern(run[0].source(), 3);
    write(
        run, 0,
        {.to = UnitIndex(1), .bytes = run[0].source().first(100), .offset = 9'900, .immediate = 1});
    ASSERT_TRUE(run.poll_until([&] { return run[1].written.size() == 1; }));
    EXPECT_TRUE(has_pattern(run[1].arena().subspan(9'900), 3));
    EXPECT_TRUE(run[0].unreachable.empty());
}

TEST_P(TransportConformance, AWriteOutsideTheArenaMakesOnlyItsUnitUnreachable) {
    for (const base::Bytes offset : {base::Bytes{9'901}, base::Bytes{1} << 40, base::Bytes{-1}}) {
        SCOPED_TRACE(offset);
        TestRun run(GetParam(), 3, {.arena = 10'000, .source = 10'000});
        EXPECT_TRUE(run[0].transport().write({.to = UnitIndex(1),
                                              .bytes = run[0].source().first(100),
                                              .offset = offset,
                                              .context = 1}));
        ASSERT_TRUE(run.poll_until([&] { return !run[0].unreachable.empty(); }));
        run.settle();

        EXPECT_EQ(run[0].unreachable, Units{1});
        EXPECT_TRUE(run[0].done.empty());
        EXPECT_TRUE(run[1].written.empty());
        EXPECT_GE(run[0].transport().counters().refused_malformed, 1U);
        EXPECT_TRUE(
            std::ranges::all_of(run[1].arena(), [](std::byte b) { return b == std::byte{}; }));
        send(run, 0, 2, pattern(10, 1));
        ASSERT_TRUE(run.poll_until([&] { return run[2].messages.size() == 1; }));
    }
}

TEST_P(TransportConformance, MessagesToAnUnreachableUnitAreDropped) {
    TestRun run(GetParam(), 2, {.arena = 10'000, .source = 10'000});
    EXPECT_TRUE(run[0].transport().write(
        {.to = UnitIndex(1), .bytes = run[0].source(), .offset = 1, .context = 1}));
    ASSERT_TRUE(run.poll_until([&] { return !run[0].unreachable.empty(); }));
    EXPECT_TRUE(run[0].transport().send(UnitIndex(1), pattern(10, 1)));
    EXPECT_TRUE(
        run[0].transport().write({.to = UnitIndex(1), .bytes = run[0].source(), .context = 2}));
    run.settle();
    EXPECT_TRUE(run[0].done.empty());
    EXPECT_TRUE(run[1].messages.empty());
    EXPECT_EQ(run[0].unreachable.size(), 1U);
}

TEST_P(TransportConformance, ASenderIsHeldBackUntilTheOtherSideReads) {
    TestRun run(GetParam(), 2);
    const auto message = pattern(1000, 0);
    std::size_t sent = 0;
    while (run[0].transport().send(UnitIndex(1), message)) {
        run[0].poll();
        ASSERT_LT(++sent, 200'000U) << "nothing holds the sender back";
    }
    EXPECT_TRUE(run[1].messages.empty());
    ASSERT_TRUE(run.poll_until([&] { return run[1].messages.size() == sent; }));
    send(run, 0, 1, message);
    ASSERT_TRUE(run.poll_until([&] { return run[1].messages.size() == sent + 1; }));
}

TEST_P(TransportConformance, EveryWriteOfManyIsDoneOnceAndReportedOnce) {
    constexpr std::uint32_t kWrites = 5'000;
    constexpr std::size_t kBytes = 700;
    TestRun run(GetParam(), 3);
    fill_pattern(run[0].source(), 1);
    bool was_held_back = false;
    for (std::uint32_t i = 0; i < kWrites; ++i) {
        const std::size_t at = i % 1000 * kBytes;
        const Write one{.to = UnitIndex(1 + i % 2),
                        .bytes = run[0].source().subspan(at, kBytes),
                        .offset = static_cast<base::Bytes>(at),
                        .immediate = i,
                        .context = i};
        if (!run[0].transport().write(one)) {
            was_held_back = true;
            write(run, 0, one);
        }
    }
    const auto written = [&] { return run[1].written.size() + run[2].written.size(); };
    ASSERT_TRUE(
        run.poll_until([&] { return written() >= kWrites && run[0].done.size() >= kWrites; }));
    run.settle();

    EXPECT_TRUE(was_held_back);
    std::set<std::uint64_t> immediates;
    for (std::uint32_t unit = 1; unit < 3; ++unit) {
        EXPECT_EQ(run[unit].written.size(), kWrites / 2);
        for (const auto& write : run[unit].written) {
            EXPECT_EQ(1 + write.immediate % 2, unit);
            immediates.insert(write.immediate);
        }
        EXPECT_EQ(run[unit].transport().counters().writes_received, kWrites / 2);
    }
    EXPECT_EQ(immediates.size(), kWrites);
    EXPECT_EQ(std::set(run[0].done.begin(), run[0].done.end()).size(), kWrites);
    EXPECT_EQ(run[0].done.size(), kWrites);
    EXPECT_EQ(run[0].transport().counters().writes, kWrites);
    EXPECT_EQ(run[0].transport().counters().written_bytes, base::Bytes{kWrites * kBytes});
    for (std::size_t i = 0; i < 1000; ++i) {
        const auto piece = run[0].source().subspan(i * kBytes, kBytes);
        EXPECT_TRUE(std::ranges::equal(run[1 + i % 2].arena().subspan(i * kBytes, kBytes), piece));
    }
}

TEST_P(TransportConformance, SendsAndWritesMayBeMadeFromWithinATransportsEvents) {
    TestRun run(GetParam(), 2);
    constexpr std::uint32_t kRounds = 1000;
    std::uint32_t messages = 0;
    std::uint32_t writes = 0;
    const auto answer_message = [&](std::uint32_t self) {
        run[self].at_message = [&, self](UnitIndex from, std::span<const std::byte> bytes) {
            if (++messages < kRounds) {
                EXPECT_TRUE(run[self].transport().send(from, bytes));
            }
        };
        run[self].at_written = [&, self](UnitIndex /*from*/, std::uint32_t immediate) {
            if (immediate < kRounds) {
                EXPECT_TRUE(run[self].transport().write({.to = UnitIndex(1 - self),
                                                         .bytes = run[self].source().first(10),
                                                         .immediate = immediate + 1}));
            }
        };
        run[self].at_done = [&, self](std::uint64_t context) {
            ++writes;
            if (context < kRounds && context != 0) {
                EXPECT_TRUE(run[self].transport().write({.to = UnitIndex(1 - self),
                                                         .bytes = run[self].source().first(5000),
                                                         .immediate = kRounds,
                                                         .context = context + 1}));
            }
        };
    };
    answer_message(0);
    answer_message(1);
    send(run, 0, 1, pattern(20, 1));
    write(run, 0, {.to = UnitIndex(1), .bytes = run[0].source().first(10), .immediate = 1});
    write(run, 0,
          {.to = UnitIndex(1),
           .bytes = run[0].source().first(10),
           .immediate = kRounds,
           .context = 1});
    // Both chains must be complete: of immediates 1 … kRounds, and of contexts 1 … kRounds.
    EXPECT_TRUE(run.poll_until([&] { return messages == kRounds && writes == 2 * kRounds; }));
}

TEST_P(TransportConformance, AUnitReachesItself) {
    TestRun run(GetParam(), 2);
    fill_pattern(run[1].source(), 4);
    send(run, 1, 1, pattern(100, 9));
    write(run, 1, {.to = UnitIndex(1), .bytes = run[1].source(), .immediate = 77, .context = 78});
    ASSERT_TRUE(run.poll_until([&] {
        return !run[1].messages.empty() && !run[1].written.empty() && !run[1].done.empty();
    }));
    EXPECT_EQ(run[1].messages[0].from, UnitIndex(1));
    EXPECT_TRUE(has_pattern(run[1].messages[0].bytes, 9));
    EXPECT_EQ(run[1].written[0].from, UnitIndex(1));
    EXPECT_EQ(run[1].written[0].immediate, 77U);
    EXPECT_EQ(run[1].done[0], 78U);
    EXPECT_TRUE(has_pattern(run[1].arena(), 4));
    EXPECT_TRUE(run[0].messages.empty());
}

TEST_P(TransportConformance, AUnitThatIsAmongItsOwnPeersDoesNotWaitForItself) {
    TestUnit one(GetParam(), 0, 2);
    TestUnit other(GetParam(), 1, 2);
    const Transport::Peer peers[] = {{UnitIndex(0), one.transport().address()},
                                     {UnitIndex(1), other.transport().address()}};
    const auto until = test_deadline();
    std::thread thread(
        [&] { EXPECT_TRUE(other.transport().connect(peers, until).value().empty()); });
    EXPECT_TRUE(one.transport().connect(peers, until).value().empty());
    thread.join();
    EXPECT_LT(now(), until);
}

TEST_P(TransportConformance, ARunOfOneUnitNeedsNoConnection) {
    TestRun run(GetParam(), 1);
    send(run, 0, 0, pattern(10, 1));
    EXPECT_TRUE(run.poll_until([&] { return run[0].messages.size() == 1; }));
}

TEST_P(TransportConformance, AUnitThatIsClosedIsReportedOnceAfterAllItsMessages) {
    if (!GetParam().tells_of_death) {
        GTEST_SKIP() << "left to the units' own deadlines";
    }
    TestRun run(GetParam(), 3);
    ASSERT_TRUE(run[1].transport().send(UnitIndex(0), pattern(10, 1)));
    run[1].close();
    const auto deadline = test_deadline();
    while (run[0].unreachable.empty() || run[2].unreachable.empty()) {
        ASSERT_LT(now(), deadline);
        for (const std::uint32_t i : {0U, 2U}) {
            run[i].poll();
            run[i].transport().wait(now() + base::milliseconds(50));
        }
    }
    EXPECT_EQ(run[0].messages.size(), 1U);
    ASSERT_TRUE(run[0].transport().send(UnitIndex(2), pattern(10, 1)));
    TestUnit* const rest[] = {&run[0], &run[2]};
    ASSERT_TRUE(poll_until(rest, [&] { return !run[2].messages.empty(); }));
    EXPECT_EQ(run[0].unreachable, Units{1});
    EXPECT_EQ(run[2].unreachable, Units{1});
}

#ifndef DAQLOOM_UNCOUNTED_ALLOCATIONS
TEST_P(TransportConformance, NothingIsAllocatedPerMessageOrWrite) {
    TestRun run(GetParam(), 2);
    for (std::uint32_t unit = 0; unit < 2; ++unit) {
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
            if (sent_messages < goal && run[0].transport().send(UnitIndex(1), message)) {
                ++sent_messages;
            }
            if (sent_writes < goal &&
                run[0].transport().write(
                    {.to = UnitIndex(1), .bytes = run[0].source().first(10'000)})) {
                ++sent_writes;
            }
            run[0].poll();
            run[1].poll();
            run[1].transport().wait(now());
        }
    };
    exchange(2000);
    const std::uint64_t before = GetParam().allocations();
    exchange(5000);
    EXPECT_EQ(GetParam().allocations(), before);
}
#endif

}  // namespace
}  // namespace daqloom::live
