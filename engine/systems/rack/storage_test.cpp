// Storage units behind a rack: accepted events travel to them over the same network.
#include <gtest/gtest.h>

#include "systems/rack/fixture_test.hpp"
#include "systems/rack/rack_system_test.hpp"

namespace daqloom::systems {
namespace {

using base::gigabits_per_second;
using base::microseconds;
using base::milliseconds;
using base::Time;
using protocol::EventId;

class RackStorage : public RackTest {
  protected:
    /// IPv4, TCP with timestamps, Ethernet, FCS.
    static constexpr base::Bytes kHeaders = 52 + kFrameOverhead;
    static constexpr std::uint64_t kEvents = 49;  ///< at 1, 2, … 49 ms

    /// One readout unit, one builder unit, an event of 1000 B every millisecond, nothing random.
    static RackConfig small(std::uint32_t storages, double accepted) {
        RackConfig config;
        config.arrivals.rate_hz = 1e3;
        config.event_size.mean = 1'000;
        config.readout_link = {gigabits_per_second(25), microseconds(1), {}};
        config.uplink = {gigabits_per_second(100), microseconds(1), {}};
        config.access_link = {gigabits_per_second(10), microseconds(1), {}};
        config.tcp.quick_acks = false;
        config.duration = milliseconds(50);
        config.storage = {.units = storages, .accepted = accepted, .timeout = milliseconds(2)};
        return without_chance(config);
    }
    /// Time of a frame over the three links between a builder unit and a host at the core.
    static Time way(base::Bytes frame, const RackConfig& config) {
        Time sum;
        for (const LinkConfig* link : {&config.access_link, &config.uplink, &config.readout_link}) {
            const std::int64_t byte_ps = 8'000'000'000'000 / link->rate.bps;
            sum = sum + Time{(frame + kWireOverhead) * byte_ps} + link->delay;
        }
        return sum;
    }
    static NodeChange stop(std::uint32_t host, Time until) {
        return {.host = NodeIndex(host), .what = NodeChange::What::stop, .until = until};
    }
    RackReport report_of(const RackConfig& config) { return run(config).report(); }
};

TEST_F(RackStorage, StoresAcceptedEventsOneWayThroughTheNetworkAfterTheyAreBuilt) {
    for (const double accepted : {0.3, 1.0}) {
        const RackConfig config = small(2, accepted);
        std::uint64_t expected = 0;
        for (std::uint64_t event = 0; event < kEvents; ++event) {
            expected += config.storage.accepts(EventId{event}, config.seed) ? 1 : 0;
        }
        const RackReport report = report_of(config);
        EXPECT_EQ(report.events_built, kEvents);
        EXPECT_EQ(report.events_accepted, expected);
        EXPECT_EQ(report.events_stored, expected);
        EXPECT_EQ(report.bytes_stored, 1'000 * static_cast<base::Bytes>(expected));
        EXPECT_EQ(report.events_unstored, 0U);
        EXPECT_EQ(report.events_storing, 0U);
        EXPECT_EQ(report.storage_latency.min(), way(1'000 + kHeaders, config));
        EXPECT_EQ(report.storage_latency.max(), way(1'000 + kHeaders, config));
    }
}

TEST_F(RackStorage, LatencyIncludesTheProcessing) {
    RackConfig config = small(1, 1);
    config.processing = {{.mean = microseconds(300)}};
    EXPECT_EQ(report_of(config).storage_latency.max(),
              way(1'000 + kHeaders, config) + microseconds(300));
}

/// An event holds its slot until its acknowledgement of 16 B is back, so that a single slot delays
/// the next event, which arrives at the same time.
TEST_F(RackStorage, HoldsTheEventUntilItsAcknowledgement) {
    RackConfig config = small(1, 1);
    config.concurrent_events = 1;
    config.arrivals.kind = protocol::ArrivalsConfig::Kind::trace;
    config.arrivals.trace_times = {milliseconds(1), milliseconds(1)};
    const Time collection = way(100 + kHeaders, config) + way(1'000 + kHeaders, config);
    const Time storing = way(1'000 + kHeaders, config) + way(16 + kHeaders, config);
    const Time second_built = milliseconds(1) + collection + storing + collection;
    config.duration = second_built;  // exclusive
    EXPECT_EQ(report_of(config).events_built, 1U);
    config.duration = second_built + Time{1};
    EXPECT_EQ(report_of(config).events_built, 2U);
}

TEST_F(RackStorage, SendsTheEventsOfAStoppedUnitToTheNext) {
    RackConfig config = small(2, 1);
    config.node_changes = {stop(2, milliseconds(200))};
    const RackReport report = report_of(config);
    EXPECT_EQ(report.events_built, kEvents);
    EXPECT_EQ(report.events_accepted, kEvents);
    // Even events wait for 2 ms, so that event 48, which arrives at 49 ms, is still held.
    EXPECT_EQ(report.events_stored, kEvents - 1);
    EXPECT_EQ(report.events_storing, 1U);
    EXPECT_EQ(report.events_unstored, 0U);
    EXPECT_GT(report.storage_latency.max(), milliseconds(2));
}

TEST_F(RackStorage, CountsAnEventOnceThatTwoUnitsStored) {
    RackConfig config = small(2, 1);
    config.node_changes = {stop(2, milliseconds(20))};
    const RackReport report = report_of(config);
    EXPECT_EQ(report.events_stored, kEvents);
    EXPECT_EQ(report.bytes_stored, 1'000 * static_cast<base::Bytes>(kEvents));
}

TEST_F(RackStorage, GoesOnBuildingIfNoStorageUnitAnswers) {
    RackConfig config = small(2, 1);
    config.concurrent_events = 8;  // an event holds its slot for twice 2 ms
    config.node_changes = {stop(2, milliseconds(200)), stop(3, milliseconds(200))};
    const RackReport report = report_of(config);
    EXPECT_EQ(report.events_built, kEvents);
    EXPECT_EQ(report.events_stored, 0U);
    // Events of 46 to 49 ms are held at 50 ms.
    EXPECT_EQ(report.events_storing, 4U);
    EXPECT_EQ(report.events_unstored, kEvents - 4);
}

TEST_F(RackStorage, RefusesUnitsWithoutHostsAndRegroupingInOneSentence) {
    PullSystemConfig config = pull_of(small(1, 1));
    config.storages.clear();
    EXPECT_NE(PullSystem::make(config).error().message.find("a host for each storage unit"),
              std::string::npos);
    config = pull_of(small(1, 1));
    config.run.emplace();
    EXPECT_NE(PullSystem::make(config).error().message.find("regroup"), std::string::npos);
}

}  // namespace
}  // namespace daqloom::systems
