// Whole nodes: several consumers of an output, samplers, alignment and lifetime of the output's
// memory, processing delays, and sources with cards.
#include <gtest/gtest.h>

#include <deque>

#include "live/node/consumer_fixture_test.hpp"

namespace daqloom::live {
namespace {

constexpr std::uint32_t kConsumers = 3;

NodeConfig with_consumers(const std::string& transport, Consumers consumers) {
    NodeConfig config = folded(3, transport);
    config.sink = SinkKind::user;
    config.when_full = protocol::WhenFull::wait;
    config.consumers = consumers;
    return config;
}

/// Consumers of several units, as many at each.
class ConsumersOf {
  public:
    ConsumersOf(const NodeConfig& config, const Units& units) {
        for (const UnitIndex unit : units) {
            for (std::uint32_t i = 0; i < kConsumers; ++i) {
                at_[unit].push_back(std::make_unique<Consumer>(config, unit));
            }
        }
        for (const auto& [unit, consumers] : at_) {
            for (const auto& consumer : consumers) {
                EXPECT_TRUE(until([&] { return consumer->is_attached.load(); }));
            }
        }
    }
    [[nodiscard]] std::uint64_t meps(UnitIndex unit) const {
        std::uint64_t all = 0;
        for (const auto& consumer : at_.at(unit)) {
            all += consumer->meps;
        }
        return all;
    }
    [[nodiscard]] auto& of(UnitIndex unit) { return at_.at(unit); }
    void expect_right() {
        for (const auto& [unit, consumers] : at_) {
            for (const auto& consumer : consumers) {
                EXPECT_EQ(consumer->wrong + consumer->repeated, 0U);
            }
        }
    }

  private:
    std::map<UnitIndex, std::vector<std::unique_ptr<Consumer>>> at_;
};

TEST_P(NodesOver, ExclusiveConsumersDivideTheEventsAcrossEpochsAndLosses) {
    const NodeConfig config = with_consumers(GetParam(), Consumers::exclusive);
    NodesUnderTest run(config);
    ConsumersOf consumers(config, first(3));
    const auto play = [&](const Units& units, const Units& lost) {
        run.begin(units);
        EXPECT_TRUE(run.counts(units, "meps_delivered", 30));
        run.halt(without(units, lost), lost);
    };
    play({0, 1, 2}, {2});
    play({0, 1}, {});
    play({0, 1, 2}, {});
    std::set<std::uint64_t> all;
    for (const UnitIndex unit : first(3)) {
        EXPECT_TRUE(until([&] {
            return consumers.meps(unit) == run.count(unit, "meps_delivered");
        })) << "unit "
            << unit.value() << ": " << consumers.meps(unit) << " of "
            << run.count(unit, "meps_delivered");
        std::uint64_t counted = 0;
        for (std::uint32_t slot = 0; slot < FanOutCounters::slots; ++slot) {
            counted += run.count(unit, "consumer_meps." + std::to_string(slot));
        }
        EXPECT_LE(counted, consumers.meps(unit)) << "all but those read after an output's end";
        for (const auto& consumer : consumers.of(unit)) {
            for (const auto& [mep, lacks] : consumer->lacks()) {
                EXPECT_TRUE(all.insert(mep).second) << "MEP " << mep << " twice";
            }
        }
    }
    consumers.expect_right();
    EXPECT_EQ(run.sum("consumers_revoked"), 0U);
}

TEST_P(NodesOver, SharedConsumersEachGetAllEvents) {
    const NodeConfig config = with_consumers(GetParam(), Consumers::shared);
    NodesUnderTest run(config);
    ConsumersOf consumers(config, first(3));
    run.begin(first(3));
    EXPECT_TRUE(run.counts(first(3), "meps_processed", 30));
    run.halt(first(3));
    for (const UnitIndex unit : first(3)) {
        for (const auto& consumer : consumers.of(unit)) {
            EXPECT_TRUE(until([&] { return consumer->meps == run.count(unit, "meps_delivered"); }));
        }
    }
    consumers.expect_right();
}

TEST_P(NodesOver, SamplersGetRightEventsWithoutDelayingTheSink) {
    NodeConfig config = folded(2, GetParam());
    NodesUnderTest run(config);
    Consumer sampler(config, UnitIndex(0), BufferSide::sampler);
    auto stuck = attach_sampler(buffer_name(config.run, 0, "output"), now() + kNodesHung);
    ASSERT_TRUE(stuck) << stuck.error().message;
    run.begin({0, 1});
    EXPECT_TRUE(until([&] { return sampler.meps >= 10; }));
    EXPECT_TRUE(run.builds({0, 1}, 100));
    run.halt({0, 1});
    run.expect_all_checked();
    EXPECT_EQ(sampler.wrong + sampler.repeated, 0U);
    EXPECT_GE(run.count(UnitIndex(0), "sampler_meps.0") + run.count(UnitIndex(0), "sampler_meps.1"),
              10U);
}

/// Consumers check the places of all MEPs.
TEST(NodeOutput, MepsStartAtMultiplesOfTheAlignmentUnderEachProtocol) {
    for (const Protocol protocol : {Protocol::shift, Protocol::daqpipe, Protocol::pull}) {
        for (const base::Bytes alignment : {4096, 65'536}) {
            NodeConfig config = folded(2);
            config.protocol = protocol;
            config.fragment_sizes = protocol::FragmentSizes::fixed;
            config.event_size = {.kind = protocol::EventSizeConfig::Kind::fixed, .mean = 4'000};
            config.arrivals.rate_hz = 10'000;
            config.credits = config.concurrent_events = 4;
            config.stream_buffer = config.output_buffer = base::Bytes{4} << 20;
            config.sink = SinkKind::user;
            config.when_full = protocol::WhenFull::wait;
            config.output_alignment = alignment;
            NodesUnderTest run(config);
            Consumer one(config, UnitIndex(0));
            Consumer other(config, UnitIndex(1));
            run.begin({0, 1});
            EXPECT_TRUE(until([&] { return one.meps >= 100 && other.meps >= 100; }));
            run.halt({0, 1});
            // Pull building splits a fragment in pieces, of which the consumer does not know.
            EXPECT_TRUE(protocol == Protocol::pull || one.wrong + other.wrong == 0);
            EXPECT_EQ(one.unaligned + other.unaligned, 0U);
        }
    }
}

TEST(NodeOutput, AlignmentsThatAreNoPowersOfTwoAreRefused) {
    NodeConfig config = folded(1);
    for (const base::Bytes wrong : {0, 32, 100, 4 << 20}) {
        config.output_alignment = wrong;
        const auto checked = Node::check(config);
        ASSERT_FALSE(checked);
        EXPECT_NE(checked.error().message.find("output_alignment of"), std::string::npos);
    }
}

/// A process that has mapped the output may register it with a device. Its mapping keeps the memory
/// when the unit ends or begins an epoch with a new output.
TEST(NodeOutput, MappedMemoryOutlivesEpochsAndTheUnit) {
    NodeConfig config = folded(2);
    config.sink = SinkKind::user;
    config.output_alignment = 4096;
    NodesUnderTest run(config);
    std::deque<AttachedBuffer> mapped;
    std::vector<std::pair<Piece, std::vector<std::byte>>> kept;
    const auto keep_a_mep = [&] {
        auto unit = attach_reader(buffer_name(config.run, 0, "output"), now() + kNodesHung);
        ASSERT_TRUE(unit) << unit.error().message;
        mapped.push_back(std::move(*unit));
        BufferReader reader(mapped.back().buffer());
        std::optional<Piece> piece;
        ASSERT_TRUE(until([&] { return (piece = reader.next()).has_value(); }));
        kept.emplace_back(*piece, std::vector(piece->bytes.begin(), piece->bytes.end()));
    };
    run.begin({0, 1});
    keep_a_mep();
    run.halt({0}, {1}, base::seconds(4));  // the next epoch has a new output
    run.begin({0});
    EXPECT_TRUE(until([&] { return mapped.front().is_abandoned(); }));
    keep_a_mep();
    run.kill(UnitIndex(0));
    EXPECT_TRUE(until([&] { return mapped.back().is_abandoned(); }));
    EXPECT_NE(kept[0].first.bytes.data(), kept[1].first.bytes.data());
    for (const auto& [piece, copy] : kept) {
        EXPECT_TRUE(std::ranges::equal(piece.bytes, copy));
    }
}

// ---- processing ---------------------------------------------------------------------------------

TEST(NodeProcessing, AMepKeepsItsRoomUntilItsDelaysAreOver) {
    for (const Protocol protocol : {Protocol::shift, Protocol::daqpipe}) {
        NodeConfig config = folded(2);
        config.protocol = protocol;
        config.credits = 3;
        config.fragment_sizes = protocol::FragmentSizes::fixed;
        config.mep_processing = {{.mean = base::seconds(60)}, {.mean = base::seconds(60)}};
        config.when_full = protocol::WhenFull::wait;
        // Linear shifting: room for 3 MEPs of 2 MFPs of 10 fragments of 200 bytes, not for 4.
        config.output_buffer = protocol == Protocol::shift ? 3 * 4400 + 1000 : 1 << 20;
        NodesUnderTest run(config);
        run.begin({0, 1});
        EXPECT_TRUE(until([&] { return run.sum("meps_checked") == 6; }));
        EXPECT_TRUE(until([&] { return run.count(UnitIndex(0), "waits") == 1; }));
        EXPECT_EQ(run.sum("meps_built"), 6U) << "3 at each unit";
        run.halt({0, 1}, {}, base::seconds(2));
        EXPECT_EQ(run.sum("meps_wrong"), 0U);
    }
}

TEST(NodeProcessing, ShortDelaysLoseNothing) {
    for (const Protocol protocol : {Protocol::shift, Protocol::daqpipe}) {
        NodeConfig config = folded(2);
        config.protocol = protocol;
        config.mep_processing = {
            {.kind = base::DelayDistribution::Kind::exponential, .mean = base::microseconds(300)}};
        config.output_buffer = base::Bytes{64} << 10;
        config.when_full = protocol::WhenFull::wait;
        NodesUnderTest run(config);
        run.play({0, 1}, {}, 50);
        run.play({0, 1}, {}, 50);
        run.expect_all_checked();
        EXPECT_EQ(run.sum("meps_built"), run.next_mep);
    }
}

// ---- cards --------------------------------------------------------------------------------------

TEST(NodeCards, StopTheTriggerAndLoseNothing) {
    NodeConfig config = folded(2);
    config.event_rate_hz = 20'000;  // an MFP every 500 µs
    config.when_full = protocol::WhenFull::wait;
    config.card_buffer = 1000;  // half an MFP: 250 µs
    config.card_acknowledge.spike.mean = base::microseconds(1250);
    config.card_acknowledge.spike_probability = 1;
    NodesUnderTest run(config);
    run.play({0, 1}, {}, 40);
    run.play({0, 1}, {}, 40);
    run.expect_all_whole();
    EXPECT_EQ(run.sum("meps_built"), run.next_mep);
    for (const UnitIndex unit : first(2)) {
        // Each MFP of a built MEP, and those not yet built, stops the trigger for 1 ms. An MFP
        // under way at a halt is taken again in the next epoch, and stops the trigger once.
        EXPECT_GE(run.count(unit, "trigger_stopped_acknowledge_ps"),
                  (run.next_mep - 3) * 1'000'000'000)
            << run.count(unit, "mfps_taken") << " MFPs taken";
    }
}

TEST(NodeCards, NeedARate) {
    NodeConfig config = folded(1);
    config.card_buffer = 1000;
    EXPECT_FALSE(Node::check(config));
    config.source = SourceKind::user;
    EXPECT_TRUE(Node::check(config)) << "a user's source has no card";
}

}  // namespace
}  // namespace daqloom::live
