// Linear shifting on a node: its readout unit, which goes from phase to phase, with or without
// synchronisation, its builder unit, or both.
//
// A readout unit announces the sizes of its MFPs to the builder unit of each MEP, which answers
// with their offsets in its memory; in the phase of that builder unit the readout unit writes them
// there, at once or when the builder unit lets it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/machines/push_builder.hpp"
#include "protocol/machines/push_readout.hpp"
#include "protocol/machines/write_pacer.hpp"
#include "protocol/schedule/barrier.hpp"
#include "protocol/schedule/linear_shift.hpp"
#include "protocol/schedule/shift_rules.hpp"
#include "protocol/schedule/step_keeper.hpp"
#include "protocol/units/timers.hpp"
#include "protocol/units/unit_message.hpp"

namespace daqloom::protocol {

/// Rounded down, at least one: behind so many, units that may leave step wait for each other.
std::uint32_t barriers_of_round(const ShiftRules& rules, const LinearShift& shift);

struct ShiftUnitConfig : ShiftRules {
    ReadoutIndex self = ReadoutIndex::none();  ///< none: the node has no readout unit
    std::uint64_t rounds = 0;  ///< by count: after so many it is finished; 0: goes on for ever
    PushReadoutConfig readout = {};
    PushBuilderConfig builder = {.self = BuilderIndex::none()};  ///< the same

    /// Buffers have room for the MEPs of a round and of the next one. What is left open: which
    /// units the node has, and bytes.
    static ShiftUnitConfig sized(const ShiftRules& rules, const LinearShift& shift,
                                 std::uint32_t streams);
    /// Leaves the barrier groups of an epoch, in which readout units have these numbers in the run.
    void keep_groups_of(const base::Table<ReadoutIndex, ReadoutIndex>& in_run);
};

/// The stages of a phase.
enum class ShiftStage {
    entering,    ///< it has been told to go on
    asking,      ///< it is its builder's turn, which does not let it write yet
    sending,     ///< it is its builder's turn
    idle,        ///< the slot to which it would send is a dummy
    in_barrier,  ///< it is through and waits for the others
    finished,
};

/// Stage of a readout unit, and since when: for worlds that count the time in stages.
struct StageClock {
    ShiftStage stage = ShiftStage::finished;
    base::Time since;

    /// Begins a stage. Returns the time spent in the one before.
    base::Time enter(ShiftStage next, base::Time now) {
        stage = next;
        return now - std::exchange(since, now);
    }
};

/// The world of a unit. None of these may call the unit back.
template <class World>
concept ShiftWorld =
    requires(World& world, ReadoutIndex readout, BuilderIndex builder, const UnitMessage& said,
             base::Time at, UnitTimer timer, StreamIndex stream, MepId mep, const PushWrite& write,
             std::uint64_t step, ShiftStage stage, base::Bytes bytes) {
        world.send(readout, said);
        world.send(builder, said);
        /// Call on_timer: for the next phase at once or after some jitter, for a window at this
        /// time of the node's own clock.
        world.set_timer(at, timer);
        // ---- of a readout unit; see PushReadoutOut
        world.admitted(stream, mep, bytes);
        world.write(write);
        world.acknowledge(stream, mep);
        /// ShiftBarrier::external: call on_released when all units have entered this generation.
        world.enter_barrier(step);
        /// For whoever keeps a record: from now on, the unit is in this stage of this step.
        world.stage(step, stage);
        // ---- of a builder unit
        world.answered(mep, bool{});       ///< whether it is granted; the answers go out now
        world.deliver(mep, bytes, bytes);  ///< it lies there, so large: call on_consumed
    };

/// Steps are phases counted through all rounds: step s is phase s mod phases of round s / phases.
///
/// By count, the readout unit writes, in round r, its builder's MEPs r · meps_per_phase and on, as
/// many as that; waits for their completion, or until no more are under way than the phases before
/// this one may leave over; enters the barrier where one is due, after every `phases_per_barrier`
/// steps; and goes on. As its writes have completed, everybody's have when the barrier releases it.
/// With slack it goes on before that, until it is so many barriers ahead; it enters one after the
/// other, each when the one before has released it.
/// A unit that may leave step goes on from barriers at which it does not wait, enters them in the
/// same way, and waits at the last one of each round: nobody gets further ahead than that.
/// What a dummy's phase lasts, a barrier or the last write decides.
///
/// Behind a barrier of neighbours a unit goes on when the one behind which it follows, from builder
/// unit to builder unit, is through; the first of a group is followed by the last, one phase ahead.
/// On a leaf switch, D-mod-K gives them the same way up in turn. Builder units that let one write
/// at a time keep all others in their order, and only the last waits: one message a phase for each
/// group.
///
/// By time, step s is the window [start + s · window, start + (s + 1) · window) of the node's
/// clock, and the unit writes what its builder has room for, as long as a write can end before the
/// grace period. How far clocks agree is the world's business: it translates the times of timers.
///
/// Where the builder unit sets the pace, the readout unit asks it when all that it is to write in
/// the phase is granted, or in a window what is, and writes when it may (see WritePacer); what it
/// writes to its own node goes at once. It measures how long an answer takes, and says so when it
/// asks the next one.
///
/// A message counts only if it comes from a node with a unit that may send it; a builder unit
/// answers for its own MEPs. Invalid input is counted and otherwise ignored.
class ShiftUnit {
  public:
    struct Counters {
        std::uint64_t steps = 0;          ///< completed
        std::uint64_t idle_steps = 0;     ///< of these, with a dummy
        std::uint64_t skipped_steps = 0;  ///< by time: the timer came more than a window late
        std::uint64_t passed = 0;         ///< barriers at which it did not wait, out of step
        std::uint64_t unexpected = 0;     ///< inputs ignored: out of turn, or of the other kind
        std::uint64_t late = 0;           ///< inputs ignored: for phases after on_close
        std::uint64_t unneeded = 0;       ///< answers to requests that had been withdrawn
    };

    static base::expected<ShiftUnit> make(ShiftUnitConfig config, LinearShift shift);

    // ---- inputs

    /// To begin with, once. `at`: when the first window opens, by the node's own clock.
    template <ShiftWorld World>
    void on_start(base::Time at, base::Time now, World& world) {
        if (!readout_ || stage_ != Stage::before) {
            ignore();
            return;
        }
        now_ = now;
        start_ = at;
        if (is_by_time()) {
            stage_ = Stage::in_window;
            step_ = next_step_ = 0;
            world.set_timer(start_, {UnitTimer::What::window});
        } else {
            round_began_ = now;
            go_to_phase(world);
        }
    }

    /// `now`, of a window: by the node's own clock.
    template <ShiftWorld World>
    void on_timer(UnitTimer::What what, base::Time now, World& world) {
        using What = UnitTimer::What;
        now_ = now;
        if (what == What::go && pacer_ && stage_ != Stage::closed) {
            pace([&](auto& out) { pacer_->on_timer(now, out); }, world);
        } else if (what == What::phase && stage_ == Stage::ready) {
            begin_phase(world);
        } else if (what == What::idle && stage_ == Stage::idle) {
            take_turn(world);
        } else if (what == What::window && stage_ == Stage::in_window) {
            change_window(world);
        } else {
            ignore();
        }
    }

    /// From the node of these units; none: it has none. False: nobody there says that.
    template <ShiftWorld World>
    bool on_message(ReadoutIndex readout, BuilderIndex builder, const UnitMessage& said,
                    base::Time now, World& world) {
        using Kind = UnitMessage::Kind;
        const bool is_to_builder = builder_ && readout != ReadoutIndex::none();
        const bool is_of_builder = readout_ && builder != BuilderIndex::none();
        const MepId mep{said.number};
        const bool is_its_own = is_of_builder && builder_of(mep, shift_.builders()) == builder;
        Out<World> out{*this, world};
        now_ = now;
        if (said.kind == Kind::announce && is_to_builder) {
            builder_->on_sizes(readout, mep, said.values, out);
        } else if (said.kind == Kind::last_announcement && is_to_builder) {
            builder_->on_last_announcement(readout, said.number, out);
        } else if (said.kind == Kind::grant && is_its_own) {
            readout_->on_grant(mep, said.values, now, out);
        } else if (said.kind == Kind::discard && is_its_own) {
            readout_->on_discard(mep, now, out);
        } else if (said.kind == Kind::closing && is_of_builder) {
            readout_->on_closing(builder, said.number, out);
        } else if (said.kind == Kind::last_answer && is_of_builder) {
            readout_->on_last_answer(builder, said.number);
        } else if (said.kind == Kind::ready && is_to_builder && pacer_ &&
                   said.values.size() == ready_values) {
            const auto value = [&](std::size_t i) {
                return static_cast<std::uint64_t>(said.values[i]);
            };
            const WriteRequest request{.number = said.number,
                                       .step = value(0),
                                       .first = value(1),
                                       .end = value(2),
                                       .writes = value(3),
                                       .bytes = said.values[4],
                                       .round_trip = {said.values[5]}};
            pace([&](auto& to) { pacer_->on_ready(readout, request, now, to); }, world);
        } else if (said.kind == Kind::through && is_to_builder && pacer_ &&
                   said.values.size() == 1) {
            const auto writes = static_cast<std::uint64_t>(said.values[0]);
            pace([&](auto& to) { pacer_->on_through(readout, said.number, writes, now, to); },
                 world);
        } else if (said.kind == Kind::go && is_of_builder && is_paced() &&
                   said.values.size() == 1) {
            on_go(builder, said.number, {said.values[0]}, world);
        } else if (said.kind != Kind::barrier || !readout_ || readout == ReadoutIndex::none()) {
            return false;
        } else if (!barrier_ || stage_ == Stage::closed) {
            ignore();
        } else if (const auto from = std::ranges::lower_bound(group_, readout);
                   from != group_.end() && *from == readout) {
            barrier_->on_message(static_cast<Participant>(from - group_.begin()),
                                 {said.number, said.round}, out);
        } else {
            ignore();
        }
        go_on(world);
        return true;
    }

    /// By the external barrier.
    template <ShiftWorld World>
    void on_released(std::uint64_t generation, base::Time now, World& world) {
        if (config_.barrier != ShiftBarrier::external || stage_ == Stage::closed ||
            generation != released_ || entered_ == released_) {
            ignore();
            return;
        }
        now_ = now;
        ++released_;
        go_on(world);
    }

    /// The source has the stream's next MFP; see PushReadout::takes_more.
    template <ShiftWorld World>
    void on_data(StreamIndex stream, base::Bytes bytes, World& world) {
        Out<World> out{*this, world};
        readout_->on_generated(stream, bytes, out);
    }
    /// The space of the stream's oldest acknowledged MFP is free.
    template <ShiftWorld World>
    void on_acknowledged(StreamIndex stream, World& world) {
        Out<World> out{*this, world};
        readout_->on_acknowledged(stream, out);
    }
    template <ShiftWorld World>
    void on_write_done(MepId mep, StreamIndex stream, base::Time now, World& world) {
        Out<World> out{*this, world};
        now_ = now;
        readout_->on_write_done(mep, stream, now, out);
        go_on(world);
    }

    /// The readout unit has written its MFP of the stream.
    template <ShiftWorld World>
    void on_written(ReadoutIndex readout, StreamIndex stream, MepId mep, base::Time now,
                    World& world) {
        Out<World> out{*this, world};
        const std::uint64_t before = builder_->counters().mfps;
        builder_->on_written(readout, stream, mep, out);
        if (pacer_ && stage_ != Stage::closed && builder_->counters().mfps > before) {
            const std::uint64_t number = write_number(turn_of(mep, shift_.builders()), stream);
            pace([&](auto& to) { pacer_->on_written(readout, number, now, to); }, world);
        }
    }
    /// The consumer is through with it.
    template <ShiftWorld World>
    void on_consumed(MepId mep, World& world) {
        Out<World> out{*this, world};
        builder_->on_processed(mep, out);
    }
    /// Only MEPs before this one may be answered, until the next call.
    template <ShiftWorld World>
    void on_lease(std::uint64_t mep_end, World& world) {
        if (builder_) {
            Out<World> out{*this, world};
            builder_->on_lease(turns_before(config_.builder.self, mep_end, shift_.builders()), out);
        }
    }

    /// The epoch is being closed, and these are lost: no more phases, barriers and windows; from
    /// now on the readout unit writes what it may. Comes again when more are lost.
    template <ShiftWorld World>
    void on_close(std::span<const ReadoutIndex> readouts, std::span<const BuilderIndex> builders,
                  base::Time now, World& world) {
        Out<World> out{*this, world};
        if (readout_) {
            if (!is_finished()) {
                world.stage(step_, ShiftStage::finished);
            }
            readout_->on_close(builders, now, out);
        }
        if (builder_) {
            builder_->on_close(readouts, out);
        }
        stage_ = Stage::closed;
        reached_ = entered_;  // no more barriers
        awaits_ = Awaits::nothing;
    }
    /// The epoch is over: MEPs that lack MFPs are delivered or dropped, MFPs before `next_mep`, the
    /// largest of all live units, are acknowledged. Precondition: is_drained.
    template <ShiftWorld World>
    void on_end(std::uint64_t next_mep, World& world) {
        Out<World> out{*this, world};
        if (builder_) {
            builder_->on_end(out);
        }
        if (readout_) {
            readout_->on_end(next_mep, out);
        }
    }

    // ---- what is so

    [[nodiscard]] const Counters& counters() const { return counters_; }
    /// None: the node has no such unit.
    [[nodiscard]] const PushReadout* readout() const { return readout_ ? &*readout_ : nullptr; }
    [[nodiscard]] const PushBuilder* builder() const { return builder_ ? &*builder_ : nullptr; }
    /// None: the node has no builder unit, or the schedule sets the pace.
    [[nodiscard]] const WritePacer* pacer() const { return pacer_ ? &*pacer_ : nullptr; }
    /// None: it waits at each barrier, or there is none.
    [[nodiscard]] const StepKeeper* keeper() const { return keeper_ ? &*keeper_ : nullptr; }
    [[nodiscard]] std::uint64_t step() const { return step_; }
    [[nodiscard]] bool is_finished() const {
        return stage_ == Stage::finished || stage_ == Stage::closed;
    }
    /// After on_close: all that live units have granted is written, and built as far as it came.
    [[nodiscard]] bool is_drained() const;
    /// The first MEP that the next epoch may take, as far as this node knows. Precondition:
    /// is_drained.
    [[nodiscard]] std::uint64_t next_mep() const;

    /// Inputs that had no effect, those of units that were lost included.
    struct Ignored {
        std::uint64_t messages = 0;
        std::uint64_t writes = 0;
        std::uint64_t others = 0;  ///< by its own world
    };
    [[nodiscard]] Ignored ignored() const;

  private:
    enum class Stage : std::uint8_t {
        before,
        ready,
        sending,
        idle,
        in_barrier,
        in_window,
        finished,
        closed
    };

    /// Where the builder unit sets the pace: what the readout unit needs before it writes.
    enum class Awaits : std::uint8_t { nothing, grants, go };

    /// What the parts ask for goes out; that a turn or a barrier is over is for the unit itself.
    template <class World>
    struct Out {
        using Kind = UnitMessage::Kind;
        ShiftUnit& unit;
        World& world;

        template <class To>
        void send(To to, Kind kind, std::uint64_t number, std::span<const base::Bytes> values = {},
                  std::uint32_t round = 0) {
            world.send(to, UnitMessage{kind, round, number, values});
        }
        // ---- of the readout unit
        void admitted(StreamIndex stream, MepId mep, base::Bytes place) {
            world.admitted(stream, mep, place);
        }
        void announce(BuilderIndex to, MepId mep, std::span<const base::Bytes> sizes) {
            send(to, Kind::announce, number(mep), sizes);
        }
        void write(const PushWrite& write) { world.write(write); }
        void acknowledge(StreamIndex stream, MepId mep) { world.acknowledge(stream, mep); }
        void turn_done() { unit.turn_done_ = true; }
        void last_announcement(BuilderIndex to, std::uint64_t turn) {
            send(to, Kind::last_announcement, turn);
        }
        void send_barrier(Participant to, BarrierMessage message) {
            send(unit.group_[to], Kind::barrier, message.generation, {}, message.round);
        }
        void released(std::uint64_t) { ++unit.released_; }
        // ---- of the builder unit
        void grant(ReadoutIndex to, MepId mep, std::span<const base::Bytes> offsets) {
            world.answered(mep, true);
            send(to, Kind::grant, number(mep), offsets);
        }
        void discard(ReadoutIndex to, MepId mep) {
            world.answered(mep, false);
            send(to, Kind::discard, number(mep));
        }
        void built(MepId mep, base::Bytes place, base::Bytes bytes) {
            world.deliver(mep, place, bytes);
        }
        void incomplete(MepId mep, base::Bytes place, base::Bytes bytes) {
            world.deliver(mep, place, bytes);
        }
        void closing(ReadoutIndex to, std::uint64_t turn) { send(to, Kind::closing, turn); }
        void last_answer(ReadoutIndex to, std::uint64_t turn) { send(to, Kind::last_answer, turn); }
        void go(ReadoutIndex to, std::uint64_t request, base::Time held) {
            send(to, Kind::go, request, std::span(&held.ps, 1));
        }
        void set_go_timer(base::Time at) { world.set_timer(at, {UnitTimer::What::go}); }
    };

    ShiftUnit(ShiftUnitConfig config, LinearShift shift)
        : config_(std::move(config)), shift_(std::move(shift)) {}

    static std::uint64_t number(MepId mep) { return static_cast<std::uint64_t>(mep); }
    void ignore() { ++(stage_ == Stage::closed ? counters_.late : counters_.unexpected); }

    /// The unit has got to the phase for which it is ready.
    template <ShiftWorld World>
    void begin_phase(World& world) {
        began_ = now_;
        idle_ = shift_.builder_for(config_.self, phase()) == BuilderIndex::none();
        counters_.idle_steps += idle_ ? 1 : 0;
        world.stage(step_, idle_    ? ShiftStage::idle
                           : asks() ? ShiftStage::asking
                                    : ShiftStage::sending);
        if (idle_ && config_.keeps_dummies && length_ > base::Time::zero() &&
            (!is_barrier_due(step_ + 1) || !is_kept_in_step())) {
            stage_ = Stage::idle;
            world.set_timer(now_ + length_, {UnitTimer::What::idle});
        } else {
            take_turn(world);
        }
    }

    /// Of the builder whose turn it is; a dummy gets nothing, and its turn ends when no more than
    /// may be left over is under way.
    template <ShiftWorld World>
    void take_turn(World& world) {
        stage_ = Stage::sending;
        until_ = idle_ ? 0 : (step_ / shift_.phases() + 1) * config_.meps_per_phase;
        if (!idle_ && asks()) {
            awaits_ = Awaits::grants;
            go_on(world);
        } else {
            write(world);
        }
    }

    template <ShiftWorld World>
    void write(World& world) {
        Out<World> out{*this, world};
        readout_->on_turn(idle_ ? BuilderIndex() : partner(), until_,
                          is_by_time() ? PushReadout::without_end : writes_left_over(), deadline_,
                          now_, out);
        go_on(world);
    }

    // ---- where the builder unit sets the pace

    /// As soon as what it is to write is granted; by count, a turn in which all is discarded ends
    /// without an answer.
    template <ShiftWorld World>
    void ask(World& world) {
        const BuilderIndex builder = partner();
        const std::uint64_t answered = readout_->answered(builder);
        if (is_by_time()) {
            until_ = answered;
        } else if (answered < until_) {
            return;
        }
        const auto granted = readout_->granted(builder, until_);
        if (granted.writes == 0 && is_by_time()) {
            return;
        }
        if (granted.writes == 0) {
            awaits_ = Awaits::nothing;
            write(world);
            return;
        }
        awaits_ = Awaits::go;
        asked_ = now_;
        const auto as_value = [](std::uint64_t number) {
            return static_cast<std::int64_t>(number);
        };
        const std::int64_t values[] = {as_value(step_),
                                       as_value(write_number(granted.turn, granted.stream)),
                                       as_value(write_number(until_, StreamIndex())),
                                       as_value(granted.writes),
                                       granted.bytes,
                                       round_trip_.ps};
        Out<World>{*this, world}.send(builder, UnitMessage::Kind::ready, ++request_, values);
    }

    template <ShiftWorld World>
    void on_go(BuilderIndex builder, std::uint64_t request, base::Time held, World& world) {
        if (stage_ == Stage::closed || request > request_) {
            ignore();
        } else if (request < request_ || awaits_ != Awaits::go || builder != partner()) {
            ++counters_.unneeded;
        } else {
            awaits_ = Awaits::nothing;
            if (asked_ != base::Time::never()) {
                round_trip_ = std::max(base::Time{1}, now_ - asked_ - held);
            }
            writes_before_ = readout_->counters().writes;
            is_writing_ = true;
            began_ = now_;
            world.stage(step_, ShiftStage::sending);
            write(world);
        }
    }

    /// At the end of a window: what was asked for and has not begun.
    template <ShiftWorld World>
    void withdraw(World& world) {
        if (awaits_ == Awaits::go || is_writing_) {
            const auto made = static_cast<std::int64_t>(
                is_writing_ ? readout_->counters().writes - writes_before_ : 0);
            Out<World>{*this, world}.send(partner(), UnitMessage::Kind::through, request_,
                                          std::span(&made, 1));
        }
        awaits_ = Awaits::nothing;
        is_writing_ = false;
    }

    /// When the epoch is closed, nobody needs to ask any more.
    template <class Input, ShiftWorld World>
    void pace(Input input, World& world) {
        if (stage_ == Stage::closed) {
            ignore();
            return;
        }
        Out<World> out{*this, world};
        input(out);
    }

    template <ShiftWorld World>
    void go_on(World& world) {
        if (std::exchange(turn_done_, false)) {
            is_writing_ = false;
            if (is_by_time()) {
                awaits_ = Awaits::grants;
                world.stage(step_, ShiftStage::asking);
            } else {
                if (!idle_ && (!is_paced() || asks())) {
                    length_ = now_ - began_;
                }
                end_phase(world);
            }
        }
        if (stage_ == Stage::in_barrier || reached_ > entered_) {
            synchronise(world);
        }
        if (awaits_ == Awaits::grants) {
            ask(world);
        }
    }

    template <ShiftWorld World>
    void end_phase(World& world) {
        ++counters_.steps;
        const std::uint64_t ended = step_++;
        if (!is_barrier_due(step_)) {
            go_to_phase(world);
            return;
        }
        ++reached_;
        stage_ = Stage::in_barrier;
        world.stage(ended, ShiftStage::in_barrier);
    }

    /// Enters the next barrier that it has come to, and goes on if it may.
    template <ShiftWorld World>
    void synchronise(World& world) {
        while (entered_ == released_ && entered_ < reached_) {
            const std::uint64_t generation = entered_++;
            if (barrier_) {
                Out<World> out{*this, world};
                barrier_->enter(generation, out);
            } else {
                world.enter_barrier(generation);
            }
        }
        if (stage_ == Stage::in_barrier &&
            (!waits_at(reached_) || reached_ - released_ <= config_.barrier_slack)) {
            leave_barrier();
            go_to_phase(world);
        }
    }

    /// The last one that it has come to.
    void leave_barrier() {
        if (!keeper_) {
            return;
        }
        counters_.passed += waits_at(reached_) ? 0 : 1;
        if (reached_ % keeper_->barriers_of_round() == 0) {
            keeper_->on_round(now_ - std::exchange(round_began_, now_));
        }
    }

    template <ShiftWorld World>
    void go_to_phase(World& world) {
        if (config_.rounds != 0 && step_ == config_.rounds * shift_.phases()) {
            stage_ = Stage::finished;
            world.stage(step_, ShiftStage::finished);
            return;
        }
        stage_ = Stage::ready;
        world.stage(step_, ShiftStage::entering);
        world.set_timer(now_, {UnitTimer::What::phase});
    }

    template <ShiftWorld World>
    void change_window(World& world) {
        const base::Time due = start_ + config_.window * static_cast<std::int64_t>(next_step_);
        if (now_ < due) {  // not ours, or our clock was set back
            world.set_timer(due, {UnitTimer::What::window});
            return;
        }
        const auto late = static_cast<std::uint64_t>((now_ - due).ps / config_.window.ps);
        if (is_paced()) {
            withdraw(world);
        }
        counters_.steps += next_step_ == 0 ? 0 : 1;
        counters_.skipped_steps += late;
        step_ = next_step_ + late;
        next_step_ = step_ + 1;
        const base::Time end = start_ + config_.window * static_cast<std::int64_t>(next_step_);
        deadline_ = end - config_.grace;
        if (partner() == BuilderIndex::none()) {
            ++counters_.idle_steps;
            world.stage(step_, ShiftStage::idle);
            readout_->on_turn_over();
        } else if (asks()) {
            world.stage(step_, ShiftStage::asking);
            readout_->on_turn_over();
            awaits_ = Awaits::grants;
            ask(world);
            asked_ = base::Time::never();  // by its own clock, which answers do not go by
        } else {
            world.stage(step_, ShiftStage::sending);
            until_ = PushReadout::without_end;
            write(world);
        }
        world.set_timer(end, {UnitTimer::What::window});
    }

    /// Of the steps before this one; none where all have to be complete when it ends.
    [[nodiscard]] std::uint64_t writes_left_over() const {
        const std::uint64_t next = step_ + 1;
        if (is_barrier_due(next) || next == config_.rounds * shift_.phases()) {
            return 0;
        }
        return std::uint64_t{config_.phases_under_way - 1} * config_.meps_per_phase *
               config_.readout.streams;
    }
    /// Before this step.
    [[nodiscard]] bool is_barrier_due(std::uint64_t step) const {
        return config_.barrier != ShiftBarrier::none && step % config_.phases_per_barrier == 0;
    }
    [[nodiscard]] std::uint32_t phase() const {
        return static_cast<std::uint32_t>(step_ % shift_.phases());
    }
    /// Of the barriers that it comes to, counted from 1.
    [[nodiscard]] bool waits_at(std::uint64_t barrier) const {
        return !keeper_ || keeper_->waits_at(barrier);
    }
    /// Whether all who wait for each other go on from the next barrier together.
    [[nodiscard]] bool is_kept_in_step() const {
        return config_.barrier != ShiftBarrier::neighbour && config_.barrier_slack == 0 &&
               waits_at(reached_ + 1);
    }
    /// To whom it sends in this phase, or none.
    [[nodiscard]] BuilderIndex partner() const { return shift_.builder_for(config_.self, phase()); }
    [[nodiscard]] bool is_paced() const { return config_.pace == Pace::builder; }
    /// A copy within the node needs no link: nobody is asked.
    [[nodiscard]] bool asks() const { return is_paced() && partner() != config_.builder.self; }
    [[nodiscard]] bool is_by_time() const { return config_.change == PhaseChange::by_time; }

    ShiftUnitConfig config_;
    LinearShift shift_;
    std::optional<PushReadout> readout_;
    std::optional<Barrier> barrier_;    ///< none: unsynchronised, by time, or somebody else's
    std::optional<StepKeeper> keeper_;  ///< none: it waits at each barrier
    base::Time round_began_ = base::Time::zero();  ///< with a keeper: the barriers of a round
    std::vector<ReadoutIndex> group_;  ///< of units that wait for each other, in ascending order
    std::optional<PushBuilder> builder_;
    std::optional<WritePacer> pacer_;  ///< beside a builder unit that sets the pace
    Stage stage_ = Stage::before;
    std::uint64_t step_ = 0;       ///< the one it is in; in the barrier already the next
    std::uint64_t next_step_ = 0;  ///< by time
    base::Time start_ = base::Time::zero();
    bool idle_ = false;  ///< this phase is a dummy's
    base::Time now_;     ///< of the last input that has a time
    base::Time began_;   ///< of this phase, or of what it writes in it as its builder unit lets it
    base::Time length_;  ///< of the last phase in which it sent, or was let to
    bool turn_done_ = false;
    std::uint64_t reached_ = 0;                  ///< barriers that it has come to
    std::uint64_t entered_ = 0;                  ///< of these
    std::uint64_t released_ = 0;                 ///< of these
    std::uint64_t until_ = 0;                    ///< of its builder unit's MEPs, in this turn
    base::Time deadline_ = base::Time::never();  ///< by time
    Awaits awaits_ = Awaits::nothing;
    bool is_writing_ = false;                     ///< what it has asked for
    std::uint64_t request_ = 0;                   ///< its last one
    std::uint64_t writes_before_ = 0;             ///< it was answered
    base::Time asked_;                            ///< never: its round trip is not measured
    base::Time round_trip_ = base::Time::zero();  ///< of an earlier request
    Counters counters_;
};

}  // namespace daqloom::protocol
