// Epochs of linear shifting with unit loss: begin, end and counts of units.
#include <algorithm>
#include <utility>

#include "systems/shift/shift_system.hpp"
#include "systems/shift/unit_outputs.hpp"

namespace daqloom::systems {

using base::Time;
using namespace protocol;

void ShiftSystem::forget(std::uint32_t kind, std::uint32_t index) {
    if (kind == kProcessed) {
        in_process_.release(index);
    }
}

void ShiftSystem::begin_epoch(const std::vector<EpochSlot>& slots, Time now) {
    base::Table<SlotIndex, ReadoutIndex> readout_in;
    base::Table<SlotIndex, BuilderIndex> builder_in;
    for (const EpochSlot& slot : slots) {
        readout_in.push_back(slot.in_epoch);
        builder_in.push_back(slot.builder != UnitIndex::none()
                                 ? placement_.builders.unit_on[slot.builder.value()]
                                 : BuilderIndex::none());
    }
    shift_ = std::move(LinearShift::make(std::move(readout_in), std::move(builder_in)).value());
    stages_of_.assign(shift_->readouts(), {ShiftStage::finished, now});
    groups_.clear();
    group_of_.resize(0);
    make_groups(*shift_);
}

/// Starts the node's unit. Rounds of time windows are counted from the begin of the run, by the
/// node's clock; the unit starts with the next round.
void ShiftSystem::begin_unit(std::uint32_t node, std::uint64_t mep_end, Time now) {
    auto config = unit_config(config_, *shift_, slowest_rate_);
    config.self = placement_.readouts.unit_on[node];
    config.builder.self = placement_.builders.unit_on[node];
    base::Table<ReadoutIndex, ReadoutIndex> in_run;
    for (const std::uint32_t each : placement_.readouts.node_of) {
        in_run.push_back(readouts_in_run_.unit_on[each]);
    }
    config.keep_groups_of(in_run);
    // Cannot fail: the configuration is that of the run, with fewer members.
    units_[node] = std::move(ShiftUnit::make(config, *shift_).value());
    World world{*this, node, now};
    units_[node].on_lease(mep_end, world);
    if (config.self != ReadoutIndex::none()) {
        const Time round = config_.window * shift_->phases();
        const Time here = std::max(nodes().clock(node).local(now), Time::zero());
        const std::int64_t rounds = round.ps > 0 ? (here.ps + round.ps - 1) / round.ps : 0;
        units_[node].on_start(round * rounds, now, world);
        for (std::uint32_t stream = 0; stream < config_.streams; ++stream) {
            const std::uint32_t index = stream_number(node, StreamIndex(stream));
            streams_[index].offered = first_mep_;
            feed(index, now);
        }
    }
}

void ShiftSystem::lease_unit(std::uint32_t node, std::uint64_t mep_end, Time now) {
    World world{*this, node, now};
    units_[node].on_lease(mep_end, world);
}

void ShiftSystem::close_unit(std::uint32_t node, const Lost& lost, Time now) {
    World world{*this, node, now};
    units_[node].on_close(lost.readouts, lost.builders, now, world);
}

bool ShiftSystem::has_drained(std::uint32_t node) const { return units_[node].is_drained(); }

void ShiftSystem::end_unit(std::uint32_t node, Time now) {
    World world{*this, node, now};
    units_[node].on_end(0, world);
}

void ShiftSystem::add_counts(std::uint32_t node, UnitCounts& all) const {
    const protocol::ShiftUnit& here = units_[node];
    if (const auto* builder = here.builder()) {
        const auto& counted = builder->counters();
        all.granted += static_cast<std::int64_t>(counted.granted);
        const Deliveries meps = delivered(counted);
        all.built += static_cast<std::int64_t>(meps.built);
        all.incomplete += static_cast<std::int64_t>(meps.incomplete);
        all.dropped += static_cast<std::int64_t>(counted.dropped);
        all.discarded += static_cast<std::int64_t>(counted.discarded);
        all.steps += counted.mfps + counted.built;
    }
    if (const auto* readout = here.readout()) {
        all.steps += readout->counters().writes;
    }
}

/// Whether a unit has nothing to write in the turn of its builder unit, and awaits no message.
bool ShiftSystem::waits(UnitIndex unit) const {
    const ReadoutIndex self = placement_.readouts.unit_on[unit.value()];
    if (!has_unit(unit.value()) || self == ReadoutIndex::none() ||
        stages_of_[self].stage != ShiftStage::sending) {
        return false;
    }
    const auto& readout = *units_[unit.value()].readout();
    const auto& counted = readout.counters();
    return readout.writes_under_way() == 0 &&
           counted.announced <= counted.granted + counted.discarded;
}

void ShiftSystem::feed(std::uint32_t stream, Time now) {
    const std::uint32_t node = node_of_stream(stream);
    if (node == kNoNode || !has_unit(node)) {
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

/// Under a run control, late inputs and inputs from lost units are ignored.
base::expected<void> ShiftSystem::check_conservation() const {
    if (!run_) {
        return check_books(sums().unexpected);
    }
    DAQLOOM_CHECK(check_books());
    return check_fates();
}

}  // namespace daqloom::systems
