// Incast: a burst beyond the buffer of the top-of-rack switch costs timeouts, a smaller one
// nothing.

#include "systems/rack/fixture_test.hpp"

namespace daqloom::systems {
namespace {

using base::Bytes;
using base::gigabits_per_second;
using base::microseconds;
using base::milliseconds;
using base::Time;

// --- the all-to-one test of the lossless software switch -----------------------------------------
//
// 110 readout units on eleven 10 Gb/s ports answer one collector at once, 89 packets each: 9790
// packets into a ring that the switch serves at 0.78 Gb/s. The pace counts bits of IP packets.

constexpr std::int64_t kIncastFlows = 110;
constexpr std::int64_t kPacketsPerFlow = 89;
constexpr std::int64_t kPacketsPerEvent = kIncastFlows * kPacketsPerFlow;
constexpr double kPacketSeconds = 1500 * 8 / 0.78e9;

RackConfig all_to_one(std::uint32_t ring) {
    RackConfig config;
    config.readout_units = kIncastFlows;
    config.builder_units = 1;
    config.concurrent_events = 1;
    config.arrivals.rate_hz = 5;
    config.event_size.mean = kPacketsPerEvent * 1448;
    config.readout_link = {gigabits_per_second(1), microseconds(1), {}};  // ten share a port
    config.uplink = {gigabits_per_second(110), microseconds(1), {}};
    config.access_link = {gigabits_per_second(10), microseconds(1)};
    config.tor.model = BufferModel::software;
    config.tor.software.ring_packets = ring;
    config.tor.software.pace = {780'000'000};
    config.tor.software.pace_counts_wire = false;
    config.tor.software.destinations = {network::NodeIndex(kIncastFlows)};
    config.duration = milliseconds(790);  // three events
    config = without_chance(config);
    config.tcp.static_window = kPacketsPerFlow * 1448;
    // Nothing is acknowledged for 150 ms: each flow would send a probe after 2 ms, 110 frames more.
    config.tcp.tail_loss_probe = false;
    return config;
}

using LosslessSwitch = RackTest;

/// 9790 packets · 1500 B · 8 / 0.78 Gb/s = 150.6 ms.
TEST_F(LosslessSwitch, CollectsAnEventInTheTimeOfItsPackets) {
    Rack& rack = run(all_to_one(14'000));
    EXPECT_EQ(rack.report().events_built, 3U);
    EXPECT_EQ(rack.report().drops, 0U);
    const double expected_s = kPacketsPerEvent * kPacketSeconds;
    EXPECT_NEAR(expected_s, 0.1506, 0.0001);
    EXPECT_NEAR(rack.latency().mean_ps() * 1e-12, expected_s, 0.002 * expected_s);
    // Without jitter, all these events take equally long.
    EXPECT_NEAR(rack.latency().max().seconds(), rack.latency().min().seconds(), 0.002 * expected_s);
}

/// The burst comes in at 110 times 1 Gb/s, in 89 · 1538 · 8 / 1 Gb/s = 1.095 ms. Meanwhile a packet
/// leaves at once and 71 at the pace: all others need a place in the ring. New connections send an
/// acknowledgement of the first request ahead of its answer, which costs as much pace as three
/// packets: so the first event does not count.
TEST_F(LosslessSwitch, NeedsARingOfTheBurstLessDepartures) {
    const double burst_s = kPacketsPerFlow * 1538 * 8 / 1e9;
    const auto leave = 1 + static_cast<std::int64_t>(burst_s / kPacketSeconds);
    const auto ring = static_cast<std::uint32_t>(kPacketsPerEvent - leave);
    EXPECT_EQ(ring, 9'718U);
    const auto drops = [this](std::uint32_t places) {
        RackConfig config = all_to_one(places);
        config.warmup = milliseconds(390);
        return run(config).report().drops;
    };
    EXPECT_EQ(drops(ring), 0U);
    EXPECT_GT(drops(ring - 1), 0U);
}

/// Frames dropped at a full ring are retransmitted: after a round trip at best, a timeout at worst.
TEST_F(LosslessSwitch, TakesLongerWithARingThatIsTooSmall) {
    RackConfig config = all_to_one(6'000);
    config.tcp.rack = false;
    Rack& rack = run(config);
    EXPECT_GT(rack.report().tcp.timeouts(), 0U);
    EXPECT_GT(rack.latency().max(), milliseconds(151 + 40));
}

// --- a shallow and a deep buffer -----------------------------------------------------------------

/// Events a tenth of those of the laboratory: 16 readout units, 4 builders at 10 Gb/s, 500 kB at 2
/// kHz. With a load of 20 % it is the bursts that matter, not the rate.
RackConfig tenth_of_the_lab() {
    RackConfig config;
    config.readout_units = 16;
    config.builder_units = 4;
    config.arrivals.rate_hz = 2e3;
    config.event_size.mean = 500'000;
    config.readout_link = {gigabits_per_second(25), microseconds(1), {}};
    config.uplink = {gigabits_per_second(200), microseconds(1), {}};
    config.access_link = {gigabits_per_second(10), microseconds(1), {}};
    config.tcp.initial_window = 40;
    config.duration = milliseconds(1'000);
    config.warmup = milliseconds(200);
    return config;
}

/// A scaled-down qfx5120-48y: cells of 256 B with 64 B of metadata, dynamic threshold.
SwitchConfig shallow() {
    SwitchConfig config;
    config.model = BufferModel::shared_memory;
    config.buffer = 160'000;
    config.dedicated = 25'000;
    config.cell_size = 256;
    config.cell_metadata = 64;
    return config;
}

/// A scaled-down acx7100-48l: virtual output queues in one deep memory.
SwitchConfig deep() {
    SwitchConfig config;
    config.model = BufferModel::voq;
    config.buffer = 40'000'000;
    return config;
}

using ShallowAgainstDeep = RackTest;

TEST_F(ShallowAgainstDeep, TheDeepBufferBuildsWhateverArrives) {
    RackConfig config = tenth_of_the_lab();
    config.tor = deep();
    Rack& rack = run(config);
    const RackReport report = rack.report();
    EXPECT_EQ(report.drops, 0U);
    EXPECT_EQ(report.tcp.timeouts(), 0U);
    EXPECT_EQ(report.events_waiting, 0U);
    EXPECT_LT(rack.latency().max(), milliseconds(20));
}

TEST_F(ShallowAgainstDeep, TheShallowBufferCollapsesIntoTimeoutsOf200Milliseconds) {
    RackConfig config = tenth_of_the_lab();
    config.tor = shallow();
    Rack& rack = run(config);
    const RackReport report = rack.report();
    EXPECT_GT(report.drops, 1'000U);
    EXPECT_GT(report.tcp.timeouts(), 50U);
    EXPECT_GT(rack.latency().quantile(0.5), milliseconds(200));
    // 128 events at once wait for one timeout each or more.
    EXPECT_LT(static_cast<double>(report.events_built) / 0.8, 0.8 * 2e3);
}

/// Events that fit, on the same rack: the shallow buffer is no worse than the deep one.
TEST_F(ShallowAgainstDeep, TheShallowBufferKeepsUpWithEventsWithinItsReach) {
    for (const SwitchConfig& tor : {shallow(), deep()}) {
        RackConfig config = tenth_of_the_lab();
        config.event_size.mean = 20'000;
        config.tor = tor;
        Rack& rack = run(config);
        EXPECT_EQ(rack.report().drops, 0U);
        EXPECT_LT(rack.latency().max(), milliseconds(1));
    }
}

// --- marks in a shallow buffer -------------------------------------------------------------------
//
// 48 readout units answer one builder with 72 segments each, through 0.5 MB of buffer, 329 packets,
// of which those beyond 130 are marked. The first windows of six, 288 packets, fit; what slow start
// adds before the marks are echoed does not, and only SACK repairs it, without RACK and probes. A
// window that falls over the round trip lets segments follow the lost ones, whose SACKs tell of
// them; one that falls at once lets none follow, and some connections wait for the time-out.

using MarkedIncast = RackTest;

TEST_F(MarkedIncast, IsRepairedWithoutATimeout) {
    constexpr Bytes kReadoutUnits = 48;
    constexpr Bytes kFragment = 104'167;
    constexpr Bytes kSegments = (kFragment + 1447) / 1448;
    RackConfig config = atlas_lab();
    config.builder_units = 1;
    config.arrivals.kind = protocol::ArrivalsConfig::Kind::trace;
    config.arrivals.trace_times = {microseconds(1)};
    config.event_size.mean = kReadoutUnits * kFragment;
    config.tor.model = BufferModel::drop_tail;
    config.tor.queue_packets = 329;
    config.tor.ecn_threshold = 130 * 1518;
    config.tcp.congestion = CongestionControl::dctcp;
    config.tcp.initial_window = 6;
    config.tcp.ack_every = 1;
    config.tcp.rack = false;
    config.tcp.tail_loss_probe = false;
    config.warmup = Time::zero();
    config.duration = milliseconds(5);
    Rack& rack = run(config);
    const RackReport report = rack.report();
    EXPECT_GT(report.drops, 10U);
    EXPECT_EQ(report.tcp.timeouts(), 0U);
    EXPECT_EQ(report.tcp.fast_retransmissions, report.drops);
    EXPECT_EQ(report.events_built, 1U);
    // The builder's link is never idle for long: 72 segments of each readout unit with 90 B of
    // headers and wire, 1.70 ms.
    const double least_s = kReadoutUnits * (kFragment + kSegments * 90) * 8 / 25e9;
    EXPECT_GT(rack.latency().max().seconds(), least_s);
    EXPECT_LT(rack.latency().max().seconds(), 1.05 * least_s);
}

}  // namespace
}  // namespace daqloom::systems
