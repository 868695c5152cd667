// A readout unit under linear shifting, which goes from phase to phase, with or without
// synchronisation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/machines/push_readout.hpp"
#include "protocol/schedule/barrier.hpp"
#include "protocol/schedule/linear_shift.hpp"
#include "protocol/schedule/shift_rules.hpp"

namespace daqloom::protocol {

struct ShiftUnitConfig : ShiftRules {
    ReadoutIndex self{};
    std::uint64_t rounds = 0;  ///< by count: after so many it is finished; 0: goes on for ever
    PushReadoutConfig readout = {};
};

/// The stages of a phase.
enum class ShiftStage {
    entering,    ///< it has been told to go on
    sending,     ///< it is its builder's turn
    idle,        ///< the slot to which it would send is a dummy
    in_barrier,  ///< it is through and waits for the others
    finished,
};

/// The outputs of a unit, which the driver implements, in addition to those of PushReadoutOut and
/// BarrierOut (except turn_done and released, which the unit handles itself). None may call the
/// unit back.
template <class Out>
concept ShiftUnitOut =
    requires(Out& out, std::uint64_t step, ShiftStage stage, base::Time at, Participant to,
             BarrierMessage message, StreamIndex stream, BuilderIndex builder, MepId mep,
             base::Bytes bytes, std::span<const base::Bytes> sizes, const PushWrite& write) {
        out.admitted(stream, mep, bytes);
        out.announce(builder, mep, sizes);
        out.write(write);
        out.acknowledge(stream, mep);
        out.send_barrier(to, message);
        /// ShiftBarrier::external: call on_released when all units have entered this generation.
        out.enter_barrier(step);
        /// By count: call on_phase when the unit gets to it; at once, or after some jitter.
        out.phase_ready(step);
        /// By count: call on_idle_over after so long.
        out.idle_for(at);
        /// By time: call on_timer at this instant of the unit's own clock.
        out.set_timer(at);
        /// For whoever keeps a record: from now on, the unit is in this stage of this step.
        out.stage(step, stage);
    };

/// And when an epoch ends.
template <class Out>
concept ShiftUnitClosingOut = ShiftUnitOut<Out> && PushReadoutClosingOut<Out>;

/// Steps are phases counted through all rounds: step s is phase s mod phases of round s / phases.
///
/// By count, the unit writes, in round r, its builder's MEPs r · meps_per_phase and on, as many as
/// that; waits for their completion, or until no more are under way than the phases before this one
/// may leave over; enters the barrier where one is due, after every
/// `phases_per_barrier` steps; and goes on. As its writes have completed, everybody's have when the
/// barrier releases it. What a dummy's phase lasts, a barrier or the phase before decides.
///
/// By time, step s is the window [start + s · window, start + (s + 1) · window) of the unit's
/// clock, and the unit writes what its builder has room for, as long as a write can end before the
/// grace period. How far clocks agree is the driver's business: it translates the times of timers.
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

    /// To begin with, once. `at`: when the first window opens, by the unit's own clock.
    template <ShiftUnitOut Out>
    void on_start(base::Time at, Out& out) {
        if (stage_ != Stage::before) {
            ignore();
            return;
        }
        start_ = at;
        if (config_.change == PhaseChange::by_time) {
            stage_ = Stage::in_window;
            step_ = next_step_ = 0;
            out.set_timer(start_);
        } else {
            go_to_phase(out);
        }
    }

    /// The unit has got to the phase for which it is ready.
    template <ShiftUnitOut Out>
    void on_phase(base::Time now, Out& out) {
        if (stage_ != Stage::ready) {
            ignore();
            return;
        }
        now_ = began_ = now;
        idle_ = shift_.builder_for(config_.self, phase()) == BuilderIndex::none();
        counters_.idle_steps += idle_ ? 1 : 0;
        out.stage(step_, idle_ ? ShiftStage::idle : ShiftStage::sending);
        if (idle_ && config_.keeps_dummies && length_ > base::Time::zero() &&
            !is_barrier_due(step_ + 1)) {
            stage_ = Stage::idle;
            out.idle_for(length_);
        } else {
            take_turn(out);
        }
    }

    /// The time for which the unit was to be idle is over.
    template <ShiftUnitOut Out>
    void on_idle_over(base::Time now, Out& out) {
        if (stage_ != Stage::idle) {
            ignore();
            return;
        }
        now_ = now;
        take_turn(out);
    }

    template <ShiftUnitOut Out>
    void on_timer(base::Time now, Out& out) {
        if (stage_ != Stage::in_window) {
            ignore();
            return;
        }
        const base::Time due = start_ + config_.window * static_cast<std::int64_t>(next_step_);
        if (now < due) {  // not ours, or our clock was set back
            out.set_timer(due);
            return;
        }
        const auto late = static_cast<std::uint64_t>((now - due).ps / config_.window.ps);
        counters_.steps += next_step_ == 0 ? 0 : 1;
        counters_.skipped_steps += late;
        step_ = next_step_ + late;
        next_step_ = step_ + 1;
        open_window(now, out);
    }

    template <ShiftUnitOut Out>
    void on_barrier_message(Participant from, BarrierMessage message, Out& out) {
        if (!barrier_ || stage_ == Stage::closed) {
            ignore();
            return;
        }
        Inside<Out> inside{*this, out};
        barrier_->on_message(from, message, inside);
        go_on(out);
    }

    /// By the external barrier.
    template <ShiftUnitOut Out>
    void on_released(std::uint64_t generation, Out& out) {
        if (config_.barrier != ShiftBarrier::external || stage_ != Stage::in_barrier ||
            generation != this->generation()) {
            ignore();
            return;
        }
        released_ = true;
        go_on(out);
    }

    // ---- for the readout unit, as it has them --------------------------------------------------

    template <ShiftUnitOut Out>
    void on_generated(StreamIndex stream, base::Bytes bytes, Out& out) {
        Inside<Out> inside{*this, out};
        readout_.on_generated(stream, bytes, inside);
        go_on(out);
    }
    template <ShiftUnitOut Out>
    void on_acknowledged(StreamIndex stream, Out& out) {
        Inside<Out> inside{*this, out};
        readout_.on_acknowledged(stream, inside);
        go_on(out);
    }
    template <ShiftUnitOut Out>
    void on_grant(MepId mep, std::span<const base::Bytes> offsets, base::Time now, Out& out) {
        now_ = now;
        Inside<Out> inside{*this, out};
        readout_.on_grant(mep, offsets, now, inside);
        go_on(out);
    }
    template <ShiftUnitOut Out>
    void on_discard(MepId mep, base::Time now, Out& out) {
        now_ = now;
        Inside<Out> inside{*this, out};
        readout_.on_discard(mep, now, inside);
        go_on(out);
    }
    template <ShiftUnitOut Out>
    void on_write_done(MepId mep, StreamIndex stream, base::Time now, Out& out) {
        now_ = now;
        Inside<Out> inside{*this, out};
        readout_.on_write_done(mep, stream, now, inside);
        go_on(out);
    }

    /// No more phases, barriers and windows: from now on, the readout unit writes what it may.
    template <ShiftUnitClosingOut Out>
    void on_close(std::span<const BuilderIndex> lost, base::Time now, Out& out) {
        if (stage_ != Stage::closed && stage_ != Stage::finished) {
            out.stage(step_, ShiftStage::finished);
        }
        stage_ = Stage::closed;
        Inside<Out> inside{*this, out};
        readout_.on_close(lost, now, inside);
    }
    template <ShiftUnitClosingOut Out>
    void on_closing(BuilderIndex builder, std::uint64_t answered, Out& out) {
        Inside<Out> inside{*this, out};
        readout_.on_closing(builder, answered, inside);
    }
    void on_last_answer(BuilderIndex builder, std::uint64_t turn_end) {
        readout_.on_last_answer(builder, turn_end);
    }
    template <ShiftUnitOut Out>
    void on_end(std::uint64_t next_mep, Out& out) {
        Inside<Out> inside{*this, out};
        readout_.on_end(next_mep, inside);
    }

    [[nodiscard]] const Counters& counters() const { return counters_; }
    [[nodiscard]] const PushReadout& readout() const { return readout_; }
    /// None: unsynchronised, by time, or somebody else's.
    [[nodiscard]] const std::optional<Barrier>& barrier() const { return barrier_; }
    [[nodiscard]] std::uint64_t step() const { return step_; }
    [[nodiscard]] bool is_finished() const {
        return stage_ == Stage::finished || stage_ == Stage::closed;
    }

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
    template <class Out>
    struct Inside {
        ShiftUnit& unit;
        Out& out;

        void admitted(StreamIndex stream, MepId mep, base::Bytes place) {
            out.admitted(stream, mep, place);
        }
        void announce(BuilderIndex builder, MepId mep, std::span<const base::Bytes> sizes) {
            out.announce(builder, mep, sizes);
        }
        void write(const PushWrite& write) { out.write(write); }
        void acknowledge(StreamIndex stream, MepId mep) { out.acknowledge(stream, mep); }
        void turn_done() { unit.turn_done_ = true; }
        void last_announcement(BuilderIndex builder, std::uint64_t turn)
            requires PushReadoutClosingOut<Out>
        {
            out.last_announcement(builder, turn);
        }
        void send_barrier(Participant to, BarrierMessage message) { out.send_barrier(to, message); }
        void released(std::uint64_t) { unit.released_ = true; }
    };

    ShiftUnit(ShiftUnitConfig config, LinearShift shift, PushReadout readout,
              std::optional<Barrier> barrier)
        : config_(config),
          shift_(std::move(shift)),
          readout_(std::move(readout)),
          barrier_(std::move(barrier)) {}

    void ignore() { ++(stage_ == Stage::closed ? counters_.late : counters_.unexpected); }

    /// Of the builder whose turn it is; a dummy gets nothing, and its turn ends when no more than
    /// may be left over is under way.
    template <ShiftUnitOut Out>
    void take_turn(Out& out) {
        stage_ = Stage::sending;
        const BuilderIndex builder =
            idle_ ? BuilderIndex() : shift_.builder_for(config_.self, phase());
        const std::uint64_t until =
            idle_ ? 0 : (step_ / shift_.phases() + 1) * config_.meps_per_phase;
        Inside<Out> inside{*this, out};
        readout_.on_turn(builder, until, writes_left_over(), base::Time::never(), now_, inside);
        go_on(out);
    }

    template <ShiftUnitOut Out>
    void go_on(Out& out) {
        if (std::exchange(turn_done_, false)) {
            length_ = idle_ ? length_ : now_ - began_;
            end_phase(out);
        }
        if (std::exchange(released_, false)) {
            go_to_phase(out);
        }
    }

    template <ShiftUnitOut Out>
    void end_phase(Out& out) {
        ++counters_.steps;
        const std::uint64_t ended = step_++;
        if (!is_barrier_due(step_)) {
            go_to_phase(out);
            return;
        }
        stage_ = Stage::in_barrier;
        out.stage(ended, ShiftStage::in_barrier);
        if (barrier_) {
            Inside<Out> inside{*this, out};
            barrier_->enter(generation(), inside);
        } else {
            out.enter_barrier(generation());
        }
    }

    template <ShiftUnitOut Out>
    void go_to_phase(Out& out) {
        if (config_.rounds != 0 && step_ == config_.rounds * shift_.phases()) {
            stage_ = Stage::finished;
            out.stage(step_, ShiftStage::finished);
            return;
        }
        stage_ = Stage::ready;
        out.stage(step_, ShiftStage::entering);
        out.phase_ready(step_);
    }

    template <ShiftUnitOut Out>
    void open_window(base::Time now, Out& out) {
        const base::Time end = start_ + config_.window * static_cast<std::int64_t>(next_step_);
        const BuilderIndex builder = shift_.builder_for(config_.self, phase());
        if (builder == BuilderIndex::none()) {
            ++counters_.idle_steps;
            out.stage(step_, ShiftStage::idle);
            readout_.on_turn_over();
        } else {
            out.stage(step_, ShiftStage::sending);
            Inside<Out> inside{*this, out};
            readout_.on_turn(builder, PushReadout::without_end, 0, end - config_.grace, now,
                             inside);
        }
        out.set_timer(end);
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
    PushReadout readout_;
    std::optional<Barrier> barrier_;
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
