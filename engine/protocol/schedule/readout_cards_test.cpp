#include "protocol/schedule/readout_cards.hpp"

#include <gtest/gtest.h>

#include <set>

namespace daqloom::protocol {
namespace {

using base::microseconds;
using base::Time;

/// Cards of streams with an MFP every 10 µs, and the times (µs) at which each MFP was complete.
class ReadoutCardsScene {
  public:
    explicit ReadoutCardsScene(const std::vector<Time>& room)
        : cards(microseconds(10), room), complete(room.size()) {
        cards.on_start(Time::zero(), *this);
    }

    void set_card_timer(std::uint32_t stream, Time at) { timers_.emplace(at, stream); }

    /// Handles all timers up to time `us`. MFPs are accepted immediately, except by busy streams.
    void run(std::int64_t us) {
        while (!timers_.empty() && timers_.begin()->first <= microseconds(us)) {
            const auto [at, stream] = *timers_.begin();
            timers_.erase(timers_.begin());
            if (cards.on_timer(stream, at, *this)) {
                complete[stream].push_back(at.ps / microseconds(1).ps);
                if (!busy.contains(stream)) {
                    cards.on_taken(stream, at, *this);
                }
            }
        }
    }
    void acknowledge(std::int64_t us, std::uint32_t stream = 0) {
        run(us);
        cards.on_acknowledged(stream, microseconds(us), *this);
    }
    void take(std::int64_t us, std::uint32_t stream = 0) {
        run(us);
        cards.on_taken(stream, microseconds(us), *this);
    }
    [[nodiscard]] std::pair<std::int64_t, std::int64_t> stopped(std::int64_t us) const {
        const ReadoutCards::StopTimes found = cards.stopped(microseconds(us));
        return {found.acknowledge.ps / microseconds(1).ps, found.memory.ps / microseconds(1).ps};
    }

    ReadoutCards cards;
    std::vector<std::vector<std::int64_t>> complete;
    std::set<std::uint32_t> busy;

  private:
    std::multiset<std::pair<Time, std::uint32_t>> timers_;
};

using Times = std::vector<std::int64_t>;
using StopTimes = std::pair<std::int64_t, std::int64_t>;

TEST(ReadoutCards, WithoutLimitNeverStop) {
    ReadoutCardsScene scene({Time::never()});
    scene.run(35);
    EXPECT_EQ(scene.complete[0], (Times{0, 10, 20, 30}));
    EXPECT_EQ(scene.stopped(35), StopTimes(0, 0));
}

TEST(ReadoutCards, AreFullWhenNoAcknowledgeHasComeSinceAnMfpEnded) {
    ReadoutCardsScene scene({microseconds(4)});
    scene.acknowledge(3);
    scene.acknowledge(19);  // of the MFP of 10: full from 14 to 19
    EXPECT_EQ(scene.stopped(22), StopTimes(5, 0));
    scene.run(50);  // of that of 25: full from 29
    EXPECT_EQ(scene.complete[0], (Times{0, 10, 25}));
    EXPECT_EQ(scene.stopped(50), StopTimes(5 + 21, 0));
}

TEST(ReadoutCards, WithRoomForSeveralMfpsWaitForTheOldest) {
    ReadoutCardsScene scene({microseconds(25)});
    scene.run(40);
    EXPECT_EQ(scene.complete[0], (Times{0, 10, 20}));
    EXPECT_EQ(scene.stopped(40), StopTimes(15, 0));
    scene.acknowledge(40);  // now those of 10 and 20 are there, for another 10 µs
    scene.run(60);
    EXPECT_EQ(scene.complete[0], (Times{0, 10, 20, 45}));
    EXPECT_EQ(scene.stopped(60), StopTimes(15 + 10, 0));
}

TEST(ReadoutCards, StopTheTriggerForAllStreamsWhileOneIsFull) {
    ReadoutCardsScene scene({microseconds(4), microseconds(6), Time::never()});
    scene.acknowledge(8, 0);   // full from 4 to 8; the other has 4 of its 6 µs
    scene.acknowledge(11, 1);  // full from 10 to 11
    scene.run(18);
    EXPECT_EQ(scene.complete, (std::vector<Times>{{0, 15}, {0, 15}, {0, 15}}));
    EXPECT_EQ(scene.stopped(18), StopTimes(4 + 1, 0));
}

TEST(ReadoutCards, CountTimeOnceInWhichSeveralAreFull) {
    ReadoutCardsScene scene({microseconds(4), microseconds(4)});
    scene.acknowledge(7, 0);
    scene.acknowledge(9, 1);
    scene.run(12);
    EXPECT_EQ(scene.stopped(12), StopTimes(5, 0));
}

TEST(ReadoutCards, CountTheTimeWithoutMemory) {
    ReadoutCardsScene scene({microseconds(4)});
    scene.busy.insert(0);
    scene.take(6);         // full since 4
    scene.acknowledge(7);  // in 10 − 4 = 6 µs comes the next
    scene.run(12);
    EXPECT_EQ(scene.complete[0], Times{0});
    EXPECT_EQ(scene.stopped(12), StopTimes(1, 2));
    scene.run(13);
    EXPECT_EQ(scene.complete[0], (Times{0, 13}));
}

TEST(ReadoutCards, AnAcknowledgeInTimeCostsNothing) {
    ReadoutCardsScene scene({microseconds(4)});
    for (std::int64_t mfp = 0; mfp < 100; ++mfp) {
        scene.acknowledge(10 * mfp + 4);
    }
    EXPECT_EQ(scene.complete[0].size(), 100U);
    EXPECT_EQ(scene.stopped(1000), StopTimes(0, 0));
}

}  // namespace
}  // namespace daqloom::protocol
