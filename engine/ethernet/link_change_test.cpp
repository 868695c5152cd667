#include "base/random.hpp"
#include "ethernet/link.hpp"
#include "ethernet/star_test.hpp"

namespace daqloom::ethernet {
namespace {

using What = LinkChange::What;

constexpr LinkConfig kChanging{gigabits_per_second(10), Time::zero(), {}, true};
constexpr Time kWayIn = kFrameTime / 10;  ///< over a link of 100 Gb/s

/// Link to host 1.
LinkChange change(What what, Time at, base::BitRate rate = {}, std::uint8_t of = 0) {
    return {.at = at,
            .link = Star::down(1),
            .what = what,
            .rate = rate,
            .traffic_class = TrafficClass(of)};
}

/// Arrival times over the changed link, given in frame times since the first frame began.
std::vector<Time> ends(std::initializer_list<int> frames) {
    std::vector<Time> times;
    for (const int end : frames) {
        times.push_back(kWayIn + kFrameTime * end);
    }
    return times;
}

/// Seven frames. The rate falls to a tenth while the third frame is on the wire, which keeps its
/// rate, and rises again during the fifth.
TEST(Change, ANewRateIsThatOfTheNextFrame) {
    Star star(2, {}, kFast, kChanging);
    star.burst(7, 0, {.to_host = 1});
    star.change_later(change(What::rate, kWayIn + kFrameTime * 5 / 2, gigabits_per_second(1)));
    star.change_later(change(What::rate, kWayIn + kFrameTime * 15, gigabits_per_second(10)));
    star.run();
    EXPECT_EQ(star.arrivals_at(1), ends({1, 2, 3, 13, 23, 24, 25}));
}

/// Pace: a tenth of the rate from the second frame on, a fifth from the fourth on, at last no pace.
TEST(Change, ANewPaceIsThatOfTheNextFrame) {
    Star star(2, {}, kFast, kChanging);
    star.burst(7, 0, {.to_host = 1});
    const auto pace = [&](Time at, base::BitRate rate) {
        star.change_later(change(What::pace, kWayIn + at, rate));
    };
    pace(kFrameTime / 2, gigabits_per_second(1));   // begin: 0, 1, 11
    pace(kFrameTime * 15, gigabits_per_second(2));  // 21, 26
    pace(kFrameTime * 28, {});                      // 31, 32
    star.run();
    EXPECT_EQ(star.arrivals_at(1), ends({1, 2, 12, 22, 27, 32, 33}));
}

/// Class 2 is held while its first frame is on the wire; this frame ends. Only class 1 sends then,
/// and after the hold class 2 goes first again.
TEST(Change, AClassThatIsHeldWaitsAndTheOthersGoOn) {
    Star star(2, with(kStrict), kFast, kChanging);
    for (std::uint32_t i = 0; i < 4; ++i) {
        for (const std::uint64_t of : {2U, 1U}) {
            star.send(Star::up(0), {.to_host = 1, .seq = i, .traffic_class = of}, Time::zero());
        }
    }
    star.change_later(change(What::hold, kWayIn + kFrameTime / 2, {}, 2));
    star.change_later(change(What::resume, kWayIn + kFrameTime * 5 / 2, {}, 2));
    star.run();
    std::vector<std::pair<int, std::uint32_t>> order;
    for (const auto& arrival : star.arrivals) {
        order.emplace_back(arrival.frame.traffic_class().value(), arrival.frame.seq);
    }
    EXPECT_EQ(order, (std::vector<std::pair<int, std::uint32_t>>{
                         {2, 0}, {1, 0}, {1, 1}, {2, 1}, {2, 2}, {2, 3}, {1, 2}, {1, 3}}));
    EXPECT_EQ(star.arrivals.back().at, kWayIn + kFrameTime * 8);
}

/// The wire is idle from the end of the frame on it until the port is resumed. A frame that arrives
/// during the hold queues behind the others.
TEST(Change, APortWithoutClassesIsHeldAsAWhole) {
    Star star(2, {}, kFast, kChanging);
    star.burst(3, 0, {.to_host = 1});
    star.change_later(change(What::hold, kWayIn + kFrameTime / 2, {}, 5));
    star.send_later(Star::up(0), {.to_host = 1, .seq = 3}, kFrameTime * 5);
    star.change_later(change(What::resume, kFrameTime * 10, {}, 5));
    star.run();
    EXPECT_EQ(star.arrivals_at(1), (std::vector<Time>{kWayIn + kFrameTime, kFrameTime * 11,
                                                      kFrameTime * 12, kFrameTime * 13}));
    EXPECT_EQ(star.order(), (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

/// A wire as long as four frames goes down when two frames have arrived, four are on the wire, one
/// is being sent and three wait: five frames are lost. It comes up immediately, but the sender
/// first finishes the frame that it is sending.
TEST(Change, ALinkThatGoesDownLosesTheFramesOnTheWire) {
    for (const bool drops : {false, true}) {
        Star star(2, {}, kFast, {gigabits_per_second(10), kFrameTime * 4, {}, true});
        star.burst(10, 0, {.to_host = 1});
        const Time down = kWayIn + kFrameTime * 13 / 2;
        star.change_later({.at = down, .link = Star::down(1), .drops = drops});
        star.change_later({.at = down + Time{1}, .link = Star::down(1), .what = What::up});
        star.run();
        EXPECT_EQ(star.network.cut_frames(), 5U);
        EXPECT_EQ(star.network.link_drops(Star::down(1)), drops ? 3U : 0U);
        ASSERT_EQ(star.arrivals.size(), drops ? 2U : 5U);
        EXPECT_EQ(star.arrivals[1].at, kWayIn + kFrameTime * 6);
        if (!drops) {
            EXPECT_EQ(star.arrivals[2].frame.seq, 7U);
            EXPECT_EQ(star.arrivals[2].at, kWayIn + kFrameTime * 12);
        }
    }
}

/// Frames that arrive while the link is down are dropped, or wait until the link is up.
TEST(Change, ALinkThatIsDownDropsOrKeepsArrivingFrames) {
    for (const bool drops : {false, true}) {
        Star star(2, {}, kFast, kChanging);
        star.change_later({.at = Time::zero(), .link = Star::down(1), .drops = drops});
        for (std::uint32_t i = 0; i < 4; ++i) {
            star.send_later(Star::up(0), {.to_host = 1, .seq = i},
                            microseconds(10) * (static_cast<int>(i) + 1));
        }
        star.change_later({.at = microseconds(35), .link = Star::down(1), .what = What::up});
        star.run();
        EXPECT_EQ(star.network.link_drops(Star::down(1)), drops ? 3U : 0U);
        ASSERT_EQ(star.arrivals.size(), drops ? 1U : 4U);
        EXPECT_EQ(star.arrivals[0].at,
                  drops ? microseconds(40) + kWayIn + kFrameTime : microseconds(35) + kFrameTime);
        EXPECT_EQ(star.network.cut_frames(), 0U);
    }
}

/// A host's link: the host's frames wait.
TEST(Change, AHostKeepsItsFramesWhileTheLinkIsDown) {
    Star star(2, {}, kChanging, kFast);
    star.change_later({.at = Time::zero(), .link = Star::up(0)});
    star.send_later(Star::up(0), {.to_host = 1}, microseconds(1));
    star.change_later({.at = microseconds(5), .link = Star::up(0), .what = What::up});
    star.run();
    EXPECT_EQ(star.arrivals_at(1), (std::vector<Time>{microseconds(5) + kFrameTime + kWayIn}));
}

class Drops : public Observer {
  public:
    void on_delivery(LinkIndex, const Frame&, Time) override {}
    void on_drop(LinkIndex, const Frame&, Time) override { ++count; }
    std::size_t count = 0;
};

/// Links of hosts and of the switch change at random, under random traffic of all classes. At any
/// time, all bytes that hosts have sent are delivered, queued, on wires, dropped or lost, counted
/// frame by frame in check_conservation; in the end, no frame is queued.
TEST(Change, TheBooksBalanceWhateverHappensToTheLinks) {
    std::uint64_t cut = 0;
    std::uint64_t dropped = 0;
    for (std::uint64_t round = 0; round < 120; ++round) {
        base::RandomStream random(round, "changes");
        constexpr std::uint32_t hosts = 5;
        SwitchConfig config = round % 3 == 0 ? voq(40'000, 10'000) : drop_tail(30);
        config.schedule = round % 2 == 0 ? kStrict : Schedule{Scheduling::weighted, {4, 1, 0, 7}};
        const LinkConfig link{gigabits_per_second(10), microseconds(3), config.schedule, true};
        Star star(hosts, config, link, link);
        Drops drops;
        star.network.observe(&drops);
        constexpr std::size_t frames = 600;
        Time at{};
        for (std::size_t i = 0; i < frames; ++i) {
            at += random.uniform() < 0.5 ? Time::zero()
                                         : Time::from_seconds(random.exponential(500e-9));
            const Sent sent = star.draw_frame(random, random.uniform_int(hosts));
            star.send_later(Star::up(static_cast<std::uint32_t>(random.uniform_int(hosts))), sent,
                            at);
        }
        for (int i = 0; i < 150; ++i) {
            LinkChange change;
            change.at = Time{
                static_cast<std::int64_t>(random.uniform_int(static_cast<std::uint64_t>(at.ps)))};
            change.link = LinkIndex(random.uniform_int(2 * hosts));
            change.what = static_cast<What>(random.uniform_int(6));
            change.traffic_class = TrafficClass(random.uniform_int(kTrafficClasses));
            change.rate =
                gigabits_per_second(1 + static_cast<std::int64_t>(random.uniform_int(40)));
            change.drops =
                change.what == What::down && change.link.value() % 2 == 1 && random.uniform() < 0.5;
            star.change_later(change);
        }
        for (std::uint32_t i = 0; i < 2 * hosts; ++i) {
            star.change_later({.at = at + Time{1}, .link = LinkIndex(i), .what = What::up});
            for (std::uint8_t of = 0; of < kTrafficClasses; ++of) {
                star.change_later({.at = at + Time{1},
                                   .link = LinkIndex(i),
                                   .what = What::resume,
                                   .traffic_class = TrafficClass(of)});
            }
        }
        while (!star.events.empty()) {
            star.step();
            if (random.uniform() < 0.05) {
                ASSERT_EQ(base::message_of(star.network.check_conservation()), "");
            }
        }
        EXPECT_EQ(star.arrivals.size() + drops.count, frames) << round;
        EXPECT_EQ(star.network.settled_occupancy(kSwitch, star.now), 0) << round;
        cut += star.network.cut_frames();
        dropped += drops.count;
    }
    EXPECT_GT(cut, 1'000U);
    EXPECT_GT(dropped - cut, 1'000U);
}

}  // namespace
}  // namespace daqloom::ethernet
