#include "protocol/schedule/barrier.hpp"

#include <gtest/gtest.h>

#include "base/transcript_test.hpp"
#include "protocol/schedule/barrier_check_test.hpp"

namespace daqloom::protocol {
namespace {

using base::Outputs;

/// One participant and its outputs since the last check, in words.
class BarrierScene : public base::Transcript {
  public:
    explicit BarrierScene(BarrierConfig config) : barrier(*Barrier::make(config)) {}

    void send_barrier(Participant to, BarrierMessage m) {
        say("{}.{} to {}", m.generation, m.round, to);
    }
    void released(std::uint64_t generation) { say("released {}", generation); }

    Outputs enter(std::uint64_t generation) {
        return after([&] { barrier.enter(generation, *this); });
    }
    Outputs message(Participant from, std::uint64_t generation, std::uint32_t round) {
        return after([&] { barrier.on_message(from, {generation, round}, *this); });
    }

    Barrier barrier;
};

TEST(Barrier, CentralisedReleasesOneAfterTheOtherWhenAllHaveArrived) {
    BarrierScene master({.kind = BarrierKind::centralised, .participants = 4, .self = 0});
    EXPECT_EQ(master.message(3, 0, 0), Outputs{});
    EXPECT_EQ(master.message(1, 0, 0), Outputs{});
    EXPECT_EQ(master.enter(0), Outputs{});
    EXPECT_EQ(master.message(2, 0, 0), (Outputs{"0.1 to 1", "0.1 to 2", "0.1 to 3", "released 0"}));

    BarrierScene other({.kind = BarrierKind::centralised, .participants = 4, .self = 2});
    EXPECT_EQ(other.enter(0), Outputs{"0.0 to 0"});
    EXPECT_EQ(other.message(0, 0, 1), Outputs{"released 0"});
    EXPECT_EQ(other.enter(1), Outputs{"1.0 to 0"});
}

TEST(Barrier, TournamentIsABracketInWhichTheEvenOneWins) {
    // Bracket of six: 1 loses to 0, 3 to 2, 5 to 4; then 2 to 0, and 4 has a bye; then 4 to 0.
    const auto scene = [](Participant self) {
        return BarrierScene({.kind = BarrierKind::tournament, .participants = 6, .self = self});
    };
    BarrierScene five = scene(5);
    EXPECT_EQ(five.enter(0), Outputs{"0.0 to 4"});
    EXPECT_EQ(five.message(4, 0, 1), Outputs{"released 0"});

    BarrierScene four = scene(4);
    EXPECT_EQ(four.enter(0), Outputs{});
    EXPECT_EQ(four.message(5, 0, 0), Outputs{"0.0 to 0"});
    EXPECT_EQ(four.message(0, 0, 1), (Outputs{"0.1 to 5", "released 0"}));

    BarrierScene root = scene(0);
    EXPECT_EQ(root.enter(0), Outputs{});
    EXPECT_EQ(root.message(4, 0, 0), Outputs{});
    EXPECT_EQ(root.message(1, 0, 0), Outputs{});
    // The farthest participant is released first, because its subtree is the deepest.
    EXPECT_EQ(root.message(2, 0, 0), (Outputs{"0.1 to 4", "0.1 to 2", "0.1 to 1", "released 0"}));
}

TEST(Barrier, DisseminationDoublesItsReachInEachRound) {
    BarrierScene scene({.kind = BarrierKind::dissemination, .participants = 5, .self = 3});
    EXPECT_EQ(scene.enter(0), Outputs{"0.0 to 4"});
    EXPECT_EQ(scene.message(1, 0, 1), Outputs{});  // round 1 before round 0
    EXPECT_EQ(scene.message(2, 0, 0), (Outputs{"0.1 to 0", "0.2 to 2"}));
    EXPECT_EQ(scene.message(4, 0, 2), Outputs{"released 0"});  // (3 − 4) mod 5
}

TEST(Barrier, DisseminationKeepsAMessageOfTheNextGeneration) {
    BarrierScene scene({.kind = BarrierKind::dissemination, .participants = 3, .self = 0});
    EXPECT_EQ(scene.enter(0), Outputs{"0.0 to 1"});
    EXPECT_EQ(scene.message(2, 1, 0), Outputs{});  // overtook that of generation 0
    EXPECT_EQ(scene.message(1, 0, 1), Outputs{});
    EXPECT_EQ(scene.message(2, 0, 0), (Outputs{"0.1 to 2", "released 0"}));
    EXPECT_EQ(scene.enter(1), (Outputs{"1.0 to 1", "1.1 to 2"}));
    EXPECT_EQ(scene.message(1, 1, 1), Outputs{"released 1"});
    EXPECT_EQ(scene.barrier.counters().unexpected, 0U);
}

TEST(Barrier, NeighboursWaitForTheNextOneOnly) {
    BarrierScene scene({.kind = BarrierKind::neighbour, .participants = 4, .self = 3});
    EXPECT_EQ(scene.enter(0), Outputs{"0.0 to 2"});
    EXPECT_EQ(scene.message(2, 0, 0), Outputs{}) << "not the next one";
    EXPECT_EQ(scene.message(0, 0, 0), Outputs{"released 0"});
    EXPECT_EQ(scene.message(0, 2, 0), Outputs{}) << "it is ahead, and has overtaken this:";
    EXPECT_EQ(scene.message(0, 1, 0), Outputs{});
    EXPECT_EQ(scene.message(0, 1, 0), Outputs{}) << "twice";
    EXPECT_EQ(scene.enter(1), (Outputs{"1.0 to 2", "released 1"}));
    EXPECT_EQ(scene.enter(2), (Outputs{"2.0 to 2", "released 2"}));
    EXPECT_EQ(scene.enter(3), Outputs{"3.0 to 2"});
    EXPECT_EQ(scene.message(0, 3, 0), Outputs{"released 3"});
    EXPECT_EQ(scene.barrier.counters().unexpected, 2U);
}

TEST(Barrier, NeighboursThatAreInOrderNeedToCloseTheRingOnly) {
    const auto scene = [](Participant self) {
        return BarrierScene(
            {.kind = BarrierKind::neighbour, .participants = 3, .self = self, .closes_only = true});
    };
    BarrierScene first = scene(0);
    EXPECT_EQ(first.enter(0), (Outputs{"0.0 to 2", "released 0"}));
    BarrierScene second = scene(1);
    EXPECT_EQ(second.enter(0), Outputs{"released 0"});
    EXPECT_EQ(second.message(2, 0, 0), Outputs{}) << "nobody tells it anything";
    EXPECT_EQ(second.barrier.counters().unexpected, 1U);
    BarrierScene last = scene(2);
    EXPECT_EQ(last.enter(0), Outputs{});
    EXPECT_EQ(last.message(0, 0, 0), Outputs{"released 0"});
}

TEST(Barrier, CountsAndIgnoresInvalidInputs) {
    BarrierScene scene({.kind = BarrierKind::tournament, .participants = 4, .self = 2});
    EXPECT_EQ(scene.enter(1), Outputs{});          // generation 0 comes first
    EXPECT_EQ(scene.message(0, 0, 1), Outputs{});  // released before it has arrived
    EXPECT_EQ(scene.message(1, 0, 0), Outputs{});  // not its child
    EXPECT_EQ(scene.message(3, 1, 0), Outputs{});  // cannot be there yet
    EXPECT_EQ(scene.message(3, 0, 2), Outputs{});  // no such round
    EXPECT_EQ(scene.message(3, 0, 0), Outputs{});
    EXPECT_EQ(scene.message(3, 0, 0), Outputs{});  // twice
    EXPECT_EQ(scene.enter(0), Outputs{"0.0 to 0"});
    EXPECT_EQ(scene.enter(0), Outputs{});  // twice
    EXPECT_EQ(scene.barrier.counters().unexpected, 7U);
    EXPECT_EQ(scene.barrier.counters().received, 1U);
}

TEST(Barrier, KeepsItsPromisesUnderRandomDeliveryOrders) {
    for (std::uint64_t seed = 0; seed < 600; ++seed) {
        const auto input = base::random_bytes(seed, 0, 1200);
        ASSERT_EQ(BarrierCheck::broken_promise(input), "") << "seed " << seed;
    }
}

/// Duration of a barrier that all enter together. Each participant sends and receives one message
/// at a time; sending and receiving take one unit of time each, and the way none.
std::uint64_t duration_with_serial_messages(BarrierKind kind, std::uint32_t n) {
    struct Out {
        std::vector<std::pair<Participant, BarrierMessage>> sent;
        bool is_released = false;
        void send_barrier(Participant to, BarrierMessage m) { sent.emplace_back(to, m); }
        void released(std::uint64_t) { is_released = true; }
    };
    struct Letter {
        std::uint64_t at;
        Participant from;
        Participant to;
        BarrierMessage message;
    };
    std::vector<Barrier> barriers;
    std::vector<std::uint64_t> busy_until(n, 0);
    std::vector<Letter> letters;
    std::uint64_t last = 0;
    const auto take = [&](Participant self, Out& out) {
        for (const auto& [to, message] : out.sent) {
            letters.push_back({++busy_until[self], self, to, message});
        }
        last = std::max(last, busy_until[self]);
    };
    for (Participant self = 0; self < n; ++self) {
        barriers.push_back(*Barrier::make({.kind = kind, .participants = n, .self = self}));
    }
    for (Participant self = 0; self < n; ++self) {
        Out out;
        barriers[self].enter(0, out);
        take(self, out);
    }
    while (!letters.empty()) {
        const auto first = std::ranges::min_element(
            letters, [](const Letter& a, const Letter& b) { return a.at < b.at; });
        const Letter letter = *first;
        letters.erase(first);
        busy_until[letter.to] = std::max(busy_until[letter.to], letter.at) + 1;
        Out out;
        barriers[letter.to].on_message(letter.from, letter.message, out);
        take(letter.to, out);
    }
    for (const Barrier& barrier : barriers) {
        EXPECT_EQ(barrier.counters().released, 1U);
    }
    return last;
}

TEST(Barrier, TakesTimeThatGrowsWithTheNumberOrWithItsLogarithm) {
    for (const std::uint32_t log2_n : {1U, 3U, 5U, 8U}) {
        const std::uint32_t n = 1U << log2_n;
        // The master receives N − 1 messages, the first of which took one unit to send, and then
        // sends N − 1; receiving the last of these takes one more unit.
        EXPECT_EQ(duration_with_serial_messages(BarrierKind::centralised, n), 2 * (n - 1) + 2);
        // Each round is a message sent and one received.
        EXPECT_EQ(duration_with_serial_messages(BarrierKind::dissemination, n), 2 * log2_n);
        // Up the tree, each round is a message sent and one received, and the root receives in
        // all. Down the tree is the same: the farthest participant is released first.
        EXPECT_EQ(duration_with_serial_messages(BarrierKind::tournament, n), 4 * log2_n);
        EXPECT_EQ(duration_with_serial_messages(BarrierKind::neighbour, n), 2);
    }
}

TEST(Barrier, RefusesAnImpossibleConfigurationInASentence) {
    EXPECT_EQ(Barrier::make({.participants = 0}).error().message,
              "barrier: 0 participants; give 1 to 1000000");
    EXPECT_EQ(Barrier::make({.participants = 3, .self = 3}).error().message,
              "barrier: participant 3; give 0 to 2");
}

}  // namespace
}  // namespace daqloom::protocol
