// TCP over a whole rack in limiting cases with known answers.
//
// One builder pulls one huge event (backlogged flows) or a few small ones from N readout units:
//
//   N readout units ── core ── uplink ── top of rack ── access link, the bottleneck ── builder
#include <cmath>

#include "systems/rack/fixture_test.hpp"

namespace daqloom::systems {
namespace {

using base::BitRate;
using base::Bytes;
using base::gigabits_per_second;
using base::microseconds;
using base::milliseconds;
using base::seconds;
using base::Time;

constexpr Bytes kBacklog = Bytes{1} << 38;

/// A rack with a single event, at 1 µs.
RackConfig one_event(std::uint32_t readouts, Bytes size) {
    RackConfig config;
    config.readout_units = readouts;
    config.builder_units = 1;
    config.arrivals.kind = protocol::ArrivalsConfig::Kind::trace;
    config.arrivals.trace_times = {microseconds(1)};
    config.event_size.mean = size;
    config.readout_link = {gigabits_per_second(100), microseconds(1)};
    config.uplink = {gigabits_per_second(100), microseconds(1)};
    config.access_link = {gigabits_per_second(10), microseconds(1)};
    config.tcp.receive_window = Bytes{64} << 20;
    config.warmup = microseconds(1);
    config.duration = milliseconds(1);
    return config;
}

class TcpLimits : public RackTest {
  protected:
    RackReport report_of(const RackConfig& config) { return run(config).report(); }

    /// Payload that the builder unit received in order from the only readout unit, from `from` on.
    Bytes received(const RackConfig& config, Time from) {
        Rack& rack = make(config);
        const auto next = [&] { return rack.hosts().receiver(rack.endpoint(0, 0)).next(); };
        rack.run(from);
        const std::uint64_t before = next();
        rack.run(config.duration);
        EXPECT_EQ(rack.report().tcp.timeouts(), 0U);
        return static_cast<Bytes>(next() - before);
    }

    /// Packets per RTT of NewReno over 10 Gb/s and an RTT of 10 ms; the bottleneck is the window,
    /// queues stay empty. Two segments make an acknowledgement: the serialisation of both at 10
    /// Gb/s adds 2.5 µs.
    double newreno_under(const ethernet::LossConfig& loss, Time length) {
        RackConfig config = one_event(1, kBacklog);
        config.uplink.delay = milliseconds(5) - microseconds(2);
        config.tcp.congestion = CongestionControl::newreno;
        config.access_loss = loss;
        config.duration = seconds(8) + length;
        return static_cast<double>(received(config, seconds(8))) /
               static_cast<double>(config.tcp.mss) / length.seconds() * kRtt;
    }
    static constexpr double kRtt = 10e-3;
};

TEST_F(TcpLimits, OneFlowFillsALinkToTheLastByteThatFramingAllows) {
    for (const auto congestion : {CongestionControl::newreno, CongestionControl::cubic,
                                  CongestionControl::dctcp, CongestionControl::static_window}) {
        for (const Bytes mtu : {1500, 9000}) {
            RackConfig config = one_event(1, kBacklog);
            config.tcp.congestion = congestion;
            config.tcp.mss = mtu - 52;
            config.tcp.static_window = Bytes{1} << 20;
            config.duration = milliseconds(30);
            // A segment takes mss + 52 (IPv4, TCP, timestamps) + 18 (Ethernet, FCS) + 20 (preamble,
            // gap) bytes of wire. 20 ms of 10 Gb/s are 25 MB: so many whole segments, one more or
            // less at the borders.
            const Bytes wire = config.tcp.mss + 52 + 18 + 20;
            const Bytes segments = 25'000'000 / wire;
            const Bytes got = received(config, milliseconds(10));
            EXPECT_GE(got, segments * config.tcp.mss) << "MTU " << mtu;
            EXPECT_LE(got, (segments + 1) * config.tcp.mss) << "MTU " << mtu;
        }
    }
}

TEST_F(TcpLimits, AConnectionCarriesMoreThanSequenceNumbersCount) {
    // 4.5 GB over one connection: offsets wrap at 2^32 B. Huge segments, so that it is cheap.
    constexpr Bytes kSize = 4'500'000'000;
    RackConfig config = one_event(1, kSize);
    config.readout_link.rate = config.uplink.rate = config.access_link.rate =
        gigabits_per_second(800);
    config.tcp.mss = 65'000;
    config.access_loss = {.probability = 0, .period = 1000};  // losses across the border as well
    config.duration = milliseconds(100);
    Rack& rack = run(config);
    EXPECT_EQ(rack.report().events_built, 1U);
    EXPECT_EQ(rack.hosts().receiver(rack.endpoint(0, 0)).next(), std::uint64_t{kSize});
    EXPECT_EQ(rack.hosts().sender(peer(rack.endpoint(0, 0))).una(), std::uint64_t{kSize});
}

// Loss: the throughput of NewReno. Bytes acknowledged are counted (RFC 3465), so that delayed
// acknowledgements slow no growth: b = 1 in the formulas below.

TEST_F(TcpLimits, PeriodicLossGivesNewRenoTheSquareRootOfThreeHalvesOverP) {
    // Sawtooth between W/2 and W, one segment per RTT: 3/8 W² segments between losses, 1/p, so that
    // rate = √(3 / (2 b p)) / RTT (Mathis et al., 1997).
    for (const std::uint64_t period : {1000, 3000, 10'000}) {
        const double expected = std::sqrt(1.5 * static_cast<double>(period));
        const double found = newreno_under({.probability = 0, .period = period}, seconds(20));
        EXPECT_NEAR(found / expected, 1, 0.1) << "1/p = " << period;
    }
}

TEST_F(TcpLimits, RandomLossGivesNewRenoTheRateOfPftk) {
    // Padhye, Firoiu, Towsley and Kurose, 2000, equation 30, with b = 1 and T0 = RTT + 200 ms.
    for (const double p : {1e-4, 3e-4, 1e-3}) {
        const double expected =
            kRtt / (kRtt * std::sqrt(2 * p / 3) +
                    (kRtt + 0.2) * std::min(1.0, 3 * std::sqrt(3 * p / 8)) * p * (1 + 32 * p * p));
        const double found =
            newreno_under({.probability = p, .period = 0}, seconds(p < 2e-4 ? 120 : 40));
        EXPECT_NEAR(found / expected, 1, 0.2) << "p = " << p;
    }
}

// The last frame of a reply is lost. RTTs are microseconds.

TEST_F(TcpLimits, ALostTailCostsOneTimeoutOrOneProbeTimeout) {
    struct Case {
        std::uint32_t segments;
        bool probe;
        Time tick;
        double latency_s;
        double tolerance_s;
    };
    for (const Case& c :
         {Case{9, false, Time::zero(), 0.2, 0.001},
          // The ninth of ten waits 40 ms for its companion before it is acknowledged. From then the
          // RTO counts, with a smoothed RTT that an eighth of this sample has raised: 40 + 5 + 200.
          Case{10, false, Time::zero(), 0.245, 0.001},
          // Ticks of a real kernel: a little more than 200 ms are 51 of them, which begin to count
          // with the second one.
          Case{9, false, milliseconds(4), 0.208, 1e-5},
          // Two outstanding: two RTTs and 2 ms after the acknowledgement of the eighth.
          Case{10, true, Time::zero(), 0.002, 0.0002},
          // One: a delayed acknowledgement might be the reason; the probe is in place of the RTO.
          Case{9, true, Time::zero(), 0.2, 0.001}}) {
        RackConfig config = one_event(1, c.segments * Bytes{1448});
        config.access_loss = {.probability = 0, .period = c.segments};
        config.tcp.tail_loss_probe = c.probe;
        config.tcp.timer_tick = c.tick;
        config.tcp.quick_acks = false;  // else no segment waits for its companion
        config.duration = seconds(1);
        Rack& rack = run(config);
        const RackReport report = rack.report();
        SCOPED_TRACE(c.latency_s);
        EXPECT_EQ(report.events_built, 1U);
        EXPECT_EQ(report.injected_losses, 1U);
        EXPECT_EQ(report.tcp.timeouts_tail, c.probe ? 0U : 1U);
        EXPECT_EQ(report.tcp.timeouts(), c.probe ? 0U : 1U);
        EXPECT_EQ(report.tcp.probe_retransmissions, c.probe ? 1U : 0U);
        EXPECT_NEAR(rack.latency().max().seconds(), c.latency_s, c.tolerance_s);
    }
}

// Static windows: outstanding bytes that are not on a wire are in the bottleneck's buffer.

struct StaticWindows {
    std::uint32_t flows;
    Bytes window;  ///< packets
    Time delay;    ///< of the readout units' links
    std::uint32_t ack_every;
};

RackConfig static_windows(const StaticWindows& s, std::uint32_t buffer_packets) {
    RackConfig config = one_event(s.flows, kBacklog);
    // Together the readout units offer 12 Gb/s to the 10 Gb/s of the bottleneck, so that the first
    // windows queue up no more than Σ W / 6 before the first acknowledgements come.
    config.readout_link = {BitRate{12'000'000'000 / s.flows}, s.delay};
    config.tor.model = BufferModel::drop_tail;
    config.tor.queue_packets = buffer_packets;
    config.tcp.congestion = CongestionControl::static_window;
    config.tcp.static_window = s.window * config.tcp.mss;
    config.tcp.ack_every = s.ack_every;
    config.duration = milliseconds(20);
    return config;
}

/// Packets outside the bottleneck's queue while the queue never runs empty: on the links towards
/// it, on the link behind it, and as acknowledgements.
double packets_elsewhere(const StaticWindows& s) {
    constexpr double kPacketBits = 1538 * 8;
    constexpr double kAckBits = (52 + 18 + 20) * 8;
    const double readout_bps = 12e9 / s.flows;
    const double seconds = kPacketBits / readout_bps + kPacketBits / 100e9 +
                           2 * (s.delay.seconds() + 2e-6) + kAckBits / 10e9 + kAckBits / 100e9 +
                           kAckBits / readout_bps;
    return seconds / (kPacketBits / 10e9);
}

TEST_F(TcpLimits, StaticWindowsLoseNothingIfBufferAndPipeHoldThem) {
    for (const StaticWindows& s :
         {StaticWindows{1, 64, microseconds(20), 1}, StaticWindows{2, 64, microseconds(50), 1},
          StaticWindows{4, 16, microseconds(20), 1}, StaticWindows{10, 16, microseconds(50), 1},
          StaticWindows{10, 64, microseconds(5), 1}, StaticWindows{1, 64, microseconds(20), 2},
          StaticWindows{4, 64, microseconds(20), 2}, StaticWindows{10, 64, microseconds(50), 2}}) {
        const double sum = static_cast<double>(s.flows) * static_cast<double>(s.window);
        const auto enough = static_cast<std::uint32_t>(std::ceil(sum - packets_elsewhere(s)));
        EXPECT_EQ(report_of(static_windows(s, enough)).drops, 0U) << s.flows << " × " << s.window;
        // An acknowledgement for every second packet keeps up to one packet per flow out of the
        // queue; without delay the rule is sharp.
        const std::uint32_t held = s.ack_every == 1 ? 0 : s.flows;
        EXPECT_GT(report_of(static_windows(s, enough - 1 - held)).drops, 0U)
            << s.flows << " × " << s.window;
    }
}

TEST_F(TcpLimits, OneBurstFillsTheBufferWithInputLessOutput) {
    for (const std::uint32_t flows : {5U, 20U, 48U}) {
        for (const Bytes reply_packets : {3, 10, 25, 64}) {
            RackConfig config = one_event(flows, flows * reply_packets * 1448);
            config.tcp.initial_window = 25;
            // No acknowledgement returns before the burst is over.
            config.access_link.delay = milliseconds(1);
            config.duration = microseconds(2500);
            // All windows together arrive at 100 Gb/s of the uplink and leave at 10 Gb/s.
            const Bytes burst = flows * std::min<Bytes>(25, reply_packets) * 1518;
            const double expected = static_cast<double>(burst) * (1 - 10.0 / 100.0);
            const auto peak = static_cast<double>(report_of(config).tor_peak);
            EXPECT_NEAR(peak, expected, 1518.0 * flows) << flows << " × " << reply_packets;
        }
    }
}

// DCTCP (Alizadeh et al., 2010): the queue of long flows is bounded by K + N packets.

TEST_F(TcpLimits, DctcpKeepsTheQueueOfEightLongFlowsAtItsThreshold) {
    constexpr std::uint32_t kFlows = 8;
    constexpr Bytes kThreshold = 65;  // packets at 10 Gb/s
    RackConfig config = one_event(kFlows, kBacklog);
    config.readout_link.delay = microseconds(20);
    config.tcp.congestion = CongestionControl::dctcp;
    config.tor.ecn_threshold = kThreshold * 1518;
    config.warmup = milliseconds(50);
    config.duration = milliseconds(200);
    const RackReport report = report_of(config);
    EXPECT_EQ(report.drops, 0U);
    EXPECT_GT(report.marks, 0U);
    // Every flow adds one packet in the RTT until the first echo is back, and one in the RTT in
    // which it is: K + N and one RTT's growth. Two packets make an acknowledgement.
    const Bytes peak_packets = report.tor_peak / 1518;
    EXPECT_LE(peak_packets, kThreshold + 2 * static_cast<Bytes>(kFlows));
    EXPECT_GE(peak_packets, kThreshold);
    // And the link stays full.
    const auto& access = report.links[2 * (kFlows + 1)];
    EXPECT_GT(static_cast<double>(access.wire_bytes) * 8, 0.995 * 10e9 * 0.150);
}

TEST_F(TcpLimits, DctcpCannotHelpFirstWindowsThatExceedTheBuffer) {
    constexpr std::uint32_t kFlows = 600;
    constexpr std::uint32_t kBuffer = 1000;  // packets
    RackConfig config = one_event(kFlows, Bytes{kFlows} * 100 * 1448);
    config.request_size = 1;
    config.tcp.quick_acks = false;  // acknowledgements of the requests would be dropped, too
    config.access_link.delay = milliseconds(2);
    config.tcp.congestion = CongestionControl::dctcp;
    config.tor.model = BufferModel::drop_tail;
    config.tor.queue_packets = kBuffer;
    config.tor.ecn_threshold = 65 * 1518;
    // The first windows: 600 · 10 packets within 738 µs at 100 Gb/s, of which a tenth leaves
    // meanwhile. An RTT takes 4 ms: at 5 ms nothing else has come.
    config.duration = milliseconds(5);
    const RackReport first = report_of(config);
    const double sent = kFlows * 10.0;
    EXPECT_NEAR(static_cast<double>(first.drops), sent - sent / 10 - kBuffer, 0.01 * sent);
    // In the end, everything arrives.
    config.duration = seconds(10);
    EXPECT_EQ(report_of(config).events_built, 1U);
}

}  // namespace
}  // namespace daqloom::systems
