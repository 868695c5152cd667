#include "protocol/schedule/event_manager.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace daqloom::protocol {
namespace {

/// Events and builders.
using Assignments = std::vector<std::pair<std::uint64_t, std::uint32_t>>;

/// An event manager that gets events 0, 1, 2, …, and its assignments since the last check.
class EventManagerScene {
  public:
    explicit EventManagerScene(EventManagerConfig config)
        : manager(*EventManager::make(config, base::RandomStream(1, "assignment"))) {}

    void assign(EventId event, BuilderIndex builder) {
        assigned_.emplace_back(static_cast<std::uint64_t>(event), builder.value());
    }

    void last_assignment(BuilderIndex builder, std::uint64_t events) {
        assigned_.emplace_back(events, builder.value());
    }

    Assignments events(int count) {
        for (int i = 0; i < count; ++i) {
            manager.on_event(EventId{next_event_++}, *this);
        }
        return std::exchange(assigned_, {});
    }
    Assignments done(std::uint32_t builder) {
        manager.on_builder_done(BuilderIndex(builder), *this);
        return std::exchange(assigned_, {});
    }

    Assignments lease(std::uint64_t event_end) {
        manager.on_lease(event_end, *this);
        return std::exchange(assigned_, {});
    }

    /// Closes the epoch. Returns the total number of events of each builder unit.
    Assignments close() {
        manager.on_close(*this);
        return std::exchange(assigned_, {});
    }

    EventManager manager;

  private:
    std::uint64_t next_event_ = 0;
    Assignments assigned_;
};

TEST(EventManager, RoundRobinTakesTheBuildersInTurn) {
    EventManagerScene scene({.builders = 3, .concurrent_events = 2});
    EXPECT_EQ(scene.events(5), (Assignments{{0, 0}, {1, 1}, {2, 2}, {3, 0}, {4, 1}}));
    EventManagerScene long_one({.builders = 7, .concurrent_events = 1'000});
    long_one.events(7 * 123);
    for (const BuilderIndex b : base::IndexRange<BuilderIndex>(7)) {
        EXPECT_EQ(long_one.manager.in_flight(b), 123U);
    }
}

TEST(EventManager, RoundRobinSkipsAFullBuilder) {
    EventManagerScene scene({.builders = 3, .concurrent_events = 1});
    scene.events(3);
    scene.done(2);
    scene.done(0);
    // Builder unit 2 was last, so 0 is next; then 1, which is full, is skipped.
    EXPECT_EQ(scene.events(2), (Assignments{{3, 0}, {4, 2}}));
}

TEST(EventManager, LeastBusyTakesTheBuilderWithTheFewestEventsAndEqualOnesInTurn) {
    EventManagerScene scene(
        {.builders = 3, .concurrent_events = 9, .assignment = Assignment::least_busy});
    EXPECT_EQ(scene.events(1), (Assignments{{0, 0}}));
    scene.done(0);
    EXPECT_EQ(scene.events(1), (Assignments{{1, 1}}));
    scene.done(1);
    EXPECT_EQ(scene.events(2), (Assignments{{2, 2}, {3, 0}}));
    scene.events(7);  // three each
    scene.done(1);
    scene.done(1);
    scene.done(2);
    // With 3, 1 and 2 events in flight, 1 is first; then 1 and 2 are equal, and 2 is next in turn.
    EXPECT_EQ(scene.events(3), (Assignments{{11, 1}, {12, 2}, {13, 1}}));
}

TEST(EventManager, RandomTakesEachBuilderWithRoomEquallyOften) {
    EventManagerScene scene(
        {.builders = 4, .concurrent_events = 100'000, .assignment = Assignment::random});
    constexpr int n = 40'000;
    scene.events(n);
    for (const BuilderIndex b : base::IndexRange<BuilderIndex>(4)) {
        EXPECT_NEAR(scene.manager.in_flight(b), n / 4.0, 5 * std::sqrt(n * 0.25 * 0.75));
    }
}

TEST(EventManager, RandomNeverTakesAFullBuilder) {
    EventManagerScene scene(
        {.builders = 3, .concurrent_events = 1, .assignment = Assignment::random});
    scene.events(3);
    for (int i = 0; i < 100; ++i) {
        const auto freed = static_cast<std::uint32_t>(i % 3);
        scene.done(freed);
        const Assignments assigned = scene.events(1);
        ASSERT_EQ(assigned.size(), 1U);
        EXPECT_EQ(assigned[0].second, freed);
    }
}

TEST(EventManager, EventsWaitInOrderWhileAllBuildersAreFull) {
    EventManagerScene scene({.builders = 2, .concurrent_events = 1});
    EXPECT_EQ(scene.events(5), (Assignments{{0, 0}, {1, 1}}));
    EXPECT_EQ(scene.manager.backlog(), 3U);
    EXPECT_EQ(scene.done(1), (Assignments{{2, 1}}));
    EXPECT_EQ(scene.done(1), (Assignments{{3, 1}}));
    EXPECT_EQ(scene.done(0), (Assignments{{4, 0}}));
    EXPECT_EQ(scene.done(0), Assignments{});
    const auto& counters = scene.manager.counters();
    EXPECT_EQ(scene.manager.backlog(), 0U);
    EXPECT_EQ(counters.events, 5U);
    EXPECT_EQ(counters.assigned, 5U);
    EXPECT_EQ(counters.done, 4U);
}

TEST(EventManager, AssignsNothingMoreWhenTheEpochIsClosed) {
    EventManagerScene scene({.builders = 2, .concurrent_events = 1});
    scene.events(4);
    EXPECT_EQ(scene.done(0), (Assignments{{2, 0}}));
    EXPECT_EQ(scene.close(), (Assignments{{2, 0}, {1, 1}}));
    EXPECT_EQ(scene.close(), Assignments{}) << "once";
    EXPECT_EQ(scene.done(0), Assignments{});
    EXPECT_EQ(scene.events(1), Assignments{});
    EXPECT_EQ(scene.manager.backlog(), 2U);
    EXPECT_EQ(scene.manager.counters().assigned, 3U);
}

TEST(EventManager, CountsAndIgnoresReportsThatMakeNoSense) {
    EventManagerScene scene({.builders = 2, .concurrent_events = 1});
    scene.events(1);
    scene.done(1);  // has no event
    scene.done(2);  // does not exist
    EXPECT_EQ(scene.manager.counters().unexpected, 2U);
    EXPECT_EQ(scene.manager.counters().done, 0U);
    EXPECT_EQ(scene.events(2), (Assignments{{1, 1}}));
}

TEST(EventManager, RefusesAnImpossibleConfigurationInASentence) {
    const auto message = [](EventManagerConfig config) {
        return EventManager::make(config, base::RandomStream(1, "assignment")).error().message;
    };
    EXPECT_EQ(message({.builders = 0}), "event manager: 0 builders; give 1 to 1000000");
    EXPECT_EQ(message({.builders = 1, .concurrent_events = 0}),
              "event manager: 0 concurrent events; give 1 to 1000000");
}

TEST(EventManager, AssignsNothingBeyondItsLeaseAndThenInTheOrderThatEventsCame) {
    EventManagerScene scene({.builders = 2, .concurrent_events = 2});
    EXPECT_EQ(scene.lease(1), Assignments{});
    EXPECT_EQ(scene.events(4), (Assignments{{0, 0}}));
    EXPECT_EQ(scene.done(0), Assignments{}) << "there is room, and no lease";
    EXPECT_EQ(scene.lease(3), (Assignments{{1, 1}, {2, 0}}));
    EXPECT_EQ(scene.events(1), Assignments{}) << "none overtakes those that wait";
    EXPECT_EQ(scene.lease(0), Assignments{});
    EXPECT_EQ(scene.lease(9), (Assignments{{3, 1}, {4, 0}}));
}

}  // namespace
}  // namespace daqloom::protocol
