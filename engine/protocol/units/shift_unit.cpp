#include "protocol/units/shift_unit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace daqloom::protocol {

namespace {

constexpr base::Time longest_window = base::seconds(1'000);
constexpr std::uint32_t most_slack = 64;
constexpr std::uint64_t most_rounds = std::uint64_t{1} << 40;

base::expected<void> check_count(const ShiftUnitConfig& config, const LinearShift& shift) {
    DAQLOOM_REFUSE_IF(
        config.meps_per_phase < 1 || config.phases_per_barrier < 1 || config.phases_under_way < 1,
        "{} MEPs per phase, {} phases per barrier, {} under way; give at least 1 of each",
        config.meps_per_phase, config.phases_per_barrier, config.phases_under_way);
    DAQLOOM_REFUSE_IF(config.barrier_slack > most_slack, "a slack of {} barriers; give at most {}",
                      config.barrier_slack, most_slack);
    DAQLOOM_REFUSE_IF(config.rounds > most_rounds, "{} rounds; give at most {}", config.rounds,
                      most_rounds);
    // In its first phase the last readout unit sends to the last builder unit, so its buffers hold
    // a round by then. At the end of a buffer, less than one largest MFP may stay unused.
    const std::uint64_t round = std::uint64_t{config.meps_per_phase} * shift.builders();
    const auto& readout = config.readout;
    DAQLOOM_REFUSE_IF(
        readout.buffered_mfps < round ||
            static_cast<std::uint64_t>(readout.stream_buffer / readout.largest_mfp) < round + 1,
        "buffers of {} MFPs and {} bytes; a round takes {} MFPs, and room for {} of {} bytes",
        readout.buffered_mfps, readout.stream_buffer, round, round + 1, readout.largest_mfp);
    return {};
}

base::expected<void> check_time(const ShiftUnitConfig& config) {
    DAQLOOM_REFUSE_IF(
        config.window < base::nanoseconds(1) || config.window > longest_window ||
            config.grace < base::Time::zero() || config.grace >= config.window,
        "window of {} ps with a grace period of {} ps; give 1 ns to {} s, and less than that",
        config.window.ps, config.grace.ps, longest_window.ps / base::seconds(1).ps);
    const base::Time needed =
        base::WireClock(config.readout.write_rate)(config.readout.largest_mfp);
    DAQLOOM_REFUSE_IF(needed > config.window - config.grace,
                      "window of {} ps without its grace period; the largest MFP takes {} ps",
                      (config.window - config.grace).ps, needed.ps);
    return {};
}

base::expected<void> check(const ShiftUnitConfig& config, const LinearShift& shift) {
    DAQLOOM_REFUSE_IF(config.self.value() >= shift.readouts(),
                      "readout unit {}; the schedule has {}", config.self.value(),
                      shift.readouts());
    DAQLOOM_REFUSE_IF(config.readout.builders != shift.builders(),
                      "{} builder units; the schedule has {}", config.readout.builders,
                      shift.builders());
    if (const auto groups = config.barrier_groups.size();
        groups != 0 && groups != shift.readouts()) {
        return base::failure(fmt::format("barrier groups of {} readout units; the schedule has {}",
                                         groups, shift.readouts()));
    }
    return config.change == PhaseChange::by_count ? check_count(config, shift) : check_time(config);
}

std::vector<ReadoutIndex> group_of(ReadoutIndex self, const std::vector<std::uint32_t>& groups,
                                   const LinearShift& shift) {
    std::vector<ReadoutIndex> group;
    for (ReadoutIndex unit; unit.value() < shift.readouts(); ++unit) {
        if (groups.empty() || groups[unit.value()] == groups[self.value()]) {
            group.push_back(unit);
        }
    }
    return group;
}

std::optional<BarrierKind> kind_of(const ShiftUnitConfig& config) {
    if (config.change == PhaseChange::by_count) {
        switch (config.barrier) {
            case ShiftBarrier::centralised:
                return BarrierKind::centralised;
            case ShiftBarrier::tournament:
                return BarrierKind::tournament;
            case ShiftBarrier::dissemination:
                return BarrierKind::dissemination;
            case ShiftBarrier::neighbour:
                return BarrierKind::neighbour;
            case ShiftBarrier::none:
            case ShiftBarrier::external:
            case ShiftBarrier::network:
                break;
        }
    }
    return {};
}

}  // namespace

std::uint32_t barriers_of_round(const ShiftRules& rules, const LinearShift& shift) {
    return std::max(1U, shift.phases() / rules.phases_per_barrier);
}

void ShiftUnitConfig::keep_groups_of(const base::Table<ReadoutIndex, ReadoutIndex>& in_run) {
    const auto of_run = std::exchange(barrier_groups, {});
    for (const ReadoutIndex number : in_run) {
        if (number.value() < of_run.size()) {
            barrier_groups.push_back(of_run[number.value()]);
        }
    }
}

ShiftUnitConfig ShiftUnitConfig::sized(const ShiftRules& rules, const LinearShift& shift,
                                       std::uint32_t streams) {
    const std::uint32_t meps = 2 * rules.meps_per_phase;  // of this round and of the next
    ShiftUnitConfig config{rules};
    config.readout.streams = streams;
    config.readout.builders = config.builder.builders = shift.builders();
    config.readout.announced_meps = config.builder.announced_meps = rules.meps_per_phase;
    config.readout.buffered_mfps = meps * shift.builders();
    config.builder.concurrent_meps = meps;
    config.builder.streams.assign(shift.readouts(), streams);
    return config;
}

base::expected<ShiftUnit> ShiftUnit::make(ShiftUnitConfig config, LinearShift shift) {
    const BuilderIndex builds = config.builder.self;
    PushBuilderConfig of_builder = std::exchange(config.builder, {.self = builds});
    ShiftUnit unit(std::move(config), std::move(shift));
    if (const ReadoutIndex self = unit.config_.self; self != ReadoutIndex::none()) {
        DAQLOOM_TRY(readout, PushReadout::make(unit.config_.readout));
        DAQLOOM_CHECK(base::about("linear shift: ", check(unit.config_, unit.shift_)));
        unit.readout_.emplace(std::move(readout));
        if (unit.config_.leaves_step && !unit.is_by_time() &&
            unit.config_.barrier != ShiftBarrier::none) {
            unit.keeper_.emplace(barriers_of_round(unit.config_, unit.shift_));
        }
        if (const auto kind = kind_of(unit.config_)) {
            unit.group_ = group_of(self, unit.config_.barrier_groups, unit.shift_);
            const auto place = std::ranges::lower_bound(unit.group_, self) - unit.group_.begin();
            DAQLOOM_TRY(
                barrier,
                Barrier::make({.kind = *kind,
                               .participants = static_cast<std::uint32_t>(unit.group_.size()),
                               .self = static_cast<Participant>(place),
                               .closes_only = unit.is_paced() && unit.config_.writers == 1}));
            unit.barrier_.emplace(std::move(barrier));
        }
    }
    if (builds != BuilderIndex::none()) {
        DAQLOOM_TRY(builder, PushBuilder::make(std::move(of_builder)));
        unit.builder_.emplace(std::move(builder));
        if (unit.is_paced()) {
            DAQLOOM_TRY(pacer, WritePacer::make({.readouts = unit.shift_.readouts(),
                                                 .writers = unit.config_.writers,
                                                 .order = unit.config_.write_order}));
            unit.pacer_.emplace(std::move(pacer));
        }
    }
    return unit;
}

bool ShiftUnit::is_drained() const {
    return (!readout_ || readout_->is_drained()) && (!builder_ || builder_->is_drained());
}

std::uint64_t ShiftUnit::next_mep() const {
    return std::max(readout_ ? readout_->next_mep() : 0, builder_ ? builder_->next_mep() : 0);
}

ShiftUnit::IgnoredInputs ShiftUnit::ignored() const {
    IgnoredInputs sum{.messages = counters_.unexpected};
    if (readout_) {
        const auto& c = readout_->counters();
        sum.messages +=
            c.unexpected_answers + c.from_lost + (barrier_ ? barrier_->counters().unexpected : 0);
        sum.others += c.unexpected_mfps + c.unexpected_completions + c.unexpected_acknowledgements;
    }
    if (builder_) {
        const auto& c = builder_->counters();
        sum.messages += c.unexpected_sizes + (pacer_ ? pacer_->counters().unexpected : 0);
        sum.writes += c.unexpected_mfps + c.from_lost;
        sum.others += c.unexpected_processed;
    }
    return sum;
}

}  // namespace daqloom::protocol
