// Linear shifting on a node: its readout unit, which goes from phase to phase, with or without
// synchronisation, its builder unit, or both.
//
// A readout unit announces the sizes of its MFPs to the builder unit of each MEP, which answers
// with their offsets in its memory; in the phase of that builder unit the readout unit writes them
// there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/machines/push_builder.hpp"
#include "protocol/machines/push_readout.hpp"
#include "protocol/schedule/barrier.hpp"
#include "protocol/schedule/linear_shift.hpp"
#include "protocol/schedule/shift_rules.hpp"
#include "protocol/units/timers.hpp"
#include "protocol/units/unit_message.hpp"

namespace daqloom::protocol {

struct ShiftUnitConfig : ShiftRules {
    ReadoutIndex self = ReadoutIndex::none();  ///< none: the node has no readout unit
    std::uint64_t rounds = 0;  ///< by count: after so many it is finished; 0: goes on for ever
    PushReadoutConfig readout = {};
    PushBuilderConfig builder = {.self = BuilderIndex::none()};  ///< the same

    /// Buffers have room for the MEPs of a round and of the next one. What is left open: which
    /// units the node has, and bytes.
    static ShiftUnitConfig sized(const ShiftRules& rules, const LinearShift& shift,
                                 std::uint32_t streams);
};

/// The stages of a phase.
enum class ShiftStage {
    entering,    ///< it has been told to go on
    sending,     ///< it is its builder's turn
    idle,        ///< the slot to which it would send is a dummy
    in_barrier,  ///< it is through and waits for the others
    finished,
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
/// What a dummy's phase lasts, a barrier or the phase before decides.
///
/// By time, step s is the window [start + s · window, start + (s + 1) · window) of the node's
/// clock, and the unit writes what its builder has room for, as long as a write can end before the
/// grace period. How far clocks agree is the world's business: it translates the times of timers.
///
/// A message counts only if it comes from a node with a unit that may send it; a builder unit
/// answers for its own MEPs. Invalid input is counted and otherwise ignored.
class ShiftUnit {
  public:
    struct Counters {
        std::uint64_t steps = 0;          ///< completed
        std::uint64_t idle_steps = 0;     ///< of these, with a dummy
        std::uint64_t skipped_steps = 0;  ///< by time: the timer came more than a window late
        std::uint64_t unexpected = 0;     ///< inputs ignored: out of turn, or of the other kind
        std::uint64_t late = 0;           ///< inputs ignored: for phases after on_close
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
        if (config_.change == PhaseChange::by_time) {
            stage_ = Stage::in_window;
            step_ = next_step_ = 0;
            world.set_timer(start_, {UnitTimer::What::window});
        } else {
            go_to_phase(world);
        }
    }

    /// `now`, of a window: by the node's own clock.
    template <ShiftWorld World>
    void on_timer(UnitTimer::What what, base::Time now, World& world) {
        using What = UnitTimer::What;
        now_ = now;
        if (what == What::phase && stage_ == Stage::ready) {
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
        } else if (said.kind != Kind::barrier || !readout_ || readout == ReadoutIndex::none()) {
            return false;
        } else if (!barrier_ || stage_ == Stage::closed) {
            ignore();
        } else {
            barrier_->on_message(readout.value(), {said.number, said.round}, out);
        }
        go_on(world);
        return true;
    }

    /// By the external barrier.
    template <ShiftWorld World>
    void on_released(std::uint64_t generation, base::Time now, World& world) {
        if (config_.barrier != ShiftBarrier::external || stage_ != Stage::in_barrier ||
            generation != this->generation()) {
            ignore();
            return;
        }
        now_ = now;
        go_to_phase(world);
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
    void on_written(ReadoutIndex readout, StreamIndex stream, MepId mep, World& world) {
        Out<World> out{*this, world};
        builder_->on_written(readout, stream, mep, out);
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
            stage_ = Stage::closed;
            readout_->on_close(builders, now, out);
        }
        if (builder_) {
            builder_->on_close(readouts, out);
        }
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
            send(ReadoutIndex(to), Kind::barrier, message.generation, {}, message.round);
        }
        void released(std::uint64_t) { unit.released_ = true; }
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
        world.stage(step_, idle_ ? ShiftStage::idle : ShiftStage::sending);
        if (idle_ && config_.keeps_dummies && length_ > base::Time::zero() &&
            !is_barrier_due(step_ + 1)) {
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
        const BuilderIndex builder =
            idle_ ? BuilderIndex() : shift_.builder_for(config_.self, phase());
        const std::uint64_t until =
            idle_ ? 0 : (step_ / shift_.phases() + 1) * config_.meps_per_phase;
        Out<World> out{*this, world};
        readout_->on_turn(builder, until, writes_left_over(), base::Time::never(), now_, out);
        go_on(world);
    }

    template <ShiftWorld World>
    void go_on(World& world) {
        if (std::exchange(turn_done_, false)) {
            length_ = idle_ ? length_ : now_ - began_;
            end_phase(world);
        }
        if (std::exchange(released_, false)) {
            go_to_phase(world);
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
        stage_ = Stage::in_barrier;
        world.stage(ended, ShiftStage::in_barrier);
        if (barrier_) {
            Out<World> out{*this, world};
            barrier_->enter(generation(), out);
        } else {
            world.enter_barrier(generation());
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
        counters_.steps += next_step_ == 0 ? 0 : 1;
        counters_.skipped_steps += late;
        step_ = next_step_ + late;
        next_step_ = step_ + 1;
        const base::Time end = start_ + config_.window * static_cast<std::int64_t>(next_step_);
        const BuilderIndex builder = shift_.builder_for(config_.self, phase());
        if (builder == BuilderIndex::none()) {
            ++counters_.idle_steps;
            world.stage(step_, ShiftStage::idle);
            readout_->on_turn_over();
        } else {
            world.stage(step_, ShiftStage::sending);
            Out<World> out{*this, world};
            readout_->on_turn(builder, PushReadout::without_end, 0, end - config_.grace, now_, out);
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
    /// Of the barrier that follows the step before this one.
    [[nodiscard]] std::uint64_t generation() const {
        return step_ / config_.phases_per_barrier - 1;
    }

    ShiftUnitConfig config_;
    LinearShift shift_;
    std::optional<PushReadout> readout_;
    std::optional<Barrier> barrier_;  ///< none: unsynchronised, by time, or somebody else's
    std::optional<PushBuilder> builder_;
    Stage stage_ = Stage::before;
    std::uint64_t step_ = 0;       ///< the one it is in; in the barrier already the next
    std::uint64_t next_step_ = 0;  ///< by time
    base::Time start_ = base::Time::zero();
    bool idle_ = false;  ///< this phase is a dummy's
    base::Time now_;     ///< of the last input that has a time
    base::Time began_;   ///< of this phase
    base::Time length_;  ///< of the last phase in which it sent
    bool turn_done_ = false;
    bool released_ = false;
    Counters counters_;
};

}  // namespace daqloom::protocol
