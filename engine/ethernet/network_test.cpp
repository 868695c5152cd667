#include "ethernet/network.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ethernet/star_test.hpp"
#include "sim/batch_means_test.hpp"

namespace daqloom::ethernet {
namespace {

// --- indices

static_assert(!std::is_convertible_v<LinkIndex, EndpointIndex>);
static_assert(!std::is_convertible_v<SwitchIndex, LinkIndex>);
static_assert(!std::is_convertible_v<std::uint32_t, LinkIndex>);

TEST(Endpoints, AConnectionHasTwoOfWhichTheEvenOneOpenedIt) {
    constexpr EndpointIndex opened{14};
    constexpr EndpointIndex other{15};
    EXPECT_EQ(peer(opened), other);
    EXPECT_EQ(peer(other), opened);
    for (const EndpointIndex end : {opened, other}) {
        EXPECT_EQ(connection(end), 7U);
        EXPECT_EQ(opener(end), opened);
    }
}

TEST(Wiring, WithoutASwitchIsAtAHost) {
    const Wiring up{.to_switch = SwitchIndex(0), .to_port = 3};
    EXPECT_TRUE(up.from_host());
    EXPECT_FALSE(up.to_host());
    const Wiring down{.from_switch = SwitchIndex(0), .from_port = 3};
    EXPECT_FALSE(down.from_host());
    EXPECT_TRUE(down.to_host());
}

// --- the way of a frame

TEST(Network, AFrameGoesToItsHostAndNowhereElse) {
    Star star(4, {});
    for (std::uint32_t host = 0; host < 4; ++host) {
        star.send(Star::up(3 - host), {.to_host = host}, Time::zero());
    }
    star.run();
    ASSERT_EQ(star.arrivals.size(), 4U);
    for (const auto& arrival : star.arrivals) {
        EXPECT_EQ(arrival.link, Star::down(arrival.frame.destination().value()));
    }
}

/// Store and forward: the switch sends a frame on when the whole frame has arrived.
TEST(Network, AFrameTakesItsTimeOnEveryWireAndEveryDelay) {
    Star star(2, {}, {gigabits_per_second(10), microseconds(1)},
              {gigabits_per_second(1), microseconds(3)});
    star.send(Star::up(0), {.to_host = 1}, microseconds(5));
    star.run();
    EXPECT_EQ(star.arrivals.at(0).at,
              microseconds(5) + kFrameTime + microseconds(1) + kFrameTime * 10 + microseconds(3));
}

/// Host 0 at switch 0 and host 1 at switch 1, with several links between the switches.
class Bundle : public Driver {
  public:
    explicit Bundle(std::uint16_t uplinks) {
        const auto ports = static_cast<std::uint16_t>(uplinks + 1);
        const SwitchIndex near = network.add_switch({}, ports);
        const SwitchIndex far = network.add_switch({}, ports);
        network.add_link(kTen, {.to_switch = near, .to_port = uplinks}, "up");
        const LinkIndex down =
            network.add_link(kTen, {.from_switch = far, .from_port = uplinks}, "down");
        std::vector<LinkIndex> up;
        for (std::uint16_t i = 0; i < uplinks; ++i) {
            up.push_back(network.add_link(kTen, {near, i, far, i}, "uplink"));
        }
        network.route(near, NodeIndex(1), up);
        network.route(far, NodeIndex(1), std::span(&down, 1));
    }
    static constexpr LinkIndex kHostLink{0};
    static constexpr LinkIndex kFirstUplink{2};
};

TEST(Network, AllFramesOfAFlowTakeTheSameUplink) {
    for (std::uint32_t endpoint = 0; endpoint < 50; ++endpoint) {
        Bundle bundle(4);
        for (int i = 0; i < 10; ++i) {
            bundle.send(Bundle::kHostLink, {.to_host = 1, .to = EndpointIndex(endpoint)},
                        Time::zero());
        }
        bundle.run();
        ASSERT_EQ(bundle.arrivals.size(), 10U);
        for (std::uint32_t link = 0; link < 4; ++link) {
            const auto frames = bundle.network.port(Bundle::kFirstUplink + link).counters().frames;
            EXPECT_TRUE(frames == 0 || frames == 10);
        }
    }
}

/// Two levels of ECMP: four links from the first switch to four switches, and four links from each
/// of those to the last switch. Switches with equal seeds polarise: all flows on link i of the
/// first switch take link i of the second.
TEST(Network, SwitchesWithSeedsOfTheirOwnUseAllLinksOfTheNextLevel) {
    constexpr std::uint16_t ways = 4;
    constexpr std::uint32_t flows = 3200;
    for (const bool seeded : {true, false}) {
        Driver driver;
        const auto seed = [&](std::uint32_t own) {
            SwitchConfig config;
            config.hash_seed = seeded ? own : 0;
            return config;
        };
        ethernet::Network& network = driver.network;
        const SwitchIndex first = network.add_switch(seed(1), ways + 1);
        const SwitchIndex last = network.add_switch(seed(2), ways * ways + 1);
        network.add_link(kFast, {.to_switch = first, .to_port = ways}, "up");
        const LinkIndex down =
            network.add_link(kFast, {.from_switch = last, .from_port = ways * ways}, "down");
        network.route(last, NodeIndex(1), std::span(&down, 1));
        std::vector<LinkIndex> upper;
        std::vector<LinkIndex> all;
        for (std::uint16_t i = 0; i < ways; ++i) {
            const SwitchIndex middle = network.add_switch(seed(3 + i), ways + 1);
            upper.push_back(network.add_link(kFast, {first, i, middle, ways}, "upper"));
            std::vector<LinkIndex> lower;
            for (std::uint16_t k = 0; k < ways; ++k) {
                const auto port = static_cast<std::uint16_t>(i * ways + k);
                lower.push_back(network.add_link(kFast, {middle, k, last, port}, "lower"));
            }
            network.route(middle, NodeIndex(1), lower);
            all.insert(all.end(), lower.begin(), lower.end());
        }
        network.route(first, NodeIndex(1), upper);
        for (std::uint32_t flow = 0; flow < flows; ++flow) {
            driver.send(LinkIndex(0), {.to_host = 1, .to = EndpointIndex(2 * flow)}, Time::zero());
        }
        driver.run();
        for (std::size_t link = 0; link < all.size(); ++link) {
            const double frames = static_cast<double>(network.port(all[link]).counters().frames);
            const bool is_used = seeded || link % (ways + 1) == 0;
            const double expected = is_used ? flows / (seeded ? 16.0 : 4.0) : 0;
            EXPECT_NEAR(frames, expected, 5 * std::sqrt(expected)) << link;
        }
    }
}

// --- buffers

/// Ten frames arrive together from ten hosts. The output sends one frame, which still lies in the
/// buffer during its transmission, holds three, and drops six for lack of space.
TEST(Network, AFrameAtAFullQueueIsDroppedAndCountedAtItsOutput) {
    Star star(12, drop_tail(4));
    star.from_each(1, 10, {.to_host = 0});
    star.send(Star::up(1), {.to_host = 11}, Time::zero());
    star.run();
    EXPECT_EQ(star.network.link_drops(Star::down(0)), 6U);
    EXPECT_EQ(star.network.link_drops(Star::down(11)), 0U);
    EXPECT_EQ(star.network.buffer(kSwitch).port(0).dropped_bytes, 6 * kFrame);
    EXPECT_EQ(star.arrivals.size(), 5U);
}

/// Ten frames arrive together from ten hosts. A shaper with a bucket of two frames sends two at
/// once; its output holds four more, and drops four for lack of space.
TEST(Network, FramesSentFromAShapersBucketLeaveTheBuffer) {
    Star star(12, drop_tail(4), kTen,
              {gigabits_per_second(10), Time::zero(), {}, false, 2 * (kFrame + kWireOverhead)});
    star.from_each(1, 10, {.to_host = 0});
    star.run();
    EXPECT_EQ(star.network.link_drops(Star::down(0)), 4U);
    ASSERT_EQ(star.arrivals.size(), 6U);
    for (std::size_t i = 0; i < star.arrivals.size(); ++i) {
        EXPECT_EQ(star.arrivals[i].at,
                  kFrameTime * (1 + std::max<std::int64_t>(0, static_cast<std::int64_t>(i) - 1)));
    }
}

/// The first frame leaves the buffer one frame time after its arrival, and is on the wire for 100
/// µs. A frame that arrives as it leaves has space; one that arrives 1 ps earlier has not.
TEST(Network, AFrameOnTheWireIsNotInTheBuffer) {
    for (const std::int64_t early : {0, 1}) {
        Star star(3, drop_tail(1), kTen, {gigabits_per_second(10), microseconds(100)});
        star.send(Star::up(1), {.to_host = 0}, Time::zero());
        star.send_later(Star::up(2), {.to_host = 0}, kFrameTime - Time{early});
        star.run();
        EXPECT_EQ(star.network.link_drops(Star::down(0)), static_cast<std::uint64_t>(early));
    }
}

/// Frames arrive from 20 hosts together. Frame k finds k − 1 frames queued, so that with a
/// threshold of 5 frames, frame 7 is the first to find more.
TEST(Network, MarksFramesThatFindMoreThanTheThresholdQueuedAndAreEcnCapable) {
    SwitchConfig config;
    config.ecn_threshold = 5 * kFrame;
    for (const bool capable : {true, false}) {
        Star star(21, config);
        star.from_each(1, 20, {.to_host = 0, .flags = capable ? kEcnCapable : std::uint8_t{0}});
        star.run();
        ASSERT_EQ(star.arrivals.size(), 20U);
        star.expect_marks_from(capable ? 6 : 20);
    }
}

// --- occupancy and conservation under random traffic

SwitchConfig any_switch(std::uint64_t which) {
    SwitchConfig config;
    switch (which % 4) {
        case 0:
            break;
        case 1:
            config = drop_tail(12);
            break;
        case 2:
            config.model = BufferModel::shared_memory;
            config.buffer = 40'000;
            config.dedicated = 8'000;
            config.cell_size = 256;
            config.cell_metadata = 64;
            break;
        default:
            config = voq(30'000, 8'000);
            break;
    }
    config.ecn_threshold = 5'000;
    if (which / 4 % 3 == 1) {
        config.schedule = {Scheduling::strict, {}};
    } else if (which / 4 % 3 == 2) {
        config.schedule = {Scheduling::weighted, {1, 2, 5, 10, 3, 1}};
    }
    return config;
}

/// Sends bursts from random hosts to random hosts; some frames have a SACK slot.
void send_bursts(Star& star, std::uint32_t hosts, base::RandomStream& random) {
    Time at{};
    for (int burst = 0; burst < 60; ++burst) {
        at += Time::from_seconds(random.exponential(10e-6));
        const std::uint64_t to_host = random.uniform_int(hosts);
        for (std::uint64_t i = random.uniform_int(30); i > 0; --i) {
            Sent sent = star.draw_frame(random, to_host);
            sent.to = EndpointIndex(random.uniform_int(64));
            sent.flags = random.uniform() < 0.5 ? kEcnCapable : std::uint8_t{0};
            star.send_later(Star::up(static_cast<std::uint32_t>(random.uniform_int(hosts))), sent,
                            at);
        }
    }
}

TEST(Network, TheBooksBalanceAtAnyTimeWhateverIsDroppedMarkedOrLost) {
    base::RandomStream random(1, "network");
    std::uint64_t drops = 0;
    std::uint64_t losses = 0;
    for (std::uint64_t round = 0; round < 100; ++round) {
        constexpr std::uint16_t hosts = 6;
        Star star(hosts, any_switch(round));
        for (std::uint32_t host = 0; host < hosts; ++host) {
            star.network.inject_loss({Star::down(host), 0.05, 0}, {round, "down"});
            star.network.inject_loss({Star::up(host), 0, 37}, {round, "up"});
        }
        send_bursts(star, hosts, random);
        while (!star.events.empty()) {
            star.step();
            if (random.uniform() < 0.02) {
                ASSERT_EQ(base::message_of(star.network.check_conservation()), "");
            }
        }
        for (std::uint32_t host = 0; host < hosts; ++host) {
            drops += star.network.link_drops(Star::down(host));
        }
        losses += star.network.injected_losses();
        EXPECT_EQ(star.network.settled_occupancy(kSwitch, star.now), 0);
    }
    EXPECT_GT(drops, 1'000U);
    EXPECT_GT(losses, 1'000U);
}

TEST(Network, LosesEveryNthFrameOfALink) {
    Star star(2, {});
    star.network.inject_loss({Star::down(1), 0, 10}, {1, "loss"});
    for (std::uint32_t i = 1; i <= 95; ++i) {
        star.send(Star::up(0), {.to_host = 1, .seq = i}, Time::zero());
    }
    star.run();
    EXPECT_EQ(star.network.injected_losses(), 9U);
    ASSERT_EQ(star.arrivals.size(), 86U);
    for (const auto& arrival : star.arrivals) {
        EXPECT_NE(arrival.frame.seq % 10, 0U);
    }
}

/// Records when frames enter the switch and leave its buffer, and derives the buffer's occupancy.
class OccupancyWitness : public Observer {
  public:
    explicit OccupancyWitness(Time down_delay) : delay_(down_delay) {}
    void on_delivery(LinkIndex link, const Frame& frame, Time now) override {
        const bool arrives = link.value() % 2 == 0;
        changes_.push_back(
            {arrives ? now : now - delay_, arrives ? 1 : 0, arrives ? frame.bytes : -frame.bytes});
    }
    void on_drop(LinkIndex /*link*/, const Frame& frame, Time now) override {
        changes_.push_back({now, 1, -frame.bytes});
    }
    /// Peak of the occupancy; a frame that leaves makes space for one that arrives at this instant.
    [[nodiscard]] Bytes peak() {
        std::stable_sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
            return std::pair(a.at, a.order) < std::pair(b.at, b.order);
        });
        Bytes held = 0;
        Bytes peak = 0;
        for (std::size_t i = 0; i < changes_.size(); ++i) {
            held += changes_[i].bytes;
            // A drop follows the arrival of its frame directly; the buffer never held the frame.
            const bool dropped =
                i + 1 < changes_.size() && changes_[i + 1].order == 1 && changes_[i + 1].bytes < 0;
            peak = dropped ? peak : std::max(peak, held);
        }
        return peak;
    }

  private:
    struct Change {
        Time at;
        int order;
        Bytes bytes;
    };
    std::vector<Change> changes_;
    Time delay_;
};

TEST(Network, TheRecordedPeakIsThatOfAllFramesCountedByHand) {
    base::RandomStream random(2, "peak");
    for (std::uint64_t round = 0; round < 80; ++round) {
        constexpr std::uint16_t hosts = 5;
        const Time delay = microseconds(7);
        Star star(hosts, any_switch(round), {gigabits_per_second(25), microseconds(1)},
                  {gigabits_per_second(10), delay});
        OccupancyWitness witness(delay);
        star.network.observe(&witness);
        star.network.record_occupancy(Time::zero(), base::milliseconds(20), 1 + round % 7);
        send_bursts(star, hosts, random);
        star.run();
        star.network.finish_recording(base::milliseconds(20));
        EXPECT_EQ(star.network.occupancy(kSwitch)->peak().value, witness.peak()) << round;
    }
}

/// Packets of equal size arrive at independent random times: an M/D/1 queue. By Pollaczek and
/// Khinchine, the time average of the number of packets in it is ρ + ρ²/2(1 − ρ). A 99 % interval
/// misses this value once in a hundred; 3 or more misses of 40 have a probability of 0.7 %.
TEST(Network, PoissonPacketsQueueAsInMD1) {
    int misses = 0;
    for (const double load : {0.3, 0.5, 0.7, 0.8}) {
        const double expected = load + load * load / (2 * (1 - load));
        std::vector<sim::TimeSeries::Bin> batches;
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
            base::RandomStream random(seed, "poisson." + std::to_string(load));
            // Packets are injected at the queue: the link to the switch takes 8 ps per frame.
            Star star(2, {}, {{1'000'000'000'000'000}, Time::zero()});
            constexpr int packets = 60'000;
            const double mean_interval_ps = static_cast<double>(kFrameTime.ps) / load;
            const Time end = Time::from_seconds(packets * mean_interval_ps * 1e-12);
            sim::TimeSeries number(end / 20, end, 20);
            Time next{};
            while (star.now < end) {
                next += Time{static_cast<std::int64_t>(random.exponential(mean_interval_ps))};
                while (!star.events.empty() && star.events.next_time() <= next) {
                    star.step();
                    number.set(star.now,
                               star.network.settled_occupancy(kSwitch, star.now) / kFrame);
                }
                star.now = next;
                star.send(Star::up(0), {.to_host = 1}, next);
            }
            number.finish(end);
            const auto interval = sim::batch_means_99(number.bins());
            misses += interval.contains(expected) ? 0 : 1;
            batches.insert(batches.end(), number.bins().begin(), number.bins().end());
            star.run();
        }
        EXPECT_TRUE(sim::batch_means_99(batches).contains(expected)) << "load " << load;
    }
    EXPECT_LE(misses, 2);
}

}  // namespace
}  // namespace daqloom::ethernet
