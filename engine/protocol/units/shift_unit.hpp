// Linear shifting on a node: the readout unit, which passes from phase to phase with or without
// synchronisation, the builder unit, or both.
//
// A readout unit announces the sizes of its MFPs to the builder unit of each MEP, which grants
// offsets in its memory. In the phase of that builder unit the readout unit writes the MFPs to
// these offsets, immediately or after the message `go` of the builder unit.
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

/// Number of barriers in a round, rounded down, at least 1. Units that may leave step (skip
/// barriers) all wait at the last one.
std::uint32_t barriers_of_round(const ShiftRules& rules, const LinearShift& shift);

struct ShiftUnitConfig : ShiftRules {
    ReadoutIndex self = ReadoutIndex::none();  ///< none: the node has no readout unit
    std::uint64_t rounds = 0;  ///< by count: rounds until the unit is finished; 0: no end
    PushReadoutConfig readout = {};
    PushBuilderConfig builder = {.self = BuilderIndex::none()};  ///< none: no builder unit

    /// A configuration with buffers for the MEPs of two rounds; unit numbers and sizes in bytes are
    /// still to be set.
    static ShiftUnitConfig sized(const ShiftRules& rules, const LinearShift& shift,
                                 std::uint32_t streams);
    /// Selects the barrier groups of the epoch's readout units, given their numbers in the run.
    void keep_groups_of(const base::Table<ReadoutIndex, ReadoutIndex>& in_run);
};

/// The stages of a phase.
enum class ShiftStage {
    entering,    ///< ready for the next phase
    asking,      ///< the builder's turn, but `go` is missing
    sending,     ///< the builder's turn
    idle,        ///< a dummy in place of the builder
    in_barrier,  ///< done, waiting for other units
    finished,
};

/// Stage of a readout unit and its start, for worlds that measure the time in each stage.
struct StageClock {
    ShiftStage stage = ShiftStage::finished;
    base::Time since;

    /// Begins a stage. Returns the time spent in the previous one.
    base::Time enter(ShiftStage next, base::Time now) {
        stage = next;
        return now - std::exchange(since, now);
    }
};

/// The world of a unit (simulator, live node or test). Its members must not call the unit back.
template <class World>
concept ShiftWorld =
    requires(World& world, ReadoutIndex readout, BuilderIndex builder, const UnitMessage& message,
             base::Time at, UnitTimer timer, StreamIndex stream, MepId mep, const PushWrite& write,
             std::uint64_t step, ShiftStage stage, base::Bytes bytes) {
        world.send(readout, message);
        world.send(builder, message);
        /// Call on_timer for this timer: for a phase immediately or after some jitter, for a time
        /// window at time `at` of the node's own clock.
        world.set_timer(at, timer);
        // ---- readout unit; see PushReadoutOut
        world.admitted(stream, mep, bytes);
        world.write(write);
        world.acknowledge(stream, mep);
        /// If is_outside(barrier): call on_released when all units have entered generation `step`.
        world.enter_barrier(step);
        /// For records of stages: from now on, the unit is in `stage` of step `step`.
        world.stage(step, stage);
        // ---- builder unit
        world.answered(mep, bool{});       ///< whether the MEP is granted; the answers go out now
        world.deliver(mep, bytes, bytes);  ///< the MEP's offset and bytes: call on_consumed
    };

/// A unit of linear shifting. Steps are phases counted through all rounds: step s is phase s mod
/// phases of round s / phases.
///
/// By count, a phase in round r writes `meps_per_phase` MEPs of its builder unit, from MEP r ·
/// meps_per_phase of this unit on. The phase ends when all its writes have begun and few enough are
/// unfinished (`phases_under_way`). A barrier follows every `phases_per_barrier` steps; when it
/// releases the unit, the writes of all units are complete. With slack the unit continues before
/// the release, until it is `barrier_slack` barriers ahead; it enters a barrier after the release
/// of the previous one. A unit that may leave step enters all barriers, but waits only at some and
/// at the last of each round. A dummy's phase ends with a barrier or the last write under way.
///
/// With a neighbour barrier, a unit continues when the next unit of its group has finished with the
/// builder unit that it needs; the last unit of a group waits for the first. With D-mod-K routing,
/// a group on one leaf switch then uses the same uplink in turn. If builder units permit one writer
/// at a time, this limit already keeps the order, and only the last unit of a group waits.
///
/// By time, step s is the window [start + s · window, start + (s + 1) · window) of the node's
/// clock. The unit writes what the builder unit has granted, as long as a write can end before the
/// grace period. The world translates timer times, within the accuracy of its clocks.
///
/// If builder units set the pace, the readout unit sends a request when all writes of the phase are
/// granted (in a window: those granted by then), and writes after `go` (see WritePacer). Writes
/// within a node need no request. The unit measures the round trip of a request and reports it in
/// the next one.
///
/// Messages count only from a node with a unit that may send them; a builder unit answers only for
/// its own MEPs. Invalid input is counted and otherwise ignored.
class ShiftUnit {
  public:
    struct Counters {
        std::uint64_t steps = 0;          ///< completed
        std::uint64_t idle_steps = 0;     ///< completed steps with a dummy
        std::uint64_t skipped_steps = 0;  ///< by time: the timer came more than a window late
        std::uint64_t passed = 0;         ///< barriers without a wait, out of step
        std::uint64_t unexpected = 0;     ///< inputs ignored: out of turn, or wrong PhaseChange
        std::uint64_t late = 0;           ///< inputs ignored: for phases after on_close
        std::uint64_t unneeded = 0;       ///< answers to requests that had been withdrawn
    };

    static base::expected<ShiftUnit> make(ShiftUnitConfig config, LinearShift shift);

    // ---- inputs

    /// Starts the unit, once. `at`: start of the first window, by the node's own clock.
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

    /// `now`: for a window, by the node's own clock.
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

    /// Handles a message of the node with these units (or none). False: this node may not send it.
    template <ShiftWorld World>
    bool on_message(ReadoutIndex readout, BuilderIndex builder, const UnitMessage& message,
                    base::Time now, World& world) {
        using Kind = UnitMessage::Kind;
        const bool is_to_builder = builder_ && readout != ReadoutIndex::none();
        const bool is_of_builder = readout_ && builder != BuilderIndex::none();
        const MepId mep{message.number};
        const bool is_its_own = is_of_builder && builder_of(mep, shift_.builders()) == builder;
        Out<World> out{*this, world};
        now_ = now;
        if (message.kind == Kind::announce && is_to_builder) {
            builder_->on_sizes(readout, mep, message.values, out);
        } else if (message.kind == Kind::last_announcement && is_to_builder) {
            builder_->on_last_announcement(readout, message.number, out);
        } else if (message.kind == Kind::grant && is_its_own) {
            readout_->on_grant(mep, message.values, now, out);
        } else if (message.kind == Kind::discard && is_its_own) {
            readout_->on_discard(mep, now, out);
        } else if (message.kind == Kind::closing && is_of_builder) {
            readout_->on_closing(builder, message.number, out);
        } else if (message.kind == Kind::last_answer && is_of_builder) {
            readout_->on_last_answer(builder, message.number);
        } else if (message.kind == Kind::ready && is_to_builder && pacer_ &&
                   message.values.size() == ready_values) {
            const auto value = [&](std::size_t i) {
                return static_cast<std::uint64_t>(message.values[i]);
            };
            const WriteRequest request{.number = message.number,
                                       .step = value(0),
                                       .first = value(1),
                                       .end = value(2),
                                       .writes = value(3),
                                       .bytes = message.values[4],
                                       .round_trip = {message.values[5]}};
            pace([&](auto& to) { pacer_->on_ready(readout, request, now, to); }, world);
        } else if (message.kind == Kind::through && is_to_builder && pacer_ &&
                   message.values.size() == 1) {
            const auto writes = static_cast<std::uint64_t>(message.values[0]);
            pace([&](auto& to) { pacer_->on_through(readout, message.number, writes, now, to); },
                 world);
        } else if (message.kind == Kind::go && is_of_builder && is_paced() &&
                   message.values.size() == 1) {
            on_go(builder, message.number, {message.values[0]}, world);
        } else if (message.kind != Kind::barrier || !readout_ || readout == ReadoutIndex::none()) {
            return false;
        } else if (!barrier_ || stage_ == Stage::closed) {
            ignore();
        } else if (const auto from = std::ranges::lower_bound(group_, readout);
                   from != group_.end() && *from == readout) {
            barrier_->on_message(static_cast<Participant>(from - group_.begin()),
                                 {message.number, message.round}, out);
        } else {
            ignore();
        }
        go_on(world);
        return true;
    }

    /// A barrier outside of the units releases a generation.
    template <ShiftWorld World>
    void on_released(std::uint64_t generation, base::Time now, World& world) {
        if (!is_outside(config_.barrier) || stage_ == Stage::closed || generation != released_ ||
            entered_ == released_) {
            ignore();
            return;
        }
        now_ = now;
        ++released_;
        go_on(world);
    }

    /// The source offers the stream's next MFP; see PushReadout::takes_more.
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

    /// The readout unit has written its MFP of this stream and MEP.
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
    /// The consumer has processed the MEP.
    template <ShiftWorld World>
    void on_consumed(MepId mep, World& world) {
        Out<World> out{*this, world};
        builder_->on_processed(mep, out);
    }
    /// Forbids answers to MEPs from `mep_end` on, until the next call.
    template <ShiftWorld World>
    void on_lease(std::uint64_t mep_end, World& world) {
        if (builder_) {
            Out<World> out{*this, world};
            builder_->on_lease(turns_before(config_.builder.self, mep_end, shift_.builders()), out);
        }
    }

    /// Begins the end of the epoch, with these units lost: phases, barriers and windows end, and
    /// the readout unit writes all grants. Called again when more are lost.
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
    /// Ends the epoch: MEPs that lack MFPs are delivered or dropped; MFPs before `next_mep`, the
    /// largest value of all live units, are acknowledged. Precondition: is_drained.
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

    // ---- observers

    [[nodiscard]] const Counters& counters() const { return counters_; }
    /// The readout unit and the builder unit; none: the node has no such unit.
    [[nodiscard]] const PushReadout* readout() const { return readout_ ? &*readout_ : nullptr; }
    [[nodiscard]] const PushBuilder* builder() const { return builder_ ? &*builder_ : nullptr; }
    /// The pacer; none: the node has no builder unit, or the schedule sets the pace.
    [[nodiscard]] const WritePacer* pacer() const { return pacer_ ? &*pacer_ : nullptr; }
    /// The step keeper; none: the unit waits at each barrier, or there is no barrier.
    [[nodiscard]] const StepKeeper* keeper() const { return keeper_ ? &*keeper_ : nullptr; }
    [[nodiscard]] std::uint64_t step() const { return step_; }
    [[nodiscard]] bool is_finished() const {
        return stage_ == Stage::finished || stage_ == Stage::closed;
    }
    /// After on_close: whether all grants of live units are written, and MEPs built where possible.
    [[nodiscard]] bool is_drained() const;
    /// The first MEP that the next epoch may take, as far as this node knows. Precondition:
    /// is_drained.
    [[nodiscard]] std::uint64_t next_mep() const;

    /// Inputs that had no effect, including those of lost units.
    struct IgnoredInputs {
        std::uint64_t messages = 0;
        std::uint64_t writes = 0;
        std::uint64_t others = 0;  ///< from the unit's own world
    };
    [[nodiscard]] IgnoredInputs ignored() const;

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

    /// If the builder unit sets the pace: what the readout unit waits for before it writes.
    enum class Awaits : std::uint8_t { nothing, grants, go };

    /// Outputs of the machines, forwarded to the world except the ends of turns and barriers.
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
        // ---- readout unit
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
        // ---- builder unit
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

    /// Begins the phase for which the unit is ready.
    template <ShiftWorld World>
    void begin_phase(World& world) {
        began_ = now_;
        idle_ = shift_.builder_for(config_.self, phase()) == BuilderIndex::none();
        counters_.idle_steps += idle_ ? 1 : 0;
        world.stage(step_, idle_               ? ShiftStage::idle
                           : requests_writes() ? ShiftStage::asking
                                               : ShiftStage::sending);
        if (idle_ && config_.keeps_dummies && length_ > base::Time::zero() &&
            (!is_barrier_due(step_ + 1) || !is_kept_in_step())) {
            stage_ = Stage::idle;
            world.set_timer(now_ + length_, {UnitTimer::What::idle});
        } else {
            take_turn(world);
        }
    }

    /// Begins the turn of the phase's builder unit. A dummy receives nothing: its turn ends when
    /// the writes under way are within the limit on writes left over.
    template <ShiftWorld World>
    void take_turn(World& world) {
        stage_ = Stage::sending;
        until_ = idle_ ? 0 : (step_ / shift_.phases() + 1) * config_.meps_per_phase;
        if (!idle_ && requests_writes()) {
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

    // ---- pace set by the builder unit

    /// Requests the writes of the turn once they are granted. By count, a turn whose MEPs are all
    /// discarded ends without a request.
    template <ShiftWorld World>
    void request_write(World& world) {
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
        requested_at_ = now_;
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
            if (requested_at_ != base::Time::never()) {
                round_trip_ = std::max(base::Time{1}, now_ - requested_at_ - held);
            }
            writes_before_ = readout_->counters().writes;
            is_writing_ = true;
            began_ = now_;
            world.stage(step_, ShiftStage::sending);
            write(world);
        }
    }

    /// Withdraws, at the end of a window, a request whose writes have not all begun.
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

    /// Passes an input to the pacer, until the epoch is closed.
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
                if (!idle_ && (!is_paced() || requests_writes())) {
                    length_ = now_ - began_;
                }
                end_phase(world);
            }
        }
        if (stage_ == Stage::in_barrier || reached_ > entered_) {
            synchronise(world);
        }
        if (awaits_ == Awaits::grants) {
            request_write(world);
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

    /// Enters the next barrier that the unit has reached, and continues if the unit may.
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

    /// Leaves the last barrier reached.
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
        if (now_ < due) {  // a foreign timer, or the clock was set back
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
        } else if (requests_writes()) {
            world.stage(step_, ShiftStage::asking);
            readout_->on_turn_over();
            awaits_ = Awaits::grants;
            request_write(world);
            // No measurement: the window began by the node's clock, answers come by another clock.
            requested_at_ = base::Time::never();
        } else {
            world.stage(step_, ShiftStage::sending);
            until_ = PushReadout::without_end;
            write(world);
        }
        world.set_timer(end, {UnitTimer::What::window});
    }

    /// Limit on unfinished writes at the end of this step; 0 before a barrier and at the end of the
    /// run.
    [[nodiscard]] std::uint64_t writes_left_over() const {
        const std::uint64_t next = step_ + 1;
        if (is_barrier_due(next) || next == config_.rounds * shift_.phases()) {
            return 0;
        }
        return std::uint64_t{config_.phases_under_way - 1} * config_.meps_per_phase *
               config_.readout.streams;
    }
    /// Whether a barrier precedes this step.
    [[nodiscard]] bool is_barrier_due(std::uint64_t step) const {
        return config_.barrier != ShiftBarrier::none && step % config_.phases_per_barrier == 0;
    }
    [[nodiscard]] std::uint32_t phase() const {
        return static_cast<std::uint32_t>(step_ % shift_.phases());
    }
    /// Whether the unit waits at barrier `barrier`, counted from 1 since the unit's start.
    [[nodiscard]] bool waits_at(std::uint64_t barrier) const {
        return !keeper_ || keeper_->waits_at(barrier);
    }
    /// Whether all units that wait for each other leave the next barrier at the same time.
    [[nodiscard]] bool is_kept_in_step() const {
        return config_.barrier != ShiftBarrier::neighbour && config_.barrier_slack == 0 &&
               waits_at(reached_ + 1);
    }
    /// The builder unit to which this phase sends, or none.
    [[nodiscard]] BuilderIndex partner() const { return shift_.builder_for(config_.self, phase()); }
    [[nodiscard]] bool is_paced() const { return config_.pace == Pace::builder; }
    /// Whether writes need a request. Copies within the node need none, because they use no link.
    [[nodiscard]] bool requests_writes() const {
        return is_paced() && partner() != config_.builder.self;
    }
    [[nodiscard]] bool is_by_time() const { return config_.change == PhaseChange::by_time; }

    ShiftUnitConfig config_;
    LinearShift shift_;
    std::optional<PushReadout> readout_;
    std::optional<Barrier> barrier_;               ///< none: unsynchronised, by time, or external
    std::optional<StepKeeper> keeper_;             ///< none: it waits at each barrier
    base::Time round_began_ = base::Time::zero();  ///< with a keeper: start of the round
    std::vector<ReadoutIndex> group_;  ///< units that wait for each other, in ascending order
    std::optional<PushBuilder> builder_;
    std::optional<WritePacer> pacer_;  ///< for a builder unit that sets the pace
    Stage stage_ = Stage::before;
    std::uint64_t step_ = 0;       ///< current step; in the barrier already the next one
    std::uint64_t next_step_ = 0;  ///< by time
    base::Time start_ = base::Time::zero();
    bool idle_ = false;  ///< this phase is a dummy's
    base::Time now_;     ///< time of the last input that has one
    base::Time began_;   ///< start of this phase, or of its writes after `go`
    base::Time length_;  ///< length of the last phase in which the unit was permitted to send
    bool turn_done_ = false;
    std::uint64_t reached_ = 0;                  ///< barriers reached
    std::uint64_t entered_ = 0;                  ///< barriers entered
    std::uint64_t released_ = 0;                 ///< barriers that have released the unit
    std::uint64_t until_ = 0;                    ///< end of the builder unit's MEPs in this turn
    base::Time deadline_ = base::Time::never();  ///< deadline of the window
    Awaits awaits_ = Awaits::nothing;
    bool is_writing_ = false;                     ///< the writes of request_ have begun
    std::uint64_t request_ = 0;                   ///< number of the last request
    std::uint64_t writes_before_ = 0;             ///< writes made before `go`
    base::Time requested_at_;                     ///< never: its round trip is not measured
    base::Time round_trip_ = base::Time::zero();  ///< round trip of an earlier request
    Counters counters_;
};

}  // namespace daqloom::protocol
