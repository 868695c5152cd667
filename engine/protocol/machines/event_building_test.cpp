// The machines together: random inputs against a model, and a whole small system in virtual time.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "protocol/data/event_size.hpp"
#include "protocol/machines/event_building_check_test.hpp"
#include "protocol/machines/pull_readout.hpp"
#include "protocol/machines/timers_by_hand_test.hpp"
#include "protocol/schedule/arrivals.hpp"

namespace daqloom::protocol {
namespace {

using base::Bytes;
using base::Time;

TEST(EventBuilding, KeepsItsPromisesUnderRandomInputs) {
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
        base::RandomStream random(seed, "inputs");
        std::vector<std::uint8_t> input(random.uniform_int(600));
        for (std::uint8_t& value : input) {
            value = static_cast<std::uint8_t>(random.uniform_int(256));
        }
        ASSERT_EQ(EventBuildingCheck::broken_promise(input), "") << "seed " << seed;
    }
}

/// Everything a run consists of but a network: fragments arrive when they are sent.
class SmallSystem {
  public:
    static constexpr std::uint32_t readouts = 5;
    static constexpr std::uint32_t builders = 3;
    static constexpr std::uint64_t events = 2'000;

    SmallSystem() {
        for (std::uint32_t b = 0; b < builders; ++b) {
            builders_.push_back(*PullBuilder::make(
                {.readouts = readouts, .outstanding_fragments = 7, .concurrent_events = 2}));
        }
        for (const ReadoutIndex r : base::IndexRange<ReadoutIndex>(readouts)) {
            const base::DelayDistribution response{base::DelayDistribution::Kind::exponential,
                                                   base::microseconds(30), Time::zero()};
            readouts_.push_back(
                {response, base::RandomStream(1, "readout " + std::to_string(r.value()))});
        }
    }

    void run() {
        timers_.at(arrivals_.next(), [this] { event_arrives(); });
        timers_.run([] { return false; });
    }

    Bytes bytes_of_events = 0;
    std::vector<int> times_done = std::vector<int>(events, 0);

    [[nodiscard]] const auto& builder_units() const { return builders_; }
    [[nodiscard]] const auto& readout_units() const { return readouts_; }
    [[nodiscard]] const EventManager& event_manager() const { return manager_; }

  private:
    struct ManagerOut {
        SmallSystem& system;
        void assign(EventId event, BuilderIndex builder) {
            BuilderOut out{system, builder};
            system.builders_[builder].on_assigned(event, out);
        }
    };
    struct BuilderOut {
        SmallSystem& system;
        BuilderIndex builder;
        void request(EventId event, ReadoutIndex readout) {
            ReadoutOut out{system, readout};
            const Bytes size = system.sizes_[static_cast<std::size_t>(event)];
            system.readouts_[readout].on_request(event, builder,
                                                 fragment_size(size, readout, readouts), out);
        }
        void built(EventId event) {
            SmallSystem& s = system;
            s.timers_.after(base::microseconds(50), [&s, event, b = builder] {
                BuilderOut out{s, b};
                s.builders_[b].on_processed(event, out);
            });
        }
        void done(EventId event) {
            ++system.times_done[static_cast<std::size_t>(event)];
            ManagerOut out{system};
            system.manager_.on_builder_done(builder, out);
        }
    };
    struct ReadoutOut {
        SmallSystem& system;
        ReadoutIndex readout;
        void respond_after(Time delay, EventId event, BuilderIndex builder, Bytes bytes) {
            SmallSystem& s = system;
            s.timers_.after(delay, [&s, r = readout, event, builder, bytes] {
                ReadoutOut out{s, r};
                s.readouts_[r].on_response_due(event, builder, bytes, out);
            });
        }
        void send_fragment(EventId event, BuilderIndex builder, Bytes bytes) {
            BuilderOut out{system, builder};
            system.builders_[builder].on_fragment(event, readout, bytes, out);
        }
    };

    void event_arrives() {
        const EventId event{sizes_.size()};
        sizes_.push_back(event_sizes_.next());
        bytes_of_events += sizes_.back();
        ManagerOut out{*this};
        manager_.on_event(event, out);
        if (sizes_.size() < events) {
            timers_.at(arrivals_.next(), [this] { event_arrives(); });
        }
    }

    TimersByHand timers_;
    Arrivals arrivals_ = *Arrivals::make({.kind = ArrivalsConfig::Kind::poisson, .rate_hz = 30e3},
                                         base::RandomStream(1, "arrivals"));
    EventSizes event_sizes_ = *EventSizes::make(
        {.kind = EventSizeConfig::Kind::gamma, .mean = 20'000, .spread_bytes = 20e3},
        base::RandomStream(1, "sizes"));
    std::vector<Bytes> sizes_;
    EventManager manager_ = *EventManager::make({.builders = builders, .concurrent_events = 2},
                                                base::RandomStream(1, "assignment"));
    base::Table<BuilderIndex, PullBuilder> builders_;
    base::Table<ReadoutIndex, PullReadout> readouts_;
};

TEST(EventBuilding, OfASmallSystemBuildsEveryEventOnceAndConservesBytes) {
    SmallSystem system;
    system.run();
    for (const int times : system.times_done) {
        ASSERT_EQ(times, 1);
    }
    std::uint64_t received = 0;
    for (const PullBuilder& builder : system.builder_units()) {
        received += builder.counters().fragment_bytes;
        EXPECT_EQ(builder.events_held(), 0U);
        EXPECT_EQ(builder.outstanding(), 0U);
        EXPECT_LE(builder.counters().outstanding_peak, 7U);
        EXPECT_EQ(builder.counters().unexpected_fragments, 0U);
    }
    std::uint64_t sent = 0;
    for (const PullReadout& readout : system.readout_units()) {
        sent += readout.counters().fragment_bytes;
        EXPECT_EQ(readout.counters().requests, SmallSystem::events);
        EXPECT_EQ(readout.pending(), 0U);
    }
    EXPECT_EQ(received, static_cast<std::uint64_t>(system.bytes_of_events));
    EXPECT_EQ(sent, received);
    EXPECT_EQ(system.event_manager().counters().done, SmallSystem::events);
    // The load is such that both are exercised: the builders' slots run out now and then.
    EXPECT_GT(system.event_manager().counters().backlog_peak, 0U);
}

}  // namespace
}  // namespace daqloom::protocol
