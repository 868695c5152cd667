// Links that fail and recover, and tables that change, during a run.

#include <cmath>

#include "infiniband/network_play_test.hpp"
#include "infiniband/random_fabric_test.hpp"

namespace daqloom::infiniband {
namespace {

using base::Time;
using What = LinkChange::What;

constexpr Time kPacket{kFull * 80};  ///< on a wire of 100 Gb/s

LinkChange change(Time at, std::uint32_t link, What what) {
    LinkChange one;
    one.at = at;
    one.link = link;
    one.what = what;
    return one;
}

/// Numbers of the packets that did not arrive.
std::vector<std::uint32_t> lost(const NetworkPlay& play) {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < play.deliveries.size(); ++i) {
        if (!play.deliveries[i].delivered) {
            all.push_back(i);
        }
    }
    return all;
}

/// Host 0 sends from time 0 on. At 10.5 packet times, half of the 11th packet has left. The wire
/// holds 3.5 packet times, so that three earlier packets and another half are still on it.
TEST(Changes, ALinkThatComesBackBeforeItsDetectionCostsThePacketsOnIt) {
    FabricConfig config = star(2, base::gigabits_per_second(100), kPacket * 7 / 2);
    const Time broken = kPacket * 21 / 2;
    const Time mended = kPacket * 40;
    config.changes = {change(broken, 0, What::dark), change(mended, 0, What::up)};
    const NetworkPlay play(config, packets(0, 1, 30));
    // Packet k has arrived at the switch as a whole after k + 1 + 3.5 packet times: at the failure,
    // packets from 7 on have not, and packets up to 10 have begun.
    EXPECT_EQ(lost(play), (std::vector<std::uint32_t>{7, 8, 9, 10}));
    EXPECT_EQ(play.network->counters(end_at(0, 1)).cut, 4);
    EXPECT_EQ(play.network->counters(end_at(0, 1)).dropped, 0);
    EXPECT_EQ(play.network->bad(), 4);
    // The next one begins when the link is up.
    const Time way = config.cables[0].delay * 2 + config.switch_latency + Time{64 * 80};
    EXPECT_EQ(play.deliveries[11].at, mended + way + kPacket);
    EXPECT_EQ(play.deliveries[29].at, mended + way + kPacket * 19);
}

/// Ten packets have left when the link fails. From detection until the link is up, the output drops
/// one packet per packet time.
TEST(Changes, AnOutputWhoseLinkIsDownDropsItsPackets) {
    FabricConfig config = star(2);
    const Time broken = kPacket * 10 - Time{1};
    config.changes = {change(broken, 0, What::dark), change(kPacket * 20, 0, What::down),
                      change(kPacket * 25 - Time{1}, 0, What::up)};
    const NetworkPlay play(config, packets(0, 1, 40));
    EXPECT_EQ(play.network->counters(end_at(0, 1)).cut, 1);  // the one before has had 330 ns
    EXPECT_EQ(play.network->counters(end_at(0, 1)).dropped, 5);
    EXPECT_EQ(lost(play), (std::vector<std::uint32_t>{9, 10, 11, 12, 13, 14}));
    EXPECT_EQ(play.network->counters(end_at(0, 1)).packets, 35);
    const Time way = config.cables[0].delay * 2 + config.switch_latency + Time{64 * 80};
    EXPECT_EQ(play.deliveries[15].at, kPacket * 25 + way + kPacket);
}

/// The receiving host frees its buffer, but its updates are lost: the switch uses up its credits,
/// and gets all of them back with the link.
TEST(Changes, CreditsThatGotLostAreMadeUpForByTheNextUpdate) {
    FabricConfig config = star(2);
    config.buffer_blocks = 65 * 6;
    // The changed link, from host 1 to the switch, carries credits for packets to host 1.
    config.changes = {change(kPacket * 10, 2, What::dark), change(kPacket * 11, 2, What::down),
                      change(kPacket * 100, 2, What::up)};
    const NetworkPlay play(config, packets(0, 1, 200));
    EXPECT_TRUE(lost(play).empty());
    std::uint32_t before = 0;
    for (const reference::Delivery& each : play.deliveries) {
        before += each.at < kPacket * 100 ? 1 : 0;
    }
    EXPECT_GE(before, 10 + 4);
    EXPECT_LE(before, 10 + 6);
    EXPECT_EQ(play.deliveries[199].at - play.deliveries[before + 50].at,
              kPacket * (149 - static_cast<std::int64_t>(before)));
}

/// A leaf drops packets for a failed uplink until it forwards by other tables.
TEST(Changes, NewTablesForwardPacketsThatArriveLater) {
    FabricConfig config = fat_tree(2, 2, 2, base::gigabits_per_second(100));
    // Spine 0 leads to host 2 at leaf 1; the cable from leaf 0 to spine 0 has the number 2.
    ASSERT_EQ(config.cables[2].a, end_at(4, 3));
    ASSERT_EQ(config.cables[2].b, end_at(6, 1));
    const Time broken = kPacket * 20;
    const Time noticed = kPacket * 30;
    const Time swept = kPacket * 50;
    config.changes = {change(broken, 4, What::dark), change(broken, 5, What::dark),
                      change(noticed, 4, What::down), change(noticed, 5, What::down)};
    network::Rerouting other{swept, config.forwarding, {}};
    other.forwarding[2] = 4;  // of leaf 0, to host 2: by spine 1
    config.reroutings = {other};
    const NetworkPlay play(config, packets(0, 2, 100));
    const OutputCounters& out = play.network->counters(end_at(4, 3));
    EXPECT_EQ(play.network->counters(end_at(4, 4)).packets, 100 - out.packets - out.dropped);
    EXPECT_EQ(lost(play).size(), out.dropped + out.cut);
    EXPECT_LE(out.cut, 2);
    // From the failure to the new tables, host 0 has sent all the time, or filled the buffers.
    EXPECT_GE(out.dropped, 20);
    EXPECT_LE(out.dropped, 32);
    EXPECT_EQ(lost(play).back() - lost(play).front() + 1, lost(play).size());
}

TEST(Changes, WithoutARouteAPacketIsDiscarded) {
    FabricConfig config = star(2);
    network::Rerouting none{kPacket * 10, config.forwarding, {}};
    none.forwarding[1] = 0;
    config.reroutings = {none};
    const NetworkPlay play(config, packets(0, 1, 50));
    EXPECT_EQ(lost(play).size(), play.network->unrouted());
    EXPECT_NEAR(static_cast<double>(play.network->unrouted()), 40, 2);
}

/// Half of 2000 packets have a bit error, within four standard deviations (binomial).
TEST(Changes, BitErrorsLosePackets) {
    FabricConfig config = star(2);
    LinkChange errors = change(Time{1}, 0, What::errors);
    errors.bit_errors = -std::expm1(std::log(0.5) / (8 * kFull));
    config.changes = {errors};
    const NetworkPlay play(config, packets(0, 1, 2001));
    EXPECT_NEAR(static_cast<double>(lost(play).size()), 1000, 4 * std::sqrt(500));
    EXPECT_EQ(play.network->counters(end_at(0, 1)).cut, lost(play).size());
}

/// Each error delays a packet by one retry. A loss needs nine errors in a row: 1e-9 per packet.
TEST(Changes, ALinkThatSendsAgainIsLaterAndLosesNothing) {
    FabricConfig config = star(2);
    LinkChange errors = change(Time{1}, 0, What::errors);
    errors.bit_errors = -std::expm1(std::log(0.9) / (8 * kFull));
    errors.link_retry = base::nanoseconds(700);
    config.changes = {errors};
    const NetworkPlay play(config, packets(0, 1, 2001));
    EXPECT_TRUE(lost(play).empty());
    const Time late = play.deliveries[2000].at - play.deliveries[0].at - kPacket * 2000;
    EXPECT_EQ(late.ps % errors.link_retry.ps, 0);
    // Errors of a packet until a try succeeds: 1/9 on average, with a variance of 10/81.
    EXPECT_NEAR(static_cast<double>(late.ps / errors.link_retry.ps), 2000.0 / 9,
                4 * std::sqrt(2000 * 10.0 / 81));
}

TEST(Changes, AnotherRateIsThatOfTheNextPacket) {
    FabricConfig config = star(2);
    LinkChange slower = change(kPacket * 10 + Time{1}, 0, What::rate);
    slower.rate = base::gigabits_per_second(50);
    config.changes = {slower};
    const NetworkPlay play(config, packets(0, 1, 30));
    EXPECT_EQ(play.deliveries[10].at - play.deliveries[0].at, kPacket * 10);
    EXPECT_EQ(play.deliveries[29].at - play.deliveries[11].at, kPacket * 36);
}

TEST(Changes, ImpossibleConfigurationsAreRefused) {
    sim::EventQueue events;
    FabricConfig config = star(2);
    const Time early = Time{2} + config.cables[0].delay;  // an update may still be on the wire
    const std::vector<std::vector<LinkChange>> refused{
        {change(Time{1}, 4, What::down)},
        {change(Time{2}, 0, What::down), change(Time{1}, 0, What::down)},
        {change(Time{2}, 0, What::rate)},
        {change(Time{2}, 0, What::dark), change(early, 0, What::up)}};
    for (const auto& changes : refused) {
        config.changes = changes;
        EXPECT_FALSE(Network::make(config, events));
    }
    config.changes = {};
    config.reroutings = {{Time{1}, {1}, {}}};
    EXPECT_FALSE(Network::make(config, events));
}

/// Draws changes for some links: failures, detected or not, bit errors, other rates.
std::vector<LinkChange> random_changes(const FabricConfig& config, std::uint64_t seed) {
    base::RandomStream random(seed, "changes");
    const auto within = [&](std::int64_t ps) {
        return Time{1 +
                    static_cast<std::int64_t>(random.uniform_int(static_cast<std::uint64_t>(ps)))};
    };
    std::vector<LinkChange> all;
    for (std::uint32_t link = 0; link < 2 * config.cables.size(); ++link) {
        Time now = within(20'000'000);
        const Cable& cable = config.cables[link / 2];
        const Time gone = cable.delay + base::WireClock(cable.rate)(config.credit_update_bytes);
        for (std::uint64_t left = random.uniform_int(4); left > 0; --left) {
            now += within(10'000'000);
            if (random.uniform() < 0.2) {
                LinkChange other = change(now, link, What::errors);
                other.bit_errors = random.uniform() * 1e-4;
                other.link_retry = random.uniform() < 0.5 ? Time::zero() : within(1'000'000);
                all.push_back(other);
                continue;
            }
            if (random.uniform() < 0.2) {
                LinkChange other = change(now, link, What::rate);
                other.rate = {cable.rate.bps / 2};
                all.push_back(other);
                continue;
            }
            if (random.uniform() < 0.8) {
                all.push_back(change(now, link, What::dark));
                now += gone + within(10'000'000);
            }
            if (random.uniform() < 0.6) {
                all.push_back(change(now, link, What::down));
                now += gone + within(10'000'000);
            }
            all.push_back(change(now, link, What::up));
        }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const LinkChange& a, const LinkChange& b) { return a.at < b.at; });
    return all;
}

/// Blocks and packets add up at every instant (checked by NetworkPlay). In the end all packets have
/// arrived or are counted as lost, unless they wait for one another in a circle or were never sent.
TEST(Changes, NothingIsLostThatIsNotCounted) {
    std::uint64_t lost_by_cause = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        reference::RandomFabric drawn = reference::random_fabric(seed);
        drawn.config.changes = random_changes(drawn.config, seed);
        drawn.config.seed = seed;
        const NetworkPlay play(drawn.config, drawn.traffic);
        const Network& network = *play.network;
        const auto arrived = static_cast<std::uint64_t>(
            std::count_if(play.deliveries.begin(), play.deliveries.end(),
                          [](const reference::Delivery& each) { return each.delivered; }));
        EXPECT_EQ(arrived, network.delivered());
        EXPECT_EQ(drawn.traffic.size(), arrived + network.discarded() + network.dropped() +
                                            network.bad() + network.in_network());
        std::uint64_t cut = 0;
        for (const Cable& cable : drawn.config.cables) {
            cut += network.counters(cable.a).cut + network.counters(cable.b).cut;
        }
        EXPECT_LE(network.bad(), cut);
        if (network.in_network() == 0) {
            EXPECT_EQ(network.bad(), cut);
        }
        lost_by_cause += network.bad() + network.dropped();
    }
    EXPECT_GT(lost_by_cause, 1000);
}

}  // namespace
}  // namespace daqloom::infiniband
