#include "softswitch/output_queues.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "base/random.hpp"

namespace daqloom::softswitch {
namespace {

using base::BitRate;
using base::Time;

/// `count` equal rings, all at port 0.
OutputConfig rings_of(std::uint32_t count, RingConfig each = {}) {
    OutputConfig config;
    config.rings.assign(count, each);
    return config;
}

/// Records the dropped and the marked packets.
struct Fates {
    void drop(std::uint64_t handle) { dropped.push_back(handle); }
    void mark(std::uint64_t handle) { marked.push_back(handle); }
    std::vector<std::uint64_t> dropped;
    std::vector<std::uint64_t> marked;
};

bool put(OutputQueues& queues, std::uint32_t ring, std::uint64_t handle, std::uint32_t bytes,
         Time now) {
    const Packet packet{handle, bytes, RingIndex(ring)};
    Fates fates;
    queues.in({&packet, 1}, now, fates);
    return fates.dropped.empty();
}

/// Queues packets 0, 1, 2, … of equal size at one instant.
void fill(OutputQueues& queues, std::uint64_t packets, std::uint32_t bytes = 100, Time now = {},
          std::uint32_t ring = 0) {
    for (std::uint64_t handle = 0; handle < packets; ++handle) {
        put(queues, ring, handle, bytes, now);
    }
}

using Handles = std::vector<std::uint64_t>;

Handles sent(OutputQueues& queues, std::uint16_t port, Time now, std::size_t room = 1'000) {
    queues.advance(now);
    Handles handles(room);
    handles.resize(queues.out(PortIndex(port), now, handles));
    return handles;
}

TEST(OutputQueues, ARingKeepsTheOrder) {
    OutputQueues queues(rings_of(1));
    fill(queues, 200);  // four chunks
    const auto handles = sent(queues, 0, Time{0});
    ASSERT_EQ(handles.size(), 200U);
    EXPECT_TRUE(std::ranges::is_sorted(handles));
    EXPECT_TRUE(sent(queues, 0, Time{0}).empty());
}

TEST(OutputQueues, ForgottenPeaksBeginWithTheHeldPackets) {
    OutputQueues queues(rings_of(1));
    const auto expect_peaks = [&](std::uint64_t packets, std::uint64_t bytes) {
        EXPECT_EQ(queues.counters(RingIndex(0)).peak_packets, packets);
        EXPECT_EQ(queues.counters(RingIndex(0)).peak_bytes, bytes);
    };
    fill(queues, 5);
    EXPECT_EQ(sent(queues, 0, Time{0}, 3).size(), 3U);
    expect_peaks(5, 500);
    queues.forget_peaks();
    expect_peaks(2, 200);
    put(queues, 0, 5, 100, Time{0});
    expect_peaks(3, 300);
    fill(queues, 2);
    queues.set_limits(RingIndex(0), 3, 250);
    EXPECT_EQ(queues.held_packets(RingIndex(0)), 5U);
    expect_peaks(3, 250);  // of a ring made smaller no higher than its limits
    queues.forget_peaks();
    queues.set_limits(RingIndex(0), 9, 900);
    expect_peaks(3, 250);
}

TEST(OutputQueues, PacketsAtManyBytesAreMarked) {
    OutputQueues queues(rings_of(2, {.mark_bytes = 250}));
    queues.set_mark(RingIndex(1), 0);
    Fates fates;
    for (std::uint64_t handle = 0; handle < 6; ++handle) {
        const std::array<Packet, 2> both{Packet{handle, 100, RingIndex(0)},
                                         Packet{10 + handle, 100, RingIndex(1)}};
        queues.in(both, Time{0}, fates);
    }
    // The fourth finds 300 B.
    EXPECT_EQ(fates.marked, (Handles{3, 4, 5}));
    EXPECT_EQ(queues.counters(RingIndex(0)).marks, 3U);
    EXPECT_EQ(queues.counters(RingIndex(1)).marks, 0U);
}

TEST(OutputQueues, CountsHowLongOneOfEightPacketsWaited) {
    // 8000 packets queued at one instant leave 1.5 µs apart, within 12 ms: half wait for over 6 ms.
    OutputQueues queues(
        rings_of(1, {.rate = base::BitRate{8 * 124 * 1'000'000 * 2 / 3}, .packets = 8'000}));
    fill(queues, 8'000);
    for (Time now; queues.held_packets(RingIndex(0)) > 0; now += base::microseconds(1)) {
        sent(queues, 0, now);
    }
    const Waits& waits = queues.waits(RingIndex(0));
    std::uint64_t all = 0;
    double sum_us = 0;
    for (std::size_t bucket = 0; bucket < waits.size(); ++bucket) {
        all += waits[bucket];
        // The middle of a bucket, which ends at 2^(16 + bucket) ps, is at 0.75 of its end.
        sum_us += static_cast<double>(waits[bucket]) * 0.75e-6 *
                  static_cast<double>(std::uint64_t{1} << (kWaitUnit + bucket));
    }
    EXPECT_NEAR(static_cast<double>(all), 1'000, 150);  // five standard deviations
    EXPECT_NEAR(sum_us / static_cast<double>(all), 6'000, 900);
    // Bucket 17 is from 4.29 to 8.59 ms; waits in bucket 18 end at 12 ms.
    EXPECT_NEAR(static_cast<double>(waits[18]) / static_cast<double>(waits[17]), 3.41 / 4.3, 0.3);
}

TEST(OutputQueues, AFullRingDrops) {
    OutputQueues queues(rings_of(2, {.packets = 3, .bytes = 250}));
    EXPECT_TRUE(put(queues, 0, 0, 100, Time{0}));
    EXPECT_TRUE(put(queues, 0, 1, 100, Time{0}));
    EXPECT_FALSE(put(queues, 0, 2, 51, Time{0}));
    EXPECT_TRUE(put(queues, 0, 3, 50, Time{0}));
    EXPECT_FALSE(put(queues, 0, 4, 0, Time{0}));
    EXPECT_TRUE(put(queues, 1, 5, 100, Time{0}));
    const RingCounters& counted = queues.counters(RingIndex(0));
    EXPECT_EQ(counted.packets, 3U);
    EXPECT_EQ(counted.drops, 2U);
    EXPECT_EQ(counted.dropped_bytes, 51U);
    EXPECT_EQ(counted.peak_packets, 3U);
    EXPECT_EQ(counted.peak_bytes, 250U);
}

TEST(OutputQueues, DropsOnceNoMemoryIsLeft) {
    OutputConfig config = rings_of(2);
    config.packets = RingMemory::kPerChunk;  // a chunk, and two for each ring
    OutputQueues queues(config);
    std::uint64_t taken = 0;
    while (put(queues, 0, taken, 64, Time{0})) {
        ++taken;
    }
    EXPECT_EQ(taken, 5 * RingMemory::kPerChunk);
    EXPECT_EQ(queues.counters(RingIndex(0)).memory_drops, 1U);
    EXPECT_EQ(sent(queues, 0, Time{0}).size(), taken);
    EXPECT_TRUE(put(queues, 1, 0, 64, Time{0}));
}

/// 1000 B on the wire at 1 Gb/s take 8 us, independent of the times at which the port is polled.
TEST(OutputQueues, APacedRingKeepsItsRateWithoutDrift) {
    for (const std::int64_t poll_ns : {100, 999, 7'777}) {
        OutputConfig config = rings_of(1, {.rate = base::gigabits_per_second(1), .packets = 4'000});
        OutputQueues queues(config);
        const Time width{1 << 18};
        std::uint64_t put_in = 0;
        std::int64_t out = 0;
        const Time begin = base::milliseconds(3);
        Time last = begin - base::microseconds(8);
        for (Time now = begin; now < begin + base::milliseconds(100);
             now += base::nanoseconds(poll_ns)) {
            while (put_in < static_cast<std::uint64_t>(out) + 100) {
                ASSERT_TRUE(put(queues, 0, put_in++, 1000 - 24, now));
            }
            for (std::size_t i = sent(queues, 0, now).size(); i > 0; --i) {
                // A packet leaves no earlier than its time, 8 us after that of the previous packet.
                EXPECT_GE(now + width, begin + base::microseconds(8) * out);
                last = now;
                ++out;
            }
        }
        // One packet leaves at the start, and 12 500 in 100 ms.
        EXPECT_NEAR(static_cast<double>(out), 12'500, 2) << poll_ns;
        EXPECT_GT(last, begin);
    }
}

/// With polls every nanosecond, gaps are at least 8 us less the width of a slot.
TEST(OutputQueues, GapsAreNotShorterThanThePaceByMoreThanASlot) {
    OutputQueues queues(rings_of(1, {.rate = base::gigabits_per_second(1)}));
    fill(queues, 1'000, 976);
    Time last{-base::seconds(1).ps};
    std::uint64_t out = 0;
    for (Time now; now < base::microseconds(1'999); now += base::nanoseconds(1)) {
        const std::size_t count = sent(queues, 0, now).size();
        ASSERT_LE(count, 1U);
        if (count == 1) {
            EXPECT_GE(now - last, base::microseconds(8) - Time{1 << 18});
            last = now;
            ++out;
        }
    }
    EXPECT_EQ(out, 250U);
}

/// The burst is one packet, however long the ring was empty before.
TEST(OutputQueues, AnIdleRingSavesNothing) {
    OutputQueues queues(rings_of(1, {.rate = base::gigabits_per_second(1)}));
    put(queues, 0, 0, 976, Time{0});
    EXPECT_EQ(sent(queues, 0, Time{0}).size(), 1U);
    const Time later = base::milliseconds(50);
    fill(queues, 100, 976, later);
    EXPECT_EQ(sent(queues, 0, later).size(), 1U);
    EXPECT_TRUE(sent(queues, 0, later + base::microseconds(7)).empty());
    EXPECT_EQ(sent(queues, 0, later + base::microseconds(8)).size(), 1U);
}

TEST(OutputQueues, AChangedRateCountsFromTheNextPacketOn) {
    OutputQueues queues(rings_of(1, {.rate = base::megabits_per_second(1)}));
    fill(queues, 10, 976);
    EXPECT_EQ(sent(queues, 0, Time{0}).size(), 1U);
    queues.set_rate(RingIndex(0), BitRate{0});
    EXPECT_EQ(sent(queues, 0, base::milliseconds(8)).size(), 9U);
    EXPECT_EQ(queues.counters(RingIndex(0)).drops, 0U);
}

/// Rings of one port that are never empty send equal numbers of bytes, within a quantum and a
/// packet, for any packet sizes.
TEST(OutputQueues, RingsOfAPortHaveEqualShares) {
    OutputConfig config = rings_of(3, {.packets = 20'000});
    OutputQueues queues(config);
    const std::array<std::uint32_t, 3> sizes{64, 700, 1518};
    for (std::uint32_t ring = 0; ring < 3; ++ring) {
        for (int i = 0; i < 20'000; ++i) {
            put(queues, ring, ring, sizes[ring], Time{0});
        }
    }
    std::array<std::int64_t, 3> bytes{};
    for (int poll = 0; poll < 200; ++poll) {
        for (const std::uint64_t handle : sent(queues, 0, Time{0}, 7)) {
            bytes[handle] += sizes[handle];
        }
        const auto [least, most] = std::ranges::minmax(bytes);
        EXPECT_LE(most - least, 2 * (std::int64_t{config.quantum} + 1518)) << poll;
    }
}

TEST(OutputQueues, TheHighestClassIsServedFirst) {
    OutputConfig config = rings_of(3);
    config.rings[1].priority = 7;
    config.rings[2].priority = 3;
    OutputQueues queues(config);
    for (std::uint32_t ring = 0; ring < 3; ++ring) {
        put(queues, ring, ring, 100, Time{0});
        put(queues, ring, ring, 100, Time{0});
    }
    EXPECT_EQ(sent(queues, 0, Time{0}), (Handles{1, 1, 2, 2, 0, 0}));
}

TEST(OutputQueues, AFullRingDelaysNoOther) {
    OutputQueues queues(rings_of(2, {.packets = 10'000}));
    fill(queues, 10'000, 1518);
    sent(queues, 0, Time{0}, 32);
    put(queues, 1, 10'000, 1518, Time{0});
    EXPECT_EQ(std::ranges::count(sent(queues, 0, Time{0}, 32), 10'000U), 1);
}

/// Each packet leaves once, in order, by its ring's port, or is dropped and counted.
TEST(OutputQueues, LosesNothingThatIsNotCounted) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        base::RandomStream random(seed, "queues");
        const auto below = [&](std::uint64_t n) {
            return static_cast<std::uint32_t>(random.uniform_int(n));
        };
        OutputConfig config;
        config.ports = static_cast<std::uint16_t>(1 + below(4));
        const std::uint32_t rings = 1 + below(20);
        for (std::uint32_t ring = 0; ring < rings; ++ring) {
            config.rings.push_back(
                {.port = PortIndex(below(config.ports)),
                 .priority = static_cast<std::uint8_t>(below(kClasses)),
                 .rate = {below(2) == 0 ? 0 : std::int64_t{1'000'000} * (1 + below(100'000))},
                 .packets = 1 + below(300),
                 .bytes = below(2) == 0 ? kMostRingBytes : 1 + below(100'000)});
        }
        config.packets = below(4) == 0 ? 1 + below(300) : 0;
        config.quantum = 1600 + below(8'000);
        OutputQueues queues(config);
        std::vector<std::deque<std::uint64_t>> expected(rings);
        std::map<std::uint64_t, std::uint32_t> ring_of;
        std::uint64_t next = 0;
        Time now;
        for (int step = 0; step < 500; ++step) {
            now += base::nanoseconds(below(5'000));
            std::vector<Packet> batch(below(64));
            for (Packet& packet : batch) {
                packet = {next++, 64 + below(1'455), RingIndex(below(rings))};
            }
            Fates fates;
            queues.in(batch, now, fates);
            std::size_t drops = 0;
            for (const Packet& packet : batch) {
                if (drops < fates.dropped.size() && fates.dropped[drops] == packet.handle) {
                    ++drops;
                } else {
                    expected[packet.ring.value()].push_back(packet.handle);
                    ring_of[packet.handle] = packet.ring.value();
                }
            }
            ASSERT_EQ(drops, fates.dropped.size());
            const auto port = static_cast<std::uint16_t>(below(config.ports));
            for (const std::uint64_t handle : sent(queues, port, now, below(64))) {
                const std::uint32_t ring = ring_of.at(handle);
                ASSERT_EQ(config.rings[ring].port, PortIndex(port));
                ASSERT_EQ(expected[ring].front(), handle);
                expected[ring].pop_front();
            }
            for (std::uint32_t ring = 0; ring < rings; ++ring) {
                ASSERT_EQ(queues.held_packets(RingIndex(ring)), expected[ring].size());
            }
        }
        std::uint64_t counted = 0;
        for (std::uint32_t ring = 0; ring < rings; ++ring) {
            const RingCounters& each = queues.counters(RingIndex(ring));
            counted += each.packets + each.drops + each.memory_drops;
        }
        EXPECT_EQ(counted, next);
        now += base::seconds(100);
        for (std::uint16_t port = 0; port < config.ports; ++port) {
            for (int turn = 0; turn < 1'000; ++turn) {
                now += base::milliseconds(100);
                sent(queues, port, now);
            }
        }
        EXPECT_EQ(queues.next_due(), Time::never());
        for (std::uint32_t ring = 0; ring < rings; ++ring) {
            EXPECT_EQ(queues.held_packets(RingIndex(ring)), 0U);
        }
        EXPECT_LE(queues.memory().used(), rings);  // one that each keeps
    }
}

TEST(OutputQueues, SharedMemoryAdmitsAsTheSwitchThatItStandsFor) {
    // 10 kB in cells of 100 B: 1 kB for each of two ports, a pool of 80 cells. With alpha 0.5 a
    // port gets at most a third of the pool, half of what is free: 26 or 27 cells beyond its 10.
    OutputConfig config;
    config.ports = 2;
    config.rings = {{.port = PortIndex(0)}, {.port = PortIndex(1)}};
    config.shared = {.buffer = 10'000, .dedicated = 2'000, .alpha = 0.5, .cell_size = 100};
    OutputQueues queues(config);
    fill(queues, 100);
    EXPECT_EQ(queues.held_packets(RingIndex(0)), 10U + 27U);
    EXPECT_EQ(queues.counters(RingIndex(0)).drops, 63U);
    // The other port gets half of the 53 cells left free, less its own: 18 at most.
    fill(queues, 100, 100, {}, 1);
    EXPECT_EQ(queues.held_packets(RingIndex(1)), 10U + 18U);
    EXPECT_EQ(queues.counters(RingIndex(1)).drops, 72U);
    // Departures free memory, also for other rings.
    std::array<std::uint64_t, 37> handles{};
    EXPECT_EQ(queues.out(PortIndex(0), {}, handles), 37U);
    EXPECT_EQ(queues.shared()->used(), 18);
    fill(queues, 100, 100, {}, 1);
    EXPECT_EQ(queues.held_packets(RingIndex(1)), 10U + 27U);
    // The peak is that of the sum, 37 and 28 packets, not the sum of both peaks of 37.
    EXPECT_EQ(queues.shared_peak_bytes(), (37 + 28) * 100);
    queues.forget_peaks();
    EXPECT_EQ(queues.shared_peak_bytes(), 37 * 100);
    queues.drain([](std::uint64_t) {});
    EXPECT_EQ(queues.shared()->held(), 0);
    EXPECT_EQ(queues.shared()->taken(), queues.shared()->freed());
}

}  // namespace
}  // namespace daqloom::softswitch
