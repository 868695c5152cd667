#include "protocol/machines/pull_builder.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/failure_test.hpp"
#include "protocol/machines/builder_scene_test.hpp"

namespace daqloom::protocol {
namespace {

using base::Outputs;

using PullScene = BuilderScene<PullBuilder>;

TEST(PullBuilder, RequestsAllFragmentsOfAnEventAtOnce) {
    PullScene scene({.readouts = 3});
    EXPECT_EQ(scene.assigned(7),
              (Outputs{"request 7 from 0", "request 7 from 1", "request 7 from 2"}));
    EXPECT_EQ(scene.builder.outstanding(), 3U);
}

TEST(PullBuilder, BuildsAnEventWhenItsLastFragmentCameInWhateverOrder) {
    PullScene scene({.readouts = 3});
    scene.assigned(7);
    EXPECT_EQ(scene.fragment(7, 2, 10), Outputs{});
    EXPECT_EQ(scene.fragment(7, 0, 0), Outputs{});
    EXPECT_EQ(scene.fragment(7, 1, 30), Outputs{"built 7"});
    EXPECT_EQ(scene.builder.events_held(), 1U);
    EXPECT_EQ(scene.processed(7), Outputs{"done 7"});
    EXPECT_EQ(scene.builder.events_held(), 0U);
    EXPECT_EQ(scene.builder.counters().fragment_bytes, 40);
}

TEST(PullBuilder, KeepsOutstandingFragmentsWithinTheirLimitOverAllEvents) {
    PullScene scene({.readouts = 3, .outstanding_fragments = 4});
    EXPECT_EQ(scene.assigned(1).size(), 3U);
    EXPECT_EQ(scene.assigned(2), Outputs{"request 2 from 0"});
    EXPECT_EQ(scene.assigned(3), Outputs{});
    // Each arrived fragment permits one more request, for the oldest event first.
    EXPECT_EQ(scene.fragment(2, 0), Outputs{"request 2 from 1"});
    EXPECT_EQ(scene.fragment(1, 1), Outputs{"request 2 from 2"});
    EXPECT_EQ(scene.fragment(1, 0), Outputs{"request 3 from 0"});
    EXPECT_EQ(scene.fragment(1, 2), (Outputs{"built 1", "request 3 from 1"}));
    EXPECT_EQ(scene.builder.outstanding(), 4U);
}

TEST(PullBuilder, WithALimitOfOneTakesReadoutUnitAfterReadoutUnit) {
    PullScene scene({.readouts = 3, .outstanding_fragments = 1});
    EXPECT_EQ(scene.assigned(5), Outputs{"request 5 from 0"});
    EXPECT_EQ(scene.fragment(5, 0), Outputs{"request 5 from 1"});
    EXPECT_EQ(scene.fragment(5, 1), Outputs{"request 5 from 2"});
    EXPECT_EQ(scene.fragment(5, 2), Outputs{"built 5"});
}

TEST(PullBuilder, HoldsAnEventUntilItHasBeenProcessed) {
    PullScene scene({.readouts = 1, .concurrent_events = 2});
    scene.assigned(1);
    scene.assigned(2);
    scene.fragment(1, 0);
    EXPECT_EQ(scene.assigned(3), Outputs{});
    EXPECT_EQ(scene.builder.counters().unexpected_assignments, 1U);
    scene.processed(1);
    EXPECT_EQ(scene.assigned(3), Outputs{"request 3 from 0"});
}

TEST(PullBuilder, CountsAndIgnoresInvalidInputs) {
    PullScene scene({.readouts = 2, .outstanding_fragments = 1});
    scene.assigned(1);
    EXPECT_EQ(scene.assigned(1), Outputs{});     // is here already
    EXPECT_EQ(scene.fragment(2, 0), Outputs{});  // no such event
    EXPECT_EQ(scene.fragment(1, 1), Outputs{});  // not requested yet
    EXPECT_EQ(scene.fragment(1, 2), Outputs{});  // no such readout unit
    EXPECT_EQ(scene.fragment(1, 0, -1), Outputs{});
    EXPECT_EQ(scene.fragment(1, 0), Outputs{"request 1 from 1"});
    EXPECT_EQ(scene.fragment(1, 0), Outputs{});  // a duplicate
    EXPECT_EQ(scene.processed(1), Outputs{});    // not built yet
    EXPECT_EQ(scene.processed(9), Outputs{});    // no such event
    EXPECT_EQ(scene.fragment(1, 1), Outputs{"built 1"});
    EXPECT_EQ(scene.fragment(1, 1), Outputs{});  // a duplicate of a built event
    EXPECT_EQ(scene.processed(1), Outputs{"done 1"});
    EXPECT_EQ(scene.processed(1), Outputs{});  // once is enough
    const auto& counters = scene.builder.counters();
    EXPECT_EQ(counters.unexpected_assignments, 1U);
    EXPECT_EQ(counters.unexpected_fragments, 6U);
    EXPECT_EQ(counters.unexpected_processed, 3U);
    EXPECT_EQ(counters.fragments, 2U);
    EXPECT_EQ(counters.fragment_bytes, 2);
    EXPECT_EQ(scene.builder.outstanding(), 0U);
}

TEST(PullBuilder, ForgetsTheFragmentsOfASlotsFormerEvent) {
    PullScene scene({.readouts = 100, .concurrent_events = 1});
    for (std::uint64_t event = 0; event < 3; ++event) {
        scene.assigned(event);
        for (std::uint32_t readout = 0; readout < 99; ++readout) {
            EXPECT_EQ(scene.fragment(event, readout), Outputs{});
        }
        EXPECT_EQ(scene.fragment(event, 99).size(), 1U);
        scene.processed(event);
    }
    EXPECT_EQ(scene.builder.counters().done, 3U);
    EXPECT_EQ(scene.builder.counters().unexpected_fragments, 0U);
}

TEST(PullBuilder, RefusesAnImpossibleConfigurationInASentence) {
    using base::message_of;
    EXPECT_EQ(message_of(PullBuilder::make({.readouts = 0})),
              "builder unit: 0 readout units; give 1 to 1000000");
    EXPECT_EQ(message_of(PullBuilder::make({.readouts = 1, .concurrent_events = 0})),
              "builder unit: 0 concurrent events; give 1 to 1000000");
    EXPECT_TRUE(base::fails_with(
        "in all", PullBuilder::make({.readouts = 1'000'000, .concurrent_events = 1'000'000})));
}

TEST(PullBuilder, DeliversEventsIncompleteForALostReadoutUnit) {
    PullScene scene({.readouts = 3, .outstanding_fragments = 3});
    scene.assigned(1);  // from all three
    scene.assigned(2);
    scene.fragment(1, 0);  // and 2 is asked for from 0
    scene.fragment(1, 2);  // and from 1
    EXPECT_EQ(scene.close({1}), (Outputs{"incomplete 1", "request 2 from 2"}))
        << "and nothing more is asked of the lost unit";
    EXPECT_EQ(scene.fragment(1, 1), Outputs{}) << "late";
    EXPECT_EQ(scene.builder.counters().from_lost, 1U);
    EXPECT_EQ(scene.last_assignment(3), Outputs{}) << "one is still to come";
    EXPECT_EQ(scene.assigned(3), (Outputs{"last 3 to 0", "last 3 to 2", "request 3 from 0"}));
    EXPECT_EQ(scene.assigned(4), Outputs{});
    EXPECT_EQ(scene.builder.counters().late, 1U);
    for (const std::uint32_t readout : {0U, 2U}) {
        EXPECT_FALSE(scene.builder.is_drained());
        scene.fragment(2, readout);
        scene.fragment(3, readout);
    }
    EXPECT_TRUE(scene.builder.is_drained());
    EXPECT_EQ(scene.builder.counters().incomplete, 3U);
    EXPECT_EQ(scene.builder.next_event(), 4U);
    EXPECT_EQ(scene.processed(1), Outputs{"done 1"});
}

TEST(PullBuilder, DropsIncompleteOrEmptyEventsIfConfiguredSo) {
    PullScene scene({.readouts = 2, .when_incomplete = WhenIncomplete::drop});
    scene.assigned(1);
    scene.fragment(1, 0);
    EXPECT_EQ(scene.missing(1, 1), Outputs{"done 1"});
    EXPECT_EQ(scene.builder.counters().dropped, 1U);
    EXPECT_EQ(scene.builder.events_held(), 0U);

    PullScene keeper({.readouts = 2});
    keeper.assigned(1);
    keeper.missing(1, 0);
    EXPECT_EQ(keeper.missing(1, 0), Outputs{});
    EXPECT_EQ(keeper.builder.counters().unexpected_fragments, 1U);
    EXPECT_EQ(keeper.missing(1, 1), Outputs{"done 1"}) << "nothing of it has come";
    EXPECT_EQ(keeper.builder.counters().dropped, 1U);
}

TEST(PullBuilder, AsksForNoMoreOfASlotWhoseRestIsLost) {
    PullScene scene({.readouts = 3, .outstanding_fragments = 1, .concurrent_events = 1});
    scene.assigned(1);
    scene.fragment(1, 0);  // and 1 is asked for
    EXPECT_EQ(scene.close({1, 2}), Outputs{"incomplete 1"});
    scene.processed(1);
    EXPECT_EQ(scene.assigned(2), Outputs{"request 2 from 0"}) << "the slot is as good as new";
    EXPECT_EQ(scene.fragment(2, 0), Outputs{"incomplete 2"});
    EXPECT_EQ(scene.builder.outstanding(), 0U);
}

}  // namespace
}  // namespace daqloom::protocol
