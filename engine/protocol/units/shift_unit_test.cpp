#include "protocol/units/shift_unit.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/failure_test.hpp"
#include "base/transcript_test.hpp"

namespace daqloom::protocol {
namespace {

using base::Bytes;
using base::Outputs;
using base::Time;

/// A unit and its outputs since the last check, in words, without buffers and announcements.
class Scene : public base::Transcript {
  public:
    Scene(ShiftUnitConfig config, const LinearShift& shift)
        : unit(*ShiftUnit::make(config, shift)), builders_(shift.builders()) {}
    /// A unit that has started, with `mfps` granted MFPs.
    Scene(const ShiftUnitConfig& config, const LinearShift& shift, std::uint64_t mfps)
        : Scene(config, shift) {
        granted(0, mfps);
        start();
    }

    void admitted(StreamIndex, MepId, Bytes) {}
    void acknowledge(StreamIndex, MepId) {}
    void write(const PushWrite& w) { say("write {} to {}", w.mep, w.builder); }
    void send(ReadoutIndex to, const UnitMessage& message) {
        if (message.kind == UnitMessage::Kind::barrier) {
            say("barrier {}.{} to {}", message.number, message.round, to);
        } else {
            ASSERT_EQ(message.kind, UnitMessage::Kind::closing);
            say("closing {} to {}", message.number, to);
        }
    }
    void send(BuilderIndex to, const UnitMessage& message) {
        if (message.kind == UnitMessage::Kind::ready) {
            say("request {} to {}, round trip {} ps", message.number, to, message.values[5]);
        } else if (message.kind != UnitMessage::Kind::announce) {
            ASSERT_EQ(message.kind, UnitMessage::Kind::last_announcement);
            say("last announcement {} to {}", message.number, to);
        }
    }
    void enter_barrier(std::uint64_t generation) { say("barrier {}", generation); }
    void set_timer(Time at, UnitTimer timer) {
        if (timer.what == UnitTimer::What::phase) {
            EXPECT_EQ(at, now);
            say("ready {}", unit.step());
        } else if (timer.what == UnitTimer::What::idle) {
            say("idle for {} ns", (at - now).ps / 1'000);
        } else {
            say("timer {}", at.ps / 1'000);
        }
    }
    void answered(MepId, bool) {}
    void deliver(MepId, Bytes, Bytes) {}
    void stage(std::uint64_t step, ShiftStage stage) {
        constexpr std::array names = {"entering", "asking",     "sending",
                                      "idle",     "in barrier", "finished"};
        stages.push_back(fmt::format("{} {}", step, names[static_cast<std::size_t>(stage)]));
    }

    Outputs start(Time at = Time::zero()) {
        return after([&] { unit.on_start(at, now, *this); });
    }
    /// Generates `count` MFPs of 10 B, which the builder units grant.
    void granted(std::uint64_t first, std::uint64_t count) {
        for (std::uint64_t mep = first; mep < first + count; ++mep) {
            unit.on_data(StreamIndex(0), 10, *this);
        }
        for (std::uint64_t mep = first; mep < first + count; ++mep) {
            grant(mep, 0);
        }
        EXPECT_EQ(outputs(), Outputs{});
    }
    void grant(std::uint64_t mep, Bytes offset) {
        receive(ReadoutIndex::none(), builder_of(MepId{mep}, builders_),
                {UnitMessage::Kind::grant, 0, mep, {&offset, 1}});
    }
    Outputs phase() {
        return after([&] { unit.on_timer(UnitTimer::What::phase, now, *this); });
    }
    Outputs go(std::uint32_t builder, std::uint64_t request, Bytes held_ps) {
        receive(ReadoutIndex::none(), BuilderIndex(builder),
                {UnitMessage::Kind::go, 0, request, {&held_ps, 1}});
        return outputs();
    }
    Outputs written(std::uint64_t mep) {
        return after([&] { unit.on_write_done(MepId{mep}, StreamIndex(0), now, *this); });
    }
    Outputs message(Participant from, BarrierMessage message) {
        receive(ReadoutIndex(from), BuilderIndex::none(),
                {UnitMessage::Kind::barrier, message.round, message.generation, {}});
        return outputs();
    }
    Outputs idle_over() {
        return after([&] { unit.on_timer(UnitTimer::What::idle, now, *this); });
    }
    Outputs released(std::uint64_t generation) {
        return after([&] { unit.on_released(generation, now, *this); });
    }
    Outputs timer(std::int64_t at_ns) {
        now = base::nanoseconds(at_ns);
        return after([&] { unit.on_timer(UnitTimer::What::window, now, *this); });
    }

    Outputs close(const std::vector<std::uint32_t>& lost = {}) {
        return after([&] {
            unit.on_close({}, std::vector<BuilderIndex>(lost.begin(), lost.end()), now, *this);
        });
    }

    /// A builder unit reports that it answers only its turns before `turn`.
    void last_answer(std::uint32_t builder, std::uint64_t turn) {
        receive(ReadoutIndex::none(), BuilderIndex(builder),
                {UnitMessage::Kind::last_answer, 0, turn, {}});
    }

    Time now = Time::zero();
    Outputs stages;
    ShiftUnit unit;

  private:
    void receive(ReadoutIndex readout, BuilderIndex builder, const UnitMessage& message) {
        EXPECT_TRUE(unit.on_message(readout, builder, message, now, *this));
    }
    std::uint32_t builders_;
};

ShiftUnitConfig by_count(std::uint32_t self, std::uint32_t nodes, ShiftBarrier barrier) {
    return {{.barrier = barrier},
            ReadoutIndex(self),
            0,
            {.builders = nodes, .buffered_mfps = 8, .announced_meps = 4}};
}

/// Slot 2 is a dummy.
LinearShift two_of_three_slots() {
    constexpr std::array<SlotIndex, 1> dummies = {SlotIndex(2)};
    return *LinearShift::folded(3, dummies);
}

TEST(ShiftUnit, GoesFromPhaseToPhaseBehindABarrier) {
    Scene scene(by_count(1, 2, ShiftBarrier::tournament), *LinearShift::folded(2));
    scene.granted(0, 4);
    EXPECT_EQ(scene.start(), Outputs{"ready 0"});
    EXPECT_EQ(scene.phase(), Outputs{"write 1 to 1"});
    EXPECT_EQ(scene.written(1), Outputs{"barrier 0.0 to 0"});
    EXPECT_EQ(scene.phase(), Outputs{});  // it is not ready
    EXPECT_EQ(scene.message(0, {0, 1}), Outputs{"ready 1"});
    EXPECT_EQ(scene.phase(), Outputs{"write 0 to 0"});
    EXPECT_EQ(scene.written(0), Outputs{"barrier 1.0 to 0"});
    EXPECT_EQ(scene.message(0, {1, 1}), Outputs{"ready 2"});
    EXPECT_EQ(scene.phase(), Outputs{"write 3 to 1"});  // round 1
    EXPECT_EQ(scene.stages, (Outputs{"0 entering", "0 sending", "0 in barrier", "1 entering",
                                     "1 sending", "1 in barrier", "2 entering", "2 sending"}));
    EXPECT_EQ(scene.unit.counters().steps, 2U);
    EXPECT_EQ(scene.unit.counters().unexpected, 1U);
}

TEST(ShiftUnit, UnsynchronisedGoesOnWhenItsOwnWritesAreDone) {
    Scene scene(by_count(0, 2, ShiftBarrier::none), *LinearShift::folded(2));
    scene.start();
    EXPECT_EQ(scene.phase(), Outputs{});  // no data yet
    scene.unit.on_data(StreamIndex(0), 10, scene);
    scene.grant(0, 7);
    EXPECT_EQ(scene.written(0), (Outputs{"write 0 to 0", "ready 1"}));
}

TEST(ShiftUnit, UnsynchronisedMayGoAheadOfItsWrites) {
    auto config = by_count(0, 3, ShiftBarrier::none);
    config.phases_under_way = 2;
    config.rounds = 1;
    Scene scene(config, *LinearShift::folded(3), 3);
    EXPECT_EQ(scene.phase(), (Outputs{"write 0 to 0", "ready 1"}));
    EXPECT_EQ(scene.phase(), Outputs{"write 1 to 1"});  // two are under way
    EXPECT_EQ(scene.written(0), Outputs{"ready 2"});
    EXPECT_EQ(scene.phase(), Outputs{"write 2 to 2"});
    EXPECT_EQ(scene.written(2), Outputs{});
    EXPECT_EQ(scene.written(1), Outputs{});  // the end of the last round: all are complete
    EXPECT_TRUE(scene.unit.is_finished());
}

TEST(ShiftUnit, EntersABarrierWithNothingUnderWay) {
    auto config = by_count(0, 2, ShiftBarrier::external);
    config.phases_under_way = 3;
    config.phases_per_barrier = 3;
    // The last phase before the barrier is idle, because slot 2 is a dummy.
    Scene scene(config, two_of_three_slots(), 2);
    EXPECT_EQ(scene.phase(), (Outputs{"write 0 to 0", "ready 1"}));
    EXPECT_EQ(scene.phase(), (Outputs{"write 1 to 1", "ready 2"}));
    EXPECT_EQ(scene.phase(), Outputs{});
    EXPECT_EQ(scene.written(1), Outputs{});
    EXPECT_EQ(scene.written(0), Outputs{"barrier 0"});
}

TEST(ShiftUnit, ADummysPhaseLastsAsLongAsTheOneBefore) {
    for (const bool keeps : {true, false}) {
        auto config = by_count(0, 2, ShiftBarrier::none);
        config.keeps_dummies = keeps;
        Scene scene(config, two_of_three_slots(), 4);
        scene.phase();
        scene.now = base::nanoseconds(30);
        EXPECT_EQ(scene.written(0), Outputs{"ready 1"});
        scene.now = base::nanoseconds(40);
        EXPECT_EQ(scene.phase(), Outputs{"write 1 to 1"});
        scene.now = base::nanoseconds(65);
        EXPECT_EQ(scene.written(1), Outputs{"ready 2"});
        EXPECT_EQ(scene.phase(), Outputs{keeps ? "idle for 25 ns" : "ready 3"});
        if (keeps) {
            EXPECT_EQ(scene.idle_over(), Outputs{"ready 3"});
        }
        EXPECT_EQ(scene.idle_over(), Outputs{});
        EXPECT_EQ(scene.unit.counters().unexpected, 1U);
        EXPECT_EQ(scene.unit.counters().idle_steps, 1U);
        EXPECT_EQ(scene.phase(), Outputs{"write 2 to 0"});
    }
}

/// The measured length of a phase excludes the copy within the node and the wait for the builder
/// unit. Otherwise nodes would lose their places in the ring at the end of a round.
TEST(ShiftUnit, ADummysPhaseLastsAsLongAsTheLastWriteToAnotherNodeThatItsBuilderUnitLet) {
    const LinearShift shift = two_of_three_slots();
    auto config =
        ShiftUnitConfig::sized({.barrier = ShiftBarrier::none, .pace = Pace::builder}, shift, 1);
    config.self = ReadoutIndex(1);
    config.builder.self = BuilderIndex(1);
    Scene scene(config, shift, 4);
    EXPECT_EQ(scene.phase(), Outputs{"write 1 to 1"}) << "to itself: asks nobody";
    scene.now = base::nanoseconds(5);
    EXPECT_EQ(scene.written(1), Outputs{"ready 1"});
    EXPECT_EQ(scene.phase(), Outputs{"ready 2"}) << "nobody knows yet how long a phase lasts";
    EXPECT_EQ(scene.phase(), Outputs{"request 1 to 0, round trip 0 ps"});
    scene.now = base::nanoseconds(45);
    EXPECT_EQ(scene.go(0, 1, 40'000), Outputs{"write 0 to 0"});
    scene.now = base::nanoseconds(70);
    EXPECT_EQ(scene.written(0), Outputs{"ready 3"});
    EXPECT_EQ(scene.phase(), Outputs{"write 3 to 1"});
    scene.now = base::nanoseconds(75);
    EXPECT_EQ(scene.written(3), Outputs{"ready 4"});
    EXPECT_EQ(scene.phase(), Outputs{"idle for 25 ns"});
    EXPECT_EQ(scene.idle_over(), Outputs{"ready 5"});
}

TEST(ShiftUnit, KeepsADummysPhaseThatABarrierWithSlackFollows) {
    auto config = by_count(0, 2, ShiftBarrier::external);
    config.barrier_slack = 2;
    Scene scene(config, two_of_three_slots(), 4);
    scene.phase();
    EXPECT_EQ(scene.written(0), (Outputs{"barrier 0", "ready 1"}));
    scene.phase();
    scene.now = base::nanoseconds(25);
    EXPECT_EQ(scene.written(1), Outputs{"ready 2"});
    EXPECT_EQ(scene.released(0), Outputs{"barrier 1"});
    EXPECT_EQ(scene.phase(), Outputs{"idle for 25 ns"}) << "it would be a phase early";
    EXPECT_EQ(scene.idle_over(), Outputs{"ready 3"});
}

TEST(ShiftUnit, GoesOnWithSlackUntilItIsSoManyBarriersAhead) {
    auto config = by_count(0, 3, ShiftBarrier::external);
    config.barrier_slack = 1;
    config.rounds = 1;
    Scene scene(config, *LinearShift::folded(3), 3);
    EXPECT_EQ(scene.phase(), Outputs{"write 0 to 0"});
    EXPECT_EQ(scene.written(0), (Outputs{"barrier 0", "ready 1"}));
    EXPECT_EQ(scene.phase(), Outputs{"write 1 to 1"});
    EXPECT_EQ(scene.written(1), Outputs{}) << "two barriers ahead; it is still in the first one";
    EXPECT_EQ(scene.stages.back(), "1 in barrier");
    EXPECT_EQ(scene.released(1), Outputs{}) << "it has not entered that one";
    EXPECT_EQ(scene.released(0), (Outputs{"barrier 1", "ready 2"}));
    EXPECT_EQ(scene.phase(), Outputs{"write 2 to 2"});
    EXPECT_EQ(scene.released(1), Outputs{}) << "in time";
    EXPECT_EQ(scene.written(2), Outputs{"barrier 2"});
    EXPECT_TRUE(scene.unit.is_finished());
    EXPECT_EQ(scene.released(2), Outputs{});
    EXPECT_EQ(scene.unit.counters().unexpected, 1U);
}

/// Unit 1 of two has turns with builder unit 1, a dummy and builder unit 0. Three rounds in step
/// take 40 ns each, because the other unit is late; out of step they take 30 ns, until a failure.
TEST(ShiftUnit, LeavesStepWhileThatMakesRoundsShorterAndWaitsAtTheEndOfEach) {
    auto config = by_count(1, 2, ShiftBarrier::external);
    config.leaves_step = true;
    config.readout.buffered_mfps = 40;
    Scene scene(config, two_of_three_slots());
    scene.start();
    std::uint64_t round = 0;
    const auto after = [&](std::int64_t ns) { scene.now = scene.now + base::nanoseconds(ns); };
    const auto output = [](const char* what, std::uint64_t n) {
        return fmt::format("{} {}", what, n);
    };
    const auto write_first = [&] {
        scene.granted(2 * round, 2);
        EXPECT_EQ(scene.phase(), Outputs{fmt::format("write {} to 1", 2 * round + 1)});
        after(10);
        return scene.written(2 * round + 1);
    };
    const auto write_last = [&](std::int64_t ns) {
        EXPECT_EQ(scene.phase(), Outputs{fmt::format("write {} to 0", 2 * round)});
        after(ns);
        return scene.written(2 * round);
    };
    const auto in_step = [&] {
        const std::uint64_t step = 3 * round;
        EXPECT_EQ(write_first(), Outputs{output("barrier", step)});
        after(20);
        EXPECT_EQ(scene.released(step), Outputs{output("ready", step + 1)});
        EXPECT_EQ(scene.phase(), Outputs{output("barrier", step + 1)}) << "it waits for the others";
        EXPECT_EQ(scene.released(step + 1), Outputs{output("ready", step + 2)});
        EXPECT_EQ(write_last(10), Outputs{output("barrier", step + 2)});
        EXPECT_EQ(scene.released(step + 2), Outputs{output("ready", step + 3)});
        ++round;
    };
    const auto out_of_step = [&](std::int64_t last_write_ns) {
        const std::uint64_t step = 3 * round;
        EXPECT_EQ(write_first(), (Outputs{output("barrier", step), output("ready", step + 1)}));
        EXPECT_EQ(scene.phase(), Outputs{"idle for 10 ns"}) << "it would be a phase early";
        after(10);
        EXPECT_EQ(scene.idle_over(), Outputs{output("ready", step + 2)});
        EXPECT_EQ(write_last(last_write_ns), Outputs{}) << "the last barrier of the round";
        EXPECT_EQ(scene.released(step), Outputs{output("barrier", step + 1)});
        EXPECT_EQ(scene.released(step + 1), Outputs{output("barrier", step + 2)});
        EXPECT_EQ(scene.released(step + 2), Outputs{output("ready", step + 3)});
        ++round;
    };
    for (int i = 0; i < 3; ++i) {
        in_step();
    }
    for (int i = 0; i < 8; ++i) {
        out_of_step(10);
    }
    EXPECT_EQ(scene.unit.counters().passed, 2 * 8U);
    out_of_step(40);
    out_of_step(40);
    in_step();
    EXPECT_EQ(scene.unit.counters().passed, 2 * 10U);
    EXPECT_EQ(scene.unit.counters().unexpected, 0U);
}

/// Each of three units waits for the next one. If builder units permit one writer at a time, only
/// the last unit waits, for the first.
TEST(ShiftUnit, WaitsForItsNeighbourOnly) {
    const LinearShift shift = *LinearShift::folded(3);
    Scene scene(by_count(1, 3, ShiftBarrier::neighbour), shift, 3);
    EXPECT_EQ(scene.phase(), Outputs{"write 1 to 1"});
    EXPECT_EQ(scene.written(1), Outputs{"barrier 0.0 to 0"});
    EXPECT_EQ(scene.message(2, {0, 0}), Outputs{"ready 1"});

    for (const std::uint32_t self : {0U, 1U, 2U}) {
        SCOPED_TRACE(self);
        auto config = by_count(self, 3, ShiftBarrier::neighbour);
        config.pace = Pace::builder;
        Scene paced(config, shift);
        paced.granted(0, 3);
        paced.start();
        paced.phase();
        paced.go(self, 1, 0);
        const Outputs done = paced.written(self);
        EXPECT_EQ(done, self == 0   ? (Outputs{"barrier 0.0 to 2", "ready 1"})
                        : self == 1 ? Outputs{"ready 1"}
                                    : Outputs{});
        if (self == 2) {
            EXPECT_EQ(paced.message(0, {0, 0}), Outputs{"ready 1"});
        }
        EXPECT_EQ(paced.unit.counters().unexpected, 0U);
    }
}

TEST(ShiftUnit, EntersABarrierEveryFewPhases) {
    auto config = by_count(0, 3, ShiftBarrier::external);
    config.phases_per_barrier = 2;
    config.rounds = 2;
    Scene scene(config, *LinearShift::folded(3), 6);
    // Six phases, with a barrier after the second, the fourth and the last.
    EXPECT_EQ(scene.phase(), Outputs{"write 0 to 0"});
    EXPECT_EQ(scene.written(0), Outputs{"ready 1"});
    EXPECT_EQ(scene.phase(), Outputs{"write 1 to 1"});
    EXPECT_EQ(scene.written(1), Outputs{"barrier 0"});
    EXPECT_EQ(scene.released(1), Outputs{});  // not that one
    EXPECT_EQ(scene.released(0), Outputs{"ready 2"});
    EXPECT_EQ(scene.released(0), Outputs{});  // twice
    scene.phase();
    EXPECT_EQ(scene.written(2), Outputs{"ready 3"});
    EXPECT_EQ(scene.phase(), Outputs{"write 3 to 0"});
    EXPECT_EQ(scene.written(3), Outputs{"barrier 1"});
    scene.released(1);
    scene.phase();
    EXPECT_EQ(scene.written(4), Outputs{"ready 5"});
    scene.phase();
    EXPECT_EQ(scene.written(5), Outputs{"barrier 2"});
    EXPECT_EQ(scene.released(2), Outputs{});
    EXPECT_TRUE(scene.unit.is_finished());
    EXPECT_EQ(scene.stages.back(), "6 finished");
    EXPECT_EQ(scene.unit.counters().unexpected, 2U);
}

TEST(ShiftUnit, SendsAFixedNumberOfMepsInEachPhase) {
    auto config = by_count(0, 2, ShiftBarrier::none);
    config.meps_per_phase = 2;
    Scene scene(config, *LinearShift::folded(2), 6);
    EXPECT_EQ(scene.phase(), (Outputs{"write 0 to 0", "write 2 to 0"}));  // 4 is for round 1
    EXPECT_EQ(scene.written(2), Outputs{});
    EXPECT_EQ(scene.written(0), Outputs{"ready 1"});
    EXPECT_EQ(scene.phase(), (Outputs{"write 1 to 1", "write 3 to 1"}));
}

TEST(ShiftUnit, SpendsADummysPhaseInTheBarrier) {
    constexpr std::array<SlotIndex, 1> dummies = {SlotIndex(1)};
    Scene scene(by_count(0, 2, ShiftBarrier::external), *LinearShift::folded(3, dummies), 2);
    scene.phase();
    scene.written(0);
    EXPECT_EQ(scene.released(0), Outputs{"ready 1"});
    EXPECT_EQ(scene.phase(), Outputs{"barrier 1"});  // slot 1 is a dummy
    EXPECT_EQ(scene.stages.back(), "1 in barrier");
    EXPECT_EQ(scene.released(1), Outputs{"ready 2"});
    EXPECT_EQ(scene.phase(), Outputs{"write 1 to 1"});
    EXPECT_EQ(scene.unit.counters().idle_steps, 1U);
}

TEST(ShiftUnit, ShiftsByTimeWindowsWithAGracePeriod) {
    // Windows of 100 ns, including a grace period of 25 ns; 10 B take 10 ns at 8 Gb/s.
    ShiftUnitConfig config{{.change = PhaseChange::by_time,
                            .window = base::nanoseconds(100),
                            .grace = base::nanoseconds(25)},
                           {},
                           0,
                           {.builders = 2,
                            .buffered_mfps = 40,
                            .largest_mfp = 10,
                            .announced_meps = 20,
                            .write_rate = base::gigabits_per_second(8)}};
    Scene scene(config, *LinearShift::folded(2));
    scene.granted(0, 40);
    EXPECT_EQ(scene.start(base::nanoseconds(1'000)), Outputs{"timer 1000"});
    // Seven writes of 10 ns fit between 1000 and 1075 ns.
    const Outputs first = scene.timer(1'000);
    EXPECT_EQ(first, (Outputs{"write 0 to 0", "write 2 to 0", "write 4 to 0", "write 6 to 0",
                              "write 8 to 0", "write 10 to 0", "write 12 to 0", "timer 1100"}));
    EXPECT_EQ(scene.timer(1'050), Outputs{"timer 1100"});     // too early
    EXPECT_EQ(scene.timer(1'145).size(), 4U);                 // late: three writes until 1175
    EXPECT_EQ(scene.unit.readout()->counters().overran, 7U);  // none has been completed
    // The timer is a whole window late, so phase 2, with builder unit 0, was missed.
    EXPECT_EQ(scene.timer(1'365), (Outputs{"write 7 to 1", "timer 1400"}));
    EXPECT_EQ(scene.unit.step(), 3U);
    EXPECT_EQ(scene.unit.counters().skipped_steps, 1U);
    EXPECT_EQ(scene.unit.counters().steps, 2U);
}

TEST(ShiftUnit, ReportsTheLastRoundTripWithoutTheHoldTime) {
    ShiftUnitConfig config = by_count(0, 2, ShiftBarrier::none);
    config.pace = Pace::builder;
    Scene scene(config, *LinearShift::folded(2), 2);
    EXPECT_EQ(scene.phase(), Outputs{"request 1 to 0, round trip 0 ps"});
    scene.now = base::nanoseconds(100);
    EXPECT_EQ(scene.go(0, 1, 30'000), Outputs{"write 0 to 0"});
    EXPECT_EQ(scene.written(0), Outputs{"ready 1"});
    EXPECT_EQ(scene.phase(), Outputs{"request 2 to 1, round trip 70000 ps"});
}

/// The window begins at 1 000 ns of the node's clock, or 10 ns of the clock that times answers.
TEST(ShiftUnit, TakesNoTimeBetweenTwoClocksForARoundTrip) {
    ShiftUnitConfig config{
        {.change = PhaseChange::by_time, .pace = Pace::builder, .window = base::nanoseconds(100)},
        {},
        0,
        {.builders = 2,
         .buffered_mfps = 8,
         .largest_mfp = 10,
         .announced_meps = 4,
         .write_rate = base::gigabits_per_second(8)}};
    Scene scene(config, *LinearShift::folded(2));
    scene.granted(0, 2);
    scene.start(base::nanoseconds(1'000));
    EXPECT_EQ(scene.timer(1'000), (Outputs{"request 1 to 0, round trip 0 ps", "timer 1100"}));
    scene.now = base::nanoseconds(10);
    EXPECT_EQ(scene.go(0, 1, 0), Outputs{"write 0 to 0"});
    scene.written(0);
    EXPECT_EQ(scene.timer(1'100), (Outputs{"request 2 to 1, round trip 0 ps", "timer 1200"}));
}

TEST(ShiftUnit, LeavesItsPhasesWhenTheEpochIsClosed) {
    Scene scene(by_count(1, 2, ShiftBarrier::tournament), *LinearShift::folded(2), 4);
    EXPECT_EQ(scene.phase(), Outputs{"write 1 to 1"});
    EXPECT_EQ(scene.close(), (Outputs{"write 3 to 1", "write 0 to 0", "write 2 to 0"}));
    EXPECT_EQ(scene.stages.back(), "0 finished");
    EXPECT_EQ(scene.written(1), Outputs{});  // neither a barrier nor a turn
    EXPECT_EQ(scene.message(0, {0, 1}), Outputs{});
    EXPECT_EQ(scene.phase(), Outputs{});
    EXPECT_EQ(scene.unit.counters().late, 2U);
    EXPECT_EQ(scene.unit.counters().unexpected, 0U);
    scene.last_answer(0, 2);
    scene.last_answer(1, 2);
    scene.written(0);
    EXPECT_FALSE(scene.unit.readout()->is_drained());
    EXPECT_EQ(scene.close({0}), Outputs{});
    EXPECT_EQ(scene.stages.size(), 3U);  // finished once
    scene.written(3);
    EXPECT_TRUE(scene.unit.readout()->is_drained());
    EXPECT_EQ(scene.unit.readout()->acknowledged(StreamIndex(0)), 2U);
    scene.unit.on_end(4, scene);
    EXPECT_EQ(scene.unit.readout()->acknowledged(StreamIndex(0)), 4U);
}

TEST(ShiftUnit, OpensNoWindowWhenTheEpochIsClosed) {
    Scene scene({{.change = PhaseChange::by_time, .window = base::nanoseconds(100)},
                 {},
                 0,
                 {.buffered_mfps = 4, .largest_mfp = 20}},
                *LinearShift::folded(1));
    scene.start();
    EXPECT_EQ(scene.close(), Outputs{});
    EXPECT_EQ(scene.timer(0), Outputs{});
    EXPECT_EQ(scene.unit.counters().late, 1U);
    EXPECT_EQ(scene.stages, Outputs{"0 finished"});
}

TEST(ShiftUnit, RefusesMessagesFromUnitsThatMayNotSendThem) {
    Scene scene(by_count(0, 2, ShiftBarrier::tournament), *LinearShift::folded(2));
    scene.granted(0, 1);
    scene.unit.on_data(StreamIndex(0), 10, scene);
    const auto is_accepted = [&](bool of_readout, bool of_builder, const UnitMessage& message) {
        return scene.unit.on_message(of_readout ? ReadoutIndex(1) : ReadoutIndex::none(),
                                     of_builder ? BuilderIndex(1) : BuilderIndex::none(), message,
                                     scene.now, scene);
    };
    using Kind = UnitMessage::Kind;
    const Bytes offset = 0;
    EXPECT_FALSE(is_accepted(true, true, {Kind::grant, 0, 0, {&offset, 1}})) << "builder unit 0's";
    EXPECT_FALSE(is_accepted(true, true, {Kind::discard, 0, 2, {}})) << "the same";
    for (const Kind kind : {Kind::grant, Kind::discard, Kind::closing, Kind::last_answer}) {
        EXPECT_FALSE(is_accepted(true, false, {kind, 0, 1, {&offset, 1}})) << "it builds nothing";
    }
    EXPECT_FALSE(is_accepted(false, true, {Kind::barrier, 0, 0, {}})) << "it reads nothing out";
    EXPECT_FALSE(is_accepted(true, true, {Kind::announce, 0, 0, {&offset, 1}}))
        << "no builder unit";
    EXPECT_FALSE(is_accepted(true, true, {Kind::last_announcement, 0, 0, {}})) << "the same";
    EXPECT_FALSE(is_accepted(true, true, {Kind::request, 0, 1, {&offset, 1}}))
        << "another protocol's";
    EXPECT_EQ(scene.unit.ignored().messages, 0U) << "the world counts them";
    EXPECT_TRUE(is_accepted(false, true, {Kind::grant, 0, 1, {&offset, 1}}));
    EXPECT_TRUE(is_accepted(true, false, {Kind::barrier, 0, 0, {}}));
}

TEST(ShiftUnit, ThatOnlyBuildsHasNoPhases) {
    ShiftUnitConfig config = ShiftUnitConfig::sized({}, *LinearShift::unfolded(1, 1), 1);
    config.builder.self = BuilderIndex(0);
    Scene scene(config, *LinearShift::unfolded(1, 1));
    EXPECT_EQ(scene.start(), Outputs{});
    EXPECT_EQ(scene.phase(), Outputs{});
    EXPECT_FALSE(scene.unit.on_message(ReadoutIndex(0), BuilderIndex(0),
                                       {UnitMessage::Kind::barrier, 0, 0, {}}, scene.now, scene));
    EXPECT_EQ(scene.close(), Outputs{"closing 0 to 0"});
    EXPECT_EQ(scene.stages, Outputs{});
}

TEST(ShiftUnit, RefusesAnImpossibleConfigurationInASentence) {
    const LinearShift shift = *LinearShift::folded(2);
    const auto expect_message = [&](const char* message, const ShiftUnitConfig& config) {
        EXPECT_EQ(base::message_of(ShiftUnit::make(config, shift)), message);
    };
    const auto expect_refused = [&](const char* words, const ShiftUnitConfig& config) {
        EXPECT_TRUE(base::fails_with(words, ShiftUnit::make(config, shift)));
    };
    expect_message("linear shift: readout unit 2; the schedule has 2",
                   by_count(2, 2, ShiftBarrier::none));
    expect_message("linear shift: 3 builder units; the schedule has 2",
                   by_count(0, 3, ShiftBarrier::none));
    auto config = by_count(0, 2, ShiftBarrier::none);
    config.readout.largest_mfp = config.readout.stream_buffer / 2;
    expect_refused("room for 3 of", config);
    config = by_count(0, 2, ShiftBarrier::none);
    config.meps_per_phase = 5;
    expect_refused("a round takes 10 MFPs", config);
    config.phases_per_barrier = 0;
    expect_refused("0 phases per barrier", config);
    config.phases_per_barrier = 1;
    config.meps_per_phase = 1;
    config.barrier_slack = 65;
    expect_refused("a slack of 65 barriers", config);
    config.change = PhaseChange::by_time;
    config.window = config.grace = base::nanoseconds(5);
    expect_refused("and less than that", config);
    config.grace = Time::zero();
    expect_refused("the largest MFP takes", config);
    config.readout.streams = 0;
    expect_message("push readout: 0 streams; give 1 to 1024", config);
}

}  // namespace
}  // namespace daqloom::protocol
