#include "ethernet/network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace daqloom::ethernet {
namespace {

using base::Bytes;
using base::gigabits_per_second;
using base::microseconds;
using base::Time;

/// Payload that makes a frame of 1000 B, which takes 816 ns at 10 Gb/s.
constexpr Bytes kFrame = 1000;
constexpr Time kFrameTime{816'000};
/// The first switch, and often the only one.
constexpr SwitchIndex kSwitch{0};

struct Sent {
    NodeIndex destination = {};
    EndpointIndex to = {};
    Bytes bytes = kFrame;
    std::uint8_t flags = 0;
    std::uint32_t sack = kNoSack;
    std::uint32_t seq = 0;
};

/// A network driven to its end; hosts only note what arrives.
class Driver {
  public:
    struct Arrival {
        Time at;
        LinkIndex link;
        Frame frame;
    };

    void send(LinkIndex link, const Sent& sent, Time at) {
        Frame& frame = network.append(link, sent.bytes, at);
        frame.seq = sent.seq;
        frame.ack = 0;
        frame.to = sent.to;
        frame.sack = sent.sack;
        frame.payload = static_cast<std::uint16_t>(sent.bytes - 70);
        frame.bytes = static_cast<std::uint16_t>(sent.bytes);
        frame.send_to(sent.destination, sent.flags);
    }
    void send_later(LinkIndex link, const Sent& sent, Time at) {
        planned_.push_back({link, sent});
        events.push({at, kPlanned, static_cast<std::uint32_t>(planned_.size() - 1)});
    }

    void run(Time until = Time::never()) {
        while (!events.empty() && events.next_time() <= until) {
            step();
        }
    }
    void step() {
        const sim::Event event = events.pop();
        now = event.at;
        if (event.kind == kDelivery) {
            const LinkIndex link(event.index);
            network.on_delivery(link, now, Hosts{*this, link});
        } else if (event.kind == kPortFree) {
            network.on_port_free(LinkIndex(event.index), now);
        } else {
            send(planned_[event.index].first, planned_[event.index].second, now);
        }
    }

    sim::EventQueue events;
    Network network{events};
    Time now;
    std::vector<Arrival> arrivals;

  private:
    struct Hosts {
        Driver& driver;
        LinkIndex link;

        void receive(const Frame& frame) const {
            driver.arrivals.push_back({driver.now, link, frame});
            if (frame.sack != kNoSack) {
                driver.network.sacks().release(frame.sack);
            }
        }
        void expect(const Frame& /*frame*/) const {}
    };

    static constexpr std::uint32_t kPlanned = kFirstHostEvent;
    std::vector<std::pair<LinkIndex, Sent>> planned_;
};

/// Hosts around one switch: host h sends on link 2h and receives on link 2h + 1.
class Star : public Driver {
  public:
    Star(std::uint16_t hosts, const SwitchConfig& config,
         const LinkConfig& up = {gigabits_per_second(10), Time::zero()},
         const LinkConfig& down = {gigabits_per_second(10), Time::zero()}) {
        network.add_switch(config, hosts);
        for (std::uint16_t host = 0; host < hosts; ++host) {
            network.add_link(up, {.to_switch = kSwitch, .to_port = host}, "up");
            const LinkIndex link =
                network.add_link(down, {.from_switch = kSwitch, .from_port = host}, "down");
            network.route(kSwitch, NodeIndex(host), std::span(&link, 1));
        }
    }
    ~Star() {
        const auto conserved = network.check_conservation();
        EXPECT_TRUE(conserved) << conserved.error().message;
        EXPECT_EQ(network.sacks().in_use(), 0U);
    }
    Star(const Star&) = delete;
    Star& operator=(const Star&) = delete;

    [[nodiscard]] static LinkIndex up(std::uint32_t host) { return LinkIndex(2 * host); }
    [[nodiscard]] static LinkIndex down(std::uint32_t host) { return LinkIndex(2 * host + 1); }
};

SwitchConfig voq(Bytes buffer, Bytes queue_limit = 0) {
    SwitchConfig config;
    config.model = BufferModel::voq;
    config.buffer = buffer;
    config.port_limit = queue_limit;
    return config;
}

SwitchConfig drop_tail(std::uint32_t packets) {
    SwitchConfig config;
    config.model = BufferModel::drop_tail;
    config.queue_packets = packets;
    return config;
}

// --- indices -------------------------------------------------------------------------------------

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

// --- the way of a frame ------------------------------------------------------------------------

TEST(Network, AFrameGoesToItsHostAndNowhereElse) {
    Star star(4, {});
    for (std::uint32_t host = 0; host < 4; ++host) {
        star.send(Star::up(3 - host), {.destination = NodeIndex(host)}, Time::zero());
    }
    star.run();
    ASSERT_EQ(star.arrivals.size(), 4U);
    for (const auto& arrival : star.arrivals) {
        EXPECT_EQ(arrival.link, Star::down(arrival.frame.destination().value()));
    }
}

/// Store and forward: the switch sends a frame on when it has all of it.
TEST(Network, AFrameTakesItsTimeOnEveryWireAndEveryDelay) {
    Star star(2, {}, {gigabits_per_second(10), microseconds(1)},
              {gigabits_per_second(1), microseconds(3)});
    star.send(Star::up(0), {.destination = NodeIndex(1)}, microseconds(5));
    star.run();
    EXPECT_EQ(star.arrivals.at(0).at,
              microseconds(5) + kFrameTime + microseconds(1) + kFrameTime * 10 + microseconds(3));
}

/// Hosts 0 (at switch 0) and 1 (at switch 1) with several links between the switches.
class Bundle : public Driver {
  public:
    explicit Bundle(std::uint16_t uplinks) {
        const auto ports = static_cast<std::uint16_t>(uplinks + 1);
        const SwitchIndex near = network.add_switch({}, ports);
        const SwitchIndex far = network.add_switch({}, ports);
        const LinkConfig link{gigabits_per_second(10), Time::zero()};
        network.add_link(link, {.to_switch = near, .to_port = uplinks}, "up");
        const LinkIndex down =
            network.add_link(link, {.from_switch = far, .from_port = uplinks}, "down");
        std::vector<LinkIndex> up;
        for (std::uint16_t i = 0; i < uplinks; ++i) {
            up.push_back(network.add_link(link, {near, i, far, i}, "uplink"));
        }
        network.route(near, NodeIndex(1), up);
        network.route(far, NodeIndex(1), std::span(&down, 1));
    }
    static constexpr LinkIndex kHostLink{0};
    static constexpr LinkIndex kFirstUplink{2};
};

TEST(Network, AllFramesOfAConnectionTakeTheSameUplinkInBothOfItsEndpoints) {
    for (std::uint32_t connection = 0; connection < 50; ++connection) {
        Bundle bundle(4);
        for (int i = 0; i < 10; ++i) {
            for (const std::uint32_t end : {0U, 1U}) {
                bundle.send(
                    Bundle::kHostLink,
                    {.destination = NodeIndex(1), .to = EndpointIndex(2 * connection + end)},
                    Time::zero());
            }
        }
        bundle.run();
        ASSERT_EQ(bundle.arrivals.size(), 20U);
        int used = 0;
        for (std::uint32_t link = 0; link < 4; ++link) {
            const auto frames = bundle.network.link(Bundle::kFirstUplink + link).counters().frames;
            EXPECT_TRUE(frames == 0 || frames == 20);
            used += frames == 20 ? 1 : 0;
        }
        EXPECT_EQ(used, 1);
    }
}

/// If each of n connections chose one of k links at random, a link would have n/k ± 5·√(n/k·(1 −
/// 1/k)) of them at worst; a hash that spreads better is welcome.
TEST(Network, ConnectionsSpreadOverTheUplinks) {
    constexpr int connections = 48 * 32;
    for (const int uplinks : {2, 3, 4, 8, 16}) {
        Bundle bundle(static_cast<std::uint16_t>(uplinks));
        for (std::uint32_t connection = 0; connection < connections; ++connection) {
            bundle.send(Bundle::kHostLink,
                        {.destination = NodeIndex(1), .to = EndpointIndex(2 * connection)},
                        Time::zero());
        }
        bundle.run();
        const double share = double{connections} / uplinks;
        for (std::uint32_t link = 0; link < static_cast<std::uint32_t>(uplinks); ++link) {
            const auto frames = static_cast<double>(
                bundle.network.link(Bundle::kFirstUplink + link).counters().frames);
            EXPECT_NEAR(frames, share, 5 * std::sqrt(share * (1 - 1.0 / uplinks)));
        }
    }
}

// --- buffers -------------------------------------------------------------------------------------

/// Ten frames arrive at once from ten hosts; the output sends one, holds three and has no room for
/// six: a frame in transmission still lies in the buffer.
TEST(Network, WhatFindsAFullQueueIsDroppedAndCountedAtItsOutput) {
    Star star(12, drop_tail(4));
    for (std::uint32_t host = 1; host <= 10; ++host) {
        star.send(Star::up(host), {.destination = NodeIndex(0)}, Time::zero());
    }
    star.send(Star::up(1), {.destination = NodeIndex(11)}, Time::zero());
    star.run();
    EXPECT_EQ(star.network.link_drops(Star::down(0)), 6U);
    EXPECT_EQ(star.network.link_drops(Star::down(11)), 0U);
    EXPECT_EQ(star.network.buffer(kSwitch).port(0).dropped_bytes, 6 * kFrame);
    EXPECT_EQ(star.arrivals.size(), 5U);
}

/// The first frame leaves the buffer one frame time after it came, and is on the wire for 100 µs: a
/// frame that comes in that moment has room, one that comes a picosecond earlier has not.
TEST(Network, AFrameOnTheWireIsNotInTheBuffer) {
    for (const std::int64_t early : {0, 1}) {
        Star star(3, drop_tail(1), {gigabits_per_second(10), Time::zero()},
                  {gigabits_per_second(10), microseconds(100)});
        star.send(Star::up(1), {.destination = NodeIndex(0)}, Time::zero());
        star.send_later(Star::up(2), {.destination = NodeIndex(0)}, kFrameTime - Time{early});
        star.run();
        EXPECT_EQ(star.network.link_drops(Star::down(0)), static_cast<std::uint64_t>(early));
    }
}

/// Frames arrive from 20 hosts at once. The first finds nothing queued, the k-th k − 1 frames: with
/// a threshold of 5 frames, the 7th is the first to find more.
TEST(Network, MarksFramesThatFindMoreThanTheThresholdQueued) {
    SwitchConfig config;
    config.ecn_threshold = 5 * kFrame;
    Star star(21, config);
    for (std::uint32_t host = 1; host <= 20; ++host) {
        star.send(Star::up(host), {.destination = NodeIndex(0), .flags = kEcnCapable, .seq = host},
                  Time::zero());
    }
    star.run();
    ASSERT_EQ(star.arrivals.size(), 20U);
    for (std::size_t i = 0; i < 20; ++i) {
        const bool marked = star.arrivals[i].frame.has(kCongestionExperienced);
        EXPECT_EQ(marked, i >= 6) << i;
    }
    EXPECT_EQ(star.network.marks(), 14U);
}

TEST(Network, NeverMarksFramesThatAreNotEcnCapable) {
    SwitchConfig config;
    config.ecn_threshold = 1;
    Star star(21, config);
    for (std::uint32_t host = 1; host <= 20; ++host) {
        star.send(Star::up(host), {.destination = NodeIndex(0)}, Time::zero());
    }
    star.run();
    EXPECT_EQ(star.network.marks(), 0U);
}

// --- virtual output queues -----------------------------------------------------------------------

TEST(Voq, ServesItsInputsInTurnHoweverMuchEachHasQueued) {
    Star star(4, voq(1 << 20), {gigabits_per_second(100), Time::zero()});
    for (int i = 0; i < 90; ++i) {
        star.send(Star::up(1), {.destination = NodeIndex(0), .to = EndpointIndex(1)}, Time::zero());
    }
    for (int i = 0; i < 30; ++i) {
        star.send(Star::up(2), {.destination = NodeIndex(0), .to = EndpointIndex(2)}, Time::zero());
        star.send(Star::up(3), {.destination = NodeIndex(0), .to = EndpointIndex(3)}, Time::zero());
    }
    star.run();
    ASSERT_EQ(star.arrivals.size(), 150U);
    // Turns begin once all inputs have something queued, after at most one frame of each.
    std::map<EndpointIndex, int> sent;
    for (std::size_t i = 0; i < 90; ++i) {
        ++sent[star.arrivals[i].frame.to];
    }
    EXPECT_NEAR(sent[EndpointIndex(1)], 30, 1);
    EXPECT_NEAR(sent[EndpointIndex(2)], 30, 1);
    EXPECT_NEAR(sent[EndpointIndex(3)], 30, 1);
}

TEST(Voq, KeepsTheFramesOfAnInputInOrderAndTheOutputBusy) {
    Star star(4, voq(1 << 20), {gigabits_per_second(100), Time::zero()});
    std::map<EndpointIndex, std::uint32_t> next;
    for (std::uint32_t i = 0; i < 300; ++i) {
        const EndpointIndex input(1 + i % 3);
        star.send(Star::up(input.value()),
                  {.destination = NodeIndex(0), .to = input, .seq = next[input]++}, Time::zero());
    }
    star.run();
    std::map<EndpointIndex, std::uint32_t> expected;
    for (std::size_t i = 0; i < 300; ++i) {
        const Frame& frame = star.arrivals.at(i).frame;
        EXPECT_EQ(frame.seq, expected[frame.to]++);
        // 81.6 ns on the way in, then one frame time after the other without a pause.
        EXPECT_EQ(star.arrivals[i].at, Time{81'600} + kFrameTime * static_cast<int>(i + 1));
    }
}

/// The output takes 8.16 us for a frame. Within 4.08 us input 1 brings 50 frames: the first is
/// sent, ten fill its queue, 39 are dropped. Input 2 has a queue of its own.
TEST(Voq, AFullQueueOfOneInputLeavesTheOthersTheirs) {
    Star star(3, voq(1 << 20, 10 * kFrame), {gigabits_per_second(100), Time::zero()},
              {gigabits_per_second(1), Time::zero()});
    for (int i = 0; i < 50; ++i) {
        star.send(Star::up(1), {.destination = NodeIndex(0), .to = EndpointIndex(1)}, Time::zero());
    }
    for (int i = 0; i < 9; ++i) {
        star.send_later(Star::up(2), {.destination = NodeIndex(0), .to = EndpointIndex(2)},
                        microseconds(2));
    }
    star.run();
    std::map<EndpointIndex, int> came;
    for (const auto& arrival : star.arrivals) {
        ++came[arrival.frame.to];
    }
    EXPECT_EQ(came[EndpointIndex(1)], 11);
    EXPECT_EQ(came[EndpointIndex(2)], 9);
    EXPECT_EQ(star.network.link_drops(Star::down(0)), 39U);
}

/// As before, with a threshold that the fourth of the eleven admitted frames is the first to
/// exceed.
TEST(Voq, MarksNoFrameThatItsFullQueueRefuses) {
    SwitchConfig config = voq(1 << 20, 10 * kFrame);
    config.ecn_threshold = 2 * kFrame;
    Star star(2, config, {gigabits_per_second(100), Time::zero()},
              {gigabits_per_second(1), Time::zero()});
    for (int i = 0; i < 50; ++i) {
        star.send(Star::up(1), {.destination = NodeIndex(0), .flags = kEcnCapable}, Time::zero());
    }
    star.run();
    ASSERT_EQ(star.arrivals.size(), 11U);
    for (std::size_t i = 0; i < 11; ++i) {
        const bool marked = star.arrivals[i].frame.has(kCongestionExperienced);
        EXPECT_EQ(marked, i >= 3) << i;
    }
    EXPECT_EQ(star.network.marks(), 8U);
}

TEST(Voq, IsFullWhenAllQueuesTogetherFillTheBuffer) {
    Star star(11, voq(4 * kFrame));
    for (std::uint32_t host = 1; host <= 10; ++host) {
        star.send(Star::up(host), {.destination = NodeIndex(0)}, Time::zero());
    }
    star.run();
    EXPECT_EQ(star.network.link_drops(Star::down(0)), 6U);
}

// --- occupancy and conservation under random traffic ---------------------------------------------

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
    return config;
}

/// Bursts from random hosts to random hosts, with SACK slots now and then.
void send_bursts(Star& star, std::uint32_t hosts, base::RandomStream& random) {
    Time at{};
    for (int burst = 0; burst < 60; ++burst) {
        at += Time::from_seconds(random.exponential(10e-6));
        const NodeIndex destination(random.uniform_int(hosts));
        for (std::uint64_t i = random.uniform_int(30); i > 0; --i) {
            Sent sent{.destination = destination,
                      .to = EndpointIndex(random.uniform_int(64)),
                      .bytes = static_cast<Bytes>(71 + random.uniform_int(1448)),
                      .flags = random.uniform() < 0.5 ? kEcnCapable : std::uint8_t{0}};
            if (random.uniform() < 0.2) {
                sent.sack = star.network.sacks().put({});
            }
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
                const auto conserved = star.network.check_conservation();
                ASSERT_TRUE(conserved) << conserved.error().message;
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
        star.send(Star::up(0), {.destination = NodeIndex(1), .seq = i}, Time::zero());
    }
    star.run();
    EXPECT_EQ(star.network.injected_losses(), 9U);
    ASSERT_EQ(star.arrivals.size(), 86U);
    for (const auto& arrival : star.arrivals) {
        EXPECT_NE(arrival.frame.seq % 10, 0U);
    }
}

/// Notes when frames come into the switch and leave its buffer, and what follows for its content.
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
    /// A frame that leaves in the moment in which another comes makes room for it.
    [[nodiscard]] Bytes peak() {
        std::stable_sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
            return std::pair(a.at, a.order) < std::pair(b.at, b.order);
        });
        Bytes held = 0;
        Bytes peak = 0;
        for (std::size_t i = 0; i < changes_.size(); ++i) {
            held += changes_[i].bytes;
            // A drop follows its arrival at once; it was never held.
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

/// Packets of one size come at random times, independently: an M/D/1 queue. Pollaczek and
/// Khinchine: the time average of the number in it is ρ + ρ²/2(1 − ρ). A 99 % interval misses that
/// once in a hundred; that 3 or more of 40 do has a probability of 0.7 %.
TEST(Network, PoissonPacketsQueueAsInMD1) {
    int misses = 0;
    for (const double load : {0.3, 0.5, 0.7, 0.8}) {
        const double expected = load + load * load / (2 * (1 - load));
        std::vector<sim::TimeSeries::Bin> batches;
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
            base::RandomStream random(seed, "poisson." + std::to_string(load));
            // Injected at the queue: the way in takes each frame 8 ps.
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
                star.send(Star::up(0), {.destination = NodeIndex(1)}, next);
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
