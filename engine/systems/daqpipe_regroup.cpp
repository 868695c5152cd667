// DAQPIPE whose units may be lost: what is its own of an epoch.
#include "systems/daqpipe_system.hpp"
#include "systems/daqpipe_world.hpp"

namespace daqloom::systems {

using base::Time;
using namespace protocol;

base::expected<void> DaqpipeSystem::begin_run() {
    return make_run(config_, config_, config_.readouts, config_.builders, false);
}

void DaqpipeSystem::forget(std::uint32_t kind, std::uint32_t index) {
    if (kind == kProcessed) {
        in_process_.release(index);
    }
}

/// What units that are lost were collecting is not built any more.
void DaqpipeSystem::begin_epoch(const std::vector<EpochSlot>& /*slots*/, Time /*now*/) {
    assigned_.clear();
}

void DaqpipeSystem::begin_unit(std::uint32_t node, std::uint64_t mep_end, Time now) {
    placed_[node] = {std::move(make_unit(node).value()), 0, first_mep_};  // as all, but fewer
    lease_unit(node, mep_end, now);
    if (placement_.readouts.unit_on[node] != ReadoutIndex::none()) {
        feed(node, now);
    }
    keep_slots(node, now);
    end_event_wait(now);
}

void DaqpipeSystem::lease_unit(std::uint32_t node, std::uint64_t mep_end, Time now) {
    World world{*this, node, now};
    placed_[node].unit.on_lease(mep_end, world);
    end_event_wait(now);
}

void DaqpipeSystem::close_unit(std::uint32_t node, const Lost& lost, Time now) {
    World world{*this, node, now};
    DaqpipeUnit& unit = placed_[node].unit;
    unit.on_close(lost.readouts, lost.builders, now, world);
    if (unit.next_timer() != Time::never()) {
        push(unit.next_timer(), kPatience, node, node);
    }
}

void DaqpipeSystem::end_unit(std::uint32_t node, Time now) {
    World world{*this, node, now};
    placed_[node].unit.on_end(world);
}

void DaqpipeSystem::add_counts(std::uint32_t node, UnitCounts& all) const {
    const DaqpipeUnit& here = placed_[node].unit;
    if (const auto* builder = here.builder()) {
        const auto& counted = builder->counters();
        all.granted += static_cast<std::int64_t>(counted.assigned);
        const Delivered meps = delivered(counted);
        all.built += static_cast<std::int64_t>(meps.built);
        all.incomplete += static_cast<std::int64_t>(meps.incomplete);
        all.dropped += static_cast<std::int64_t>(counted.dropped);
        all.steps += counted.fragments + counted.built;
    }
    if (const auto* readout = here.readout()) {
        all.steps += readout->counters().fragments;
    }
}

bool DaqpipeSystem::waits(UnitIndex unit) const {
    return has_unit(unit.value()) && placed_[unit.value()].unit.waits_for_its_own();
}

void DaqpipeSystem::feed(std::uint32_t node, Time now) {
    if (node == kNobody || !has_unit(node)) {
        return;
    }
    World world{*this, node, now};
    Placed& here = placed_[node];
    while (here.offered < events_ && here.unit.wants_data()) {
        ++here.offered;
        here.unit.on_data(now, world);
    }
}

}  // namespace daqloom::systems
