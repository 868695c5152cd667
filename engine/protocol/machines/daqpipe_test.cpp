#include "protocol/machines/daqpipe.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/failure_test.hpp"
#include "protocol/machines/builder_scene_test.hpp"

namespace daqloom::protocol {
namespace {

using base::Bytes;
using base::Outputs;

using DaqpipeScene = BuilderScene<DaqpipeBuilder>;

TEST(DaqpipeBuilder, PullsInBarrelOrderAsManyFragmentsOfAnEventAsItMay) {
    DaqpipeScene scene({.self = BuilderIndex(2),
                        .readouts = 4,
                        .credits = 2,
                        .parallel_sends = 2,
                        .largest_fragment = 10});
    EXPECT_EQ(scene.assigned(7), (Outputs{"request 7 from 2", "request 7 from 3"}));
    EXPECT_EQ(scene.assigned(8), (Outputs{"request 8 from 2", "request 8 from 3"}));
    EXPECT_EQ(scene.fragment(7, 3), Outputs{"request 7 from 0"});
    EXPECT_EQ(scene.fragment(7, 2), Outputs{"request 7 from 1"});
    EXPECT_EQ(scene.fragment(7, 1), Outputs{});
    EXPECT_EQ(scene.fragment(7, 0), Outputs{"built 7"});
    EXPECT_EQ(scene.processed(7), Outputs{"done 7"});
    EXPECT_EQ(scene.assigned(9), (Outputs{"request 9 from 2", "request 9 from 3"}));
    // The last slot comes first.
    EXPECT_EQ(scene.builder.slot_of(EventId{8}), 0U);
    EXPECT_EQ(scene.builder.slot_of(EventId{9}), 1U);
}

TEST(DaqpipeBuilder, PushesByAskingForAllAtOnce) {
    DaqpipeScene scene(
        {.self = BuilderIndex(1), .readouts = 3, .parallel_sends = 0, .largest_fragment = 5});
    EXPECT_EQ(scene.assigned(0),
              (Outputs{"request 0 from 1", "request 0 from 2", "request 0 from 0"}));
}

TEST(DaqpipeBuilder, TimedAsksEachReadoutUnitInItsSlot) {
    DaqpipeScene scene({.self = BuilderIndex(1),
                        .readouts = 3,
                        .credits = 2,
                        .parallel_sends = 1,
                        .largest_fragment = 1,
                        .is_timed = true});
    EXPECT_EQ(scene.assigned(0), Outputs{});                // no slot has begun
    EXPECT_EQ(scene.slot(4), Outputs{"request 0 from 2"});  // (1 + 4) mod 3
    EXPECT_EQ(scene.assigned(1), Outputs{"request 1 from 2"});
    EXPECT_EQ(scene.fragment(1, 2), Outputs{});                    // has been asked
    EXPECT_EQ(scene.slot(5), Outputs{"request 1 from 0"});         // event 0 has one in flight
    EXPECT_EQ(scene.fragment(0, 2), Outputs{"request 0 from 0"});  // still within the slot
    EXPECT_EQ(scene.slot(5), Outputs{});                           // has begun before
    EXPECT_EQ(scene.builder.counters().unexpected_slots, 1U);
}

TEST(DaqpipeBuilder, CountsAndIgnoresInvalidInputs) {
    DaqpipeScene scene({.readouts = 2, .credits = 1, .parallel_sends = 1, .largest_fragment = 9});
    scene.assigned(1);
    EXPECT_EQ(scene.assigned(2), Outputs{});         // no credit
    EXPECT_EQ(scene.fragment(1, 1), Outputs{});      // not asked
    EXPECT_EQ(scene.fragment(1, 2), Outputs{});      // no such readout unit
    EXPECT_EQ(scene.fragment(1, 0, 10), Outputs{});  // larger than its place
    EXPECT_EQ(scene.fragment(1, 0, -1), Outputs{});
    EXPECT_EQ(scene.fragment(3, 0), Outputs{});  // no such event
    EXPECT_EQ(scene.fragment(1, 0, 9), Outputs{"request 1 from 1"});
    EXPECT_EQ(scene.fragment(1, 0), Outputs{});  // twice
    EXPECT_EQ(scene.processed(1), Outputs{});    // not built
    EXPECT_EQ(scene.slot(0), Outputs{});         // not timed
    const auto& counters = scene.builder.counters();
    EXPECT_EQ(counters.unexpected_assignments, 1U);
    EXPECT_EQ(counters.unexpected_fragments, 6U);
    EXPECT_EQ(counters.unexpected_processed, 1U);
    EXPECT_EQ(counters.unexpected_slots, 1U);
    EXPECT_EQ(counters.fragment_bytes, 9);
}

TEST(DaqpipeBuilder, CollectsAssignedEventsWhenTheEpochIsClosed) {
    // Events 3 and 5 are requested in turn from readout unit 0 on, one fragment at a time.
    DaqpipeScene scene({.readouts = 3, .credits = 3, .parallel_sends = 1, .largest_fragment = 9});
    scene.assigned(3);
    scene.fragment(3, 0);
    EXPECT_EQ(scene.assigned(5), Outputs{"request 5 from 0"});
    // Readout unit 1, whose fragment was in flight, is lost: readout unit 2 is next.
    EXPECT_EQ(scene.close({1}), Outputs{"request 3 from 2"});
    EXPECT_EQ(scene.last_assignment(1), Outputs{});  // there were more
    EXPECT_EQ(scene.last_assignment(2), (Outputs{"last 2 to 0", "last 2 to 2"}));
    EXPECT_EQ(scene.last_assignment(2), Outputs{});  // twice
    EXPECT_EQ(scene.assigned(7), Outputs{});
    EXPECT_EQ(scene.fragment(3, 1), Outputs{});
    EXPECT_EQ(scene.fragment(3, 2), Outputs{});
    EXPECT_EQ(scene.fragment(5, 0), Outputs{"request 5 from 2"});
    EXPECT_FALSE(scene.builder.is_drained());
    EXPECT_EQ(scene.processed(3), Outputs{});  // not given out
    EXPECT_EQ(scene.close({2}), Outputs{});    // lost in the meantime
    EXPECT_TRUE(scene.builder.is_drained());
    EXPECT_EQ(scene.builder.next_event(), 6U);
    EXPECT_EQ(scene.end(), (Outputs{"incomplete 3: 101", "incomplete 5: 100"}));
    EXPECT_EQ(scene.processed(3), Outputs{"done 3"});
    EXPECT_EQ(scene.builder.events_held(), 1U);
    const auto& counters = scene.builder.counters();
    EXPECT_EQ(counters.incomplete, 2U);
    EXPECT_EQ(counters.late, 1U);
    EXPECT_EQ(counters.from_lost, 1U);
    EXPECT_EQ(counters.unexpected_fragments, 0U);
    EXPECT_EQ(counters.unexpected_assignments, 2U);
}

TEST(DaqpipeBuilder, TakesFragmentsInFlightWhenTheEpochIsClosed) {
    DaqpipeScene scene({.readouts = 3, .credits = 2, .parallel_sends = 0, .largest_fragment = 9});
    EXPECT_EQ(scene.last_assignment(2), Outputs{});
    scene.assigned(3);
    EXPECT_EQ(scene.close({1}), Outputs{});
    EXPECT_EQ(scene.assigned(4),
              (Outputs{"request 4 from 0", "request 4 from 2", "last 2 to 0", "last 2 to 2"}));
    EXPECT_EQ(scene.assigned(5), Outputs{});
    EXPECT_EQ(scene.builder.counters().late, 1U);
    for (const std::uint32_t readout : {0U, 2U}) {
        EXPECT_FALSE(scene.builder.is_drained());
        scene.fragment(3, readout);
        scene.fragment(4, readout);
    }
    EXPECT_TRUE(scene.builder.is_drained());
    EXPECT_EQ(scene.end(), (Outputs{"incomplete 3: 101", "incomplete 4: 101"}));
}

TEST(DaqpipeBuilder, DropsAnEventOfWhichNothingCame) {
    DaqpipeScene scene({.readouts = 3, .credits = 2, .parallel_sends = 0, .largest_fragment = 9});
    scene.assigned(3);
    scene.assigned(4);
    scene.fragment(4, 1);
    scene.last_assignment(2);
    scene.close({0, 1, 2});
    EXPECT_TRUE(scene.builder.is_drained());
    EXPECT_EQ(scene.end(), Outputs{"incomplete 4: 010"});
    EXPECT_EQ(scene.builder.counters().incomplete, 1U);
    EXPECT_EQ(scene.builder.counters().dropped, 1U);
    EXPECT_EQ(scene.builder.events_held(), 1U);
}

TEST(DaqpipeBuilder, DoesNotWaitForALostEventManager) {
    DaqpipeScene scene({.readouts = 1, .credits = 2, .largest_fragment = 9});
    scene.assigned(3);
    EXPECT_EQ(scene.close(), Outputs{});
    EXPECT_EQ(scene.event_manager_lost(), Outputs{"last 1 to 0"});
    EXPECT_EQ(scene.assigned(4), Outputs{});
    scene.fragment(3, 0);
    EXPECT_TRUE(scene.builder.is_drained());
}

TEST(DaqpipeBuilder, TimedAsksInTheSlotsThatFollowWhenTheEpochIsClosed) {
    DaqpipeScene scene({.readouts = 2,
                        .largest_fragment = 9,
                        .is_timed = true,
                        .when_incomplete = WhenIncomplete::drop});
    scene.slot(0);
    scene.assigned(0);
    scene.fragment(0, 0);
    EXPECT_EQ(scene.last_assignment(1), Outputs{});
    EXPECT_EQ(scene.close(), (Outputs{"last 1 to 0", "last 1 to 1"}));
    EXPECT_FALSE(scene.builder.is_drained());
    EXPECT_EQ(scene.slot(1), Outputs{"request 0 from 1"});
    EXPECT_FALSE(scene.builder.is_drained());
    scene.close({1});
    EXPECT_TRUE(scene.builder.is_drained());
    EXPECT_EQ(scene.end(), Outputs{});
    EXPECT_EQ(scene.builder.counters().dropped, 1U);
    EXPECT_EQ(scene.builder.events_held(), 0U);
}

/// A readout unit and its writes since the last check: event and builder unit.
class ReadoutScene : public base::Transcript {
  public:
    explicit ReadoutScene(DaqpipeReadoutConfig config) : readout(*DaqpipeReadout::make(config)) {}

    void write(const DaqpipeWrite& w) { say("{} to {}", w.event, w.builder); }

    Outputs request(std::uint64_t event, std::uint32_t builder) {
        return after(
            [&] { readout.on_request(EventId{event}, BuilderIndex(builder), 0, 1, *this); });
    }
    Outputs write_done(std::uint32_t builder) {
        return after([&] { readout.on_write_done(BuilderIndex(builder), *this); });
    }
    Outputs slot(std::uint64_t slot) {
        return after([&] { readout.on_slot(slot, *this); });
    }
    Outputs close(const std::vector<std::uint32_t>& lost = {}) {
        return after(
            [&] { readout.on_close(std::vector<BuilderIndex>(lost.begin(), lost.end()), *this); });
    }

    DaqpipeReadout readout;
};

TEST(DaqpipeReadout, AnswersAPullAtOnce) {
    ReadoutScene scene({.self = ReadoutIndex(1), .builders = 3});
    EXPECT_EQ(scene.request(0, 2), Outputs{"0 to 2"});
    EXPECT_EQ(scene.request(1, 0), Outputs{"1 to 0"});
    EXPECT_EQ(scene.readout.in_flight(), 2U);
}

TEST(DaqpipeReadout, PushesInBarrelOrderFromItsOwnNumberDownwards) {
    ReadoutScene scene({.self = ReadoutIndex(1), .builders = 4, .credits = 2, .parallel_sends = 1});
    EXPECT_EQ(scene.request(0, 1), Outputs{"0 to 1"});
    EXPECT_EQ(scene.request(4, 1), Outputs{});
    EXPECT_EQ(scene.request(2, 2), Outputs{});
    EXPECT_EQ(scene.request(3, 3), Outputs{});
    EXPECT_EQ(scene.request(5, 3), Outputs{});
    EXPECT_EQ(scene.write_done(1), Outputs{"3 to 3"});  // 0 waits for nothing, then comes 3
    EXPECT_EQ(scene.write_done(3), Outputs{"2 to 2"});
    EXPECT_EQ(scene.write_done(2), Outputs{"4 to 1"});
    EXPECT_EQ(scene.write_done(1), Outputs{"5 to 3"});
    EXPECT_EQ(scene.write_done(3), Outputs{});
    EXPECT_EQ(scene.readout.in_flight(), 0U);
}

TEST(DaqpipeReadout, TimedServesTheBuilderWhoseSlotItIs) {
    ReadoutScene scene({.builders = 3, .credits = 2, .parallel_sends = 1, .is_timed = true});
    EXPECT_EQ(scene.request(0, 2), Outputs{});
    EXPECT_EQ(scene.request(1, 2), Outputs{});
    EXPECT_EQ(scene.slot(0), Outputs{});          // builder 0
    EXPECT_EQ(scene.slot(1), Outputs{"0 to 2"});  // (0 − 1) mod 3
    EXPECT_EQ(scene.write_done(2), Outputs{"1 to 2"});
    EXPECT_EQ(scene.request(2, 2), Outputs{});  // the limit
    EXPECT_EQ(scene.slot(2), Outputs{});
    EXPECT_EQ(scene.write_done(2), Outputs{});  // builder 1
    EXPECT_EQ(scene.slot(4), Outputs{"2 to 2"});
}

TEST(DaqpipeReadout, CountsAndIgnoresInvalidInputs) {
    ReadoutScene scene({.builders = 2, .credits = 1, .parallel_sends = 1});
    EXPECT_EQ(scene.write_done(0), Outputs{});
    EXPECT_EQ(scene.write_done(2), Outputs{});  // no such builder
    EXPECT_EQ(scene.request(0, 2), Outputs{});
    EXPECT_EQ(scene.request(0, 0), Outputs{"0 to 0"});
    EXPECT_EQ(scene.request(1, 0), Outputs{});
    EXPECT_EQ(scene.request(2, 0), Outputs{});  // only one may wait
    EXPECT_EQ(scene.slot(0), Outputs{});
    EXPECT_EQ(scene.readout.counters().unexpected_requests, 2U);
    EXPECT_EQ(scene.readout.counters().unexpected_completions, 2U);
    EXPECT_EQ(scene.readout.counters().unexpected_slots, 1U);
}

TEST(DaqpipeReadout, ServesLiveBuildersWhenTheEpochIsClosed) {
    ReadoutScene scene({.builders = 2, .credits = 3, .parallel_sends = 1});
    scene.readout.on_last_request(BuilderIndex(1), 2);
    EXPECT_EQ(scene.request(0, 0), Outputs{"0 to 0"});
    EXPECT_EQ(scene.request(8, 0), Outputs{});
    EXPECT_EQ(scene.request(1, 1), Outputs{});
    EXPECT_EQ(scene.close({0}), Outputs{"1 to 1"});  // the write to builder 0 may never end
    EXPECT_EQ(scene.request(2, 0), Outputs{});
    EXPECT_EQ(scene.write_done(1), Outputs{});
    EXPECT_FALSE(scene.readout.is_drained());
    EXPECT_EQ(scene.request(3, 1), Outputs{"3 to 1"});
    EXPECT_EQ(scene.write_done(0), Outputs{});
    EXPECT_FALSE(scene.readout.is_drained());
    EXPECT_EQ(scene.write_done(1), Outputs{});
    EXPECT_TRUE(scene.readout.is_drained());
    EXPECT_EQ(scene.readout.next_event(), 4U);  // nothing of event 8 was written
    EXPECT_EQ(scene.readout.counters().lost_requests, 1U);
    EXPECT_EQ(scene.readout.counters().from_lost, 1U);
    EXPECT_EQ(scene.readout.counters().unexpected_requests, 0U);
}

TEST(Daqpipe, RefusesAnImpossibleConfigurationInASentence) {
    using base::fails_with;
    using base::message_of;
    EXPECT_EQ(message_of(DaqpipeBuilder::make({.readouts = 0})),
              "DAQPIPE builder 0 with 0 readout units; give 1 to 65536");
    EXPECT_TRUE(fails_with("0 credits", DaqpipeBuilder::make({.credits = 0})));
    EXPECT_TRUE(fails_with("0 bytes", DaqpipeBuilder::make({.largest_fragment = 0})));
    EXPECT_EQ(message_of(DaqpipeReadout::make({.builders = 0})),
              "DAQPIPE readout 0 with 0 builders; give 1 to 65536");
    EXPECT_EQ(message_of(DaqpipeReadout::make({.credits = 0})),
              "DAQPIPE readout: 0 credits; give 1 to 1000000");
}

}  // namespace
}  // namespace daqloom::protocol
