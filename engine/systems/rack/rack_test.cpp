#include <cmath>

#include "systems/rack/fixture_test.hpp"
#include "systems/rack/rack_system_test.hpp"

namespace daqloom::systems {
namespace {

using base::Bytes;
using base::gigabits_per_second;
using base::microseconds;
using base::milliseconds;
using base::Time;

using Arrivals = protocol::ArrivalsConfig::Kind;
using protocol::Assignment;

/// A rack for arithmetic by hand: access 10 Gb/s, uplink 100 Gb/s, readout units 25 Gb/s, 1 us of
/// delay each; an event every millisecond, nothing random.
RackConfig small(std::uint32_t readouts, std::uint32_t builders, Bytes event) {
    RackConfig config;
    config.readout_units = readouts;
    config.builder_units = builders;
    config.arrivals.rate_hz = 1e3;
    config.event_size.mean = event;
    config.readout_link = {gigabits_per_second(25), microseconds(1), {}};
    config.uplink = {gigabits_per_second(100), microseconds(1), {}};
    config.access_link = {gigabits_per_second(10), microseconds(1), {}};
    config.tcp.quick_acks = false;  // the first request's acknowledgement would delay its reply
    config.duration = milliseconds(50);
    return without_chance(config);
}

/// The time that `bytes` of frame occupy a wire.
Time on_wire(Bytes bytes, const LinkConfig& link) {
    return {(bytes + kWireOverhead) * (8'000'000'000'000 / link.rate.bps)};
}

/// Time of a frame from a builder unit to a readout unit or back.
Time way(Bytes frame, const RackConfig& config) {
    return on_wire(frame, config.readout_link) + on_wire(frame, config.uplink) +
           on_wire(frame, config.access_link) + config.readout_link.delay + config.uplink.delay +
           config.access_link.delay;
}

constexpr Bytes kHeaders = 52 + kFrameOverhead;  ///< IPv4, TCP with timestamps, Ethernet, FCS

/// A request and its reply.
Time round_trip(const RackConfig& config, Bytes reply = 1'000) {
    return way(100 + kHeaders, config) + way(reply + kHeaders, config);
}

class Assignments : public EventObserver {
  public:
    explicit Assignments(std::uint32_t builders) : events(builders) {}
    void on_built(protocol::EventId /*event*/, protocol::BuilderIndex builder, Time /*assigned*/,
                  Time /*now*/) override {
        ++events[builder];
    }
    base::Table<protocol::BuilderIndex, int> events;
};

class RackLatency : public RackTest {
  protected:
    Time longest(const RackConfig& config) { return run(config).latency().max(); }
};

TEST_F(RackLatency, OfASmallEventIsRequestAndReplyOverEveryWire) {
    const RackConfig config = small(1, 1, 1'000);
    Rack& rack = run(config);
    EXPECT_EQ(rack.latency().min(), round_trip(config));
    EXPECT_EQ(rack.latency().max(), round_trip(config));
    EXPECT_EQ(rack.report().events_built, 49U);  // at 1, 2, … 49 ms; the one at 50 ms is too late
}

/// A readout unit acknowledges the first request before it answers, so that the reply waits for the
/// acknowledgement. Later requests are acknowledged by their replies.
TEST_F(RackLatency, OfTheFirstEventIncludesAQuickAcknowledgement) {
    RackConfig config = small(1, 1, 1'000);
    config.tcp.quick_acks = true;
    Rack& rack = run(config);
    EXPECT_EQ(rack.latency().max(), round_trip(config) + on_wire(kHeaders, config.readout_link));
    EXPECT_EQ(rack.latency().min(), round_trip(config));
}

/// The last wire is the slowest: once the first frame has reached it, all frames follow back to
/// back.
TEST_F(RackLatency, OfALargeEventIsSetByTheSlowestWireOrByTurns) {
    RackConfig config = small(1, 1, 20 * 1'448);
    EXPECT_EQ(longest(config),
              round_trip(config, 1'448) + on_wire(1'448 + kHeaders, config.access_link) * 19);
    // Replies of eight readout units reach the rack together and leave it one after the other;
    // requests leave one after the other, so that the last reply to come is the last to leave. 872
    // ns a reply against 152 ns a request: from the first reply on, the access link is busy.
    config = small(8, 1, 8'000);
    EXPECT_EQ(longest(config),
              round_trip(config) + on_wire(1'000 + kHeaders, config.access_link) * 7);
    // One fragment at a time: each readout unit in turn, all its way there and back.
    config.outstanding_fragments = 1;
    EXPECT_EQ(longest(config), round_trip(config) * 8);
}

/// Request sent, request received, fragment sent, fragment received: each costs its host's
/// processor. Latency begins when the builder unit receives its event: on an idle network the time
/// of that message makes no difference.
TEST_F(RackLatency, GrowsByTheResponseTimeAndTheCostOfMessagesButNotByProcessingOrAssignment) {
    const RackConfig without = small(1, 1, 1'000);
    RackConfig config = without;
    config.response.mean = microseconds(123);
    EXPECT_EQ(longest(config), longest(without) + microseconds(123));
    config = without;
    config.readout_cost_per_message = microseconds(3);
    config.builder_cost_per_message = microseconds(10);
    EXPECT_EQ(longest(config), longest(without) + microseconds(2 * 3 + 2 * 10));
    config = without;
    config.processing = {{.mean = microseconds(100)}, {.mean = microseconds(50)}};
    EXPECT_EQ(longest(config), longest(without));
    config = without;
    config.manager_is_networked = true;
    Rack& rack = run(config);
    EXPECT_EQ(rack.latency().min(), longest(without));
    EXPECT_EQ(rack.latency().max(), longest(without));
    EXPECT_EQ(rack.report().events_built, 49U);
}

using RackManager = RackTest;

/// Three readout units and their builder units share cores. An event takes a request and a fragment
/// of each, both sent and received: 12 messages of 10 us; or 1 kB of each, 40 us to send and 20 us
/// to receive.
TEST_F(RackManager, HostsThatShareCoresTakeTurnsOnThem) {
    RackConfig messages = small(3, 2, 3'000);
    messages.readout_cost_per_message = messages.builder_cost_per_message = microseconds(10);
    RackConfig data = small(3, 2, 3'000);
    data.send_rate = base::BitRate{200'000'000};
    data.receive_rate = base::BitRate{400'000'000};
    for (auto& [config, event_s] : {std::pair{messages, 12 * 10e-6}, {data, 3 * 60e-6}}) {
        for (const std::uint32_t cores : {1U, 2U}) {
            RackConfig shared = config;
            shared.arrivals.rate_hz = 1e6;         // more than they can build
            shared.duration = milliseconds(1000);  // 4 ms of it for events that are not built yet
            shared.shared_cores = cores;
            const auto built = static_cast<double>(run(shared).report().events_built);
            EXPECT_NEAR(built * event_s / cores, 1, 0.02) << cores << ", " << event_s;
        }
    }
}

/// Two events, the second 50 us after the first, whose fragments then fill the queue to the builder
/// unit for 800 us. An ideal manager has them share the link: the second one takes almost twice as
/// long. A networked one has the second assignment wait behind the first event, so that each has
/// the link for itself: but for a request, its reply and the acknowledgements.
TEST_F(RackManager, AssignmentsWaitBehindTheFragmentsOfEarlierEvents) {
    RackConfig config = small(8, 1, 1'000'000);
    config.arrivals.kind = protocol::ArrivalsConfig::Kind::trace;
    config.arrivals.trace_times = {milliseconds(1), milliseconds(1) + microseconds(50)};
    const Bytes event = 1'000'000 + 696 * (kHeaders + kWireOverhead);  // 8 × 87 frames
    const Time alone{event * (8'000'000'000'000 / config.access_link.rate.bps)};
    EXPECT_GT(run(config).latency().max(), alone * 2 - microseconds(100));
    config.manager_is_networked = true;
    Rack& rack = run(config);
    EXPECT_GT(rack.latency().min(), alone);
    EXPECT_LT(rack.latency().max(), alone + microseconds(10));
    EXPECT_EQ(rack.report().events_built, 2U);
}

using RackLimits = RackTest;

/// The switch holds no more than the requested fragments; without a limit on requests it holds
/// more.
TEST_F(RackLimits, OutstandingFragmentsBoundTheTopOfRackBuffer) {
    RackConfig config = small(40, 2, 40 * 14'480);
    config.readout_link.rate = gigabits_per_second(100);
    config.arrivals.rate_hz = 2e3;
    const Bytes fragment = frame_bytes(14'480, config.tcp);
    for (const std::uint32_t limit : {1U, 4U, 16U}) {
        config.outstanding_fragments = limit;
        EXPECT_LE(run(config).report().tor_peak, 2 * limit * fragment) << limit;
    }
    config.outstanding_fragments = 0;
    EXPECT_GT(run(config).report().tor_peak, 16 * fragment);
}

/// Each builder unit handles one event at a time: an event takes its latency and its processing.
TEST_F(RackLimits, ConcurrentEventsAndProcessingBoundTheRate) {
    RackConfig config = small(1, 2, 1'000);
    config.concurrent_events = 1;
    config.processing = {{.mean = milliseconds(2)}};
    config.arrivals.rate_hz = 3e3;
    config.warmup = milliseconds(10);
    config.duration = milliseconds(210);
    Rack& rack = run(config);
    const double cycle_s = (rack.latency().max() + milliseconds(2)).seconds();
    EXPECT_NEAR(static_cast<double>(rack.report().events_built), 2 * 0.2 / cycle_s, 2);
    EXPECT_GT(rack.report().events_waiting, 300U);
}

/// A builder unit sends a request and receives a fragment for each of 12 readout units: 24 messages
/// an event. A readout unit receives a request and sends a fragment for every event.
TEST_F(RackLimits, ACostPerMessageBoundsTheRateOfBuilderAndOfReadoutUnits) {
    RackConfig builders = small(12, 4, 12'000);
    builders.builder_cost_per_message = microseconds(10);
    RackConfig readouts = small(3, 8, 3'000);
    readouts.readout_cost_per_message = microseconds(20);
    for (auto [config, expected_hz] :
         {std::pair{builders, 4 / (24 * 10e-6)}, {readouts, 1 / (2 * 20e-6)}}) {
        config.arrivals.rate_hz = 1.5 * expected_hz;
        config.warmup = milliseconds(20);
        config.duration = milliseconds(120);
        const auto built = static_cast<double>(run(config).report().events_built);
        EXPECT_NEAR(built / 0.1, expected_hz, 0.01 * expected_hz);
    }
}

/// The laboratory's deep-buffer rate of 14.2 kHz is a limit of its hosts: 96 messages an event on
/// one of 32 builders take 32 / (14.2 kHz · 96) = 23.5 us each. (Small events here: only messages
/// count.)
TEST_F(RackLimits, TheHostsOfTheLaboratoryStopAt14Point2Kilohertz) {
    RackConfig config = without_chance(atlas_lab());
    config.event_size.mean = 48 * 100;
    config.builder_cost_per_message = Time::from_seconds(32 / (14.2e3 * 96));
    config.concurrent_events = 2;
    config.warmup = milliseconds(20);
    config.duration = milliseconds(420);
    // Each builder unit may have begun two events before the window that end in it.
    config.arrivals.rate_hz = 20e3;
    EXPECT_NEAR(static_cast<double>(run(config).report().events_built), 14.2e3 * 0.4, 2 * 32);
    config.arrivals.rate_hz = 14e3;  // just below the limit, the rack keeps up
    Rack& rack = run(config);
    EXPECT_NEAR(static_cast<double>(rack.report().events_built), 14e3 * 0.4, 2 * 32);
    EXPECT_EQ(rack.report().events_waiting, 0U);
}

/// Offered 1.5 times what the access links carry. Every frame of a fragment is full: 1448 of 1538 B
/// on the wire are payload.
TEST_F(RackLimits, BeyondCapacityTheAccessLinksAreFullAndABacklogGrows) {
    RackConfig config = small(10, 2, 10 * 14'480);
    config.concurrent_events = 4;
    const double payload_bps = 2 * 10e9 * 1448 / 1538;
    const double capacity_hz = payload_bps / (8 * 144'800.0);
    config.arrivals.rate_hz = 1.5 * capacity_hz;
    config.warmup = milliseconds(10);
    config.duration = milliseconds(60);
    Rack& rack = run(config);
    const RackReport report = rack.report();
    for (const std::uint32_t builder : {0U, 1U}) {
        const auto busy =
            static_cast<double>(report.links[rack.access_down(builder).value()].wire_bytes) * 8 /
            (10e9 * 0.05);
        EXPECT_NEAR(busy, 1, 1e-4);
    }
    // Eight events may have been begun before the window and end in it, or the reverse.
    EXPECT_NEAR(static_cast<double>(report.bytes_built) * 8, payload_bps * 0.05, 8 * 8 * 144'800.0);
    EXPECT_NEAR(static_cast<double>(report.events_waiting), 0.5 * capacity_hz * 0.06, 12);
    EXPECT_EQ(report.drops, 0U);
    config = small(10, 2, 10 * 14'480);
    config.arrivals.rate_hz = 0.9 * capacity_hz;
    EXPECT_EQ(run(config).report().events_waiting, 0U);
}

class RackAssignment : public RackTest {
  protected:
    /// Events that each builder unit has built.
    auto built(const RackConfig& config) {
        Rack& rack = make(config);
        Assignments built(config.builder_units);
        rack.observe(nullptr, nullptr, &built);
        rack.run(config.duration);
        return built.events;
    }
};

/// Random assignment is binomial: 1000/7 ± 5·√(1000/7 · 6/7) events for a builder unit.
TEST_F(RackAssignment, GivesEveryBuilderUnitTheSameInTurnAndWithinChanceAtRandom) {
    RackConfig config = small(2, 7, 2'000);
    config.arrivals.rate_hz = 20e3;
    for (const int events : built(config)) {
        EXPECT_NEAR(events, 1000 / 7.0, 1);
    }
    config.assignment = Assignment::random;
    int unequal = 0;
    for (const int events : built(config)) {
        EXPECT_NEAR(events, 1000 / 7.0, 5 * std::sqrt(1000 / 7.0 * 6 / 7));
        unequal += std::abs(events - 1000 / 7.0) > 1 ? 1 : 0;
    }
    EXPECT_GT(unequal, 2);  // random assignment is no round-robin
}

/// 16 slots, each taken for 1 ms on average: 16 kHz. At 14 kHz some builders have two events and
/// others none for a while, but an event waits only when all are full, whatever the policy.
TEST_F(RackAssignment, EveryPolicyKeepsUpNearCapacity) {
    for (const auto assignment :
         {Assignment::round_robin, Assignment::least_busy, Assignment::random}) {
        RackConfig config = small(1, 8, 1'000);
        config.assignment = assignment;
        config.concurrent_events = 2;
        config.processing = {{base::DelayDistribution::Kind::exponential, milliseconds(1), {}}};
        config.arrivals.rate_hz = 14e3;
        config.duration = milliseconds(300);
        int sum = 0;
        for (const int events : built(config)) {
            EXPECT_NEAR(events, 525, 0.25 * 525);
            sum += events;
        }
        EXPECT_NEAR(sum, 14e3 * 0.3, 50);
    }
}

using RackFragments = RackTest;

TEST_F(RackFragments, FollowTheSharesOfTheReadoutUnits) {
    RackConfig config = small(3, 1, 8'000);
    config.share = {1, 2, 5};
    config.duration = milliseconds(10) + milliseconds(1) / 2;  // ten events
    Rack& rack = run(config);
    ASSERT_EQ(rack.report().events_built, 10U);
    EXPECT_EQ(rack.hosts().receiver(rack.endpoint(0, 0)).next(), 10'000U);
    EXPECT_EQ(rack.hosts().receiver(rack.endpoint(0, 1)).next(), 20'000U);
    EXPECT_EQ(rack.hosts().receiver(rack.endpoint(0, 2)).next(), 50'000U);
    // Requests of 100 B the other way.
    EXPECT_EQ(rack.hosts().receiver(peer(rack.endpoint(0, 2))).next(), 1'000U);
}

TEST_F(RackFragments, HaveAtLeastOneByteEach) {
    RackConfig config = small(20, 1, 5);
    Rack& rack = run(config);
    EXPECT_EQ(rack.report().events_built, 49U);
    EXPECT_EQ(rack.hosts().receiver(rack.endpoint(0, 19)).next(), 49U);
}

using RackReports = RackTest;

TEST_F(RackReports, CountEventsAfterTheWarmupByTime) {
    RackConfig config = small(2, 2, 20'000);
    config.warmup = milliseconds(20) + milliseconds(1) / 2;
    config.bins = 59;  // bins of half a millisecond
    Rack& rack = run(config);
    const RackReport report = rack.report();
    EXPECT_EQ(report.window, milliseconds(30) - milliseconds(1) / 2);
    EXPECT_EQ(report.events_built, 29U);  // 21, … 49 ms
    EXPECT_EQ(report.bytes_built, 29 * 20'000);
    EXPECT_EQ(rack.latency().count(), 29U);
    // A fragment of 10 000 B is 7 segments; each event has two, on one of the access links.
    std::uint64_t frames = 0;
    for (const std::uint32_t builder : {0U, 1U}) {
        const ethernet::LinkReport& link = report.links[rack.access_down(builder).value()];
        frames += link.frames - link.ack_frames;
    }
    EXPECT_EQ(frames, 29U * 2 * 7);
    ASSERT_EQ(rack.built_bins().size(), 59U);
    for (std::size_t i = 0; i < 59; ++i) {  // each event ends soon after its millisecond
        EXPECT_EQ(rack.built_bins()[i].events, i % 2) << i;
        EXPECT_EQ(rack.built_bins()[i].latency, rack.latency().max() * (i % 2)) << i;
    }
}

TEST_F(RackReports, CountHopsOverAllLinks) {
    const RackConfig config = small(1, 1, 1'448);
    Rack& rack = run(config);
    const RackReport report = rack.report();
    std::uint64_t frames = 0;
    std::uint64_t acks = 0;
    for (const ethernet::LinkReport& link : report.links) {
        frames += link.frames;
        acks += link.ack_frames;
    }
    EXPECT_EQ(report.total_packet_hops, frames);
    EXPECT_EQ(report.total_ack_hops, acks);
    // A request and a reply per event, three links each.
    EXPECT_EQ(frames - acks, 49U * 2 * 3);
}

/// Compares the length of every frame with its contents.
class FrameScales : public ethernet::Observer {
  public:
    FrameScales(const ethernet::SackPool& sacks, const TcpConfig& tcp) : sacks_(sacks), tcp_(tcp) {}

    void on_delivery(LinkIndex /*link*/, const Frame& frame, Time /*now*/) override {
        Bytes options = 0;
        if (frame.sack != ethernet::kNoSack) {
            const ethernet::SackBlocks& sack = sacks_[frame.sack];
            ASSERT_LE(sack.count, tcp_.sack_blocks());
            options = 4 + 8 * static_cast<Bytes>(sack.count);
            frames_with_duplicate += frame.has(ethernet::kDuplicate) ? 1 : 0;
        } else {
            EXPECT_FALSE(frame.has(ethernet::kDuplicate));
        }
        EXPECT_EQ(frame.bytes,
                  std::max<Bytes>(frame.payload + tcp_.header_bytes() + options + 18, 64));
    }
    void on_drop(LinkIndex /*link*/, const Frame& /*frame*/, Time /*now*/) override {}

    int frames_with_duplicate = 0;

  private:
    const ethernet::SackPool& sacks_;
    TcpConfig tcp_;
};

TEST_F(RackTest, EveryBlockOfSelectiveAcknowledgementsTakesItsPlaceInTheFrame) {
    RackConfig config = small(2, 2, 100'000);
    config.tcp.rto_min = base::microseconds(10);  // far too short: many segments arrive twice
    config.access_loss.probability = 0.02;
    Rack& rack = make(config);
    FrameScales scales(rack.network().sacks(), config.tcp);
    rack.observe(&scales, nullptr, nullptr);
    rack.run(config.duration);
    rack.observe(nullptr, nullptr, nullptr);
    EXPECT_GT(scales.frames_with_duplicate, 0);
}

// --- what is refused -----------------------------------------------------------------------------

struct Refused {
    const char* sentence;  ///< begin of the message
    void (*change)(RackConfig&);
};

const Refused kRefused[] = {
    {"pull building needs one", [](RackConfig& c) { c.readout_units = 0; }},
    {"pull building needs one", [](RackConfig& c) { c.builder_units = 0; }},
    {"a cable of ", [](RackConfig& c) { c.readout_link.rate = {999'999}; }},
    {"a cable of ", [](RackConfig& c) { c.uplink.rate = {0}; }},
    {"a cable of ", [](RackConfig& c) { c.access_link.rate = {-1}; }},
    {"a software switch with a rate of 1 b/s",
     [](RackConfig& c) {
         c.tor.model = BufferModel::software;
         c.tor.software.pace = {1};
     }},
    {"a ring for host 999",
     [](RackConfig& c) { c.tor.software.destinations = {network::NodeIndex(999)}; }},
    {"a cable with a delay of -1 ps", [](RackConfig& c) { c.uplink.delay = Time{-1}; }},
    {"a cable with a delay of", [](RackConfig& c) { c.readout_link.delay = base::seconds(101); }},
    {"a frame has at least one byte", [](RackConfig& c) { c.tcp.mss = 0; }},
    {"a frame has at least one byte", [](RackConfig& c) { c.tcp.mss = 65'535 - 52 - 18 + 1; }},
    {"a window of TCP holds", [](RackConfig& c) { c.tcp.receive_window = c.tcp.mss - 1; }},
    {"a window of TCP holds", [](RackConfig& c) { c.tcp.static_window = c.tcp.mss - 1; }},
    {"a window of TCP holds", [](RackConfig& c) { c.tcp.initial_window = 0; }},
    {"a window of TCP holds", [](RackConfig& c) { c.tcp.ack_every = 0; }},
    {"a request has 1 B to", [](RackConfig& c) { c.request_size = 0; }},
    {"a request has 1 B to", [](RackConfig& c) { c.request_size = Bytes{1} << 41; }},
    {"the run must be longer", [](RackConfig& c) { c.duration = Time::zero(); }},
    {"the run must be longer", [](RackConfig& c) { c.warmup = c.duration; }},
    {"the run must be longer", [](RackConfig& c) { c.warmup = Time{-1}; }},
    {"occupancy is recorded", [](RackConfig& c) { c.bins = 0; }},
    {"shares of the event", [](RackConfig& c) { c.share = {1}; }},
    {"shares of the event", [](RackConfig& c) { c.share[1] = 0; }},
    {"shares of the event", [](RackConfig& c) { c.share[1] = -1; }},
    {"shares of the event", [](RackConfig& c) { c.share[1] = std::nan(""); }},
    {"shares of the event", [](RackConfig& c) { c.share[1] = HUGE_VAL; }},
    {"a loss of ", [](RackConfig& c) { c.access_loss.probability = -0.1; }},
    {"a loss of ", [](RackConfig& c) { c.access_loss.probability = 1.1; }},
    {"a loss of ", [](RackConfig& c) { c.access_loss.probability = std::nan(""); }},
    {"a switch divides its buffer", [](RackConfig& c) { c.tor.buffer = -1; }},
    {"a switch divides its buffer", [](RackConfig& c) { c.tor.dedicated = c.tor.buffer + 1; }},
    {"a switch divides its buffer", [](RackConfig& c) { c.core.cell_size = -1; }},
    {"a switch divides its buffer", [](RackConfig& c) { c.core.alpha = std::nan(""); }},
    {"dedicated memory is spread over 2 ports, but 3 are wired",
     [](RackConfig& c) { c.tor.dedicated_ports = 2; }},
    {"dedicated memory is spread over 1 ports, but 3 are wired",
     [](RackConfig& c) { c.core.dedicated_ports = 1; }},
    {"shared memory holds, of one port, at least one full frame",  // of 1448 + 52 + 18 B
     [](RackConfig& c) { c.tor.buffer = c.tor.dedicated = 3 * 1517; }},
    {"shared memory holds, of one port, at least one full frame",
     [](RackConfig& c) { c.core.port_limit = 1517; }},
    {"shared memory holds, of one port, at least one full frame",
     [](RackConfig& c) {
         c.tor.buffer = 1518;
         c.tor.cell_size = 256;  // five cells; six are needed
     }},
    {"event arrivals: ", [](RackConfig& c) { c.arrivals.rate_hz = 0; }},
    {"event size: ", [](RackConfig& c) { c.event_size.mean = 0; }},
    {"event manager: ", [](RackConfig& c) { c.concurrent_events = 0; }},
};

TEST(RackConfig, ThatCannotBeSimulatedIsRefusedWithASentence) {
    RackConfig right = small(2, 2, 10'000);
    right.share = {1, 1};
    right.tor.model = right.core.model = BufferModel::shared_memory;
    right.tor.buffer = right.core.buffer = 100'000;
    EXPECT_TRUE(Rack::make(right));
    for (const auto& [sentence, change] : kRefused) {
        RackConfig config = right;
        change(config);
        const std::string message = base::message_of(Rack::make(config));
        EXPECT_TRUE(message.starts_with(sentence)) << sentence << ": " << message;
    }
    right.tor.buffer = right.tor.dedicated = 3 * 1518;  // room for just one frame a port
    right.tor.dedicated_ports = 3;
    EXPECT_TRUE(Rack::make(right));
}

}  // namespace
}  // namespace daqloom::systems
