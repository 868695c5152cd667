#include "protocol/machines/write_pacer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "base/random.hpp"
#include "base/transcript_test.hpp"

namespace daqloom::protocol {
namespace {

using base::nanoseconds;
using base::Outputs;
using base::Time;

/// A pacer and its outputs since the last check, in words; times in nanoseconds.
class WritePacerScene : public base::Transcript {
  public:
    explicit WritePacerScene(WritePacerConfig config) : pacer(*WritePacer::make(config)) {}

    void go(ReadoutIndex readout, std::uint64_t request, Time held) {
        say("go {} to {}, held {}", request, readout, held.ps / 1'000);
    }
    void set_go_timer(Time at) { say("timer {}", at.ps / 1'000); }

    Outputs ready(std::uint32_t readout, std::int64_t at, const WriteRequest& request) {
        return after(
            [&] { pacer.on_ready(ReadoutIndex(readout), request, nanoseconds(at), *this); });
    }
    Outputs ready(std::uint32_t readout, std::int64_t at, std::uint64_t step) {
        return ready(readout, at,
                     {.number = 1, .step = step, .end = 1, .writes = 1, .bytes = 1'000});
    }
    Outputs written(std::uint32_t readout, std::int64_t at, std::uint64_t number = 0) {
        return after(
            [&] { pacer.on_written(ReadoutIndex(readout), number, nanoseconds(at), *this); });
    }
    Outputs through(std::uint32_t readout, std::uint64_t request, std::uint64_t writes) {
        return after(
            [&] { pacer.on_through(ReadoutIndex(readout), request, writes, Time::zero(), *this); });
    }
    Outputs timer(std::int64_t at) {
        return after([&] { pacer.on_timer(nanoseconds(at), *this); });
    }

    WritePacer pacer;
};

TEST(WritePacer, LetsOneWriteAfterTheOtherInTheOrderInWhichTheyAsk) {
    WritePacerScene scene({.readouts = 3});
    EXPECT_EQ(scene.ready(2, 10, 7), (Outputs{"go 1 to 2, held 0"}));
    EXPECT_EQ(scene.ready(0, 20, 9), Outputs{});
    EXPECT_EQ(scene.ready(1, 30, 8), Outputs{});
    EXPECT_EQ(scene.pacer.waiting(), 2U);
    EXPECT_EQ(scene.written(2, 50), (Outputs{"go 1 to 0, held 30"}));
    EXPECT_EQ(scene.written(0, 90), (Outputs{"go 1 to 1, held 60"}));
    EXPECT_EQ(scene.written(1, 95), Outputs{});
    EXPECT_EQ(scene.pacer.writing(), 0U);
    EXPECT_EQ(scene.pacer.counters().held, nanoseconds(90));
}

TEST(WritePacer, LetsThoseOfTheEarliestPhaseWriteFirstInTheOrderOfTheSchedule) {
    WritePacerScene scene({.readouts = 4, .order = WriteOrder::schedule});
    scene.ready(3, 0, 0);
    scene.ready(0, 1, 9);
    scene.ready(1, 2, 7);
    scene.ready(2, 3, 8);
    EXPECT_EQ(scene.written(3, 10), (Outputs{"go 1 to 1, held 8"}));
    EXPECT_EQ(scene.written(1, 20), (Outputs{"go 1 to 2, held 17"}));
    EXPECT_EQ(scene.written(2, 30), (Outputs{"go 1 to 0, held 29"}));
}

TEST(WritePacer, LetsTheConfiguredNumberWriteAtATime) {
    WritePacerScene scene({.readouts = 4, .writers = 2});
    EXPECT_EQ(scene.ready(0, 0, 0), (Outputs{"go 1 to 0, held 0"}));
    EXPECT_EQ(scene.ready(1, 0, 1), (Outputs{"go 1 to 1, held 0"}));
    EXPECT_EQ(scene.ready(2, 0, 2), Outputs{});
    EXPECT_EQ(scene.ready(3, 0, 3), Outputs{});
    EXPECT_EQ(scene.written(1, 5), (Outputs{"go 1 to 2, held 5"}));
    EXPECT_EQ(scene.written(2, 6), (Outputs{"go 1 to 3, held 6"}));
}

TEST(WritePacer, WaitsForAllWritesOfARequest) {
    WritePacerScene scene({.readouts = 2});
    scene.ready(0, 0, {.number = 1, .first = 5, .end = 9, .writes = 3, .bytes = 30});
    scene.ready(1, 0, 1);
    EXPECT_EQ(scene.written(0, 1, 8), Outputs{});
    EXPECT_EQ(scene.written(0, 2, 5), Outputs{});
    EXPECT_EQ(scene.written(0, 2, 4), Outputs{}) << "of an earlier request";
    EXPECT_EQ(scene.written(0, 3, 6), (Outputs{"go 1 to 1, held 3"}));
}

/// The last byte of a write of 1 000 B arrives 1 000 ns after its first byte, which arrives a round
/// trip of 40 ns after the answer. The first write ends at 1 040 ns, so a byte takes 1 ns. The
/// second write, answered then, should end at 1 040 + 40 + 1 000 = 2 080 ns: the third is answered
/// 40 ns earlier, so that its first byte follows the second's last byte.
TEST(WritePacer, AnswersTheNextARoundTripBeforeTheWriterIsExpectedToBeThrough) {
    WritePacerScene scene({.readouts = 4});
    const auto request = [](std::uint64_t step) {
        return WriteRequest{.number = 1,
                            .step = step,
                            .end = 1,
                            .writes = 1,
                            .bytes = 1'000,
                            .round_trip = nanoseconds(40)};
    };
    EXPECT_EQ(scene.ready(0, 0, request(0)), (Outputs{"go 1 to 0, held 0"}));
    EXPECT_EQ(scene.ready(1, 10, request(1)), Outputs{}) << "the rate is not known";
    EXPECT_EQ(scene.written(0, 1'040), (Outputs{"go 1 to 1, held 1030"}));
    EXPECT_EQ(scene.ready(2, 1'100, request(2)), (Outputs{"timer 2040"}));
    EXPECT_EQ(scene.ready(3, 1'200, request(3)), Outputs{}) << "the timer is set";
    EXPECT_EQ(scene.timer(2'040), (Outputs{"go 1 to 2, held 940"}));
    EXPECT_EQ(scene.timer(2'070), Outputs{}) << "one only is ahead of its time";
    // The third write follows without a gap and ends at 3 080 ns, so the fourth is due at 3 040 ns.
    EXPECT_EQ(scene.written(1, 2'080), (Outputs{"timer 3040"}));
    EXPECT_EQ(scene.timer(3'040), (Outputs{"go 1 to 3, held 1840"}));
    EXPECT_EQ(scene.pacer.counters().ahead, 2U);
    EXPECT_EQ(scene.pacer.lead(), nanoseconds(40));
}

TEST(WritePacer, GoesByTheShortestOfTheLastRoundTrips) {
    WritePacerScene scene({.readouts = 1});
    for (std::uint64_t i = 1; i <= 12; ++i) {
        const std::int64_t trip = i == 3 ? 20 : 100;  // the third is forgotten eight later
        scene.ready(
            0, 0,
            {.number = i, .end = 1, .writes = 1, .bytes = 1, .round_trip = nanoseconds(trip)});
        EXPECT_EQ(scene.pacer.lead(), nanoseconds(i < 3 || i > 10 ? 100 : 20)) << i;
        scene.written(0, 0);
    }
}

TEST(WritePacer, ForgetsAWithdrawnRequest) {
    WritePacerScene scene({.readouts = 3});
    scene.ready(0, 0, {.number = 1, .end = 3, .writes = 3, .bytes = 30});
    scene.ready(1, 0, {.number = 4, .end = 2, .writes = 2, .bytes = 20});
    scene.ready(2, 0, 9);
    EXPECT_EQ(scene.through(1, 4, 0), Outputs{});
    EXPECT_EQ(scene.pacer.counters().withdrawn, 1U);
    EXPECT_EQ(scene.written(0, 0), Outputs{});
    EXPECT_EQ(scene.through(0, 1, 1), (Outputs{"go 1 to 2, held 0"})) << "of three writes one came";
    EXPECT_EQ(scene.through(0, 1, 1), Outputs{});
    EXPECT_EQ(scene.pacer.counters().late, 1U);
}

/// The readout unit withdraws a request (by a late message), requests the rest, and writes it.
TEST(WritePacer, KnowsToWhichRequestAWriteBelongs) {
    WritePacerScene scene({.readouts = 1, .writers = 2});
    EXPECT_EQ(scene.ready(0, 0, {.number = 1, .end = 3, .writes = 3, .bytes = 30}).size(), 1U);
    EXPECT_EQ(
        scene.ready(0, 0, {.number = 2, .first = 1, .end = 3, .writes = 2, .bytes = 20}).size(),
        1U);
    scene.written(0, 0, 1);
    scene.written(0, 0, 2);
    EXPECT_EQ(scene.pacer.writing(), 1U);
    scene.through(0, 1, 1);
    EXPECT_EQ(scene.pacer.writing(), 1U) << "the one write of the first has not come";
    scene.written(0, 0, 0);
    EXPECT_EQ(scene.pacer.writing(), 0U);
}

TEST(WritePacer, TakesARequestThatComesAfterItsWithdrawalForLate) {
    WritePacerScene scene({.readouts = 1});
    EXPECT_EQ(scene.through(0, 5, 0), Outputs{});
    EXPECT_EQ(scene.ready(0, 0, {.number = 5, .end = 1, .writes = 1, .bytes = 1}), Outputs{});
    EXPECT_EQ(scene.pacer.counters().late, 1U);
    EXPECT_EQ(scene.pacer.waiting(), 0U);
}

TEST(WritePacer, CountsInvalidRequestsAndIgnoresThem) {
    WritePacerScene scene({.readouts = 1});
    const std::vector<WriteRequest> invalid = {
        {.number = 1, .end = 1, .writes = 0},
        {.number = 1, .first = 1, .end = 1, .writes = 1},
        {.number = 1, .end = 1, .writes = 1, .bytes = -1},
        {.number = 1, .end = 1, .writes = std::uint64_t{1} << 40, .bytes = 1},
        {.number = 1, .end = 1, .writes = 1, .bytes = base::Bytes{1} << 60},
        {.number = 1, .end = 1, .writes = 1, .bytes = 1, .round_trip = nanoseconds(-1)},
        {.number = 1, .end = 1, .writes = 1, .bytes = 1, .round_trip = Time::never()}};
    for (const WriteRequest& request : invalid) {
        EXPECT_EQ(scene.ready(0, 0, request), Outputs{});
    }
    EXPECT_EQ(scene.ready(1, 0, 0), Outputs{}) << "there is no such readout unit";
    EXPECT_EQ(scene.pacer.counters().unexpected, invalid.size() + 1);
    EXPECT_FALSE(WritePacer::make({.readouts = 1, .writers = 0}));
}

/// In arrival order no request is passed over; in schedule order only by those of earlier phases.
TEST(WritePacer, PassesRequestsOverOnlyForEarlierPhases) {
    for (const WriteOrder order : {WriteOrder::arrival, WriteOrder::schedule}) {
        base::RandomStream random(7, "pacer");
        WritePacerScene scene({.readouts = 20, .order = order});
        std::vector<std::pair<std::uint64_t, std::uint32_t>> waiting;  // step, readout unit
        std::vector<std::uint64_t> number(20, 0);
        std::set<std::uint32_t> asked;
        std::uint32_t writer = 20;
        for (int i = 0; i < 5'000; ++i) {
            Outputs outputs;
            if (writer < 20 && random.uniform_int(4) == 0) {
                outputs = scene.written(writer, i);
                asked.erase(writer);
                writer = 20;
            } else {
                const auto unit = static_cast<std::uint32_t>(random.uniform_int(20));
                if (!asked.insert(unit).second) {
                    continue;
                }
                const std::uint64_t step = random.uniform_int(1'000);
                waiting.emplace_back(step, unit);
                outputs = scene.ready(
                    unit, i,
                    {.number = ++number[unit], .step = step, .end = 1, .writes = 1, .bytes = 1});
            }
            if (writer == 20 && !waiting.empty()) {
                const auto next = order == WriteOrder::arrival
                                      ? waiting.begin()
                                      : std::ranges::min_element(
                                            waiting, {}, [](const auto& it) { return it.first; });
                writer = next->second;
                waiting.erase(next);
                ASSERT_EQ(outputs.size(), 1U);
                ASSERT_TRUE(
                    outputs[0].starts_with(fmt::format("go {} to {},", number[writer], writer)))
                    << outputs[0];
            } else {
                ASSERT_EQ(outputs, Outputs{});
            }
        }
        EXPECT_GT(scene.pacer.counters().answered, 500U);
    }
}

}  // namespace
}  // namespace daqloom::protocol
