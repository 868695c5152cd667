// For tests and fuzzing: a whole push event builder in virtual time. Messages take any time and
// overtake each other, some come twice; in some runs units are lost, and the epoch is closed. Every
// promise of the headers is checked against the plain model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "protocol/machines/push_building_model_test.hpp"
#include "protocol/machines/timers_by_hand_test.hpp"

namespace daqloom::protocol {

class PushBuildingCheck : private PushBuildingModel {
  public:
    using PushBuildingModel::Summary;

    /// The first bytes choose the configuration, each later one the size of an MFP, a delay or a
    /// disturbance; when they are used up there are none of these any more.
    static Summary play(std::span<const std::uint8_t> input) {
        PushBuildingCheck check(input);
        check.run();
        return check.summary_;
    }

  private:
    static constexpr std::size_t most_inputs = 200'000;
    static constexpr Time last_timer = base::milliseconds(1);

    struct UnitOut {
        PushBuildingCheck& check;
        ReadoutIndex self;
        void admitted(StreamIndex s, MepId m, Bytes place) { check.admitted(self, s, m, place); }
        void announce(BuilderIndex b, MepId m, std::span<const Bytes> sizes) {
            check.announced(self, b, m, sizes);
        }
        void write(const PushWrite& write) { check.write(self, write); }
        void acknowledge(StreamIndex s, MepId m) { check.acknowledged(self, s, m); }
        void last_announcement(BuilderIndex b, std::uint64_t turn) {
            check.last_announcement(self, b, turn);
        }
        void send_barrier(Participant to, BarrierMessage m) {
            ++check.outputs_;
            check.later([&c = check, me = self, to, m] {
                const ReadoutIndex receiver(to);
                c.input(c.units_[receiver], receiver, [&](ShiftUnit& unit, UnitOut& out) {
                    unit.on_barrier_message(me.value(), m, out);
                });
            });
        }
        void enter_barrier(std::uint64_t generation) { check.entered(generation); }
        void phase_ready(std::uint64_t) {
            ++check.outputs_;
            check.later([&c = check, me = self] {
                c.input(c.units_[me], me,
                        [&](ShiftUnit& unit, UnitOut& out) { unit.on_phase(c.now(), out); });
            });
        }
        void idle_for(Time length) {
            ++check.outputs_;
            check.at(check.now() + length, [&c = check, me = self] {
                c.input(c.units_[me], me,
                        [&](ShiftUnit& unit, UnitOut& out) { unit.on_idle_over(c.now(), out); });
            });
        }
        void set_timer(Time at) { check.timer(self, at); }
        void stage(std::uint64_t step, ShiftStage stage) { check.stage(self, step, stage); }
    };
    struct BuilderOut {
        PushBuildingCheck& check;
        BuilderIndex self;
        void grant(ReadoutIndex r, MepId m, std::span<const Bytes> offsets) {
            check.granted(r, m, offsets);
        }
        void discard(ReadoutIndex r, MepId m) { check.discarded(r, m); }
        void built(MepId m, Bytes place, Bytes bytes) { check.built(self, m, place, bytes); }
        void incomplete(MepId m, Bytes place, Bytes bytes) {
            check.incomplete(self, m, place, bytes);
        }
        void closing(ReadoutIndex r, std::uint64_t turn) { check.closing(self, r, turn); }
        void last_answer(ReadoutIndex r, std::uint64_t turn) { check.last_answer(self, r, turn); }
    };

    explicit PushBuildingCheck(std::span<const std::uint8_t> input) : PushBuildingModel(input) {}

    // ---- the run ------------------------------------------------------------------------------

    void run() {
        if (summary_.was_closed) {
            const Time first = base::nanoseconds(12 * input_.byte());
            at(first, [this] { close(1); });
            if (input_.byte() % 4 != 0) {
                at(first + base::nanoseconds(4 * input_.byte()), [this] { close(2); });
            }
        }
        for (const ReadoutIndex r : units_.indices()) {
            for (const StreamIndex s : model_[r].generated.indices()) {
                generate(r, s);
            }
            later([this, r] {
                input(units_[r], r, [](ShiftUnit& unit, UnitOut& out) {
                    unit.on_start(base::microseconds(1), out);
                });
            });
        }
        std::size_t inputs = 0;
        timers_.run([&] { return !summary_.broken_promise.empty() || inputs++ >= most_inputs; });
        promise(inputs < most_inputs, "the event builder comes to an end");
        if (summary_.was_closed) {
            compare_what_was_closed();
        } else {
            compare_at_the_end();
        }
        promise(unexpected() == repeated_, "nothing else is unexpected");
    }

    void generate(ReadoutIndex r, StreamIndex s) {
        if (model_[r].generated[s] == meps_.size()) {
            return;
        }
        later([this, r, s] {
            const std::uint64_t number = model_[r].generated[s]++;
            const Bytes size = input_.byte() % (largest_mfp + 1);
            mep(MepId{number}).sizes[r][s] = size;
            input(units_[r], r,
                  [=](ShiftUnit& unit, UnitOut& out) { unit.on_generated(s, size, out); });
        });
    }

    [[nodiscard]] Time now() const { return timers_.now(); }
    /// Delays go up to some windows.
    void later(std::function<void()> action) {
        at(now() + base::nanoseconds(input_.byte()), action);
    }
    void at(Time due, std::function<void()> action) {
        timers_.at(due, [this, action = std::move(action)] {
            action();
            if (is_closing_ && !next_mep_ && is_drained()) {
                end();
            }
        });
    }

    template <class Machine, class Unit, class Action>
    void input(Machine& machine, Unit self, Action action) {
        using Out = std::conditional_t<std::is_same_v<Machine, ShiftUnit>, UnitOut, BuilderOut>;
        if (!fates<Unit>()[self].is_dead()) {
            Out out{*this, self};
            action(machine, out);
        }
    }
    /// A message that comes, and in some cases comes once more, which must have no effect. Unless
    /// it is local it needs the epoch's transport.
    template <class Machine, class Unit, class Action>
    void message(Machine& machine, Unit self, Action action, bool is_local = false) {
        const bool twice = input_.byte() % 8 == 1;
        later([this, &machine, self, action, is_local, twice] {
            if (next_mep_ && !is_local && !fates<Unit>()[self].is_lost) {
                return;
            }
            input(machine, self, action);
            if (twice) {
                later([this, &machine, self, action] {
                    if (fates<Unit>()[self].is_dead()) {
                        return;
                    }
                    const std::uint64_t before = unexpected();
                    const std::uint64_t ignored = unexpected() + from_lost_or_late();
                    const std::size_t outputs = outputs_;
                    input(machine, self, action);
                    repeated_ += unexpected() - before;
                    promise(
                        unexpected() + from_lost_or_late() == ignored + 1 && outputs_ == outputs,
                        "what comes twice is counted and has no effect");
                });
            }
        });
    }

    // ---- outputs of readout units -------------------------------------------------------------

    void admitted(ReadoutIndex r, StreamIndex s, MepId id, Bytes place) {
        ++outputs_;
        const auto number = static_cast<std::uint64_t>(id);
        promise(number + 1 == model_[r].generated[s], "MFPs are admitted in order, each once");
        const Bytes size = mep(id).sizes[r][s];
        auto& buffer = model_[r].in_buffer[s];
        const Region region{place, place + std::max<Bytes>(size, 1)};
        promise(place >= 0 && region.to <= unit_config_.readout.stream_buffer &&
                    buffer.size() < unit_config_.readout.buffered_mfps,
                "an MFP lies within its buffer");
        promise(std::ranges::none_of(
                    buffer, [=](const auto& other) { return overlap(region, other.second); }),
                "MFPs in a buffer do not overlap");
        buffer[number] = region;
        generate(r, s);
    }

    void announced(ReadoutIndex r, BuilderIndex b, MepId id, std::span<const Bytes> sizes) {
        ++outputs_;
        promise(!readout_fates_[r].is_closed ||
                    turn_of(id, shift_.builders()) < last_announced_.at({r, b}),
                "nothing is announced when the epoch is closed, but what others have answered");
        promise(builder_of(id, shift_.builders()) == b, "the MEP's number says who builds it");
        promise(std::ranges::equal(sizes, mep(id).sizes[r]), "sizes are announced as they are");
        ++mep(id).announced;
        message(builders_[b], b,
                [=, copy = std::vector(sizes.begin(), sizes.end())](
                    PushBuilder& builder, BuilderOut& out) { builder.on_sizes(r, id, copy, out); });
    }

    void write(ReadoutIndex r, const PushWrite& w) {
        ++outputs_;
        Mep& here = mep(w.mep);
        Unit& unit = model_[r];
        const Fate<BuilderIndex>& fate = readout_fates_[r];
        promise(here.place >= 0, "only a granted MFP is written");
        promise(!here.written[r][w.stream], "an MFP is written once");
        here.written[r][w.stream] = true;
        promise(
            w.bytes == here.sizes[r][w.stream] && w.to == here.place + offset(w.mep, r, w.stream),
            "an MFP is written to its place");
        const auto held = unit.in_buffer[w.stream].find(static_cast<std::uint64_t>(w.mep));
        promise(held != unit.in_buffer[w.stream].end() && held->second.from == w.from,
                "an MFP is written from where it lies");
        promise(w.builder == builder_of(w.mep, shift_.builders()) &&
                    (fate.is_closed || w.builder == shift_.builder_for(r, phase_of(r))),
                "a unit writes to the builder whose turn it is");
        promise(!fate.sees_lost[w.builder], "nothing is written to a lost builder");
        unit.under_way.emplace(w.mep, w.stream);
        const auto awaited = std::ranges::count_if(unit.under_way, [&](const auto& other) {
            return !fate.sees_lost[builder_of(other.first, shift_.builders())];
        });
        const std::uint32_t limit = unit_config_.readout.parallel_writes;
        promise(limit == 0 || awaited <= limit, "writes under way keep within their limit");
        const bool in_step = !by_time() && unit_config_.barrier != ShiftBarrier::none &&
                             unit_config_.phases_per_barrier == 1;
        if (!is_closing_ && (by_time() || in_step)) {
            // A write that ends now is over, whether its completion has come or not.
            promise(std::ranges::none_of(writers_[w.builder],
                                         [=, this](const auto& other) {
                                             return other.first != r && other.second > now();
                                         }),
                    "nobody else writes to the same builder");
        }
        Time end = now();
        if (by_time() && !fate.is_closed) {
            unit.busy_until = end = std::max(now(), unit.busy_until) + write_time_(w.bytes);
            const auto windows = static_cast<std::int64_t>(units_[r].step()) + 1;
            promise(
                end <= base::microseconds(1) + unit_config_.window * windows - unit_config_.grace,
                "a write ends before the grace period");
        } else {
            end += base::nanoseconds(input_.byte());
        }
        Time& until = writers_[w.builder][r];
        until = std::max(until, end);
        at(end, [this, r, w] { landed(r, w); });
    }

    void landed(ReadoutIndex r, const PushWrite& w) {
        message(builders_[w.builder], w.builder, [=, this](PushBuilder& builder, BuilderOut& out) {
            Mep& here = mep(w.mep);
            const std::uint64_t before = builder.counters().mfps;
            const bool counts = !builder_fates_[w.builder].sees_lost[r] &&
                                landed_.emplace(w.mep, r, w.stream).second;
            here.landed += counts ? 1 : 0;
            builder.on_written(r, w.stream, w.mep, out);
            promise(builder.counters().mfps - before == (counts ? 1U : 0U),
                    "each MFP of a live readout unit counts once");
            promise(here.is_built == (here.landed == streams()),
                    "a MEP is built when its last MFP is there");
        });
        // The completion comes at once, so that the check knows what is under way; later when that
        // does not matter any more.
        if (readout_fates_[r].is_closed) {
            later([this, r, w] { write_done(r, w); });
        } else {
            write_done(r, w);
        }
    }

    void write_done(ReadoutIndex r, const PushWrite& w) {
        const bool is_cut = next_mep_ || (builder_fates_[w.builder].is_lost && input_.coin());
        if (is_cut || readout_fates_[r].is_dead()) {
            return;
        }
        model_[r].under_way.erase({w.mep, w.stream});
        model_[r].dispensable.emplace(w.mep, w.stream);
        input(units_[r], r, [&](ShiftUnit& unit, UnitOut& out) {
            unit.on_write_done(w.mep, w.stream, now(), out);
        });
    }

    void acknowledged(ReadoutIndex r, StreamIndex s, MepId id) {
        ++outputs_;
        Unit& unit = model_[r];
        promise(static_cast<std::uint64_t>(id) == unit.acknowledged[s]++,
                "MFPs are acknowledged in order");
        promise(unit.dispensable.contains({id, s}) || mep(id).is_discarded ||
                    (next_mep_ && static_cast<std::uint64_t>(id) < *next_mep_),
                "an MFP is acknowledged when it is not needed any more");
        later([this, r, s] {
            auto& buffer = model_[r].in_buffer[s];
            buffer.erase(buffer.begin());
            input(units_[r], r,
                  [=](ShiftUnit& unit_now, UnitOut& out) { unit_now.on_acknowledged(s, out); });
        });
    }

    void entered(std::uint64_t generation) {
        ++outputs_;
        if (++entered_[generation] == units_.size()) {
            for (const ReadoutIndex r : units_.indices()) {
                message(units_[r], r,
                        [=](ShiftUnit& unit, UnitOut& out) { unit.on_released(generation, out); });
            }
        }
    }

    void timer(ReadoutIndex r, Time due) {
        ++outputs_;
        const bool is_over =
            now() > last_timer || std::ranges::all_of(model_[r].acknowledged,
                                                      [this](auto n) { return n == meps_.size(); });
        if (!is_over) {
            at(due + base::nanoseconds(input_.byte() % 16), [this, r] {
                input(units_[r], r,
                      [this](ShiftUnit& unit, UnitOut& out) { unit.on_timer(now(), out); });
            });
        }
    }

    void stage(ReadoutIndex r, std::uint64_t step, ShiftStage stage) {
        ++outputs_;
        if (stage == ShiftStage::in_barrier || stage == ShiftStage::entering) {
            model_[r].steps_done = step + (stage == ShiftStage::in_barrier ? 1 : 0);
        }
        if (stage == ShiftStage::idle) {
            ++summary_.idle_steps;
            promise(shift_.builder_for(r, static_cast<std::uint32_t>(step % shift_.phases())) ==
                        BuilderIndex::none(),
                    "only a dummy's phase is idle");
        }
        if (stage == ShiftStage::sending && !by_time() &&
            unit_config_.barrier != ShiftBarrier::none) {
            const std::uint64_t synchronised =
                step / unit_config_.phases_per_barrier * unit_config_.phases_per_barrier;
            promise(std::ranges::all_of(
                        model_, [=](const Unit& u) { return u.steps_done >= synchronised; }),
                    "nobody goes on before all have got to the barrier");
        }
    }

    // ---- outputs of builder units -------------------------------------------------------------

    void granted(ReadoutIndex r, MepId id, std::span<const Bytes> offsets) {
        ++outputs_;
        Mep& here = mep(id);
        const BuilderIndex b = builder_of(id, shift_.builders());
        promise(may_answer(b, id),
                "nothing is answered when the epoch is closed, but what others have");
        promise(here.announced == units_.size() && !here.is_discarded,
                "a MEP is granted when all have announced it");
        if (here.answered++ == 0) {
            here.place = offsets[0] - offset(id, r, StreamIndex());
            const Region region{here.place, here.place + bytes_of(id)};
            auto& output = output_[b];
            promise(region.from >= 0 && region.to <= builder_config_.output_buffer &&
                        region.from % builder_config_.layout.alignment == 0,
                    "a MEP lies within the output buffer");
            promise(std::ranges::none_of(
                        output, [=](const auto& other) { return overlap(region, other.second); }),
                    "MEPs in the output buffer do not overlap");
            output[id] = region;
        }
        for (const StreamIndex s : base::IndexRange<StreamIndex>(offsets.size())) {
            promise(offsets[s.value()] == here.place + offset(id, r, s), "offsets are prefix sums");
        }
        message(units_[r], r,
                [=, this, copy = std::vector(offsets.begin(), offsets.end())](
                    ShiftUnit& unit, UnitOut& out) { unit.on_grant(id, copy, now(), out); });
    }

    void discarded(ReadoutIndex r, MepId id) {
        ++outputs_;
        Mep& here = mep(id);
        promise(here.place < 0 && (here.is_discarded || here.answered == 0),
                "a MEP is granted to all or to none");
        const BuilderIndex b = builder_of(id, shift_.builders());
        promise(builder_config_.when_full == WhenFull::discard || builder_fates_[b].is_hurried,
                "nothing is discarded for nothing");
        promise(may_answer(b, id),
                "nothing is answered when the epoch is closed, but what others have");
        ++here.answered;
        here.is_discarded = true;
        message(units_[r], r,
                [=, this](ShiftUnit& unit, UnitOut& out) { unit.on_discard(id, now(), out); });
    }

    void built(BuilderIndex b, MepId id, Bytes place, Bytes bytes) {
        ++outputs_;
        Mep& here = mep(id);
        promise(!here.is_built && here.landed == streams() && place == here.place &&
                    bytes == bytes_of(id),
                "a MEP is built once, from all its MFPs, where they lie");
        here.is_built = true;
        compare_contents(b, id);
        process(b, id);
    }

    void process(BuilderIndex b, MepId id) {
        message(
            builders_[b], b,
            [=, this](PushBuilder& builder, BuilderOut& out) {
                output_[b].erase(id);
                builder.on_processed(id, out);
            },
            true);
    }

    // ---- the end of the epoch -----------------------------------------------------------------

    /// Units are lost, and the others told of it, each at some time.
    void close(std::uint32_t wave) {
        if (next_mep_) {
            return;
        }
        is_closing_ = true;
        const auto lost_readouts = lose(readout_fates_, wave);
        const auto lost_builders = lose(builder_fates_, wave);
        summary_.lost_units += lost_readouts.size() + lost_builders.size();
        tell(units_, lost_builders, [this](ShiftUnit& unit, auto& lost, UnitOut& out) {
            unit.on_close(lost, now(), out);
        });
        tell(builders_, lost_readouts, [](PushBuilder& builder, auto& lost, BuilderOut& out) {
            builder.on_close(lost, out);
        });
    }

    template <class Unit, class Machine, class Other, class Action>
    void tell(base::Table<Unit, Machine>& machines, const std::vector<Other>& lost, Action action) {
        for (const Unit unit : machines.indices()) {
            if (fates<Unit>()[unit].is_lost) {
                continue;
            }
            at(now() + base::nanoseconds(8 * input_.byte()),
               [this, &machine = machines[unit], unit, lost, action] {
                   if (next_mep_) {
                       return;
                   }
                   fates<Unit>()[unit].learns(lost);
                   input(machine, unit, [&](auto& m, auto& out) { action(m, lost, out); });
               });
        }
    }

    void closing(BuilderIndex b, ReadoutIndex r, std::uint64_t turn) {
        ++outputs_;
        promise(!builder_fates_[b].sees_lost[r], "nothing is said to a lost unit");
        answered_at_close_[b] = turn;
        message(units_[r], r,
                [=](ShiftUnit& unit, UnitOut& out) { unit.on_closing(b, turn, out); });
    }

    void last_announcement(ReadoutIndex r, BuilderIndex b, std::uint64_t turn) {
        ++outputs_;
        const Fate<BuilderIndex>& fate = readout_fates_[r];
        std::uint64_t end = 0;
        for (const BuilderIndex other : builders_.indices()) {
            if (!fate.sees_lost[other]) {
                const std::uint64_t turns = answered_at_close_.at(other);
                end = std::max(end, turns * shift_.builders() -
                                        (turns == 0 ? 0 : shift_.builders() - 1 - other.value()));
            }
        }
        std::uint64_t before_it = 0;
        for (std::uint64_t id = b.value(); id < end; id += shift_.builders()) {
            ++before_it;
        }
        promise(!fate.sees_lost[b] && turn == before_it,
                "a builder is to answer what precedes the last that any had answered");
        last_announced_[{r, b}] = turn;
        message(builders_[b], b, [=](PushBuilder& builder, BuilderOut& out) {
            builder.on_last_announcement(r, turn, out);
        });
    }

    void last_answer(BuilderIndex b, ReadoutIndex r, std::uint64_t turn) {
        ++outputs_;
        promise(!builder_fates_[b].sees_lost[r], "nothing is said to a lost unit");
        message(units_[r], r, [=](ShiftUnit& unit, UnitOut&) { unit.on_last_answer(b, turn); });
    }

    void end() {
        std::uint64_t next = 0;
        for (const ReadoutIndex r : units_.indices()) {
            next = std::max(next, readout_fates_[r].is_lost ? 0 : units_[r].readout().next_mep());
        }
        for (const BuilderIndex b : builders_.indices()) {
            next = std::max(next, builder_fates_[b].is_lost ? 0 : builders_[b].next_mep());
        }
        next_mep_ = next;
        for (const ReadoutIndex r : units_.indices()) {
            promise(readout_fates_[r].is_lost || has_written_everything(r),
                    "who has drained has written all that live builders have granted");
        }
        for (const BuilderIndex b : builders_.indices()) {
            if (!builder_fates_[b].is_lost) {
                input(builders_[b], b, [](PushBuilder& m, BuilderOut& out) { m.on_end(out); });
                forget_what_was_dropped(b);
            }
        }
        for (const ReadoutIndex r : units_.indices()) {
            if (!readout_fates_[r].is_lost) {
                input(units_[r], r, [=](ShiftUnit& m, UnitOut& out) { m.on_end(next, out); });
            }
        }
    }

    void incomplete(BuilderIndex b, MepId id, Bytes place, Bytes bytes) {
        ++outputs_;
        Mep& here = mep(id);
        promise(next_mep_ && !here.is_built && !here.is_incomplete && here.landed < streams() &&
                    here.landed > 0 && place == here.place && bytes == bytes_of(id),
                "what lacks MFPs at the end is given out once, where it lies");
        promise(builder_config_.when_incomplete == WhenIncomplete::deliver,
                "what is incomplete is not given out where it is to be dropped");
        here.is_incomplete = true;
        ++summary_.incomplete;
        compare_contents(b, id);
        process(b, id);
    }

    TimersByHand timers_;
    base::WireClock write_time_{write_rate};
    std::map<BuilderIndex, std::map<ReadoutIndex, Time>> writers_;  ///< until when
    std::map<BuilderIndex, std::uint64_t> answered_at_close_;       ///< turns
    std::map<std::uint64_t, std::size_t> entered_;                  ///< units, per generation
    bool is_closing_ = false;
    std::uint64_t repeated_ = 0;  ///< what came twice, as far as it is unexpected
    std::size_t outputs_ = 0;
};

}  // namespace daqloom::protocol
