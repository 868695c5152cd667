#include "ethernet/software_switch.hpp"

#include "base/random.hpp"
#include "ethernet/star_test.hpp"

namespace daqloom::ethernet {
namespace {

using base::nanoseconds;

/// A software switch without costs: as fast as its links.
SwitchConfig software(const SoftwareSwitchConfig& how = {}) {
    SwitchConfig config;
    config.model = BufferModel::software;
    config.software = how;
    return config;
}

/// Sources at random times, so that queues form and vanish.
void send_at_random(Star& star, std::uint32_t hosts, std::uint64_t seed, int frames) {
    base::RandomStream random(seed, "traffic");
    Time at;
    for (int i = 0; i < frames; ++i) {
        at += nanoseconds(static_cast<std::int64_t>(random.uniform_int(600)));
        const auto from = static_cast<std::uint32_t>(random.uniform_int(hosts));
        const auto to = static_cast<std::uint32_t>(random.uniform_int(hosts));
        star.send_later(Star::up(from),
                        {.to_host = to,
                         .bytes = 100 + static_cast<Bytes>(random.uniform_int(1'400)),
                         .seq = static_cast<std::uint32_t>(i)},
                        at);
    }
    star.run();
}

TEST(SoftwareSwitch, WithoutCostsAndPacesIsAnOrdinarySwitchWithEnoughMemory) {
    Star ordinary(4, SwitchConfig{});
    Star star(4, software());
    send_at_random(ordinary, 4, 1, 3'000);
    send_at_random(star, 4, 1, 3'000);
    for (std::uint32_t host = 0; host < 4; ++host) {
        EXPECT_EQ(star.arrivals_at(host), ordinary.arrivals_at(host));
    }
}

TEST(SoftwareSwitch, APaceIsKeptToASlotOfItsWheelAndDoesNotDrift) {
    // At the pace, a frame of 1020 B on the wire takes 10.2 µs.
    Star star(3, software({.pace = {800'000'000}, .destinations = {NodeIndex(2)}}));
    star.burst(400, 0, {.to_host = 2});
    star.send(Star::up(1), {.to_host = 0}, microseconds(1));
    star.run();
    const std::vector<Time> paced = star.arrivals_at(2);
    ASSERT_EQ(paced.size(), 400U);
    const Time slot = nanoseconds(500);
    for (std::size_t i = 1; i < paced.size(); ++i) {
        const Time due = paced[0] + Time{10'200'000 * static_cast<std::int64_t>(i)};
        EXPECT_LE(paced[i], due + slot);
        EXPECT_GE(paced[i], due - slot);
        EXPECT_GE(paced[i] - paced[i - 1], Time{10'200'000} - slot);
    }
    // The frame passes two links at 10 Gb/s; no other ring delays it.
    EXPECT_EQ(star.arrivals_at(0), std::vector<Time>{microseconds(1) + kFrameTime + kFrameTime});
}

TEST(SoftwareSwitch, APaceMayCountTheBitsOfIp) {
    Star star(
        2, software(
               {.pace = {800'000'000}, .pace_counts_wire = false, .destinations = {NodeIndex(1)}}));
    star.burst(100, 0, {.to_host = 1});
    star.run();
    const std::vector<Time> paced = star.arrivals_at(1);
    // Each frame contains an IP packet of 982 B.
    EXPECT_NEAR((paced.back() - paced.front()).seconds(), 99 * 982 * 8 / 0.8e9, 0.5e-6);
}

TEST(SoftwareSwitch, ARingHoldsTheBurstOrDropsItsTail) {
    for (const auto& [ring, drops] : {std::pair{93U, 0U}, {94U, 0U}, {20U, 100U - 20U - 8U}}) {
        Star star(2, software({.ring_packets = ring,
                               .pace = {800'000'000},
                               .destinations = {NodeIndex(1)},
                               .descriptors = 4}));
        // The 100 frames arrive within 81.6 µs, and leave every 10.2 µs from 0.8 µs on. The eighth
        // leaves at 72.4 µs, before the last one arrives: the ring must hold 92 frames.
        star.burst(100, 0, {.to_host = 1});
        star.run();
        // Eight frames leave the smallest ring before the last one arrives, when it holds 20.
        EXPECT_EQ(star.network.link_drops(Star::down(1)), drops) << ring;
        EXPECT_EQ(star.arrivals_at(1).size(), 100U - drops);
    }
}

TEST(SoftwareSwitch, AFullRingDelaysNoOtherRing) {
    Star alone(3, software());
    Star beside(
        3, software({.ring_packets = 50, .pace = {10'000'000}, .destinations = {NodeIndex(2)}}));
    for (Star* star : {&alone, &beside}) {
        for (int i = 0; i < 200; ++i) {
            star->send(Star::up(0), {.to_host = 1}, microseconds(10 * i));
        }
    }
    for (int i = 0; i < 200; ++i) {
        beside.send(Star::up(2), {.to_host = 2}, microseconds(i));
    }
    alone.run();
    beside.run();
    EXPECT_EQ(beside.arrivals_at(1), alone.arrivals_at(1));
    EXPECT_GT(beside.network.link_drops(Star::down(2)), 100U);
}

TEST(SoftwareSwitch, AFrameTakesTheTimeOfACore) {
    Star star(2, software({.packet_cost = nanoseconds(300), .batch_cost = nanoseconds(100)}));
    star.send(Star::up(0), {.to_host = 1}, Time::zero());
    star.run();
    EXPECT_EQ(star.arrivals_at(1), std::vector<Time>{kFrameTime + nanoseconds(400) + kFrameTime});
}

TEST(SoftwareSwitch, ACoreThatIsTooSlowFillsDescriptors) {
    // Two sources at 10 Gb/s deliver 2.45 frames per µs for two destinations. A core takes 1 µs per
    // frame, so that the device drops 1.45 of 2.45 frames once the descriptors are full.
    for (const std::uint32_t cores : {1U, 2U}) {
        Star star(4, software({.cores = cores, .packet_cost = microseconds(1), .descriptors = 64}));
        star.burst(5'000, 0, {.to_host = 2});
        star.burst(5'000, 1, {.to_host = 3});
        star.run();
        const double took_us = 5'000 * 0.816;
        const double forwarded = static_cast<double>(star.arrivals.size());
        EXPECT_NEAR(forwarded, cores * took_us + 2 * 64, 100) << cores;
        EXPECT_EQ(star.arrivals.size() + star.network.link_drops(Star::down(2)) +
                      star.network.link_drops(Star::down(3)),
                  10'000U);
    }
}

TEST(SoftwareSwitch, CoresShareTheBandwidthOfTheMemory) {
    // Each byte crosses memory twice: memory of 10 Gb/s carries 5 Gb/s of frames.
    Star star(
        4, software({.cores = 2, .descriptors = 16, .memory_bandwidth = gigabits_per_second(10)}));
    star.burst(5'000, 0, {.to_host = 2});
    star.burst(5'000, 1, {.to_host = 3});
    star.run();
    const double bits = 8.0 * kFrame * static_cast<double>(star.arrivals.size());
    EXPECT_NEAR(bits / (5'000 * kFrameTime.seconds()), 5e9,
                0.15e9);  // and what descriptors hold in the end
}

TEST(SoftwareSwitch, MarksFramesAtALongRing) {
    SwitchConfig config = software({.pace = {800'000'000}, .destinations = {NodeIndex(1)}});
    config.ecn_threshold = 10'000;
    Star star(2, config);
    star.burst(20, 0, {.to_host = 1, .flags = kEcnCapable});
    star.run();
    // The ring marks frames that find more than ten. The first frame leaves at once, the second
    // just before the 14th arrives: the 12th frame finds ten frames, and all later ones find more.
    ASSERT_EQ(star.arrivals.size(), 20U);
    star.expect_marks_from(12);
}

TEST(SoftwareSwitch, PausesSourcesOfALongRingInPlaceOfDropping) {
    const auto paced = [](std::uint32_t ring, std::uint32_t pause) {
        return software({.ring_packets = ring,
                         .pace = {800'000'000},
                         .destinations = {NodeIndex(2)},
                         .pause_at = pause});
    };
    // The ring of 54 frames pauses both sources when it holds 51. Of each source, one frame is then
    // under way, and one more may begin before the pause frame arrives.
    Star dropping(4, paced(54, 0));
    Star pausing(4, paced(54, 50));
    Star unlimited(4, paced(4'096, 0));
    for (Star* star : {&dropping, &pausing, &unlimited}) {
        star->burst(200, 0, {.to_host = 2});
        star->burst(200, 1, {.to_host = 2});
        star->run();
    }
    EXPECT_GT(dropping.network.link_drops(Star::down(2)), 300U);
    // The ring is never empty, so that only its pace determines when frames leave.
    EXPECT_EQ(pausing.network.link_drops(Star::down(2)), 0U);
    EXPECT_EQ(pausing.arrivals_at(2), unlimited.arrivals_at(2));
    // The first 54 frames fill the ring, which then cycles between 54 and 25 frames as one leaves
    // at a time: 346 frames in eleven cycles of 30. Each cycle pauses and resumes both sources.
    EXPECT_NEAR(static_cast<double>(pausing.network.pauses()), 4 * (1 + 11), 4);
    EXPECT_EQ(pausing.network.pauses() % 2, 0U);
    EXPECT_EQ(unlimited.network.pauses(), 0U);
}

TEST(SoftwareSwitch, APauseHoldsUpAllThatComesByThePort) {
    Star star(4, software({.pace = {800'000'000}, .destinations = {NodeIndex(2)}, .pause_at = 10}));
    star.burst(30, 0, {.to_host = 2});
    star.send(Star::up(0), {.to_host = 3}, Time::zero());
    star.send(Star::up(1), {.to_host = 3, .seq = 1}, Time::zero());
    star.run();
    // The frame of the paused source waits behind 30 frames, most of which leave at the pace. The
    // frame of another source, which sends nothing to the long ring, does not wait.
    const std::vector<Time> innocent = star.arrivals_at(3);
    ASSERT_EQ(innocent.size(), 2U);
    EXPECT_EQ(innocent[0], kFrameTime + kFrameTime);
    EXPECT_GT(innocent[1], microseconds(15 * 10));
    EXPECT_LT(innocent[1], microseconds(30 * 10));
}

TEST(SoftwareSwitch, ServesClassesStrictly) {
    SwitchConfig config = software({.descriptors = 1});
    config.schedule = kStrict;
    Star star(3, config);
    star.burst(50, 0, {.to_host = 2});
    star.burst(20, 1, {.to_host = 2, .traffic_class = 5});
    star.run();
    // Frames of class 5 arrive at the rate of their link, except for the frame under way.
    const std::vector<Time> urgent = star.arrivals_of(TrafficClass(5));
    ASSERT_EQ(urgent.size(), 20U);
    EXPECT_LE(urgent.back(), Time{24 * kFrameTime.ps});
}

TEST(SoftwareSwitch, FramesWaitForALinkUntilItIsUpAgain) {
    LinkConfig down = kTen;
    down.changes = true;
    Star star(3, software({.descriptors = 8}), kTen, down);
    star.change_later({.at = microseconds(5), .link = Star::down(1)});
    star.change_later(
        {.at = microseconds(60), .link = Star::down(1), .what = LinkChange::What::up});
    star.burst(50, 0, {.to_host = 1});
    star.burst(50, 1, {.to_host = 2});
    star.run();
    EXPECT_EQ(star.arrivals_at(2).size(), 50U);
    EXPECT_EQ(star.arrivals_at(1).size() + star.network.cut_frames(), 50U);
    EXPECT_LE(star.network.cut_frames(), 2U);
}

/// Each frame is delivered or dropped once, and a second run is equal.
TEST(SoftwareSwitch, RandomOnesConserveFrames) {
    base::RandomStream random(5, "switches");
    for (std::uint64_t round = 0; round < 100; ++round) {
        SoftwareSwitchConfig how;
        how.ring_packets = 1 + static_cast<std::uint32_t>(random.uniform_int(60));
        how.pace = {static_cast<std::int64_t>(random.uniform_int(3)) * 700'000'000};
        how.destinations = {NodeIndex(1), NodeIndex(3)};
        how.cores = 1 + static_cast<std::uint32_t>(random.uniform_int(4));
        how.packet_cost = nanoseconds(static_cast<std::int64_t>(random.uniform_int(2) * 400));
        how.batch_cost = nanoseconds(static_cast<std::int64_t>(random.uniform_int(2) * 300));
        how.descriptors = 1 + static_cast<std::uint32_t>(random.uniform_int(50));
        how.memory_bandwidth = {static_cast<std::int64_t>(random.uniform_int(2)) * 20'000'000'000};
        how.pause_at = how.cores > 1 ? 0 : static_cast<std::uint32_t>(random.uniform_int(20));
        Star star(5, software(how));
        Star again(5, software(how));
        send_at_random(star, 5, round, 1'000);
        send_at_random(again, 5, round, 1'000);
        std::uint64_t dropped = 0;
        for (std::uint32_t host = 0; host < 5; ++host) {
            dropped += star.network.link_drops(Star::down(host));
            EXPECT_EQ(star.arrivals_at(host), again.arrivals_at(host));
        }
        ASSERT_EQ(star.arrivals.size() + dropped, 1'000U) << round;
        const SoftwareSwitch& of = *star.network.software(kSwitch);
        EXPECT_EQ(of.bytes_inside(), 0);
        EXPECT_EQ(star.network.buffer(kSwitch).held(), 0);
    }
}

}  // namespace
}  // namespace daqloom::ethernet
