#include "ethernet/scheduled_port.hpp"

#include <array>
#include <map>
#include <string>

#include "base/random.hpp"
#include "ethernet/star_test.hpp"

namespace daqloom::ethernet {
namespace {

// --- strict priority

/// Frames of low priority fill the wire for 816 us; a frame of high priority arrives at any time in
/// every 10 us. It waits for the rest of the low frame on the wire, and then takes one frame time.
TEST(StrictPriority, AHighFrameWaitsForOneLowFrameAtMost) {
    base::RandomStream random(1, "strict");
    Star star(3, with(kStrict), kFast);
    star.burst(1000, 1, {.to_host = 0});
    const Time way_in = kFrameTime / 10;
    std::vector<Time> sent;
    for (std::uint32_t i = 0; i < 70; ++i) {
        sent.push_back(microseconds(20 + 10 * static_cast<int>(i)) +
                       Time{static_cast<std::int64_t>(random.uniform_int(5'000'000))});
        star.send_later(Star::up(2), {.to_host = 0, .seq = i, .traffic_class = 7}, sent.back());
    }
    star.run();
    Time longest{};
    for (const auto& arrival : star.arrivals) {
        if (arrival.frame.traffic_class() == TrafficClass(7)) {
            const Time wait = arrival.at - sent[arrival.frame.seq] - way_in - kFrameTime;
            EXPECT_GE(wait, Time::zero());
            EXPECT_LE(wait, kFrameTime);
            longest = std::max(longest, wait);
        }
    }
    EXPECT_GT(longest, kFrameTime / 2);
    EXPECT_EQ(star.arrivals.size(), 1070U);
    // The wire is never idle: 1070 frames leave one after the other.
    EXPECT_EQ(star.arrivals.back().at, way_in + kFrameTime * 1070);
}

/// One frame of each class, and two of class 3, arrive together from separate hosts. The first
/// frame processed finds the wire free. Of the others, the highest class goes first, and within a
/// class the first to arrive.
TEST(StrictPriority, ServesTheHighestClassFirstAndAClassInOrder) {
    Star star(10, with(kStrict));
    const std::array<std::uint8_t, 9> classes{0, 3, 7, 1, 5, 3, 2, 6, 4};
    for (std::uint32_t i = 0; i < classes.size(); ++i) {
        star.send(Star::up(i + 1), {.to_host = 0, .seq = i, .traffic_class = classes[i]},
                  Time::zero());
    }
    star.run();
    EXPECT_EQ(star.order(), (std::vector<std::uint32_t>{0, 2, 7, 4, 8, 1, 5, 6, 3}));
}

/// Strict priority at the port of a host, to which frames arrive without a wire.
TEST(StrictPriority, AHostHasItToo) {
    Star star(2, {}, {gigabits_per_second(10), Time::zero(), kStrict});
    for (std::uint32_t i = 0; i < 8; ++i) {
        star.send(Star::up(0), {.to_host = 1, .seq = i, .traffic_class = i}, Time::zero());
    }
    star.run();
    EXPECT_EQ(star.order(), (std::vector<std::uint32_t>{0, 7, 6, 5, 4, 3, 2, 1}));
    for (std::size_t i = 1; i < star.arrivals.size(); ++i) {
        EXPECT_EQ(star.arrivals[i].at, kFrameTime * static_cast<int>(i + 2));
    }
}

TEST(StrictPriority, CountsByClass) {
    SwitchConfig config = with(kStrict);
    config.model = BufferModel::drop_tail;
    config.queue_packets = 3;
    Star star(3, config, kFast);
    star.burst(5, 1, {.to_host = 0, .traffic_class = 2});
    star.send_later(Star::up(1), {.to_host = 0, .traffic_class = 6}, microseconds(100));
    star.run();
    const ScheduledPort& port = *star.network.scheduler(Star::down(0));
    EXPECT_TRUE(port.has_classes());
    EXPECT_EQ(port.counters(TrafficClass(2)).frames, 3U);
    EXPECT_EQ(port.counters(TrafficClass(2)).wire_bytes, 3 * (kFrame + kWireOverhead));
    EXPECT_EQ(port.counters(TrafficClass(2)).drops, 2U);
    EXPECT_EQ(port.counters(TrafficClass(6)).frames, 1U);
    EXPECT_EQ(port.counters(TrafficClass(6)).drops, 0U);
    EXPECT_EQ(star.network.scheduler(Star::up(0)), nullptr);
}

// --- weights

/// Frames of random sizes wait in three classes with weights 1, 2 and 5. Let Q be the quantum of
/// weight 1 and L the largest frame. After g or g + 1 of its turns, a class of weight w has sent S
/// bytes with g·w·Q − L < S ≤ (g + 1)·w·Q. So S / w differs between classes by less than Q + L / w
/// while all have frames waiting, and by less than twice as much between any two moments of this
/// time.
TEST(Weights, ShareTheWireWithinOneQuantum) {
    constexpr std::array<Bytes, 3> weights{1, 2, 5};
    constexpr Bytes quantum = 1518 + kWireOverhead;
    Star star(4, with({Scheduling::weighted, {1, 2, 5}}), kFast);
    base::RandomStream random(1, "weights");
    std::array<Bytes, 3> queued{};
    for (std::uint32_t c = 0; c < 3; ++c) {
        while (queued[c] < 200'000 * weights[c]) {
            const auto bytes = static_cast<Bytes>(71 + random.uniform_int(1448));
            star.send(Star::up(c + 1), {.to_host = 0, .bytes = bytes, .traffic_class = c},
                      Time::zero());
            queued[c] += bytes;
        }
    }
    // All frames have arrived after 8 · 200 kB at 100 Gb/s, 0.13 ms; a tenth of them has left.
    star.run();
    std::array<Bytes, 3> sent{};
    const Time first = microseconds(1);  // by which frames of all classes have come
    const Time last = star.arrivals.back().at * 9 / 10;
    for (const auto& arrival : star.arrivals) {
        if (arrival.at > first && arrival.at < last) {
            sent[arrival.frame.traffic_class().value()] += arrival.frame.bytes + kWireOverhead;
            for (const std::size_t a : {0U, 1U, 2U}) {
                for (const std::size_t b : {0U, 1U, 2U}) {
                    ASSERT_LT(sent[a] / weights[a] - sent[b] / weights[b],
                              2 * (quantum + quantum / weights[b]));
                }
            }
        }
    }
    EXPECT_GT(sent[0], 150'000);
}

/// Classes 0 and 1 share the wire, class 5 has strict priority: all its frames leave first, except
/// for one frame of another class that has already begun.
TEST(Weights, ComeBehindStrictPriority) {
    Star star(4, with({Scheduling::weighted, {1, 1}}), kFast);
    star.burst(20, 1, {.to_host = 0});
    star.burst(20, 2, {.to_host = 0, .traffic_class = 1});
    for (int i = 0; i < 10; ++i) {
        star.send_later(Star::up(3), {.to_host = 0, .traffic_class = 5}, microseconds(2));
    }
    star.run();
    const std::vector<Time> strict = star.arrivals_of(TrafficClass(5));
    ASSERT_EQ(strict.size(), 10U);
    EXPECT_EQ(strict.back() - strict.front(), kFrameTime * 9);
    EXPECT_EQ(star.arrivals.back().at, kFrameTime / 10 + kFrameTime * 50);
}

/// Class 1 may send five frames per round and has one. Both classes get more frames: either later,
/// so that the turn of class 1 is over, or while its frame leaves, so that its turn continues.
TEST(Weights, ATurnEndsWithTheFramesOfItsClass) {
    for (const bool later : {true, false}) {
        Star star(2, {}, {gigabits_per_second(10), Time::zero(), {Scheduling::weighted, {1, 5}}});
        const auto send = [&](std::uint32_t of, Time at) {
            star.send_later(Star::up(0), {.to_host = 1, .bytes = 1518, .traffic_class = of}, at);
        };
        const Time frame = base::WireClock(gigabits_per_second(10))(1518 + kWireOverhead);
        send(0, Time::zero());  // finds the wire free
        send(1, Time::zero());
        const Time again = later ? frame * 3 : frame + frame / 2;
        for (int i = 0; i < 8; ++i) {
            send(0, again);
            send(1, again);
        }
        star.run();
        std::string order;
        for (const auto& arrival : star.arrivals) {
            order += arrival.frame.traffic_class() == TrafficClass(1) ? '1' : '0';
        }
        EXPECT_EQ(order.substr(0, 10), later ? "0100111110" : "0111110111");
    }
}

/// Shares unused by a class go to others: alone, the class of least weight has the whole wire.
TEST(Weights, OfClassesWithoutFramesAreTheOthers) {
    Star star(2, with({Scheduling::weighted, {1, 100}}), kFast);
    star.burst(50, 1, {.to_host = 0});
    star.run();
    EXPECT_EQ(star.arrivals.back().at, kFrameTime / 10 + kFrameTime * 50);
}

TEST(Weights, OfNothingOrWithoutUseAreRefused) {
    EXPECT_TRUE(validate(Schedule{}));
    EXPECT_TRUE(validate(Schedule{Scheduling::strict, {}}));
    EXPECT_TRUE(validate(Schedule{Scheduling::weighted, {0, 0, kMostWeight}}));
    EXPECT_FALSE(validate(Schedule{Scheduling::weighted, {}}));
    EXPECT_FALSE(validate(Schedule{Scheduling::weighted, {kMostWeight + 1}}));
    EXPECT_FALSE(validate(Schedule{Scheduling::strict, {1}}));
    EXPECT_FALSE(validate(Schedule{Scheduling::fifo, {1}}));
}

// --- against the FIFO port

/// With one class, or one input, frames leave a ScheduledPort as they leave a FifoPort: each frame
/// at the same picosecond, for any order of arrivals.
TEST(ScheduledPort, OfOneClassSendsAsAFifoPortDoes) {
    const std::array<Schedule, 2> schedules{kStrict,
                                            {Scheduling::weighted, {1, 3, 0, 2, 0, 9, 1, 1}}};
    for (std::uint64_t round = 0; round < 60; ++round) {
        base::RandomStream random(round, "arrivals");
        const Schedule& schedule = schedules[round % 2];
        const std::uint64_t of = random.uniform_int(kTrafficClasses);
        Star fifo(3, {}, kFast);
        Star scheduled(3, with(schedule), {kFast.rate, Time::zero(), schedule});
        Time at{};
        for (std::uint32_t i = 0; i < 200; ++i) {
            const Sent sent{.to_host = random.uniform_int(3),
                            .bytes = static_cast<Bytes>(71 + random.uniform_int(1448)),
                            .seq = i,
                            .traffic_class = of};
            const LinkIndex link = Star::up(static_cast<std::uint32_t>(random.uniform_int(3)));
            // Bursts, pauses, and frames that arrive while another frame leaves.
            at += random.uniform() < 0.3
                      ? Time::from_seconds(random.exponential(3e-6))
                      : Time{static_cast<std::int64_t>(random.uniform_int(3)) * kFrameTime.ps / 10};
            fifo.send_later(link, sent, at);
            scheduled.send_later(link, sent, at);
        }
        fifo.run();
        scheduled.run();
        const auto by_link = [](const Star& star) {
            std::map<LinkIndex, std::vector<std::pair<std::int64_t, std::uint32_t>>> all;
            for (const auto& arrival : star.arrivals) {
                all[arrival.link].emplace_back(arrival.at.ps, arrival.frame.seq);
            }
            return all;
        };
        EXPECT_EQ(by_link(fifo), by_link(scheduled)) << round;
    }
}

// --- virtual output queues

TEST(Voq, ServesItsInputsInTurnHoweverMuchEachHasQueued) {
    Star star(4, voq(1 << 20), kFast);
    for (const std::uint32_t host : {1U, 2U, 3U}) {
        star.burst(host == 1 ? 90 : 30, host, {.to_host = 0, .to = EndpointIndex(host)});
    }
    star.run();
    ASSERT_EQ(star.arrivals.size(), 150U);
    // Turns begin once all inputs have frames queued, after at most one frame from each input.
    for (const std::uint32_t host : {1U, 2U, 3U}) {
        EXPECT_NEAR(star.shares(90)[EndpointIndex(host)], 30, 1);
    }
}

TEST(Voq, KeepsTheFramesOfAnInputInOrderAndTheOutputBusy) {
    Star star(4, voq(1 << 20), kFast);
    std::map<EndpointIndex, std::uint32_t> next;
    for (std::uint32_t i = 0; i < 300; ++i) {
        const EndpointIndex input(1 + i % 3);
        star.send(Star::up(input.value()), {.to_host = 0, .to = input, .seq = next[input]++},
                  Time::zero());
    }
    star.run();
    std::map<EndpointIndex, std::uint32_t> expected;
    for (std::size_t i = 0; i < 300; ++i) {
        const Frame& frame = star.arrivals.at(i).frame;
        EXPECT_EQ(frame.seq, expected[frame.to]++);
        // The link to the switch takes 81.6 ns; then frame follows frame without a pause.
        EXPECT_EQ(star.arrivals[i].at, Time{81'600} + kFrameTime * static_cast<int>(i + 1));
    }
}

/// The output takes 8.16 us per frame. Within 4.08 us input 1 delivers 50 frames: the first is
/// sent, ten fill the input's queue, 39 are dropped. Input 2 has a separate queue.
TEST(Voq, AFullQueueOfOneInputLeavesTheOthersTheirs) {
    Star star(3, voq(1 << 20, 10 * kFrame), kFast, {gigabits_per_second(1), Time::zero()});
    star.burst(50, 1, {.to_host = 0, .to = EndpointIndex(1)});
    for (int i = 0; i < 9; ++i) {
        star.send_later(Star::up(2), {.to_host = 0, .to = EndpointIndex(2)}, microseconds(2));
    }
    star.run();
    EXPECT_EQ(star.shares(),
              (std::map<EndpointIndex, int>{{EndpointIndex(1), 11}, {EndpointIndex(2), 9}}));
    EXPECT_EQ(star.network.link_drops(Star::down(0)), 39U);
}

/// A threshold that the fourth of eleven admitted frames is the first to exceed.
TEST(Voq, MarksNoFrameThatItsFullQueueRefuses) {
    SwitchConfig config = voq(1 << 20, 10 * kFrame);
    config.ecn_threshold = 2 * kFrame;
    Star star(2, config, kFast, {gigabits_per_second(1), Time::zero()});
    star.burst(50, 1, {.to_host = 0, .flags = kEcnCapable});
    star.run();
    ASSERT_EQ(star.arrivals.size(), 11U);
    star.expect_marks_from(3);
}

TEST(Voq, IsFullWhenAllQueuesTogetherFillTheBuffer) {
    Star star(11, voq(4 * kFrame));
    star.from_each(1, 10, {.to_host = 0});
    star.run();
    EXPECT_EQ(star.network.link_drops(Star::down(0)), 6U);
}

/// All eight hosts send at the rate of their links, each frame to a random host. With first-in
/// first-out queues at the inputs, the switch would carry 2 − √2 = 58.6 % of this load (M. Karol,
/// M. Hluchyj and S. Morgan, "Input Versus Output Queueing on a Space-Division Packet Switch",
/// 1987), 61.8 % with eight hosts, as frames wait behind frames for other outputs. No frame does so
/// here; less than 100 % is carried only while too few frames have come for some outputs.
TEST(Voq, CarriesUniformTrafficWithoutHeadOfLineBlocking) {
    constexpr std::uint16_t hosts = 8;
    constexpr int frames = 4000;
    base::RandomStream random(1, "uniform");
    Star star(hosts, voq(1 << 28));
    for (std::uint32_t host = 0; host < hosts; ++host) {
        for (int i = 0; i < frames; ++i) {
            star.send(Star::up(host), {.to_host = random.uniform_int(hosts)}, Time::zero());
        }
    }
    star.run(kFrameTime * frames);
    EXPECT_GT(static_cast<double>(star.arrivals.size()), 0.95 * hosts * frames);
    star.run();
    EXPECT_EQ(star.arrivals.size(), std::size_t{hosts} * frames);
}

/// Inputs 1 and 2 fill the queues for host 0. A frame behind them for host 3 waits only on its link
/// to the switch, and then takes the time of a second wire.
TEST(Voq, AFrameForAFreeOutputWaitsForNone) {
    Star star(4, voq(1 << 20));
    star.burst(50, 1, {.to_host = 0});
    star.burst(50, 2, {.to_host = 0});
    star.send(Star::up(1), {.to_host = 3}, Time::zero());
    star.run();
    EXPECT_EQ(star.arrivals_at(3), std::vector<Time>{kFrameTime * 51 + kFrameTime});
}

}  // namespace
}  // namespace daqloom::ethernet
