#include "protocol/machines/push_builder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

#include "base/failure_test.hpp"
#include "base/transcript_test.hpp"

namespace daqloom::protocol {
namespace {

using base::Bytes;
using base::Outputs;
using Sizes = std::vector<Bytes>;

/// A builder unit and its outputs since the last check, in words.
class PushBuilderScene : public base::Transcript {
  public:
    explicit PushBuilderScene(PushBuilderConfig config)
        : builder(*PushBuilder::make(std::move(config))) {}

    void grant(ReadoutIndex readout, MepId mep, std::span<const Bytes> offsets) {
        say("{} of {} to {}", mep, readout, fmt::join(offsets, " "));
    }
    void discard(ReadoutIndex readout, MepId mep) { say("discard {} of {}", mep, readout); }
    void built(MepId mep, Bytes place, Bytes bytes) {
        say("built {} at {}, {} B", mep, place, bytes);
    }
    void closing(ReadoutIndex readout, std::uint64_t turn) {
        say("closing at {} to {}", turn, readout);
    }
    void last_answer(ReadoutIndex readout, std::uint64_t turn) {
        say("last answer {} to {}", turn, readout);
    }
    void incomplete(MepId mep, Bytes place, Bytes bytes) {
        std::string mask;
        for (std::uint32_t stream = 0; stream < builder.streams(); ++stream) {
            mask += builder.is_written(mep, stream) ? '1' : '0';
        }
        say("incomplete {} at {}, {} B: {}, {}", mep, place, bytes, mask,
            fmt::join(builder.sizes_of(mep), " "));
    }

    Outputs sizes(std::uint32_t readout, std::uint64_t mep, const Sizes& sizes) {
        return after([&] { builder.on_sizes(ReadoutIndex(readout), MepId{mep}, sizes, *this); });
    }
    Outputs written(std::uint32_t readout, std::uint32_t stream, std::uint64_t mep) {
        return after([&] {
            builder.on_written(ReadoutIndex(readout), StreamIndex(stream), MepId{mep}, *this);
        });
    }
    Outputs processed(std::uint64_t mep) {
        return after([&] { builder.on_processed(MepId{mep}, *this); });
    }
    Outputs last_announcement(std::uint32_t readout, std::uint64_t turn_end) {
        return after([&] { builder.on_last_announcement(ReadoutIndex(readout), turn_end, *this); });
    }
    Outputs lease(std::uint64_t turn_end) {
        return after([&] { builder.on_lease(turn_end, *this); });
    }
    Outputs close(const std::vector<std::uint32_t>& lost = {}) {
        return after(
            [&] { builder.on_close(std::vector<ReadoutIndex>(lost.begin(), lost.end()), *this); });
    }
    Outputs end() {
        return after([&] { builder.on_end(*this); });
    }

    PushBuilder builder;
};

TEST(PushBuilder, GivesEveryMfpItsPlaceWhenAllSizesAreKnown) {
    PushBuilderScene scene({.self = BuilderIndex(1),
                            .builders = 2,
                            .streams = {2, 1},
                            .output_buffer = 1'000,
                            .layout = {.header = 10, .alignment = 8}});
    EXPECT_EQ(scene.sizes(1, 1, {30}), Outputs{});
    // Header of 16 B; sizes 20, 5 and 30 are padded to 24, 8 and 32. In the linear shift, unit 1
    // sends to builder unit 1 first.
    EXPECT_EQ(scene.sizes(0, 1, {20, 5}), (Outputs{"1 of 1 to 48", "1 of 0 to 16 40"}));
    EXPECT_EQ(scene.builder.under_construction(), 1U);
    EXPECT_EQ(scene.written(0, 1, 1), Outputs{});
    EXPECT_EQ(scene.written(1, 0, 1), Outputs{});
    EXPECT_EQ(scene.written(0, 0, 1), Outputs{"built 1 at 0, 80 B"});
    EXPECT_EQ(scene.builder.counters().built_bytes, 55);
    EXPECT_EQ(scene.builder.output_held(), 80);
    EXPECT_EQ(scene.processed(1), Outputs{});
    EXPECT_EQ(scene.builder.output_held(), 0);
}

TEST(PushBuilder, PutsTheNextMepBehindTheLast) {
    PushBuilderScene scene({.announced_meps = 2, .output_buffer = 100});
    EXPECT_EQ(scene.sizes(0, 1, {30}), Outputs{});  // overtook MEP 0
    EXPECT_EQ(scene.sizes(0, 0, {50}), (Outputs{"0 of 0 to 0", "1 of 0 to 50"}));
    EXPECT_EQ(scene.written(0, 0, 1), Outputs{"built 1 at 50, 30 B"});
    EXPECT_EQ(scene.written(0, 0, 0), Outputs{"built 0 at 0, 50 B"});
}

TEST(PushBuilder, DiscardsAMepForWhichItsOutputHasNoRoom) {
    PushBuilderScene scene({.streams = {1, 1}, .concurrent_meps = 3, .output_buffer = 100});
    scene.sizes(0, 0, {60});
    EXPECT_EQ(scene.sizes(1, 0, {20}).size(), 2U);
    scene.sizes(0, 1, {20});
    EXPECT_EQ(scene.sizes(1, 1, {1}), (Outputs{"discard 1 of 0", "discard 1 of 1"}));
    EXPECT_EQ(scene.written(0, 0, 1), Outputs{});  // not granted
    scene.sizes(0, 2, {10});
    EXPECT_EQ(scene.sizes(1, 2, {10}), (Outputs{"2 of 0 to 80", "2 of 1 to 90"}));
    const auto& counters = scene.builder.counters();
    EXPECT_EQ(counters.discarded, 1U);
    EXPECT_EQ(counters.discarded_bytes, 21);
    EXPECT_EQ(counters.unexpected_mfps, 1U);
}

TEST(PushBuilder, DiscardsAMepBeyondThoseThatItsOutputMayHold) {
    PushBuilderScene scene({.output_buffer = 100, .output_meps = 1});
    EXPECT_EQ(scene.sizes(0, 0, {10}), Outputs{"0 of 0 to 0"});
    EXPECT_EQ(scene.sizes(0, 1, {10}), Outputs{"discard 1 of 0"});
    EXPECT_EQ(scene.written(0, 0, 0), Outputs{"built 0 at 0, 10 B"});
    EXPECT_EQ(scene.processed(0), Outputs{});
    EXPECT_EQ(scene.sizes(0, 2, {10}), Outputs{"2 of 0 to 0"});
}

TEST(PushBuilder, WaitsForRoomIfConfiguredSo) {
    PushBuilderScene scene({.output_buffer = 100, .when_full = WhenFull::wait});
    EXPECT_EQ(scene.sizes(0, 0, {60}), Outputs{"0 of 0 to 0"});
    EXPECT_EQ(scene.sizes(0, 1, {60}), Outputs{});
    EXPECT_EQ(scene.written(0, 0, 0), Outputs{"built 0 at 0, 60 B"});
    EXPECT_EQ(scene.processed(0), Outputs{"1 of 0 to 0"});
    EXPECT_EQ(scene.sizes(0, 2, {101}), Outputs{"discard 2 of 0"});  // there will never be room
}

TEST(PushBuilder, KeepsMepsUnderConstructionWithinTheirLimit) {
    PushBuilderScene scene({.concurrent_meps = 2, .output_buffer = 100});
    EXPECT_EQ(scene.sizes(0, 0, {10}), Outputs{"0 of 0 to 0"});
    EXPECT_EQ(scene.sizes(0, 1, {10}), Outputs{"1 of 0 to 10"});
    EXPECT_EQ(scene.sizes(0, 2, {10}), Outputs{});
    EXPECT_EQ(scene.written(0, 0, 1), Outputs{"built 1 at 10, 10 B"});  // 0 is still the oldest
    EXPECT_EQ(scene.written(0, 0, 0), (Outputs{"built 0 at 0, 10 B", "2 of 0 to 20"}));
}

TEST(PushBuilder, CountsAndIgnoresInvalidInputs) {
    PushBuilderScene scene(
        {.self = BuilderIndex(1), .builders = 2, .streams = {2, 1}, .output_buffer = 100});
    EXPECT_EQ(scene.sizes(0, 0, {1, 1}), Outputs{});  // builder 0's
    EXPECT_EQ(scene.sizes(2, 1, {1}), Outputs{});     // no such unit
    EXPECT_EQ(scene.sizes(0, 1, {1}), Outputs{});     // has two streams
    EXPECT_EQ(scene.sizes(0, 3, {1, 1}), Outputs{});  // MEP 1 has not been answered
    EXPECT_EQ(scene.sizes(0, 1, {1, -1}), Outputs{});
    EXPECT_EQ(scene.sizes(0, 1, {1, Bytes{1} << 32}), Outputs{});
    EXPECT_EQ(scene.written(0, 0, 1), Outputs{});  // not granted
    EXPECT_EQ(scene.processed(1), Outputs{});      // not built
    EXPECT_EQ(scene.sizes(0, 1, {1, 1}), Outputs{});
    EXPECT_EQ(scene.sizes(0, 1, {1, 1}), Outputs{});  // twice
    EXPECT_EQ(scene.sizes(1, 1, {1}).size(), 2U);
    EXPECT_EQ(scene.sizes(1, 1, {1}), Outputs{});  // has been answered
    EXPECT_EQ(scene.written(0, 0, 1), Outputs{});
    EXPECT_EQ(scene.written(0, 0, 1), Outputs{});  // twice
    EXPECT_EQ(scene.written(0, 2, 1), Outputs{});  // no such stream
    EXPECT_EQ(scene.written(2, 0, 1), Outputs{});  // no such unit
    EXPECT_EQ(scene.processed(1), Outputs{});      // not built
    const auto& counters = scene.builder.counters();
    EXPECT_EQ(counters.unexpected_sizes, 8U);
    EXPECT_EQ(counters.unexpected_mfps, 4U);
    EXPECT_EQ(counters.unexpected_processed, 2U);
}

TEST(PushBuilder, DrainsWhenTheEpochIsClosed) {
    PushBuilderScene scene(
        {.self = BuilderIndex(1), .builders = 2, .streams = {1, 1}, .output_buffer = 100});
    scene.sizes(0, 1, {10});
    scene.sizes(1, 1, {20});
    scene.sizes(0, 3, {5});
    EXPECT_EQ(scene.close(), (Outputs{"closing at 1 to 1", "closing at 1 to 0"}));
    EXPECT_EQ(scene.sizes(1, 3, {5}), Outputs{});  // too late
    EXPECT_EQ(scene.written(0, 0, 1), Outputs{});
    EXPECT_EQ(scene.written(0, 0, 1), Outputs{});  // twice
    EXPECT_EQ(scene.written(1, 0, 1), Outputs{"built 1 at 0, 30 B"});
    EXPECT_EQ(scene.last_announcement(0, 1), Outputs{});
    EXPECT_FALSE(scene.builder.is_drained());
    EXPECT_EQ(scene.last_announcement(1, 1), (Outputs{"last answer 1 to 1", "last answer 1 to 0"}));
    EXPECT_TRUE(scene.builder.is_drained());
    EXPECT_EQ(scene.builder.next_mep(), 2U);
    EXPECT_EQ(scene.end(), Outputs{});
    EXPECT_EQ(scene.builder.output_held(), 30);
    scene.processed(1);
    EXPECT_EQ(scene.builder.output_held(), 0);
    EXPECT_EQ(scene.builder.counters().unexpected_mfps, 1U);
}

TEST(PushBuilder, AnswersAsFarAsTheReadoutUnitsWantWhenTheEpochIsClosed) {
    PushBuilderScene scene({.streams = {1, 1}, .announced_meps = 3, .output_buffer = 100});
    EXPECT_EQ(scene.last_announcement(0, 2), Outputs{});  // it is not being closed
    scene.sizes(0, 0, {10});
    EXPECT_EQ(scene.close(), (Outputs{"closing at 0 to 0", "closing at 0 to 1"}));
    EXPECT_EQ(scene.last_announcement(1, 2), Outputs{});
    EXPECT_EQ(scene.last_announcement(1, 2), Outputs{});  // twice
    EXPECT_EQ(scene.sizes(1, 0, {20}), Outputs{});
    EXPECT_EQ(scene.last_announcement(0, 2), (Outputs{"0 of 0 to 0", "0 of 1 to 10"}));
    EXPECT_EQ(scene.sizes(1, 1, {1}), Outputs{});
    EXPECT_EQ(scene.sizes(1, 2, {1}), Outputs{});
    EXPECT_EQ(scene.sizes(0, 2, {1}), Outputs{});
    EXPECT_EQ(scene.sizes(0, 1, {2}), (Outputs{"1 of 0 to 30", "1 of 1 to 32", "last answer 2 to 0",
                                               "last answer 2 to 1"}));
    for (const std::uint32_t readout : {0U, 1U}) {
        EXPECT_FALSE(scene.builder.is_drained());
        scene.written(readout, 0, 0);
        scene.written(readout, 0, 1);
    }
    EXPECT_TRUE(scene.builder.is_drained());
    EXPECT_EQ(scene.builder.next_mep(), 2U);
    EXPECT_EQ(scene.builder.counters().unexpected_sizes, 2U);
}

TEST(PushBuilder, DiscardsUnannouncedMepsOfALostReadoutUnit) {
    PushBuilderScene scene(
        {.self = BuilderIndex(1), .builders = 2, .streams = {1, 1}, .output_buffer = 100});
    scene.sizes(0, 1, {10});
    scene.close();
    EXPECT_EQ(scene.last_announcement(0, 3), Outputs{});
    EXPECT_EQ(scene.close({1}), Outputs{"last answer 0 to 0"});
    EXPECT_TRUE(scene.builder.is_drained());
    EXPECT_EQ(scene.builder.counters().discarded, 3U);  // MEPs 1, 3 and 5
    EXPECT_EQ(scene.builder.next_mep(), 6U);
}

TEST(PushBuilder, DoesNotWaitForRoomWhenTheEndTakesTooLong) {
    PushBuilderScene scene({.concurrent_meps = 3,
                            .announced_meps = 3,
                            .output_buffer = 20,
                            .when_full = WhenFull::wait});
    scene.sizes(0, 0, {15});
    scene.sizes(0, 1, {10});
    scene.sizes(0, 2, {5});
    scene.written(0, 0, 0);
    scene.close();
    EXPECT_EQ(scene.last_announcement(0, 3), Outputs{});
    EXPECT_EQ(scene.close(), (Outputs{"discard 1 of 0", "2 of 0 to 15", "last answer 3 to 0"}));
}

TEST(PushBuilder, DeliversMepsWithoutTheMfpsOfALostReadoutUnit) {
    PushBuilderScene scene({.streams = {2, 1}, .concurrent_meps = 3, .output_buffer = 100});
    for (std::uint64_t mep = 0; mep < 3; ++mep) {
        scene.sizes(1, mep, {0});
        scene.sizes(0, mep, {10, 20});
    }
    scene.written(1, 0, 0);
    scene.written(0, 0, 0);
    scene.written(0, 1, 1);
    EXPECT_EQ(scene.close({0}), Outputs{"closing at 3 to 1"});
    EXPECT_EQ(scene.last_announcement(1, 3), Outputs{"last answer 3 to 1"});
    EXPECT_EQ(scene.written(0, 1, 0), Outputs{});  // of a lost unit
    EXPECT_EQ(scene.sizes(0, 3, {1, 1}), Outputs{});
    EXPECT_EQ(scene.last_announcement(0, 3), Outputs{});
    EXPECT_EQ(scene.builder.counters().from_lost, 3U);
    scene.written(1, 0, 2);
    EXPECT_FALSE(scene.builder.is_drained());
    scene.written(1, 0, 1);
    EXPECT_TRUE(scene.builder.is_drained());
    EXPECT_EQ(scene.end(), (Outputs{"incomplete 0 at 0, 30 B: 101, 10 20 0",
                                    "incomplete 1 at 30, 30 B: 011, 10 20 0",
                                    "incomplete 2 at 60, 30 B: 001, 10 20 0"}));
    EXPECT_EQ(scene.end(), Outputs{});
    EXPECT_EQ(scene.builder.counters().incomplete, 3U);
    EXPECT_EQ(scene.builder.counters().incomplete_bytes, 10 + 20);
    EXPECT_EQ(scene.builder.under_construction(), 0U);
    EXPECT_EQ(scene.builder.output_held(), 90);
    scene.processed(1);
    EXPECT_EQ(scene.builder.output_held(), 60);
}

TEST(PushBuilder, DropsAMepOfWhichNothingCame) {
    PushBuilderScene scene({.streams = {1, 1}, .concurrent_meps = 2, .output_buffer = 100});
    for (std::uint64_t mep = 0; mep < 2; ++mep) {
        scene.sizes(0, mep, {10});
        scene.sizes(1, mep, {20});
    }
    scene.written(1, 0, 1);
    scene.close({0, 1});
    EXPECT_TRUE(scene.builder.is_drained());
    EXPECT_EQ(scene.end(), Outputs{"incomplete 1 at 30, 30 B: 01, 10 20"});
    EXPECT_EQ(scene.builder.counters().incomplete, 1U);
    EXPECT_EQ(scene.builder.counters().dropped, 1U);
    EXPECT_EQ(scene.builder.counters().dropped_bytes, 0);
    EXPECT_EQ(scene.processed(1), Outputs{});
    EXPECT_EQ(scene.builder.output_held(), 0);
}

TEST(PushBuilder, DropsIncompleteMepsIfConfiguredSo) {
    PushBuilderScene scene(
        {.streams = {1, 1}, .output_buffer = 100, .when_incomplete = WhenIncomplete::drop});
    scene.sizes(0, 0, {10});
    scene.sizes(1, 0, {20});
    scene.close();
    scene.written(1, 0, 0);
    scene.last_announcement(0, 1);
    scene.last_announcement(1, 1);
    EXPECT_FALSE(scene.builder.is_drained());
    EXPECT_EQ(scene.close({0}), Outputs{});  // lost in the meantime
    EXPECT_TRUE(scene.builder.is_drained());
    EXPECT_EQ(scene.end(), Outputs{});
    EXPECT_EQ(scene.processed(0), Outputs{});
    EXPECT_EQ(scene.builder.output_held(), 0);
    EXPECT_EQ(scene.builder.counters().dropped, 1U);
    EXPECT_EQ(scene.builder.counters().dropped_bytes, 20);
    EXPECT_EQ(scene.builder.counters().unexpected_processed, 1U);
}

TEST(PushBuilder, NumbersTheStreamsOfAllReadoutUnitsThrough) {
    static_assert(
        !std::is_convertible_v<StreamIndex, std::uint32_t>);  // in a MEP they have other numbers
    const PushBuilderScene scene({.streams = {2, 1, 3}});
    EXPECT_EQ(scene.builder.streams(), 6U);
    EXPECT_EQ(scene.builder.number_of({ReadoutIndex(1), StreamIndex(0)}), 2U);
    EXPECT_EQ(scene.builder.number_of({ReadoutIndex(2), StreamIndex(2)}), 5U);
    for (std::uint32_t stream = 0; stream < 6; ++stream) {
        EXPECT_EQ(scene.builder.number_of(scene.builder.stream_of(stream)), stream);
    }
}

TEST(PushBuilder, ReturnsTheOldestTurnThatMayStillBeWritten) {
    PushBuilderScene scene({.concurrent_meps = 2, .output_buffer = 100});
    scene.sizes(0, 0, {10});
    scene.sizes(0, 1, {10});
    scene.written(0, 0, 1);
    EXPECT_EQ(scene.builder.oldest_turn(), 0U);
    scene.written(0, 0, 0);
    EXPECT_EQ(scene.builder.oldest_turn(), 2U);
}

TEST(PushBuilder, RefusesAnImpossibleConfigurationInASentence) {
    using base::message_of;
    EXPECT_EQ(message_of(PushBuilder::make({.self = BuilderIndex(2), .builders = 2})),
              "push builder: builder unit 2 of 2; give 1 to 65536 units, counted from 0");
    EXPECT_EQ(message_of(PushBuilder::make({.streams = {1, 0}})),
              "push builder: readout unit 1 with 0 streams; give 1 to 1024");
    EXPECT_EQ(message_of(PushBuilder::make({.streams = {}})),
              "push builder: 0 readout units; give 1 to 65536");
    const std::vector<std::pair<PushBuilderConfig, const char*>> refused{
        {{.concurrent_meps = 0}, "0 concurrent"},
        {{.output_buffer = 0}, "output buffer of 0 bytes"},
        {{.output_buffer = 99, .usual_mep = 100},
         "output_buffer of 99 bytes; a multi-event packet takes about 100"},
        {{.layout = {.alignment = 3}}, "alignment of 3 bytes"},
        {{.streams = base::Table<ReadoutIndex, std::uint32_t>(65'536, 1'000)}, "at a time"}};
    for (const auto& [config, words] : refused) {
        EXPECT_TRUE(base::fails_with(words, PushBuilder::make(config)));
    }
    EXPECT_TRUE(PushBuilder::make({.output_buffer = 100, .usual_mep = 100}));
}

TEST(PushBuilder, AnswersNothingBeyondItsLeaseAndKeepsAnnouncements) {
    PushBuilderScene scene({.concurrent_meps = 4, .announced_meps = 4});
    EXPECT_EQ(scene.lease(1), Outputs{});
    EXPECT_EQ(scene.sizes(0, 0, {10}), (Outputs{"0 of 0 to 0"}));
    EXPECT_EQ(scene.sizes(0, 1, {10}), Outputs{});
    EXPECT_EQ(scene.sizes(0, 2, {10}), Outputs{});
    EXPECT_EQ(scene.written(0, 0, 0), (Outputs{"built 0 at 0, 10 B"}))
        << "what was granted is built";
    EXPECT_EQ(scene.builder.next_mep(), 1U);
    EXPECT_EQ(scene.lease(2), (Outputs{"1 of 0 to 10"}));
    EXPECT_EQ(scene.lease(0), Outputs{}) << "it is over";
    EXPECT_EQ(scene.lease(9), (Outputs{"2 of 0 to 20"}));
}

TEST(PushBuilder, ClosesWithTheMepsOfItsLease) {
    PushBuilderScene scene({.concurrent_meps = 4, .announced_meps = 4});
    EXPECT_EQ(scene.lease(0), Outputs{});
    EXPECT_EQ(scene.sizes(0, 0, {10}), Outputs{});
    EXPECT_EQ(scene.close(), (Outputs{"closing at 0 to 0"}));
    EXPECT_EQ(scene.last_announcement(0, 1), Outputs{}) << "another builder has answered so far";
    EXPECT_FALSE(scene.builder.is_drained());
    EXPECT_EQ(scene.lease(1), (Outputs{"0 of 0 to 0", "last answer 1 to 0"}));
    EXPECT_EQ(scene.written(0, 0, 0), (Outputs{"built 0 at 0, 10 B"}));
    EXPECT_TRUE(scene.builder.is_drained());
}

}  // namespace
}  // namespace daqloom::protocol
