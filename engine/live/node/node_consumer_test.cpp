// Whole nodes: MEPs as they arrive at a consumer in another process or thread.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "live/node/consumer_fixture_test.hpp"

namespace daqloom::live {
namespace {

/// Two units with users' consumers and small output buffers.
NodeConfig with_small_output(const std::string& transport, protocol::WhenFull when_full) {
    NodeConfig config = folded(2, transport);
    config.sink = SinkKind::user;
    config.output_buffer = 64 << 10;
    config.when_full = when_full;
    return config;
}

TEST_P(NodesOver, OnlyUnwrittenMfpsOfALostUnitAreMissing) {
    NodeConfig config = folded(3, GetParam());
    config.sink = SinkKind::user;
    base::Table<UnitIndex, std::unique_ptr<Consumer>> consumers;
    NodesUnderTest run(config);
    for (const UnitIndex unit : first(3)) {
        consumers.push_back(std::make_unique<Consumer>(config, unit));
    }
    const auto play = [&](const Units& units, const Units& lost = {}) {
        std::map<UnitIndex, std::uint64_t> before;
        for (const UnitIndex unit : units) {
            before[unit] = consumers[unit]->meps;
        }
        run.begin(units);
        EXPECT_TRUE(until([&] {
            return std::ranges::all_of(
                units, [&](UnitIndex unit) { return consumers[unit]->meps >= before[unit] + 20; });
        }));
        run.halt(without(units, lost), lost);
        return run.next_mep;
    };
    const std::uint64_t without_2_from = play({0, 1, 2}, {2});
    const std::uint64_t with_2_from = play({0, 1});
    play({0, 1, 2});
    EXPECT_TRUE(until([&] {
        return consumers[UnitIndex(0)]->meps + consumers[UnitIndex(1)]->meps +
                   consumers[UnitIndex(2)]->meps ==
               run.sum("meps_delivered");
    }));

    std::set<std::uint64_t> all;
    for (const auto& consumer : consumers) {
        EXPECT_EQ(consumer->wrong, 0U);
        EXPECT_EQ(consumer->repeated, 0U);
        for (const auto& [mep, lacks] : consumer->lacks()) {
            EXPECT_TRUE(all.insert(mep).second) << "MEP " << mep << " at two builders";
            EXPECT_TRUE(lacks.empty.empty());
            if (mep >= without_2_from && mep < with_2_from) {
                EXPECT_EQ(lacks.missing, std::set<std::uint32_t>{2}) << "MEP " << mep;
            } else if (mep >= with_2_from) {
                EXPECT_EQ(lacks.missing, std::set<std::uint32_t>{}) << "MEP " << mep;
            } else {
                EXPECT_TRUE(lacks.missing.empty() || lacks.missing == std::set<std::uint32_t>{2})
                    << "MEP " << mep;
            }
        }
    }
}

TEST_P(NodesOver, ABuilderWithAFullOutputDiscardsAndTheOthersGoOn) {
    const NodeConfig config = with_small_output(GetParam(), protocol::WhenFull::discard);
    NodesUnderTest run(config);
    Consumer slow(config, UnitIndex(0));
    Consumer quick(config, UnitIndex(1));
    slow.is_held = true;
    run.begin({0, 1});
    EXPECT_TRUE(until([&] { return run.count(UnitIndex(0), "meps_discarded") > 50; }));
    EXPECT_TRUE(until([&] { return quick.meps > 50; }));
    EXPECT_EQ(slow.meps, 0U);
    slow.is_held = false;
    EXPECT_TRUE(until([&] { return slow.meps > 50; }));
    run.halt({0, 1});
    EXPECT_EQ(run.accounted(), run.next_mep) << "none is left out";
    EXPECT_TRUE(until([&] { return slow.meps + quick.meps == run.sum("meps_delivered"); }));
    EXPECT_EQ(slow.wrong + quick.wrong + slow.repeated + quick.repeated, 0U);
}

TEST_P(NodesOver, ABuilderThatWaitsForRoomLosesNothing) {
    const NodeConfig config = with_small_output(GetParam(), protocol::WhenFull::wait);
    NodesUnderTest run(config);
    Consumer slow(config, UnitIndex(0));
    Consumer quick(config, UnitIndex(1));
    slow.is_held = true;
    run.begin({0, 1});
    EXPECT_TRUE(until([&] { return run.count(UnitIndex(0), "waits") == 1 && quick.meps > 0; }));
    EXPECT_TRUE(until([&] { return run.count(UnitIndex(0), "waiting_for_consumer_ps") > 0; }));
    EXPECT_GT(run.count(UnitIndex(0), "output_buffer_bytes_used"), 0U);
    EXPECT_LE(run.count(UnitIndex(0), "output_buffer_bytes_used"),
              run.count(UnitIndex(0), "output_buffer_bytes"));
    EXPECT_GT(run.count(UnitIndex(0), "stream_buffer_bytes_used"), 0U) << "the source is ahead";
    slow.is_held = false;
    EXPECT_TRUE(until([&] { return slow.meps > 50 && quick.meps > 50; }));
    run.halt({0, 1});
    EXPECT_EQ(run.sum("meps_discarded"), 0U);
    EXPECT_EQ(run.sum("meps_built"), run.accounted());
    EXPECT_EQ(run.accounted(), run.next_mep) << "none is left out";
    EXPECT_TRUE(until([&] { return slow.meps + quick.meps == run.accounted(); }));
    EXPECT_EQ(slow.wrong + quick.wrong + slow.repeated + quick.repeated, 0U);
}

/// An epoch's end waits for consumers for half of its time limit, then discards MEPs without space.
TEST_P(NodesOver, AStuckConsumerDoesNotKeepAnEpochFromItsEnd) {
    const NodeConfig config = with_small_output(GetParam(), protocol::WhenFull::wait);
    NodesUnderTest run(config);
    Consumer stuck(config, UnitIndex(0));
    const Consumer quick(config, UnitIndex(1));
    stuck.is_held = true;
    run.begin({0, 1});
    EXPECT_TRUE(until([&] { return run.count(UnitIndex(0), "waits") == 1 && quick.meps > 0; }));
    run.halt({0, 1}, {}, base::seconds(4));
    EXPECT_EQ(run.accounted(), run.next_mep) << "none is left out";
    EXPECT_LE(run.count(UnitIndex(0), "meps_discarded"), 4U);
    EXPECT_EQ(run.count(UnitIndex(1), "meps_discarded"), 0U);
}

TEST_P(NodesOver, MfpsThatACustomSourceLeavesOutAreEmpty) {
    NodeConfig config = folded(2, GetParam());
    config.source = SourceKind::user;
    config.sink = SinkKind::user;
    constexpr std::uint64_t kMeps = 40;
    NodesUnderTest run(config);
    Consumer one(config, UnitIndex(0));
    Consumer other(config, UnitIndex(1));
    run.begin({0, 1});
    std::vector<AttachedBuffer> streams;
    for (std::uint32_t unit = 0; unit < 2; ++unit) {
        auto attached = attach_buffer(buffer_name(config.run, unit, "stream-0"), BufferSide::writer,
                                      now() + kNodesHung);
        ASSERT_TRUE(attached) << attached.error().message;
        streams.push_back(std::move(*attached));
        const protocol::MfpGenerator generator = generator_of(config, unit);
        BufferWriter writer(streams.back().buffer());
        for (std::uint64_t mfp = 0; mfp < kMeps; ++mfp) {
            if (mfp % (3 + unit) == 1) {
                continue;  // left out
            }
            const std::uint64_t event = mfp * config.packing;
            const auto room = writer.reserve(generator.bytes_of(event));
            ASSERT_TRUE(room);
            ASSERT_TRUE(generator.generate(
                event, {reinterpret_cast<std::uint8_t*>(room->data()), room->size()}));
            writer.commit(mfp, static_cast<base::Bytes>(room->size()));
        }
    }
    EXPECT_TRUE(until([&] { return one.meps + other.meps == kMeps; }));
    run.halt({0, 1});
    EXPECT_EQ(run.next_mep, kMeps);
    EXPECT_EQ(one.wrong + other.wrong + one.repeated + other.repeated, 0U);
    for (auto* consumer : {&one, &other}) {
        for (const auto& [mep, lacks] : consumer->lacks()) {
            std::set<std::uint32_t> left_out;
            for (std::uint32_t stream = 0; stream < 2; ++stream) {
                if (mep % (3 + stream) == 1) {
                    left_out.insert(stream);
                }
            }
            EXPECT_EQ(lacks.empty, left_out) << "MEP " << mep;
            EXPECT_TRUE(lacks.missing.empty());
        }
    }
}

}  // namespace
}  // namespace daqloom::live
