// For tests and fuzzing: a whole push event builder in virtual time. Messages take any time and
// overtake each other, and some arrive twice. In some runs units are lost and the epoch is closed.
// All invariants are checked against the plain model.
#pragma once

#include <array>
#include <functional>

#include "protocol/machines/timers_by_hand_test.hpp"
#include "protocol/units/push_building_model_test.hpp"

namespace daqloom::protocol {

class PushBuildingCheck : private PushBuildingModel {
  public:
    using PushBuildingModel::Summary;

    /// Plays a run. The first bytes select the configuration; each later byte is the size of an
    /// MFP, a delay or a disturbance. After the last byte, delays and disturbances end.
    static Summary play(std::span<const std::uint8_t> input) {
        PushBuildingCheck check(input);
        check.run();
        return check.summary_;
    }

  private:
    static constexpr std::size_t most_inputs = 200'000;
    static constexpr Time last_timer = base::milliseconds(1);

    /// See ShiftWorld. Messages go as bytes.
    struct World {
        using Kind = UnitMessage::Kind;
        PushBuildingCheck& check;
        Node& node;

        void send(BuilderIndex to, const UnitMessage& message) {
            if (message.kind == Kind::ready) {
                ++check.outputs_;
                check.asked_[{node.readout, to}][message.number] =
                    static_cast<std::uint64_t>(message.values[3]);
            } else if (message.kind == Kind::through) {
                ++check.outputs_;
            } else if (message.kind == Kind::announce) {
                check.announced(node.readout, to, MepId{message.number}, message.values);
            } else {
                check.promise(message.kind == Kind::last_announcement,
                              "a readout unit announces to builder units");
                check.last_announcement(node.readout, to, message.number);
            }
            check.post(node, check.node_of(to), message);
        }
        void send(ReadoutIndex to, const UnitMessage& message) {
            if (message.kind == Kind::grant) {
                check.granted(to, MepId{message.number}, message.values);
            } else if (message.kind == Kind::discard) {
                check.discarded(MepId{message.number});
            } else if (message.kind == Kind::closing) {
                check.closing(node.builder, to, message.number);
            } else if (message.kind == Kind::last_answer) {
                check.last_answer(node.builder, to);
            } else if (message.kind == Kind::go) {
                check.let_go(node.builder, to, message.number);
            } else {
                ++check.outputs_;
            }
            check.post(node, check.node_of(to), message);
        }
        void set_timer(Time due, UnitTimer timer) { check.timer(node, due, timer.what); }
        void admitted(StreamIndex s, MepId m, Bytes place) {
            check.admitted(node.readout, s, m, place);
        }
        void write(const PushWrite& write) { check.write(node.readout, write); }
        void acknowledge(StreamIndex s, MepId m) { check.acknowledged(node.readout, s, m); }
        void enter_barrier(std::uint64_t generation) { check.entered(node.readout, generation); }
        void stage(std::uint64_t step, ShiftStage stage) { check.stage(node.readout, step, stage); }
        void answered(MepId, bool) {}
        void deliver(MepId m, Bytes place, Bytes bytes) {
            if (check.next_mep_ && check.mep(m).landed < check.streams()) {
                check.incomplete(node.builder, m, place, bytes);
            } else {
                check.built(node.builder, m, place, bytes);
            }
        }
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
        for (const ReadoutIndex r : readouts()) {
            for (const StreamIndex s : model_[r].generated.indices()) {
                generate(r, s);
            }
            later([this, r] {
                input(node_of(r), [this](ShiftUnit& unit, World& world) {
                    unit.on_start(base::microseconds(1), now(), world);
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
            input(node_of(r), [=](ShiftUnit& unit, World& world) { unit.on_data(s, size, world); });
        });
    }

    [[nodiscard]] Time now() const { return timers_.now(); }
    /// Runs an action after a delay, which may be longer than a window.
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

    template <class Action>
    void input(Node& node, Action action) {
        if (!is_dead(node)) {
            World world{*this, node};
            action(node.unit, world);
        }
    }
    /// Delivers a message, in some cases a second time, which must have no effect. Messages within
    /// a node need no transport.
    template <class Action>
    void message(Node& node, Action action, bool is_local = false) {
        const bool twice = input_.byte() % 8 == 1;
        later([this, &node, action, is_local, twice] {
            if (next_mep_ && !is_local && !is_lost(node)) {
                return;
            }
            input(node, action);
            if (twice) {
                later([this, &node, action] {
                    if (is_dead(node)) {
                        return;
                    }
                    const std::uint64_t before = unexpected();
                    const std::uint64_t ignored = unexpected() + from_lost_or_late();
                    const std::size_t outputs = outputs_;
                    input(node, action);
                    repeated_ += unexpected() - before;
                    promise(
                        unexpected() + from_lost_or_late() == ignored + 1 && outputs_ == outputs,
                        "what comes twice is counted and has no effect");
                });
            }
        });
    }
    void post(const Node& from, Node& to, const UnitMessage& outgoing) {
        std::vector<std::byte> bytes(encoded_bytes(outgoing));
        encode_message(outgoing, bytes);
        message(to, [=, this, readout = from.readout, builder = from.builder,
                     to_builder = to.builder](ShiftUnit& unit, World& world) {
            std::array<Bytes, 6> values{};
            const auto message = decode_message(bytes, values);
            if (message && message->kind == UnitMessage::Kind::through) {
                withdrawn(readout, unit.builder() == nullptr ? BuilderIndex::none() : to_builder,
                          *message);
            }
            promise(message && unit.on_message(readout, builder, *message, now(), world),
                    "who gets a message takes it");
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
        const bool is_local = node_of(w.builder).readout == r;
        promise(!is_paced() || is_local || fate.is_closed || let_go_[w.builder][r].writes-- > 0,
                "a unit writes what its builder unit has let it");
        const bool in_step = !by_time() && unit_config_.barrier_groups.empty() &&
                             unit_config_.barrier != ShiftBarrier::none &&
                             unit_config_.barrier != ShiftBarrier::neighbour &&
                             unit_config_.phases_per_barrier == 1 &&
                             unit_config_.barrier_slack == 0 && !unit_config_.leaves_step;
        if (!is_closing_ && (by_time() || in_step)) {
            // A write that ends now counts as over, whether its completion has arrived or not.
            promise(std::ranges::none_of(writers_[w.builder],
                                         [=, this](const auto& other) {
                                             return other.first != r && other.second > now();
                                         }),
                    "nobody else writes to the same builder");
        }
        Time end = now();
        if (by_time() && !fate.is_closed) {
            unit.busy_until = end = std::max(now(), unit.busy_until) + write_time_(w.bytes);
            const auto windows = static_cast<std::int64_t>(unit_of(r).step()) + 1;
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
        message(node_of(w.builder), [=, this](ShiftUnit& unit, World& world) {
            Mep& here = mep(w.mep);
            const std::uint64_t before = unit.builder()->counters().mfps;
            const bool counts = !builder_fates_[w.builder].sees_lost[r] &&
                                landed_.emplace(w.mep, r, w.stream).second;
            here.landed += counts ? 1 : 0;
            let_go_[w.builder][r].not_here -= counts && node_of(w.builder).readout != r ? 1 : 0;
            unit.on_written(r, w.stream, w.mep, now(), world);
            promise(unit.builder()->counters().mfps - before == (counts ? 1U : 0U),
                    "each MFP of a live readout unit counts once");
            promise(here.is_built == (here.landed == streams()),
                    "a MEP is built when its last MFP is there");
        });
        // The completion is immediate, so that the check knows the writes under way; after on_close
        // it is delayed, because this knowledge is no longer needed.
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
        input(node_of(r), [&](ShiftUnit& unit, World& world) {
            unit.on_write_done(w.mep, w.stream, now(), world);
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
            input(node_of(r),
                  [=](ShiftUnit& unit_now, World& world) { unit_now.on_acknowledged(s, world); });
        });
    }

    void entered(ReadoutIndex self, std::uint64_t generation) {
        ++outputs_;
        const auto is_in_group = [=, this](ReadoutIndex r) { return waits_for(self, r); };
        const auto all = readouts();
        const ReadoutIndex first = *std::ranges::find_if(all, is_in_group);
        if (++entered_[{first, generation}] == std::ranges::count_if(readouts(), is_in_group)) {
            for (const ReadoutIndex r : readouts()) {
                if (!is_in_group(r)) {
                    continue;
                }
                message(node_of(r), [=, this](ShiftUnit& unit, World& world) {
                    unit.on_released(generation, now(), world);
                });
            }
        }
    }

    void timer(Node& node, Time due, UnitTimer::What what) {
        ++outputs_;
        const auto fire = [this, &node, what] {
            input(node,
                  [=, this](ShiftUnit& unit, World& world) { unit.on_timer(what, now(), world); });
        };
        if (what == UnitTimer::What::phase) {
            promise(due == now(), "a unit goes on at once");
            later(fire);
        } else if (what == UnitTimer::What::go) {
            promise(due > now(), "what is due is done at once");
            at(due, fire);
        } else if (what == UnitTimer::What::idle) {
            at(due, fire);
        } else if (now() <= last_timer &&
                   std::ranges::any_of(model_[node.readout].acknowledged,
                                       [this](auto n) { return n < meps_.size(); })) {
            at(due + base::nanoseconds(input_.byte() % 16), fire);
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
        if ((stage == ShiftStage::sending || stage == ShiftStage::asking) && !by_time() &&
            unit_config_.barrier != ShiftBarrier::none) {
            const std::uint64_t awaited = last_awaited(r, step / unit_config_.phases_per_barrier);
            const std::uint64_t over =
                awaited - std::min<std::uint64_t>(awaited, unit_config_.barrier_slack);
            const std::uint64_t synchronised = over * unit_config_.phases_per_barrier;
            promise(std::ranges::all_of(readouts(),
                                        [=, this](ReadoutIndex other) {
                                            return !waits_for(r, other) ||
                                                   model_[other].steps_done >= synchronised;
                                        }),
                    "nobody goes on before all of the group have got to the barrier (the next one, "
                    "where neighbours wait for each other), or to one of those before it where "
                    "there is slack, or where it has left step");
        }
    }
    /// Last barrier (up to `reached`, counted from 1) at which the unit waits: units out of step
    /// wait at one barrier per span, and at the last one of a round.
    [[nodiscard]] std::uint64_t last_awaited(ReadoutIndex r, std::uint64_t reached) const {
        const StepKeeper* keeper = unit_of(r).keeper();
        if (keeper == nullptr) {
            return reached;
        }
        const std::uint64_t of_round = reached % barriers_of_round(unit_config_, shift_);
        return reached - of_round % keeper->span();
    }

    // ---- outputs of builder units -------------------------------------------------------------

    /// The writes that a builder unit has permitted a readout unit.
    struct LetGo {
        std::int64_t writes = 0;    ///< not begun
        std::int64_t not_here = 0;  ///< not here
    };

    void let_go(BuilderIndex b, ReadoutIndex r, std::uint64_t request) {
        ++outputs_;
        const auto writing = std::ranges::count_if(
            let_go_[b], [](const auto& each) { return each.second.not_here > 0; });
        // The next writer after a single one is permitted ahead of time, so there may be two.
        promise(writing < std::max<std::int64_t>(unit_config_.writers, 2),
                "a builder unit lets so many write at a time");
        const auto asked = asked_[{r, b}].extract(request);
        promise(!asked.empty(), "who has asked is let write, once");
        if (!asked.empty()) {
            const auto writes = static_cast<std::int64_t>(asked.mapped());
            let_go_[b][r].writes += writes;
            let_go_[b][r].not_here += writes;
            gone_[{r, b, request}] = writes;
        }
    }
    /// The builder unit is notified that a readout unit makes fewer writes than requested.
    void withdrawn(ReadoutIndex r, BuilderIndex b, const UnitMessage& message) {
        asked_[{r, b}].erase(message.number);
        if (const auto gone = gone_.extract({r, b, message.number}); !gone.empty()) {
            const std::int64_t not_made = gone.mapped() - message.values[0];
            let_go_[b][r].writes -= not_made;
            let_go_[b][r].not_here -= not_made;
        }
    }

    void granted(ReadoutIndex r, MepId id, std::span<const Bytes> offsets) {
        ++outputs_;
        Mep& here = mep(id);
        const BuilderIndex b = builder_of(id, shift_.builders());
        promise(may_answer(b, id),
                "nothing is answered when the epoch is closed, but what others have");
        promise(here.announced == shift_.readouts() && !here.is_discarded,
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
    }

    void discarded(MepId id) {
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
            node_of(b),
            [=, this](ShiftUnit& unit, World& world) {
                output_[b].erase(id);
                unit.on_consumed(id, world);
            },
            true);
    }

    // ---- the end of the epoch -----------------------------------------------------------------

    /// Loses the units of a wave. Each of the other units learns this at some later time.
    void close(std::uint32_t wave) {
        if (next_mep_) {
            return;
        }
        is_closing_ = true;
        const auto lost_readouts = lose(readout_fates_, wave);
        const auto lost_builders = lose(builder_fates_, wave);
        summary_.lost_units += lost_readouts.size() + lost_builders.size();
        for (Node& node : nodes_) {
            if (is_lost(node)) {
                continue;
            }
            at(now() + base::nanoseconds(8 * input_.byte()),
               [this, &node, lost_readouts, lost_builders] {
                   if (next_mep_) {
                       return;
                   }
                   if (node.readout != ReadoutIndex::none()) {
                       readout_fates_[node.readout].learns(lost_builders);
                   }
                   if (node.builder != BuilderIndex::none()) {
                       builder_fates_[node.builder].learns(lost_readouts);
                   }
                   input(node, [&](ShiftUnit& unit, World& world) {
                       unit.on_close(lost_readouts, lost_builders, now(), world);
                   });
               });
        }
    }

    void closing(BuilderIndex b, ReadoutIndex r, std::uint64_t turn) {
        ++outputs_;
        promise(!builder_fates_[b].sees_lost[r], "nothing is said to a lost unit");
        answered_at_close_[b] = turn;
    }

    void last_announcement(ReadoutIndex r, BuilderIndex b, std::uint64_t turn) {
        ++outputs_;
        const Fate<BuilderIndex>& fate = readout_fates_[r];
        std::uint64_t end = 0;
        for (const BuilderIndex other : builders()) {
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
    }

    void last_answer(BuilderIndex b, ReadoutIndex r) {
        ++outputs_;
        promise(!builder_fates_[b].sees_lost[r], "nothing is said to a lost unit");
    }

    void end() {
        std::uint64_t next = 0;
        for (const Node& node : nodes_) {
            next = std::max(next, is_lost(node) ? 0 : node.unit.next_mep());
        }
        next_mep_ = next;
        for (const ReadoutIndex r : readouts()) {
            promise(readout_fates_[r].is_lost || has_written_everything(r),
                    "who has drained has written all that live builders have granted");
        }
        for (Node& node : nodes_) {
            if (!is_lost(node)) {
                input(node, [=](ShiftUnit& unit, World& world) { unit.on_end(next, world); });
                if (node.builder != BuilderIndex::none()) {
                    forget_what_was_dropped(node.builder);
                }
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
    /// Number of units that have entered, by the first unit of their group and the generation.
    std::map<std::pair<ReadoutIndex, std::uint64_t>, std::ptrdiff_t> entered_;
    /// Writes by request: in `asked_` not yet permitted, in `gone_` permitted.
    std::map<std::pair<ReadoutIndex, BuilderIndex>, std::map<std::uint64_t, std::uint64_t>> asked_;
    std::map<std::tuple<ReadoutIndex, BuilderIndex, std::uint64_t>, std::int64_t> gone_;
    std::map<BuilderIndex, std::map<ReadoutIndex, LetGo>> let_go_;
    bool is_closing_ = false;
    std::uint64_t repeated_ = 0;  ///< what came twice, as far as it is unexpected
    std::size_t outputs_ = 0;
};

}  // namespace daqloom::protocol
