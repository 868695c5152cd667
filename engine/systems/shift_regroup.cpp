// Linear shifting whose units may be lost: the others go on without them, epoch by epoch, as the
// run control says.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "systems/shift_system.hpp"
#include "systems/shift_world.hpp"

namespace daqloom::systems {

using base::Time;
using namespace protocol;

base::expected<void> ShiftSystem::make_run() {
    if (!std::holds_alternative<transport::RdmaConfig>(config_.transport) ||
        config_.card_buffer > 0 || !config_.flows.empty()) {
        return base::failure(std::string(
            "units regroup over RDMA only, with cards without limit and without flows"));
    }
    RunPlan plan = *config_.run;
    plan.units = static_cast<std::uint32_t>(hosts_.size());
    plan.takes_turns = true;
    const auto& builders = config_.builder_slots.empty() ? config_.slots : config_.builder_slots;
    plan.slots = {.readouts = units_in(config_.slots),
                  .builders = units_in(builders),
                  .spares = units_in(config_.spare_slots),
                  .keeps_lost = config_.keeps_lost_slots};
    for (std::uint32_t change = 0; change < config_.schedule_changes.size(); ++change) {
        DAQLOOM_CHECK(check(config_.schedule_changes[change]));
        nodes().events().push({config_.schedule_changes[change].at, kSchedule, change});
    }
    ControlledUnits& units = *this;
    run_ = std::make_unique<RunDriver>(plan, config_.launch, units);
    run_->begin(Time::zero());
    return {};
}

/// The units are the same.
base::expected<void> ShiftSystem::check(const ScheduleChange& change) const {
    const auto sorted = [](std::vector<NodeIndex> hosts) {
        std::erase(hosts, NodeIndex::none());
        std::ranges::sort(hosts);
        return hosts;
    };
    const auto& builders = config_.builder_slots.empty() ? config_.slots : config_.builder_slots;
    if (change.slots.size() != change.builder_slots.size() ||
        sorted(change.slots) != sorted(config_.slots) ||
        sorted(change.builder_slots) != sorted(builders)) {
        return base::failure(std::string(
            "another schedule has other units, or not as many slots of readout as of builder "
            "units; expected the same ones"));
    }
    return {};
}

std::vector<UnitIndex> ShiftSystem::units_in(const std::vector<NodeIndex>& hosts) const {
    std::vector<UnitIndex> units;
    for (const NodeIndex host : hosts) {
        units.push_back(host == NodeIndex::none() ? UnitIndex::none()
                                                  : UnitIndex(placement_.node_at.at(host)));
    }
    return units;
}

void ShiftSystem::reschedule(const ScheduleChange& change, Time now) {
    const RunSlots& before = run_->control().roles().slots();
    run_->reschedule(before.rearranged(units_in(change.slots), units_in(change.builder_slots)),
                     "there is another schedule", now);
}

void ShiftSystem::on_event_of_epoch(std::uint32_t place, Time now) {
    const Pending due = pending_[place];
    pending_.release(place);
    if (due.epoch == seats_[due.node].epoch) {
        on_event({now, due.kind, due.index});
        tell_run(due.node, now);
    } else if (due.kind == kProcessed) {
        built_.release(due.index);
    }
}

void ShiftSystem::call_back(Time at, std::uint32_t number) {
    nodes().events().push({at, kControl, number});
}

Time ShiftSystem::stopped_until(UnitIndex unit) const {
    return nodes().stopped_until(unit.value());
}

void ShiftSystem::prepare(UnitIndex unit, const orders::Prepare& order, Time now) {
    if (order.epoch < epoch_) {
        return;  // it was stopped, and the others have gone on
    }
    if (order.epoch > epoch_) {
        epoch_ = order.epoch;
        place_epoch(order, now);
    }
    seats_[unit.value()].epoch = order.epoch;
    nodes().enter(unit.value(), static_cast<std::uint16_t>(1 + order.epoch % 65'535), now);
}

/// From here on no unit of an earlier epoch takes part in anything.
void ShiftSystem::place_epoch(const orders::Prepare& order, Time now) {
    for (std::uint32_t node = 0; node < hosts_.size(); ++node) {
        retire(node);
        nodes().leave(node);
    }
    const std::vector<EpochSlot> slots = slots_of(order.slots, order.members, order.moved);
    const auto count = std::ranges::count_if(
        slots, [](const EpochSlot& slot) { return slot.readout != UnitIndex::none(); });
    placement_.readouts.node_of.assign(static_cast<std::size_t>(count), kNobody);
    placement_.readouts.unit_on.assign(hosts_.size(), ReadoutIndex::none());
    placement_.builders = {{}, std::vector(hosts_.size(), BuilderIndex::none())};
    readouts_in_run_.unit_on.assign(hosts_.size(), ReadoutIndex::none());
    readouts_in_run_.node_of.assign(readouts_in_run_.node_of.size(), kNobody);
    base::Table<SlotIndex, ReadoutIndex> readout_in;
    base::Table<SlotIndex, BuilderIndex> builder_in;
    for (const EpochSlot& slot : slots) {
        readout_in.push_back(slot.in_epoch);
        if (slot.readout != UnitIndex::none()) {
            const std::uint32_t node = slot.readout.value();
            placement_.readouts.node_of[slot.in_epoch] = node;
            placement_.readouts.unit_on[node] = slot.in_epoch;
            readouts_in_run_.node_of[slot.in_run] = node;
            readouts_in_run_.unit_on[node] = slot.in_run;
        }
        builder_in.push_back(slot.builder != UnitIndex::none()
                                 ? placement_.builders.add(slot.builder.value())
                                 : BuilderIndex::none());
    }
    shift_ = std::move(LinearShift::make(std::move(readout_in), std::move(builder_in)).value());
    doing_.assign(shift_->readouts(), {ShiftStage::finished, now});
    groups_.clear();
    group_of_.resize(0);
    make_groups(*shift_);
}

/// Rounds of time windows follow each other from the beginning of the run on, by each node's clock.
void ShiftSystem::start(UnitIndex unit, std::uint64_t first_mep, std::uint64_t mep_end, Time now) {
    const std::uint32_t node = unit.value();
    if (seats_[node].epoch != epoch_) {
        return;
    }
    first_mep_ = first_mep;
    auto config = unit_config(config_, *shift_, slowest_rate_);
    config.self = placement_.readouts.unit_on[node];
    config.builder.self = placement_.builders.unit_on[node];
    config.barrier_groups.clear();
    for (const std::uint32_t each : placement_.readouts.node_of) {
        const ReadoutIndex in_run = readouts_in_run_.unit_on[each];
        if (in_run.value() < config_.barrier_groups.size()) {
            config.barrier_groups.push_back(config_.barrier_groups[in_run.value()]);
        }
    }
    units_[node] = std::move(ShiftUnit::make(config, *shift_).value());  // as for all, but fewer
    seats_[node].has_unit = true;
    World world{*this, node, now};
    units_[node].on_lease(in_epoch(mep_end), world);
    if (config.self != ReadoutIndex::none()) {
        const Time round = config_.window * shift_->phases();
        const Time here = std::max(nodes().clock(node).local(now), Time::zero());
        const std::int64_t rounds = round.ps > 0 ? (here.ps + round.ps - 1) / round.ps : 0;
        units_[node].on_start(round * rounds, now, world);
        for (std::uint32_t stream = 0; stream < config_.streams; ++stream) {
            const std::uint32_t index = stream_number(node, StreamIndex(stream));
            streams_[index].offered = first_mep;
            feed(index, now);
        }
    }
    for (const Letter& letter : std::exchange(seats_[node].early, {})) {
        on_letter(letter, now);
    }
}

void ShiftSystem::lease(UnitIndex unit, std::uint64_t mep_end, Time now) {
    if (has_unit(unit.value())) {
        World world{*this, unit.value(), now};
        units_[unit.value()].on_lease(in_epoch(mep_end), world);
    }
}

void ShiftSystem::close(UnitIndex unit, std::span<const UnitIndex> lost, Time now) {
    if (!has_unit(unit.value())) {
        return;  // as in prepare
    }
    std::vector<ReadoutIndex> readouts;
    std::vector<BuilderIndex> builders;
    for (const UnitIndex each : lost) {
        if (const auto reads = placement_.readouts.unit_on[each.value()];
            reads != ReadoutIndex::none()) {
            readouts.push_back(reads);
        }
        if (const auto builds = placement_.builders.unit_on[each.value()];
            builds != BuilderIndex::none()) {
            builders.push_back(builds);
        }
    }
    World world{*this, unit.value(), now};
    units_[unit.value()].on_close(readouts, builders, now, world);
}

bool ShiftSystem::is_drained(UnitIndex unit) const {
    return !has_unit(unit.value()) || units_[unit.value()].is_drained();
}

std::uint64_t ShiftSystem::end(UnitIndex unit, Time now) {
    if (!has_unit(unit.value())) {
        return 0;
    }
    World world{*this, unit.value(), now};
    units_[unit.value()].on_end(0, world);
    const std::uint64_t next_mep = first_mep_ + units_[unit.value()].next_mep();
    std::uint64_t& counted = seats_[unit.value()].counted.next_mep;
    counted = std::max(counted, next_mep);
    return next_mep;
}

void ShiftSystem::shut(UnitIndex unit, Time now) {
    retire(unit.value());
    nodes().enter(unit.value(), 0, now);
    nodes().restart(unit.value(), now);
}

UnitCounts ShiftSystem::counts(UnitIndex unit) const {
    const Seat& seat = seats_[unit.value()];
    UnitCounts all = seat.counted;
    if (!seat.has_unit) {
        return all;
    }
    const protocol::ShiftUnit& here = units_[unit.value()];
    if (const auto* builder = here.builder()) {
        const auto& counted = builder->counters();
        all.granted += static_cast<std::int64_t>(counted.granted);
        all.built += static_cast<std::int64_t>(counted.built);
        all.incomplete += static_cast<std::int64_t>(counted.incomplete);
        all.dropped += static_cast<std::int64_t>(counted.dropped);
        all.discarded += static_cast<std::int64_t>(counted.discarded);
        all.steps += counted.mfps + counted.built;
    }
    if (const auto* readout = here.readout()) {
        all.steps += readout->counters().writes;
    }
    return all;
}

/// In the turn of its builder unit, it has nothing to write and nothing to hear.
bool ShiftSystem::waits(UnitIndex unit) const {
    const ReadoutIndex self = placement_.readouts.unit_on[unit.value()];
    if (!has_unit(unit.value()) || self == ReadoutIndex::none() ||
        doing_[self].stage != ShiftStage::sending) {
        return false;
    }
    const auto& readout = *units_[unit.value()].readout();
    const auto& counted = readout.counters();
    return readout.writes_under_way() == 0 &&
           counted.announced <= counted.granted + counted.discarded;
}

void ShiftSystem::on_unreachable(const Letter& letter, Time /*now*/) {
    run_->on_unreachable(UnitIndex(letter.from), UnitIndex(letter.to));
}

void ShiftSystem::on_killed(std::uint32_t node, Time until, Time now) {
    if (until > now) {
        run_->hold(UnitIndex(node), until, now);
    }
    run_->kill(UnitIndex(node), now);
}

void ShiftSystem::retire(std::uint32_t node) {
    Seat& seat = seats_[node];
    if (seat.has_unit) {
        add(units_[node], counted_);
        seat.counted = counts(UnitIndex(node));
    }
    seat.has_unit = false;
    seat.epoch = 0;
    seat.early.clear();
}

void ShiftSystem::feed(std::uint32_t stream, Time now) {
    const std::uint32_t node = node_of_stream(stream);
    if (node == kNobody || !has_unit(node)) {
        return;
    }
    skip_to(first_mep_, stream, now);
    World world{*this, node, now};
    Stream& here = streams_[stream];
    while (here.offered < here.first + here.kept.size() &&
           units_[node].readout()->takes_more(stream_of(stream))) {
        const base::Bytes bytes = here.kept[here.offered++ - here.first];
        units_[node].on_data(stream_of(stream), bytes, world);
    }
}

void ShiftSystem::skip_to(std::uint64_t mfp, std::uint32_t stream, Time now) {
    Stream& here = streams_[stream];
    for (; here.first < mfp && !here.kept.empty(); ++here.first) {
        here.kept.pop_front();
        if (here.first == here.taken) {
            ++here.taken;
            taken_from_card(stream, now);
        }
    }
}

void ShiftSystem::count_delivery(MepId mep) {
    const std::uint64_t number = first_mep_ + number_of(mep);
    if (number >= delivered_.size()) {
        delivered_.resize(number + 1);
    }
    twice_ += delivered_[number] ? 1 : 0;
    delivered_[number] = true;
}

/// Inputs that came too late, or from lost units, are ignored where units regroup.
base::expected<void> ShiftSystem::check_conservation() const {
    if (!run_) {
        return check_books(sums().unexpected);
    }
    DAQLOOM_CHECK(check_books());
    const RunDriver::Accounts all = run_->accounts();
    const std::int64_t fates = all.built + all.incomplete + all.dropped + all.discarded +
                               all.unfinished + all.skipped + all.in_flight;
    const auto delivered = std::ranges::count(delivered_, true);
    if (fates != all.begun || all.twice != 0 || twice_ != 0 ||
        delivered != all.built + all.incomplete) {
        return base::defect(fmt::format(
            "{} MEPs begun, {} fates, {} finished twice; {} delivered, {} twice, of {} built and "
            "{} incomplete",
            all.begun, fates, all.twice, delivered, twice_, all.built, all.incomplete));
    }
    return {};
}

}  // namespace daqloom::systems
