#include "protocol/machines/push_readout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/failure_test.hpp"
#include "base/transcript_test.hpp"

namespace daqloom::protocol {
namespace {

using base::Bytes;
using base::Outputs;
using base::Time;
using Offsets = std::vector<Bytes>;

constexpr std::uint64_t without_end = PushReadout::without_end;

/// A readout unit and its outputs since the last check, in words.
class PushReadoutScene : public base::Transcript {
  public:
    explicit PushReadoutScene(PushReadoutConfig config)
        : readout(*PushReadout::make(config)), streams_(config.streams) {}

    void admitted(StreamIndex stream, MepId mep, Bytes place) {
        say("{}.{} at {}", mep, stream, place);
    }
    void announce(BuilderIndex builder, MepId mep, std::span<const Bytes> sizes) {
        say("announce {} to {}: {}", mep, builder, fmt::join(sizes, " "));
    }
    void write(const PushWrite& w) {
        say("write {}.{} from {} to {}:{}, {} B", w.mep, w.stream, w.from, w.builder, w.to,
            w.bytes);
    }
    void acknowledge(StreamIndex stream, MepId mep) { say("acknowledge {}.{}", mep, stream); }
    void turn_done() { say("turn done"); }
    void last_announcement(BuilderIndex builder, std::uint64_t turn) {
        say("last announcement {} to {}", turn, builder);
    }

    Outputs generated(std::uint32_t stream, Bytes bytes) {
        return after([&] { readout.on_generated(StreamIndex(stream), bytes, *this); });
    }
    /// Generates MFPs of one size for each stream.
    void generate(int meps, Bytes bytes = 10) {
        for (int mep = 0; mep < meps; ++mep) {
            for (std::uint32_t stream = 0; stream < streams_; ++stream) {
                generated(stream, bytes);
            }
        }
    }
    Outputs acknowledged(std::uint32_t stream) {
        return after([&] { readout.on_acknowledged(StreamIndex(stream), *this); });
    }
    Outputs granted(std::uint64_t mep, const Offsets& offsets) {
        return after([&] { readout.on_grant(MepId{mep}, offsets, now, *this); });
    }
    Outputs discarded(std::uint64_t mep) {
        return after([&] { readout.on_discard(MepId{mep}, now, *this); });
    }
    Outputs turn(std::uint32_t builder, std::uint64_t until, Time deadline = Time::never(),
                 std::uint64_t left_over = 0) {
        return after([&] {
            readout.on_turn(BuilderIndex(builder), until, left_over, deadline, now, *this);
        });
    }
    Outputs written(std::uint64_t mep, std::uint32_t stream) {
        return after([&] { readout.on_write_done(MepId{mep}, StreamIndex(stream), now, *this); });
    }
    Outputs closing(std::uint32_t builder, std::uint64_t answered) {
        return after([&] { readout.on_closing(BuilderIndex(builder), answered, *this); });
    }
    Outputs close(const std::vector<std::uint32_t>& lost = {}) {
        return after([&] {
            readout.on_close(std::vector<BuilderIndex>(lost.begin(), lost.end()), now, *this);
        });
    }
    Outputs end(std::uint64_t next_mep) {
        return after([&] { readout.on_end(next_mep, *this); });
    }

    Time now = Time::zero();
    PushReadout readout;

  private:
    std::uint32_t streams_;
};

TEST(PushReadout, AnnouncesAMepWhenAllItsStreamsHaveIt) {
    PushReadoutScene scene({.streams = 2, .builders = 3, .buffered_mfps = 9});
    EXPECT_EQ(scene.generated(0, 100), Outputs{"0.0 at 0"});
    EXPECT_EQ(scene.generated(0, 110), Outputs{"1.0 at 100"});
    EXPECT_EQ(scene.generated(1, 50), (Outputs{"0.1 at 0", "announce 0 to 0: 100 50"}));
    EXPECT_EQ(scene.generated(1, 60), (Outputs{"1.1 at 50", "announce 1 to 1: 110 60"}));
}

TEST(PushReadout, WritesEachMfpToItsPlaceWhenItIsTheBuildersTurn) {
    PushReadoutScene scene({.streams = 2, .builders = 2, .buffered_mfps = 4});
    for (const std::uint32_t stream : {0U, 1U}) {
        scene.generated(stream, 100);
        scene.generated(stream, 200);
    }
    EXPECT_EQ(scene.granted(1, {5'000, 7'000}), Outputs{});  // not its turn
    EXPECT_EQ(scene.turn(1, 1), (Outputs{"write 1.0 from 100 to 1:5000, 200 B",
                                         "write 1.1 from 100 to 1:7000, 200 B"}));
    EXPECT_EQ(scene.readout.writes_under_way(), 2U);
    EXPECT_EQ(scene.written(1, 1), Outputs{});
    EXPECT_EQ(scene.written(1, 0), Outputs{"turn done"});  // MFP 0 holds the buffers' space
    EXPECT_EQ(scene.turn(0, 1), Outputs{});                // not granted yet
    EXPECT_EQ(scene.granted(0, {0, 1}),
              (Outputs{"write 0.0 from 0 to 0:0, 100 B", "write 0.1 from 0 to 0:1, 100 B"}));
    EXPECT_EQ(scene.written(0, 0), (Outputs{"acknowledge 0.0", "acknowledge 1.0"}));
    EXPECT_EQ(scene.written(0, 1), (Outputs{"acknowledge 0.1", "acknowledge 1.1", "turn done"}));
    EXPECT_EQ(scene.readout.counters().written_bytes, 600);
}

TEST(PushReadout, HoldsAnMfpBackAtTheSourceWhileItsBufferIsFull) {
    PushReadoutScene scene({.buffered_mfps = 9, .stream_buffer = 250, .largest_mfp = 100});
    EXPECT_EQ(scene.generated(0, 100).size(), 2U);
    EXPECT_EQ(scene.generated(0, 100), Outputs{"1.0 at 100"});  // one is announced at a time
    EXPECT_EQ(scene.generated(0, 60), Outputs{});
    EXPECT_EQ(scene.generated(0, 10), Outputs{});  // it holds one already
    EXPECT_EQ(scene.readout.counters().blocked, 1U);
    EXPECT_EQ(scene.readout.counters().unexpected_mfps, 1U);
    scene.granted(0, {0});
    scene.turn(0, without_end);
    EXPECT_EQ(scene.written(0, 0), Outputs{"acknowledge 0.0"});
    EXPECT_EQ(scene.acknowledged(0), Outputs{"2.0 at 0"});
    EXPECT_EQ(scene.readout.buffered(StreamIndex(0)), 160);
}

TEST(PushReadout, KeepsTheNumberOfMfpsInItsBufferWithinTheirLimit) {
    PushReadoutScene scene({.buffered_mfps = 1});
    EXPECT_EQ(scene.generated(0, 10).size(), 2U);
    EXPECT_EQ(scene.generated(0, 10), Outputs{});
    EXPECT_EQ(scene.discarded(0), Outputs{"acknowledge 0.0"});
    EXPECT_EQ(scene.acknowledged(0), (Outputs{"1.0 at 0", "announce 1 to 0: 10"}));
}

TEST(PushReadout, DropsMepsThatTheBuilderDiscards) {
    PushReadoutScene scene({.streams = 2, .buffered_mfps = 4, .announced_meps = 3});
    for (int mep = 0; mep < 3; ++mep) {
        scene.generated(0, 10);
        scene.generated(1, 20);
    }
    EXPECT_EQ(scene.discarded(1), Outputs{});  // MEP 0 comes before it
    EXPECT_EQ(scene.granted(0, {0, 10}), Outputs{});
    EXPECT_EQ(scene.turn(0, 2).size(), 2U);
    EXPECT_EQ(scene.written(0, 0), (Outputs{"acknowledge 0.0", "acknowledge 1.0"}));
    EXPECT_EQ(scene.written(0, 1), (Outputs{"acknowledge 0.1", "acknowledge 1.1", "turn done"}));
    EXPECT_EQ(scene.turn(0, 3), Outputs{});
    EXPECT_EQ(scene.discarded(2), (Outputs{"acknowledge 2.0", "acknowledge 2.1", "turn done"}));
    EXPECT_EQ(scene.readout.counters().discarded, 2U);
    EXPECT_EQ(scene.readout.counters().discarded_bytes, 60);
}

TEST(PushReadout, KeepsAnnouncedMepsWithinTheirLimitPerBuilder) {
    PushReadoutScene scene({.builders = 2, .buffered_mfps = 8, .announced_meps = 1});
    EXPECT_EQ(scene.generated(0, 1), (Outputs{"0.0 at 0", "announce 0 to 0: 1"}));
    EXPECT_EQ(scene.generated(0, 2), (Outputs{"1.0 at 1", "announce 1 to 1: 2"}));
    EXPECT_EQ(scene.generated(0, 3), Outputs{"2.0 at 3"});
    EXPECT_EQ(scene.generated(0, 4), Outputs{"3.0 at 6"});
    EXPECT_EQ(scene.granted(1, {0}), Outputs{"announce 3 to 1: 4"});
    EXPECT_EQ(scene.discarded(0), (Outputs{"acknowledge 0.0", "announce 2 to 0: 3"}));
}

TEST(PushReadout, BeginsNoWriteThatCannotEndBeforeTheDeadline) {
    // 8 Gb/s: a byte takes 1 ns.
    PushReadoutScene scene(
        {.buffered_mfps = 9, .announced_meps = 9, .write_rate = base::gigabits_per_second(8)});
    for (std::uint64_t mep = 0; mep < 5; ++mep) {
        scene.generated(0, 40);
        scene.granted(mep, {static_cast<Bytes>(40 * mep)});
    }
    // Writes that end at 40 and 80 ns fit before the deadline, one that ends at 120 ns does not.
    EXPECT_EQ(scene.turn(0, without_end, base::nanoseconds(100)).size(), 2U);
    scene.now = base::nanoseconds(60);
    EXPECT_EQ(scene.written(0, 0), Outputs{"acknowledge 0.0"});
    scene.now = base::nanoseconds(110);  // the other one is late
    EXPECT_EQ(scene.turn(0, without_end, base::nanoseconds(190)).size(), 2U);  // 150 and 190
    EXPECT_EQ(scene.readout.counters().overran, 1U);
    scene.now = base::nanoseconds(151);
    EXPECT_EQ(scene.turn(0, without_end, base::nanoseconds(229)), Outputs{});  // 190 + 40
}

TEST(PushReadout, CountsAndIgnoresInvalidInputs) {
    PushReadoutScene scene({.streams = 2, .builders = 2, .buffered_mfps = 4, .largest_mfp = 100});
    EXPECT_EQ(scene.generated(2, 1), Outputs{});    // no such stream
    EXPECT_EQ(scene.generated(0, 101), Outputs{});  // too large
    EXPECT_EQ(scene.generated(0, -1), Outputs{});
    EXPECT_EQ(scene.granted(0, {0, 0}), Outputs{});  // not announced
    EXPECT_EQ(scene.discarded(7), Outputs{});        // not announced
    scene.generated(0, 10);
    scene.generated(1, 10);
    EXPECT_EQ(scene.granted(0, {0}), Outputs{});      // there are two streams
    EXPECT_EQ(scene.granted(0, {0, -1}), Outputs{});  // no place
    EXPECT_EQ(scene.written(0, 0), Outputs{});        // is not being written
    EXPECT_EQ(scene.acknowledged(0), Outputs{});      // is still needed
    scene.granted(0, {0, 10});
    EXPECT_EQ(scene.granted(0, {0, 10}), Outputs{});  // twice
    EXPECT_EQ(scene.discarded(0), Outputs{});         // has been granted
    scene.turn(0, 1);
    scene.written(0, 0);
    EXPECT_EQ(scene.written(0, 0), Outputs{});  // twice
    EXPECT_EQ(scene.written(0, 2), Outputs{});  // no such stream
    EXPECT_EQ(scene.written(4, 1), Outputs{});  // shares its record with MEP 0
    EXPECT_EQ(scene.acknowledged(0), Outputs{});
    EXPECT_EQ(scene.acknowledged(0), Outputs{});  // twice
    EXPECT_EQ(scene.acknowledged(2), Outputs{});  // no such stream
    const auto& counters = scene.readout.counters();
    EXPECT_EQ(counters.unexpected_mfps, 3U);
    EXPECT_EQ(counters.unexpected_answers, 6U);
    EXPECT_EQ(counters.unexpected_completions, 4U);
    EXPECT_EQ(counters.unexpected_acknowledgements, 3U);
}

TEST(PushReadout, WritesAllThatIsGrantedWhenTheEpochIsClosed) {
    // MEPs 0 and 2 belong to builder unit 0, MEPs 1 and 3 to builder unit 1.
    PushReadoutScene scene({.builders = 2, .buffered_mfps = 9, .announced_meps = 2});
    scene.generate(5);
    scene.granted(2, {20});
    scene.granted(3, {30});
    scene.granted(1, {10});
    scene.readout.on_last_answer(BuilderIndex(0), 2);
    EXPECT_FALSE(scene.readout.is_drained());
    EXPECT_EQ(scene.close(),
              (Outputs{"write 1.0 from 10 to 1:10, 10 B", "write 3.0 from 30 to 1:30, 10 B"}));
    scene.readout.on_last_answer(BuilderIndex(1), 2);
    // MEP 0 is answered last, which permits the write of MEP 2. MEP 4 is no longer announced.
    EXPECT_EQ(scene.granted(0, {0}),
              (Outputs{"write 0.0 from 0 to 0:0, 10 B", "write 2.0 from 20 to 0:20, 10 B"}));
    EXPECT_EQ(scene.written(3, 0), Outputs{});
    EXPECT_EQ(scene.written(0, 0), Outputs{"acknowledge 0.0"});
    EXPECT_EQ(scene.written(2, 0), Outputs{});
    EXPECT_FALSE(scene.readout.is_drained());
    EXPECT_EQ(scene.written(1, 0),
              (Outputs{"acknowledge 1.0", "acknowledge 2.0", "acknowledge 3.0"}));
    EXPECT_TRUE(scene.readout.is_drained());
    EXPECT_EQ(scene.readout.next_mep(), 4U);
    EXPECT_EQ(scene.end(4), Outputs{});
    EXPECT_EQ(scene.readout.admitted(StreamIndex(0)), 5U);
    EXPECT_EQ(scene.readout.acknowledged(StreamIndex(0)), 4U);
}

TEST(PushReadout, AwaitsWritesUnderWayWhenTheEpochIsClosed) {
    PushReadoutScene scene({.streams = 3, .buffered_mfps = 2, .announced_meps = 2});
    scene.generate(2, 5);
    scene.granted(0, {0, 5, 10});
    EXPECT_EQ(scene.turn(0, 1),
              (Outputs{"write 0.0 from 0 to 0:0, 5 B", "write 0.1 from 0 to 0:5, 5 B",
                       "write 0.2 from 0 to 0:10, 5 B"}));
    EXPECT_EQ(scene.close(), Outputs{});
    EXPECT_EQ(scene.written(0, 0), Outputs{"acknowledge 0.0"});
    EXPECT_EQ(scene.written(0, 1), Outputs{"acknowledge 0.1"});
    EXPECT_EQ(scene.turn(0, 2), Outputs{});  // there are no turns any more
    EXPECT_EQ(scene.discarded(1), (Outputs{"acknowledge 1.0", "acknowledge 1.1"}));
    scene.readout.on_last_answer(BuilderIndex(0), 2);
    EXPECT_FALSE(scene.readout.is_drained());
    EXPECT_EQ(scene.written(0, 2), (Outputs{"acknowledge 0.2", "acknowledge 1.2"}));
    EXPECT_TRUE(scene.readout.is_drained());
}

TEST(PushReadout, HasAllBuildersAnswerAsFarAsTheFurthestWhenTheEpochIsClosed) {
    // Builder unit 0 has answered MEP 0, builder unit 1 none, builder unit 2 MEPs 2 and 5.
    PushReadoutScene scene({.builders = 3, .buffered_mfps = 9, .announced_meps = 1});
    scene.generate(7);
    EXPECT_EQ(scene.discarded(2), Outputs{"announce 5 to 2: 10"});
    EXPECT_EQ(scene.discarded(0), (Outputs{"acknowledge 0.0", "announce 3 to 0: 10"}));
    EXPECT_EQ(scene.discarded(5), Outputs{});
    EXPECT_EQ(scene.closing(2, 2), Outputs{});  // before this unit hears of it
    EXPECT_EQ(scene.close(), Outputs{});
    EXPECT_EQ(scene.closing(1, 0), Outputs{});
    EXPECT_EQ(scene.closing(0, 1), (Outputs{"last announcement 2 to 0", "last announcement 2 to 1",
                                            "last announcement 2 to 2"}));
    EXPECT_EQ(scene.discarded(1),
              (Outputs{"acknowledge 1.0", "acknowledge 2.0", "announce 4 to 1: 10"}));
    EXPECT_EQ(scene.discarded(3), Outputs{"acknowledge 3.0"});  // MEP 6 is the next epoch's
    EXPECT_EQ(scene.discarded(4), (Outputs{"acknowledge 4.0", "acknowledge 5.0"}));
    for (const std::uint32_t builder : {0U, 1U, 2U}) {
        EXPECT_FALSE(scene.readout.is_drained());
        scene.readout.on_last_answer(BuilderIndex(builder), 2);
    }
    EXPECT_TRUE(scene.readout.is_drained());
    EXPECT_EQ(scene.readout.next_mep(), 6U);
    EXPECT_EQ(scene.end(6), Outputs{});
    EXPECT_EQ(scene.readout.counters().unanswered_mfps, 0U);
}

TEST(PushReadout, DoesNotWaitForTheProgressOfALostBuilder) {
    PushReadoutScene scene({.builders = 3, .buffered_mfps = 9});
    scene.generate(5);
    scene.discarded(0);
    scene.discarded(2);
    scene.close();
    scene.closing(0, 1);
    scene.closing(2, 1);  // and is lost
    EXPECT_EQ(scene.close({1, 2}), Outputs{"last announcement 1 to 0"});
    EXPECT_EQ(scene.closing(1, 0), Outputs{});
    EXPECT_EQ(scene.readout.counters().from_lost, 1U);
    scene.readout.on_last_answer(BuilderIndex(0), 1);
    EXPECT_TRUE(scene.readout.is_drained());
    EXPECT_EQ(scene.readout.next_mep(), 3U);  // MEP 2 is not to come again
}

TEST(PushReadout, LeavesUnansweredMfpsToTheNextEpoch) {
    // Builder unit 0 has answered MEP 0, builder unit 1 none, builder unit 2 MEPs 2 and 5.
    PushReadoutScene scene({.builders = 3, .buffered_mfps = 9, .announced_meps = 2});
    for (int mep = 0; mep < 7; ++mep) {
        scene.generated(0, 10 + mep);
    }
    scene.discarded(0);
    scene.discarded(2);
    scene.discarded(5);
    EXPECT_EQ(scene.close(), Outputs{});
    scene.readout.on_last_answer(BuilderIndex(0), 1);
    scene.readout.on_last_answer(BuilderIndex(1), 0);
    scene.readout.on_last_answer(BuilderIndex(2), 2);
    ASSERT_TRUE(scene.readout.is_drained());
    EXPECT_EQ(scene.readout.acknowledged(StreamIndex(0)), 1U);
    EXPECT_EQ(scene.readout.next_mep(), 6U);
    EXPECT_EQ(scene.end(6), (Outputs{"acknowledge 1.0", "acknowledge 2.0", "acknowledge 3.0",
                                     "acknowledge 4.0", "acknowledge 5.0"}));
    EXPECT_EQ(scene.readout.counters().unanswered_mfps, 3U);  // 1, 3 and 4
    EXPECT_EQ(scene.readout.counters().unanswered_bytes, 11 + 13 + 14);
    EXPECT_EQ(scene.readout.counters().discarded_bytes, 10 + 12 + 15);
}

TEST(PushReadout, DoesNotWaitForALostBuilder) {
    // Builder unit 1 gets MEPs 1 and 3. Builder unit 0 gets MEP 0, but its turn has not come.
    PushReadoutScene scene({.builders = 2, .buffered_mfps = 9, .announced_meps = 3});
    scene.generate(6);
    scene.granted(0, {0});
    scene.granted(1, {0});
    scene.granted(3, {10});
    EXPECT_EQ(scene.turn(1, 1), Outputs{"write 1.0 from 10 to 1:0, 10 B"});
    scene.readout.on_last_answer(BuilderIndex(0), 1);
    EXPECT_EQ(scene.close({1}), Outputs{"write 0.0 from 0 to 0:0, 10 B"});
    EXPECT_EQ(scene.readout.writes_under_way(), 1U);
    EXPECT_EQ(scene.granted(5, {20}), Outputs{});
    scene.readout.on_last_answer(BuilderIndex(1), 2);
    EXPECT_EQ(scene.readout.counters().from_lost, 2U);
    EXPECT_EQ(scene.written(0, 0), Outputs{"acknowledge 0.0"});
    // MFP 1 is still being read; builder unit 1 may have built it. MEPs 3 and 5 are repeated.
    ASSERT_TRUE(scene.readout.is_drained());
    EXPECT_EQ(scene.readout.next_mep(), 2U);
    EXPECT_EQ(scene.end(2), Outputs{"acknowledge 1.0"});
    EXPECT_EQ(scene.readout.counters().lost_mfps, 1U);
    EXPECT_EQ(scene.readout.counters().lost_bytes, 10);
}

TEST(PushReadout, StopsWaitingForABuilderThatIsLostWhileTheEpochIsBeingClosed) {
    PushReadoutScene scene({.builders = 2, .buffered_mfps = 9});
    scene.generated(0, 10);
    scene.generated(0, 10);
    scene.granted(1, {0});
    EXPECT_EQ(scene.close(), Outputs{"write 1.0 from 10 to 1:0, 10 B"});
    scene.readout.on_last_answer(BuilderIndex(0), 0);
    EXPECT_FALSE(scene.readout.is_drained());
    EXPECT_EQ(scene.close({1}), Outputs{});
    EXPECT_TRUE(scene.readout.is_drained());
    EXPECT_EQ(scene.written(1, 0), Outputs{});  // done all the same
    EXPECT_EQ(scene.readout.writes_under_way(), 0U);
    EXPECT_EQ(scene.end(scene.readout.next_mep()), (Outputs{"acknowledge 0.0", "acknowledge 1.0"}));
    EXPECT_EQ(scene.readout.counters().unanswered_mfps, 1U);
    EXPECT_EQ(scene.readout.counters().lost_mfps, 0U);
}

TEST(PushReadout, CountsAndIgnoresWordsOfTheEndThatDoNotFit) {
    PushReadoutScene scene({.builders = 2, .buffered_mfps = 4, .announced_meps = 2});
    scene.generate(4);
    scene.discarded(0);
    scene.closing(2, 0);  // no such builder
    scene.closing(0, 3);  // two have been announced
    scene.closing(0, 1);
    scene.closing(0, 1);  // twice
    EXPECT_EQ(scene.readout.counters().unexpected_answers, 3U);
    scene.readout.on_last_answer(BuilderIndex(2), 0);  // no such builder
    scene.readout.on_last_answer(BuilderIndex(0), 0);  // has answered one
    scene.readout.on_last_answer(BuilderIndex(0), 3);  // two have been announced
    scene.readout.on_last_answer(BuilderIndex(0), 1);
    scene.readout.on_last_answer(BuilderIndex(0), 1);  // twice
    EXPECT_EQ(scene.discarded(2), Outputs{});          // beyond the last answer
    EXPECT_EQ(scene.readout.counters().unexpected_answers, 3U + 5U);
}

TEST(PushReadout, RefusesAnImpossibleConfigurationInASentence) {
    using base::message_of;
    EXPECT_EQ(message_of(PushReadout::make({.streams = 0})),
              "push readout: 0 streams; give 1 to 1024");
    EXPECT_EQ(message_of(PushReadout::make({.builders = 0})),
              "push readout: 0 builder units; give 1 to 65536");
    const std::vector<std::pair<PushReadoutConfig, const char*>> refused{
        {{.buffered_mfps = 0}, "0 MFPs"},
        {{.largest_mfp = 0}, "largest MFP of 0 bytes"},
        {{.stream_buffer = 9, .largest_mfp = 10}, "give 10 (the largest MFP)"},
        {{.announced_meps = 0}, "0 announced"},
        {{.write_rate = {0}}, "0 b/s"}};
    for (const auto& [config, words] : refused) {
        EXPECT_TRUE(base::fails_with(words, PushReadout::make(config)));
    }
}

}  // namespace
}  // namespace daqloom::protocol
