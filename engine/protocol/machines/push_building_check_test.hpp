// For tests and fuzzing: a whole push event builder, readout units under linear shifting and
// builder units, in virtual time. Messages take any time and overtake each other, some come twice;
// in some runs units are lost, and the epoch is closed. Every promise of the headers is checked
// against a plain model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/byte_source_test.hpp"
#include "protocol/machines/push_builder.hpp"
#include "protocol/machines/shift_unit.hpp"
#include "protocol/machines/unit_fates_test.hpp"
#include "protocol/schedule/linear_shift.hpp"

namespace daqloom::protocol {

class PushBuildingCheck {
  public:
    /// What a run was like, for tests that want to see that it was of a certain kind.
    struct Summary {
        std::string broken_promise;  ///< the first; or nothing
        PhaseChange change = PhaseChange::by_count;
        ShiftBarrier barrier = ShiftBarrier::none;
        std::uint64_t built = 0;
        std::uint64_t discarded = 0;
        std::uint64_t blocked = 0;
        std::uint64_t idle_steps = 0;
        bool was_closed = false;
        std::uint64_t lost_units = 0;
        std::uint64_t incomplete = 0;  ///< MEPs given out
        std::uint64_t dropped = 0;     ///< incomplete MEPs
        std::uint64_t unanswered = 0;  ///< MFPs
        std::uint64_t lost = 0;        ///< MFPs, of lost builders
    };

    /// The first bytes choose the configuration, each later one the size of an MFP, a delay or a
    /// disturbance; when they are used up there are none of these any more.
    static Summary play(std::span<const std::uint8_t> input) {
        PushBuildingCheck check(input);
        check.run();
        return check.summary_;
    }

  private:
    using Bytes = base::Bytes;
    using Time = base::Time;

    static constexpr Bytes largest_mfp = 64;
    static constexpr std::size_t most_inputs = 200'000;
    static constexpr Time last_timer = base::milliseconds(1);

    /// Half-open, in a buffer.
    struct Region {
        Bytes from = 0;
        Bytes to = 0;
    };
    struct Event {
        Time due;
        std::uint64_t number;
        std::function<void()> action;
        bool operator<(const Event& other) const {
            return std::tie(due, number) > std::tie(other.due, other.number);
        }
    };
    /// A MEP as the model knows it.
    struct Mep {
        std::vector<std::vector<Bytes>> sizes;   ///< per readout unit and stream
        std::vector<std::vector<bool>> written;  ///< asked for
        std::uint32_t announced = 0;
        std::uint32_t answered = 0;
        std::uint32_t landed = 0;  ///< MFPs reported to the builder
        Bytes place = -1;
        bool is_discarded = false;
        bool is_built = false;
        bool is_incomplete = false;
    };
    struct Unit {
        std::vector<std::uint64_t> generated;                    ///< per stream
        std::vector<std::map<std::uint64_t, Region>> in_buffer;  ///< per stream, by MFP
        std::vector<std::uint64_t> acknowledged;                 ///< per stream
        std::set<std::pair<MepId, StreamIndex>> under_way;
        std::set<std::pair<MepId, StreamIndex>> dispensable;  ///< written or discarded
        std::uint64_t steps_done = 0;
        Time busy_until = Time::zero();
    };

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
                c.input(c.units_[to], to, [&](ShiftUnit& unit, UnitOut& out) {
                    unit.on_barrier_message(me, m, out);
                });
            });
        }
        void enter_barrier(std::uint64_t generation) { check.entered(generation); }
        void phase_ready(std::uint64_t) {
            ++check.outputs_;
            check.later([&c = check, me = self] {
                c.input(c.units_[me], me,
                        [&](ShiftUnit& unit, UnitOut& out) { unit.on_phase(c.now_, out); });
            });
        }
        void idle_for(Time length) {
            ++check.outputs_;
            check.at(check.now_ + length, [&c = check, me = self] {
                c.input(c.units_[me], me,
                        [&](ShiftUnit& unit, UnitOut& out) { unit.on_idle_over(c.now_, out); });
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

    explicit PushBuildingCheck(std::span<const std::uint8_t> input)
        : input_(input), shift_(choose_shift()), write_time_(base::gigabits_per_second(8)) {
        choose_units();
        const std::uint32_t per_phase = by_time() ? 1 : unit_config_.meps_per_phase;
        const std::uint64_t rounds = 1 + input_.byte() % 4;
        unit_config_.rounds = rounds;
        meps_.resize(static_cast<std::size_t>(rounds * per_phase * shift_.builders()));
        builder_config_.builders = shift_.builders();
        for (ReadoutIndex r = 0; r < shift_.readouts(); ++r) {
            builder_config_.streams[r] = 1U + input_.byte() % 3;
        }
        const std::uint32_t round = per_phase * shift_.builders();
        auto& readout = unit_config_.readout;
        readout.builders = shift_.builders();
        readout.largest_mfp = largest_mfp;
        readout.write_rate = base::gigabits_per_second(8);
        readout.buffered_mfps = round + input_.byte() % 5;
        readout.stream_buffer = (round + 1) * largest_mfp + input_.byte();
        for (Mep& mep : meps_) {
            mep.sizes.resize(shift_.readouts());
            mep.written.resize(shift_.readouts());
        }
        for (ReadoutIndex r = 0; r < shift_.readouts(); ++r) {
            const std::uint32_t streams = builder_config_.streams[r];
            unit_config_.self = r;
            readout.streams = streams;
            units_.push_back(*ShiftUnit::make(unit_config_, shift_));
            Unit& unit = model_.emplace_back();
            unit.generated.resize(streams);
            unit.in_buffer.resize(streams);
            unit.acknowledged.resize(streams);
            for (Mep& mep : meps_) {
                mep.sizes[r].resize(streams, -1);
                mep.written[r].resize(streams);
            }
        }
        for (BuilderIndex b = 0; b < shift_.builders(); ++b) {
            builder_config_.self = b;
            builders_.push_back(*PushBuilder::make(builder_config_));
        }
        base::ByteSource nobody_is_lost({});
        base::ByteSource& choice = summary_.was_closed ? input_ : nobody_is_lost;
        readout_fates_ = choose_fates(shift_.readouts(), shift_.builders(), choice);
        builder_fates_ = choose_fates(shift_.builders(), shift_.readouts(), choice);
    }

    LinearShift choose_shift() {
        const std::uint32_t slots = 1U + input_.byte() % 6;
        const std::uint8_t choice = input_.byte();
        if (choice % 3 == 0) {
            return *LinearShift::unfolded(slots, 1U + input_.byte() % 6);
        }
        std::vector<SlotIndex> dummies;
        for (SlotIndex slot = 1; slot < slots; ++slot) {
            if (choice % 3 == 1 && (choice >> slot & 1) != 0) {
                dummies.push_back(slot);
            }
        }
        return *LinearShift::folded(slots, dummies);
    }

    void choose_units() {
        const std::uint8_t change = input_.byte();
        unit_config_.change = change % 4 == 0 ? PhaseChange::by_time : PhaseChange::by_count;
        unit_config_.barrier = static_cast<ShiftBarrier>(input_.byte() % 5);
        unit_config_.meps_per_phase = 1U + input_.byte() % 3;
        unit_config_.phases_per_barrier = 1U + input_.byte() % 4;
        unit_config_.phases_under_way = 1U + input_.byte() % 3;
        unit_config_.keeps_dummies = input_.byte() % 2 == 0;
        // 64 B take 64 ns: between one and three of the largest MFPs fit into a window.
        unit_config_.grace = base::nanoseconds(input_.byte() % 20);
        unit_config_.window = unit_config_.grace + base::nanoseconds(64 + input_.byte() % 128);
        unit_config_.readout.announced_meps = 1U + input_.byte() % 3;
        unit_config_.readout.parallel_writes = input_.byte() % 4;
        builder_config_.announced_meps = unit_config_.readout.announced_meps;
        builder_config_.concurrent_meps = unit_config_.meps_per_phase + input_.byte() % 3;
        builder_config_.streams.resize(shift_.readouts());
        builder_config_.layout = {.header = input_.byte() % 30,
                                  .alignment = Bytes{1} << input_.byte() % 4};
        builder_config_.when_full = static_cast<WhenFull>(input_.byte() % 2);
        summary_.was_closed = input_.byte() % 2 == 1;
        builder_config_.when_incomplete = static_cast<WhenIncomplete>(input_.byte() % 2);
        // From too small for most to never full.
        builder_config_.output_buffer = builder_config_.when_full == WhenFull::wait
                                            ? Bytes{3'000}
                                            : 1 + Bytes{input_.byte()} * input_.byte() / 8;
        summary_.change = unit_config_.change;
        summary_.barrier = unit_config_.barrier;
    }

    // ---- the run ------------------------------------------------------------------------------

    void run() {
        if (summary_.was_closed) {
            const Time first = base::nanoseconds(12 * input_.byte());
            at(first, [this] { close(1); });
            if (input_.byte() % 4 != 0) {
                at(first + base::nanoseconds(4 * input_.byte()), [this] { close(2); });
            }
        }
        for (ReadoutIndex r = 0; r < units_.size(); ++r) {
            for (StreamIndex s = 0; s < model_[r].generated.size(); ++s) {
                generate(r, s);
            }
            later([this, r] {
                input(units_[r], r, [](ShiftUnit& unit, UnitOut& out) {
                    unit.on_start(base::microseconds(1), out);
                });
            });
        }
        std::size_t inputs = 0;
        while (summary_.broken_promise.empty() && !events_.empty() && inputs++ < most_inputs) {
            const auto event = events_.top();
            events_.pop();
            now_ = event.due;
            event.action();
            if (is_closing_ && !next_mep_ && is_drained()) {
                end();
            }
        }
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

    /// Delays go up to some windows.
    void later(std::function<void()> action) {
        at(now_ + base::nanoseconds(input_.byte()), action);
    }
    void at(Time due, std::function<void()> action) {
        events_.push({due, next_event_++, std::move(action)});
    }

    template <class Machine, class Action>
    void input(Machine& machine, std::uint32_t self, Action action) {
        using Out = std::conditional_t<std::is_same_v<Machine, ShiftUnit>, UnitOut, BuilderOut>;
        if (!fates<Machine>()[self].is_dead()) {
            Out out{*this, self};
            action(machine, out);
        }
    }
    template <class Machine>
    Fates& fates() {
        return std::is_same_v<Machine, ShiftUnit> ? readout_fates_ : builder_fates_;
    }
    /// A message that comes, and in some cases comes once more, which must have no effect. Unless
    /// it is local it needs the epoch's transport.
    template <class Machine, class Action>
    void message(Machine& machine, std::uint32_t self, Action action, bool is_local = false) {
        const bool twice = input_.byte() % 8 == 1;
        later([this, &machine, self, action, is_local, twice] {
            if (next_mep_ && !is_local && !fates<Machine>()[self].is_lost) {
                return;
            }
            input(machine, self, action);
            if (twice) {
                later([this, &machine, self, action] {
                    if (fates<Machine>()[self].is_dead()) {
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
        const Fate& fate = readout_fates_[r];
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
                                             return other.first != r && other.second > now_;
                                         }),
                    "nobody else writes to the same builder");
        }
        Time end = now_;
        if (by_time() && !fate.is_closed) {
            unit.busy_until = end = std::max(now_, unit.busy_until) + write_time_(w.bytes);
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
            unit.on_write_done(w.mep, w.stream, now_, out);
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
            for (ReadoutIndex r = 0; r < units_.size(); ++r) {
                message(units_[r], r,
                        [=](ShiftUnit& unit, UnitOut& out) { unit.on_released(generation, out); });
            }
        }
    }

    void timer(ReadoutIndex r, Time due) {
        ++outputs_;
        const bool is_over =
            now_ > last_timer || std::ranges::all_of(model_[r].acknowledged,
                                                     [this](auto n) { return n == meps_.size(); });
        if (!is_over) {
            at(due + base::nanoseconds(input_.byte() % 16), [this, r] {
                input(units_[r], r,
                      [this](ShiftUnit& unit, UnitOut& out) { unit.on_timer(now_, out); });
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
                        LinearShift::nobody,
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
            here.place = offsets[0] - offset(id, r, 0);
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
        for (StreamIndex s = 0; s < offsets.size(); ++s) {
            promise(offsets[s] == here.place + offset(id, r, s), "offsets are prefix sums");
        }
        message(units_[r], r,
                [=, this, copy = std::vector(offsets.begin(), offsets.end())](
                    ShiftUnit& unit, UnitOut& out) { unit.on_grant(id, copy, now_, out); });
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
                [=, this](ShiftUnit& unit, UnitOut& out) { unit.on_discard(id, now_, out); });
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

    /// As the driver may ask while a MEP is given out.
    void compare_contents(BuilderIndex b, MepId id) {
        const PushBuilder& builder = builders_[b];
        promise(builder.streams() == streams(), "it has the streams of all readout units");
        std::uint32_t number = 0;
        for (ReadoutIndex r = 0; r < units_.size(); ++r) {
            for (StreamIndex s = 0; s < mep(id).sizes[r].size(); ++s, ++number) {
                promise(builder.number_of({r, s}) == number &&
                            builder.stream_of(number) == PushBuilder::Stream{r, s},
                        "streams are numbered through");
                promise(builder.sizes_of(id)[number] == mep(id).sizes[r][s] &&
                            builder.is_written(id, number) == landed_.contains({id, r, s}),
                        "a MEP has what was written");
            }
        }
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
        tell(units_, lost_builders,
             [this](ShiftUnit& unit, auto& lost, UnitOut& out) { unit.on_close(lost, now_, out); });
        tell(builders_, lost_readouts, [](PushBuilder& builder, auto& lost, BuilderOut& out) {
            builder.on_close(lost, out);
        });
    }

    template <class Machine, class Action>
    void tell(std::vector<Machine>& machines, const std::vector<std::uint32_t>& lost,
              Action action) {
        for (std::uint32_t unit = 0; unit < machines.size(); ++unit) {
            if (fates<Machine>()[unit].is_lost) {
                continue;
            }
            at(now_ + base::nanoseconds(8 * input_.byte()),
               [this, &machine = machines[unit], unit, lost, action] {
                   if (next_mep_) {
                       return;
                   }
                   fates<Machine>()[unit].learns(lost);
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
        const Fate& fate = readout_fates_[r];
        std::uint64_t end = 0;
        for (BuilderIndex other = 0; other < builders_.size(); ++other) {
            if (!fate.sees_lost[other]) {
                const std::uint64_t turns = answered_at_close_.at(other);
                end = std::max(end, turns * shift_.builders() -
                                        (turns == 0 ? 0 : shift_.builders() - 1 - other));
            }
        }
        std::uint64_t before_it = 0;
        for (std::uint64_t id = b; id < end; id += shift_.builders()) {
            ++before_it;
        }
        promise(!fate.sees_lost[b] && turn == before_it,
                "a builder is to answer what precedes the last that any had answered");
        last_announced_[{r, b}] = turn;
        message(builders_[b], b, [=](PushBuilder& builder, BuilderOut& out) {
            builder.on_last_announcement(r, turn, out);
        });
    }

    /// Also when the epoch is closed: a MEP that every readout unit wants answered, as none is
    /// lost.
    [[nodiscard]] bool may_answer(BuilderIndex b, MepId id) const {
        const Fate& fate = builder_fates_[b];
        if (!fate.is_closed) {
            return true;
        }
        for (ReadoutIndex r = 0; r < units_.size(); ++r) {
            const auto end = last_announced_.find({r, b});
            if (fate.sees_lost[r] || end == last_announced_.end() ||
                turn_of(id, shift_.builders()) >= end->second) {
                return false;
            }
        }
        return true;
    }

    void last_answer(BuilderIndex b, ReadoutIndex r, std::uint64_t turn) {
        ++outputs_;
        promise(!builder_fates_[b].sees_lost[r], "nothing is said to a lost unit");
        message(units_[r], r, [=](ShiftUnit& unit, UnitOut&) { unit.on_last_answer(b, turn); });
    }

    [[nodiscard]] bool is_drained() const {
        for (ReadoutIndex r = 0; r < units_.size(); ++r) {
            if (!readout_fates_[r].is_lost && !units_[r].readout().is_drained()) {
                return false;
            }
        }
        for (BuilderIndex b = 0; b < builders_.size(); ++b) {
            if (!builder_fates_[b].is_lost && !builders_[b].is_drained()) {
                return false;
            }
        }
        return true;
    }

    void end() {
        std::uint64_t next = 0;
        for (ReadoutIndex r = 0; r < units_.size(); ++r) {
            next = std::max(next, readout_fates_[r].is_lost ? 0 : units_[r].readout().next_mep());
        }
        for (BuilderIndex b = 0; b < builders_.size(); ++b) {
            next = std::max(next, builder_fates_[b].is_lost ? 0 : builders_[b].next_mep());
        }
        next_mep_ = next;
        for (ReadoutIndex r = 0; r < units_.size(); ++r) {
            promise(readout_fates_[r].is_lost || has_written_everything(r),
                    "who has drained has written all that live builders have granted");
        }
        for (BuilderIndex b = 0; b < builders_.size(); ++b) {
            if (!builder_fates_[b].is_lost) {
                input(builders_[b], b, [](PushBuilder& m, BuilderOut& out) { m.on_end(out); });
                forget_what_was_dropped(b);
            }
        }
        for (ReadoutIndex r = 0; r < units_.size(); ++r) {
            if (!readout_fates_[r].is_lost) {
                input(units_[r], r, [=](ShiftUnit& m, UnitOut& out) { m.on_end(next, out); });
            }
        }
    }

    [[nodiscard]] bool has_written_everything(ReadoutIndex r) {
        return std::ranges::all_of(granted_by_live_builders(), [=, this](MepId id) {
            for (StreamIndex s = 0; s < mep(id).sizes[r].size(); ++s) {
                if (!landed_.contains({id, r, s}) || model_[r].under_way.contains({id, s})) {
                    return false;
                }
            }
            return true;
        });
    }
    [[nodiscard]] std::vector<MepId> granted_by_live_builders() {
        std::vector<MepId> granted;
        for (std::uint64_t id = 0; id < meps_.size(); ++id) {
            if (meps_[id].place >= 0 &&
                !builder_fates_[builder_of(MepId{id}, shift_.builders())].is_lost) {
                granted.push_back(MepId{id});
            }
        }
        return granted;
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

    void forget_what_was_dropped(BuilderIndex b) {
        std::uint64_t dropped = 0;
        for (auto mep_of_b = std::uint64_t{b}; mep_of_b < meps_.size();
             mep_of_b += shift_.builders()) {
            const Mep& here = mep(MepId{mep_of_b});
            if (here.place >= 0 && !here.is_built && !here.is_incomplete) {
                ++dropped;
                promise(builder_config_.when_incomplete == WhenIncomplete::drop || here.landed == 0,
                        "a MEP of which anything came is dropped only where it is to be");
                output_[b].erase(MepId{mep_of_b});
            }
        }
        promise(dropped == builders_[b].counters().dropped,
                "every granted MEP is built, given out incomplete, or dropped");
        summary_.dropped += dropped;
    }

    // ---- model --------------------------------------------------------------------------------

    void compare_at_the_end() {
        std::uint64_t granted = 0;
        std::uint64_t dropped = 0;
        Bytes built_bytes = 0;
        for (const PushBuilder& builder : builders_) {
            granted += builder.counters().granted;
            dropped += builder.counters().discarded;
            built_bytes += builder.counters().built_bytes;
            promise(builder.under_construction() == 0 && builder.output_held() == 0,
                    "nothing is left in the builder units");
        }
        Bytes written_bytes = 0;
        Bytes generated_bytes = 0;
        Bytes dropped_bytes = 0;
        for (ReadoutIndex r = 0; r < units_.size(); ++r) {
            const auto& counters = units_[r].readout().counters();
            written_bytes += counters.written_bytes;
            generated_bytes += counters.mfp_bytes;
            dropped_bytes += counters.discarded_bytes;
            summary_.blocked += counters.blocked;
            promise(by_time() || units_[r].is_finished(), "every unit finishes its rounds");
            for (StreamIndex s = 0; s < model_[r].generated.size(); ++s) {
                promise(units_[r].readout().buffered(s) == 0 &&
                            model_[r].acknowledged[s] == meps_.size(),
                        "nothing is left in the readout units");
            }
        }
        for (const Mep& mep : meps_) {
            summary_.built += mep.is_built ? 1 : 0;
            summary_.discarded += mep.is_discarded ? 1 : 0;
            promise(mep.is_built != mep.is_discarded, "every MEP is built or discarded");
        }
        promise(granted == summary_.built && dropped == summary_.discarded &&
                    built_bytes == written_bytes &&
                    generated_bytes == written_bytes + dropped_bytes,
                "nothing is lost or counted twice");
    }

    void compare_what_was_closed() {
        promise(next_mep_.has_value(), "all live units drain");
        if (!summary_.broken_promise.empty()) {
            return;
        }
        const bool anybody_reads_out =
            std::ranges::any_of(readout_fates_, [](const Fate& fate) { return !fate.is_lost; });
        for (std::uint64_t id = 0; id < meps_.size(); ++id) {
            const Mep& here = mep(MepId{id});
            const BuilderIndex b = builder_of(MepId{id}, shift_.builders());
            summary_.built += here.is_built ? 1 : 0;
            summary_.discarded += here.is_discarded ? 1 : 0;
            promise(!here.is_built || id < *next_mep_ || !anybody_reads_out,
                    "what was built anywhere does not come again in the next epoch");
            promise(builder_fates_[b].is_lost || here.answered == 0 || id < *next_mep_,
                    "what was answered does not come again in the next epoch");
        }
        const bool all_build =
            std::ranges::none_of(builder_fates_, [](const Fate& fate) { return fate.is_lost; });
        for (BuilderIndex b = 0; b < builders_.size(); ++b) {
            promise(builder_fates_[b].is_lost ||
                        (builders_[b].under_construction() == 0 && builders_[b].output_held() == 0),
                    "nothing is left in the live builder units");
            const auto& c = builders_[b].counters();
            promise(!all_build || !anybody_reads_out ||
                        c.granted + c.discarded == turns_before(b, *next_mep_, shift_.builders()),
                    "every MEP before the next epoch is granted or discarded");
        }
        for (ReadoutIndex r = 0; r < units_.size(); ++r) {
            if (!readout_fates_[r].is_lost) {
                compare_what_was_closed(r);
            }
        }
    }

    void compare_what_was_closed(ReadoutIndex r) {
        const PushReadout& readout = units_[r].readout();
        Bytes bytes = 0;
        for (StreamIndex s = 0; s < model_[r].generated.size(); ++s) {
            promise(readout.acknowledged(s) == *next_mep_ &&
                        model_[r].acknowledged[s] == *next_mep_ &&
                        model_[r].in_buffer[s].size() == readout.admitted(s) - *next_mep_,
                    "the next epoch has all MFPs from its first MEP on, and no others");
            for (std::uint64_t id = 0; id < std::min<std::uint64_t>(*next_mep_, meps_.size());
                 ++id) {
                bytes += mep(MepId{id}).sizes[r][s];
            }
        }
        const auto& c = readout.counters();
        promise(bytes == c.written_bytes + c.discarded_bytes + c.lost_bytes + c.unanswered_bytes,
                "every MFP before the next epoch is written, or dropped for a reason");
        summary_.lost += c.lost_mfps;
        summary_.unanswered += c.unanswered_mfps;
        summary_.blocked += c.blocked;
    }

    [[nodiscard]] std::uint64_t unexpected() const {
        std::uint64_t sum = 0;
        for (const PushBuilder& builder : builders_) {
            const auto& c = builder.counters();
            sum += c.unexpected_sizes + c.unexpected_mfps + c.unexpected_processed;
        }
        for (const ShiftUnit& unit : units_) {
            const auto& c = unit.readout().counters();
            sum += c.unexpected_mfps + c.unexpected_answers + c.unexpected_completions +
                   c.unexpected_acknowledgements + unit.counters().unexpected +
                   (unit.barrier() ? unit.barrier()->counters().unexpected : 0);
        }
        return sum;
    }

    [[nodiscard]] std::uint64_t from_lost_or_late() const {
        std::uint64_t sum = 0;
        for (const PushBuilder& builder : builders_) {
            sum += builder.counters().from_lost;
        }
        for (const ShiftUnit& unit : units_) {
            sum += unit.readout().counters().from_lost + unit.counters().late;
        }
        return sum;
    }

    /// From the start of the MEP, by adding up.
    [[nodiscard]] Bytes offset(MepId id, ReadoutIndex r, StreamIndex s) {
        const auto [header, alignment] = builder_config_.layout;
        Bytes sum = rounded(header, alignment);
        for (ReadoutIndex unit = 0; unit <= r; ++unit) {
            const auto& sizes = mep(id).sizes[unit];
            for (StreamIndex i = 0; i < (unit == r ? s : sizes.size()); ++i) {
                sum += rounded(sizes[i], alignment);
            }
        }
        return sum;
    }
    [[nodiscard]] Bytes bytes_of(MepId id) {
        const auto last = static_cast<ReadoutIndex>(units_.size() - 1);
        const auto streams = static_cast<StreamIndex>(mep(id).sizes[last].size());
        return std::max(offset(id, last, streams), builder_config_.layout.alignment);
    }
    [[nodiscard]] static Bytes rounded(Bytes bytes, Bytes alignment) {
        return (bytes + alignment - 1) / alignment * alignment;
    }
    [[nodiscard]] static bool overlap(Region a, Region b) { return a.from < b.to && b.from < a.to; }

    [[nodiscard]] std::uint32_t streams() const {
        std::uint32_t sum = 0;
        for (const std::uint32_t of_unit : builder_config_.streams) {
            sum += of_unit;
        }
        return sum;
    }
    [[nodiscard]] bool by_time() const { return unit_config_.change == PhaseChange::by_time; }
    [[nodiscard]] std::uint32_t phase_of(ReadoutIndex r) const {
        return static_cast<std::uint32_t>(units_[r].step() % shift_.phases());
    }
    Mep& mep(MepId id) { return meps_.at(static_cast<std::size_t>(id)); }

    void promise(bool kept, const char* text) {
        if (!kept && summary_.broken_promise.empty()) {
            summary_.broken_promise = text;
        }
    }

    base::ByteSource input_;
    LinearShift shift_;
    base::WireClock write_time_;
    ShiftUnitConfig unit_config_;
    PushBuilderConfig builder_config_;
    std::vector<ShiftUnit> units_;
    std::vector<PushBuilder> builders_;

    Time now_ = Time::zero();
    std::uint64_t next_event_ = 0;
    std::priority_queue<Event> events_;

    std::vector<Mep> meps_;
    std::vector<Unit> model_;
    std::map<BuilderIndex, std::map<MepId, Region>> output_;
    std::map<BuilderIndex, std::map<ReadoutIndex, Time>> writers_;  ///< until when
    std::set<std::tuple<MepId, ReadoutIndex, StreamIndex>> landed_;
    std::map<BuilderIndex, std::uint64_t> answered_at_close_;                        ///< turns
    std::map<std::pair<ReadoutIndex, BuilderIndex>, std::uint64_t> last_announced_;  ///< turns
    std::map<std::uint64_t, std::size_t> entered_;  ///< units, per generation
    Fates readout_fates_;
    Fates builder_fates_;
    bool is_closing_ = false;
    std::optional<std::uint64_t> next_mep_;  ///< of the next epoch, when this one is over
    std::uint64_t repeated_ = 0;             ///< what came twice, as far as it is unexpected
    std::size_t outputs_ = 0;
    Summary summary_;
};

}  // namespace daqloom::protocol
