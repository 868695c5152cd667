// Pull building whose units may be lost: what is its own of an epoch.
#include <utility>

#include "systems/pull_system.hpp"
#include "systems/pull_world.hpp"

namespace daqloom::systems {

using base::Time;
using namespace protocol;

/// What units that are lost were collecting is not built any more.
void PullSystem::begin_epoch(const std::vector<EpochSlot>& /*slots*/, Time /*now*/) {
    unbuilt_ = before_.assigned - built_;
    records_.clear();
    first_record_ = 0;
    told_.clear();
}

/// Events that came while no epoch was, or were not given out in the last one, are there at once.
void PullSystem::begin_unit(std::uint32_t node, std::uint64_t event_end, Time now) {
    units_[node] = std::move(PullUnit::make(config_of(node)).value());  // as all, but fewer
    served_[node] = {};
    if (units_[node].manager() != nullptr) {
        World world{*this, node, now};
        units_[node].on_start(first_mep_, world);
    }
    lease_unit(node, event_end, now);
}

void PullSystem::lease_unit(std::uint32_t node, std::uint64_t event_end, Time now) {
    World world{*this, node, now};
    units_[node].on_lease(event_end, world);
    tell(now);
}

void PullSystem::close_unit(std::uint32_t node, const Lost& lost, Time now) {
    World world{*this, node, now};
    units_[node].on_close(lost.readouts, lost.builders, now, world);
    tell(now);
}

void PullSystem::retire_unit(std::uint32_t node) {
    if (const EventManager* manager = units_[node].manager()) {
        before_.events += manager->counters().events - manager->backlog();
        before_.assigned += manager->counters().assigned;
    }
}

void PullSystem::add_counts(std::uint32_t node, UnitCounts& all) const {
    if (const PullBuilder* builder = units_[node].builder()) {
        const PullBuilder::Counters& counted = builder->counters();
        all.granted += static_cast<std::int64_t>(counted.assigned);
        const Delivered meps = delivered(counted);
        all.built += static_cast<std::int64_t>(meps.built);
        all.incomplete += static_cast<std::int64_t>(meps.incomplete);
        all.dropped += static_cast<std::int64_t>(counted.dropped);
        all.steps += counted.fragments + counted.built;
    }
    all.steps += served_[node].written;
}

bool PullSystem::waits(UnitIndex unit) const {
    const std::uint32_t node = unit.value();
    return has_unit(node) && (units_[node].waits_for_its_own() || served_[node].to_write > 0);
}

void PullSystem::forget(std::uint32_t kind, std::uint32_t index) {
    if (kind != kArrival) {
        timers_.release(index);
    }
}

}  // namespace daqloom::systems
