// Recorded fingerprints of racks: a seed fixes a run bit for bit, in any process.
#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "systems/rack/fixture_test.hpp"

namespace daqloom::systems {
namespace {

using base::milliseconds;
using base::Time;

/// The laboratory with events of a tenth of the size.
RackConfig like_the_lab() {
    RackConfig config = atlas_lab();
    config.event_size.mean = 500'000;
    config.duration = milliseconds(5);
    config.warmup = milliseconds(1);
    return config;
}

/// A rack with a small shared memory, loss on the access links, and all random features.
RackConfig lossy() {
    RackConfig config = like_the_lab();
    config.readout_units = 12;
    config.builder_units = 4;
    config.uplinks = 2;
    config.event_size = {
        .kind = protocol::EventSizeConfig::Kind::gamma, .mean = 100'000, .spread_bytes = 40'000};
    config.assignment = protocol::Assignment::random;
    config.response = {base::DelayDistribution::Kind::exponential, base::microseconds(20), {}};
    config.processing = {
        {base::DelayDistribution::Kind::gaussian, base::microseconds(300), base::microseconds(50)}};
    config.builder_cost_per_message = base::microseconds(1);
    config.access_link.rate = base::gigabits_per_second(10);
    config.tor.model = BufferModel::shared_memory;
    config.tor.buffer = 60'000;
    config.tor.dedicated = 10'000;
    config.tor.cell_size = 256;
    config.tor.cell_metadata = 64;
    config.access_loss.probability = 0.01;
    config.tcp.rto_min = milliseconds(2);
    config.duration = milliseconds(40);
    return config;
}

/// A rack with marking virtual output queues, DCTCP, TSO bursts and a limit on outstanding
/// fragments.
RackConfig marked() {
    RackConfig config = like_the_lab();
    config.readout_units = 24;
    config.builder_units = 8;
    config.arrivals.kind = protocol::ArrivalsConfig::Kind::lhc;
    config.assignment = protocol::Assignment::least_busy;
    config.outstanding_fragments = 30;
    config.tor.model = BufferModel::voq;
    config.tor.buffer = 4'000'000;
    config.tor.port_limit = 400'000;
    config.tor.ecn_threshold = 65 * 1518;
    config.tcp.congestion = CongestionControl::dctcp;
    config.tcp.tso_burst = 65'536;
    return config;
}

class RackFingerprint : public RackTest {
  protected:
    std::string fingerprint(const RackConfig& config) { return print(run(config)); }
    static std::string print(const Rack& rack) {
        return fmt::format("{:016x}", rack.fingerprint());
    }
};

/// Each constant is a hash of all events of a run, in order. A different hash shows that the
/// simulator behaves differently, by mistake or on purpose. After a change on purpose, record the
/// values that the failing test prints, and explain the change in the commit. (Delays and sizes
/// come from libm and libstdc++; a platform with another arithmetic has other values.)
TEST_F(RackFingerprint, OfThreeRacksIsTheOneOnRecordAndAnotherWithAnotherSeed) {
    for (auto [config, on_record] : {std::pair{like_the_lab(), "bf1d052ada7d58e9"},
                                     {lossy(), "a2b5d6307c29fa1f"},
                                     {marked(), "3529c8c67c501a11"}}) {
        EXPECT_EQ(fingerprint(config), on_record);
        config.seed = 2;
        EXPECT_NE(fingerprint(config), on_record);
    }
}

TEST_F(RackFingerprint, IsTakenOfRunsInWhichALotHappens) {
    EXPECT_GT(run(like_the_lab()).report().events_built, 30U);
    EXPECT_GT(run(marked()).report().marks, 100U);
    const RackReport loss = run(lossy()).report();
    EXPECT_GT(loss.drops, 100U);
    EXPECT_GT(loss.injected_losses, 100U);
    EXPECT_GT(loss.tcp.timeouts(), 10U);
    EXPECT_GT(loss.tcp.fast_retransmissions, 100U);
}

TEST_F(RackFingerprint, IsTheSameWhenARunPausesOnItsWay) {
    RackConfig to_the_end = like_the_lab();  // an event comes at the very end, at 60 / 12 kHz
    to_the_end.arrivals.kind = protocol::ArrivalsConfig::Kind::deterministic;
    to_the_end.arrivals.rate_hz = 12'000;
    for (const RackConfig& config : {like_the_lab(), lossy(), marked(), to_the_end}) {
        Rack& paused = make(config);
        Rack& other = make(like_the_lab());
        for (Time at{}; at < config.duration; at += base::microseconds(137)) {
            paused.run(at);
            other.run(at);  // another rack, which shares no state with the first
        }
        paused.run(config.duration - Time{1});
        paused.run(config.duration);
        EXPECT_EQ(print(paused), fingerprint(config));
        EXPECT_EQ(paused.now(), config.duration);
    }
}

TEST_F(RackFingerprint, IsTheSameWithObservers) {
    class : public ethernet::Observer, public transport::TimeoutObserver, public EventObserver {
      public:
        void on_delivery(LinkIndex, const Frame&, Time) override { ++frames; }
        void on_drop(LinkIndex, const Frame&, Time) override { ++drops; }
        void on_timeout(EndpointIndex, Time) override { ++timeouts; }
        void on_built(protocol::EventId, protocol::BuilderIndex, Time, Time) override { ++built; }
        std::uint64_t frames = 0, drops = 0, timeouts = 0, built = 0;
    } observer;
    RackConfig config = lossy();
    config.warmup = Time::zero();
    Rack& rack = make(config);
    rack.observe(&observer, &observer, &observer);
    rack.run(config.duration);
    EXPECT_EQ(print(rack), fingerprint(config));
    // The observer gets lost frames too: a frame lost at the end of a link is a hop of that link.
    const RackReport report = rack.report();
    EXPECT_EQ(observer.frames + report.injected_losses, report.total_packet_hops);
    EXPECT_EQ(observer.drops, report.drops + report.injected_losses);
    EXPECT_EQ(observer.timeouts, report.tcp.timeouts());
    EXPECT_EQ(observer.built, report.events_built);
}

}  // namespace
}  // namespace daqloom::systems
