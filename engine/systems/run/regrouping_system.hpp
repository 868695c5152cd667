// A system that goes on without lost units, epoch by epoch, under a run control.
//
// A unit has the number of its node. The placement of units changes with each epoch. An event of a
// node belongs to the node's epoch and is dropped when that epoch is over.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/pool.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/orders.hpp"
#include "protocol/run/run_plan.hpp"
#include "systems/placement.hpp"
#include "systems/run/run_driver.hpp"
#include "systems/system.hpp"

namespace daqloom::systems {

/// A new order of the units in the slots of the schedule, used from the next epoch on.
struct ScheduleChange {
    DAQLOOM_FIELDS(ScheduleChange, (base::Time, at, "End of the epoch before."),
                   (std::vector<NodeIndex>, slots, "Hosts in the slots, as in the configuration."),
                   (std::vector<NodeIndex>, builder_slots, "Hosts of builder units, likewise."))
};

struct RegroupingConfig {
    DAQLOOM_FIELDS(
        RegroupingConfig,
        (std::optional<protocol::RunPlan>, run,
         "Plan of the run control under which units go on without lost ones; none: no unit is "
         "lost. The slots of the schedule list the units. Not with flows."),
        (base::Time, launch, "Time from the start of a unit's process until it has joined."),
        (std::vector<NodeIndex>, spare_slots,
         "Spare hosts, to which lost units move, each in its own slot from then on, where units "
         "regroup; as many as slots, none in the other slots; or empty."),
        (bool, keeps_lost_slots, "A lost unit leaves a dummy in its slot, else no slot.", true),
        (std::vector<ScheduleChange>, schedule_changes, "Later schedules, where units regroup."))
};

template <class Content>
class RegroupingSystem : public SystemOf<Content>, private ControlledUnits {
  public:
    /// Null without a run control: then no unit is lost.
    [[nodiscard]] const RunDriver* run_control() const { return run_.get(); }
    /// Host of a unit of the run control.
    [[nodiscard]] NodeIndex host_of(UnitIndex unit) const { return placement_.hosts[unit.value()]; }
    /// Messages dropped because their receiver was not in the epoch of their sender.
    [[nodiscard]] std::uint64_t messages_dropped() const {
        return this->nodes().messages_dropped();
    }

  protected:
    using SystemNodes = typename SystemOf<Content>::SystemNodes;
    using Message = typename SystemOf<Content>::Message;
    using Lease = protocol::UnitLease::Lease;
    static constexpr std::uint32_t kNoNode = ~std::uint32_t{0};

    /// Numbers of the system's event kinds that regrouping uses.
    struct RunEvents {
        std::uint32_t of_epoch;  ///< event of the system, dropped if its node's epoch is over
        std::uint32_t control;   ///< due time of the run control
        std::uint32_t schedule;  ///< change of the schedule
    };
    /// State of a node under a run control.
    struct NodeState {
        std::uint32_t epoch = 0;     ///< epoch prepared and not over; 0: none
        bool has_unit = false;       ///< whether the unit of this epoch has been started
        std::vector<Message> early;  ///< messages from units that started before this unit
        UnitCounts counted;  ///< counts of earlier units; `next_mep`: of the current one too
        UnitCounts before;   ///< counts of the unit's earlier processes
        base::Time made;     ///< begin of the unit's process
        std::set<UnitIndex> suspects;  ///< units of the epoch that it reports as unreachable
    };
    /// Lost members of an epoch.
    struct Lost {
        std::vector<protocol::ReadoutIndex> readouts;
        std::vector<protocol::BuilderIndex> builders;
    };
    /// MEPs that a builder unit has delivered.
    struct Deliveries {
        std::uint64_t built = 0;       ///< with the MFPs of all readout units of the run
        std::uint64_t incomplete = 0;  ///< without the MFPs of some readout units
    };

    explicit RegroupingSystem(RunEvents kinds) : kinds_(kinds) {}

    /// Makes the nodes of the units in `placement_`, of the spares, and then of `other` hosts,
    /// which the run control does not know.
    base::expected<void> place_nodes(const SystemConfig& system, const RegroupingConfig& config,
                                     std::uint32_t flow_due, const std::vector<NodeIndex>& other);
    /// Makes and begins the run control. `readouts`, `builders`: the hosts in the slots of the run.
    base::expected<void> make_run(const SystemConfig& system, const RegroupingConfig& config,
                                  const std::vector<NodeIndex>& readouts,
                                  const std::vector<NodeIndex>& builders, bool takes_turns);

    // ---- hooks of the system
    /// Prepares an epoch, whose units are in `placement_`.
    virtual void begin_epoch(const std::vector<protocol::EpochSlot>& slots, base::Time now) = 0;
    /// Starts the node's unit. `mep_end`: end of its lease, as a MEP number of the epoch.
    virtual void begin_unit(std::uint32_t node, std::uint64_t mep_end, base::Time now) = 0;
    virtual void lease_unit(std::uint32_t node, std::uint64_t mep_end, base::Time now) = 0;
    virtual void close_unit(std::uint32_t node, const Lost& lost, base::Time now) = 0;
    [[nodiscard]] virtual bool has_drained(std::uint32_t node) const = 0;
    /// Whether a unit waits for its own source.
    [[nodiscard]] virtual bool waits(UnitIndex unit) const = 0;
    /// Ends the epoch of a node's unit.
    virtual void end_unit(std::uint32_t node, base::Time now) = 0;
    /// First MEP of this epoch with which the next epoch may begin, as far as the unit knows: the
    /// unit, drained or not, has written no data of this MEP.
    [[nodiscard]] virtual std::uint64_t next_mep_of(std::uint32_t node) const = 0;
    /// Removes a node's unit; the system adds the unit's counts to its own.
    virtual void retire_unit(std::uint32_t node) = 0;
    /// Adds the unit's counts except `next_mep`, which count_answer keeps.
    virtual void add_counts(std::uint32_t node, UnitCounts& counts) const = 0;
    /// Releases the data of an event that is dropped because its epoch is over.
    virtual void forget(std::uint32_t kind, std::uint32_t index) = 0;

    /// Schedules an event that is dropped if the node's epoch ends first.
    void push(base::Time at, std::uint32_t kind, std::uint32_t index, std::uint32_t node) {
        if (run_) [[unlikely]] {
            index = pending_.put({node, states_[node].epoch, kind, index});
            kind = kinds_.of_epoch;
        }
        this->nodes().events().push({at, kind, index});
    }
    /// Handles events of the kinds in RunEvents.
    void on_run_event(const sim::Event& event);
    [[nodiscard]] bool has_unit(std::uint32_t node) const {
        return !run_ || states_[node].has_unit;
    }
    /// Keeps a message for a node whose unit starts later than the sender's.
    void keep_early(const Message& message) { states_[message.to].early.push_back(message); }
    /// Reports a processed input of the node's unit to the run control.
    void report_input(std::uint32_t node, base::Time now) {
        if (run_) [[unlikely]] {
            run_->on_input(UnitIndex(node), now);
        }
    }
    [[nodiscard]] std::uint64_t in_epoch(std::uint64_t mep_end) const {
        return mep_end - std::min(mep_end, first_mep_);
    }
    /// MEPs that a builder unit delivered in this epoch. Its counters cover members of the epoch
    /// only. A MEP without the MFPs of an absent readout unit is incomplete, as in a live run.
    template <class Counters>
    [[nodiscard]] Deliveries delivered(const Counters& counted) const {
        const std::uint64_t all = counted.built + counted.incomplete;
        return lacks_readouts_ ? Deliveries{0, all} : Deliveries{counted.built, counted.incomplete};
    }
    /// Number of incomplete MEPs of the run.
    [[nodiscard]] std::uint64_t incomplete_in_run() const;
    /// Counts a MEP of the epoch as answered by a builder unit.
    void count_answer(std::uint32_t node, std::uint64_t mep) {
        std::uint64_t& next = states_[node].counted.next_mep;
        next = std::max(next, first_mep_ + mep + 1);
    }
    void count_delivery(std::uint64_t mep);
    /// Counts all MEPs as answered up to the last one of which the node's unit has written data.
    void count_written(std::uint32_t node) {
        std::uint64_t& next = states_[node].counted.next_mep;
        next = std::max(next, first_mep_ + next_mep_of(node));
    }
    /// Checks that each MEP of the run was built, delivered incomplete or lost for one cause.
    [[nodiscard]] base::expected<void> check_fates() const;

    Placement placement_;                             ///< units of this epoch
    Places<protocol::ReadoutIndex> readouts_in_run_;  ///< current nodes of the run's readout units
    std::uint64_t first_mep_ = 0;                     ///< first MEP of this epoch
    std::unique_ptr<RunDriver> run_;

  private:
    /// An event of a node's epoch.
    struct EpochEvent {
        std::uint32_t node = 0;
        std::uint32_t epoch = 0;
        std::uint32_t kind = 0;
        std::uint32_t index = 0;
    };

    [[nodiscard]] std::vector<UnitIndex> units_in(const std::vector<NodeIndex>& hosts) const;
    void reschedule(const ScheduleChange& change, base::Time now);
    void place_epoch(const protocol::orders::Prepare& order, base::Time now);
    void retire(std::uint32_t node);

    // ---- interface of the run control
    void call_back(base::Time at, std::uint32_t number) final {
        this->nodes().events().push({at, kinds_.control, number});
    }
    [[nodiscard]] base::Time stopped_until(UnitIndex unit) const final {
        return this->nodes().stopped_until(unit.value());
    }
    std::vector<std::byte> prepare(UnitIndex unit, const protocol::orders::Prepare& order) final;
    void start(UnitIndex unit, std::uint64_t first_mep, Lease leased) final;
    void lease(UnitIndex unit, Lease leased) final;
    void close(UnitIndex unit, std::span<const UnitIndex> lost) final;
    [[nodiscard]] bool is_drained(UnitIndex unit) const final {
        return !has_unit(unit.value()) || has_drained(unit.value());
    }
    std::optional<std::uint64_t> drain(UnitIndex unit, base::Time wait_until,
                                       base::Time until) final;
    std::optional<protocol::NamedCounters> shut(UnitIndex unit) final;
    [[nodiscard]] std::vector<UnitIndex> suspects(UnitIndex unit) const final {
        const std::set<UnitIndex>& all = states_[unit.value()].suspects;
        return {all.begin(), all.end()};
    }
    [[nodiscard]] protocol::NamedCounters counters(UnitIndex unit) const final;
    [[nodiscard]] UnitCounts counts(UnitIndex unit) const final;

    // ---- faults of nodes
    void on_unreachable(const Message& message, base::Time /*now*/) final {
        states_[message.from].suspects.insert(UnitIndex(message.to));
    }
    void on_killed(std::uint32_t node, base::Time until, base::Time now) final {
        if (until > now) {
            run_->hold(UnitIndex(node), until, now);
        }
        run_->kill(UnitIndex(node), now);
    }
    [[nodiscard]] bool regroups() const final { return regroups_; }

    RunEvents kinds_;
    bool regroups_ = false;
    std::vector<NodeState> states_;  ///< state of each node
    base::Pool<EpochEvent> pending_;
    std::uint32_t epoch_ = 0;
    bool lacks_readouts_ = false;  ///< whether readout units of the run are absent from this epoch
    std::vector<bool> delivered_;  ///< by MEP of the run
    std::uint64_t twice_ = 0;      ///< MEPs delivered more than once
    std::vector<ScheduleChange> schedule_changes_;
};

// ---- the run ------------------------------------------------------------------------------------

template <class Content>
base::expected<void> RegroupingSystem<Content>::place_nodes(const SystemConfig& system,
                                                            const RegroupingConfig& config,
                                                            std::uint32_t flow_due,
                                                            const std::vector<NodeIndex>& other) {
    for (const NodeIndex spare : config.spare_slots) {
        if (spare != NodeIndex::none()) {
            DAQLOOM_CHECK(placement_.add_spare(spare));
        }
    }
    readouts_in_run_ = placement_.readouts;
    states_.resize(placement_.hosts.size());
    regroups_ = config.run.has_value();
    DAQLOOM_REFUSE_IF(!regroups_ && !config.schedule_changes.empty(),
                      "the schedule changes where units regroup; expected a run control");
    std::vector<NodeIndex> hosts = placement_.hosts;
    hosts.insert(hosts.end(), other.begin(), other.end());
    return this->place(system, std::move(hosts), flow_due);
}

template <class Content>
base::expected<void> RegroupingSystem<Content>::make_run(const SystemConfig& system,
                                                         const RegroupingConfig& config,
                                                         const std::vector<NodeIndex>& readouts,
                                                         const std::vector<NodeIndex>& builders,
                                                         bool takes_turns) {
    DAQLOOM_REFUSE_IF(!system.flows.empty(),
                      "flows are not simulated with units that regroup; remove either");
    protocol::RunPlan plan = *config.run;
    plan.units = static_cast<std::uint32_t>(placement_.hosts.size());
    plan.takes_turns = takes_turns;
    plan.builds_alone = system.local_rate.bps > 0;
    plan.slots = {.readouts = units_in(readouts),
                  .builders = units_in(builders),
                  .spares = units_in(config.spare_slots),
                  .keeps_lost = config.keeps_lost_slots};
    schedule_changes_ = config.schedule_changes;
    for (std::uint32_t change = 0; change < schedule_changes_.size(); ++change) {
        const ScheduleChange& other = schedule_changes_[change];
        DAQLOOM_CHECK(plan.slots.rearranged(units_in(other.slots), units_in(other.builder_slots)));
        this->nodes().events().push({other.at, kinds_.schedule, change});
    }
    ControlledUnits& units = *this;
    run_ = std::make_unique<RunDriver>(plan, config.launch, units);
    run_->begin(base::Time::zero());
    return {};
}

/// The units on these hosts; a host without units has a number that no unit has.
template <class Content>
std::vector<UnitIndex> RegroupingSystem<Content>::units_in(
    const std::vector<NodeIndex>& hosts) const {
    std::vector<UnitIndex> units;
    for (const NodeIndex host : hosts) {
        const auto found = placement_.node_at.find(host);
        const std::size_t unit =
            found != placement_.node_at.end() ? found->second : placement_.hosts.size();
        units.push_back(host == NodeIndex::none() ? UnitIndex::none() : UnitIndex(unit));
    }
    return units;
}

template <class Content>
void RegroupingSystem<Content>::reschedule(const ScheduleChange& change, base::Time now) {
    const protocol::RunSlots& before = run_->control().roles().slots();
    run_->reschedule(*before.rearranged(units_in(change.slots), units_in(change.builder_slots)),
                     "there is another schedule", now);
}

template <class Content>
void RegroupingSystem<Content>::on_run_event(const sim::Event& event) {
    if (event.kind == kinds_.of_epoch) {
        const EpochEvent due = pending_[event.index];
        pending_.release(event.index);
        if (due.epoch == states_[due.node].epoch) {
            this->on_event({event.at, due.kind, due.index});
            report_input(due.node, event.at);
        } else {
            forget(due.kind, due.index);
        }
    } else if (event.kind == kinds_.control) {
        run_->on_due(event.index, event.at);
    } else if (event.kind == kinds_.schedule) {
        reschedule(schedule_changes_[event.index], event.at);
    }
}

// ---- epochs -------------------------------------------------------------------------------------

template <class Content>
std::vector<std::byte> RegroupingSystem<Content>::prepare(UnitIndex unit,
                                                          const protocol::orders::Prepare& order) {
    const base::Time now = this->now();
    states_[unit.value()].suspects.clear();
    if (order.epoch < epoch_) {
        return {};  // the unit was stopped while the others began a later epoch
    }
    if (order.epoch > epoch_) {
        epoch_ = order.epoch;
        place_epoch(order, now);
    }
    states_[unit.value()].epoch = order.epoch;
    this->nodes().enter(unit.value(), static_cast<std::uint16_t>(1 + order.epoch % 65'535), now);
    return {};
}

/// Retires the units of the previous epoch and places the members of the next one. Units that have
/// not drained answer with the last MEP that they wrote, as live units do.
template <class Content>
void RegroupingSystem<Content>::place_epoch(const protocol::orders::Prepare& order,
                                            base::Time now) {
    for (std::uint32_t node = 0; node < placement_.hosts.size(); ++node) {
        if (states_[node].has_unit) {
            count_written(node);
        }
        retire(node);
        this->nodes().leave(node);
    }
    using protocol::BuilderIndex;
    using protocol::EpochSlot;
    using protocol::ReadoutIndex;
    const std::vector<EpochSlot> slots =
        protocol::slots_of(order.slots, order.members, order.moved);
    const auto count = std::ranges::count_if(
        slots, [](const EpochSlot& slot) { return slot.readout != UnitIndex::none(); });
    placement_.readouts.node_of.assign(static_cast<std::size_t>(count), kNoNode);
    placement_.readouts.unit_on.assign(placement_.hosts.size(), ReadoutIndex::none());
    placement_.builders = {{}, std::vector(placement_.hosts.size(), BuilderIndex::none())};
    readouts_in_run_.unit_on.assign(placement_.hosts.size(), ReadoutIndex::none());
    readouts_in_run_.node_of.assign(readouts_in_run_.node_of.size(), kNoNode);
    for (const EpochSlot& slot : slots) {
        if (slot.readout != UnitIndex::none()) {
            const std::uint32_t node = slot.readout.value();
            placement_.readouts.node_of[slot.in_epoch] = node;
            placement_.readouts.unit_on[node] = slot.in_epoch;
            readouts_in_run_.node_of[slot.in_run] = node;
            readouts_in_run_.unit_on[node] = slot.in_run;
        }
        if (slot.builder != UnitIndex::none()) {
            placement_.builders.add(slot.builder.value());
        }
    }
    lacks_readouts_ = placement_.readouts.node_of.size() < readouts_in_run_.node_of.size();
    begin_epoch(slots, now);
}

template <class Content>
void RegroupingSystem<Content>::start(UnitIndex unit, std::uint64_t first_mep, Lease leased) {
    const base::Time now = this->now();
    NodeState& state = states_[unit.value()];
    if (state.epoch != epoch_) {
        return;
    }
    first_mep_ = first_mep;
    state.has_unit = true;
    begin_unit(unit.value(), in_epoch(leased.mep_end), now);
    for (const Message& message : std::exchange(state.early, {})) {
        this->on_message(message, now);
    }
    lease(unit, leased);
}

template <class Content>
void RegroupingSystem<Content>::lease(UnitIndex unit, Lease leased) {
    if (has_unit(unit.value())) {
        const bool is_over = leased.until <= this->now();
        lease_unit(unit.value(), is_over ? 0 : in_epoch(leased.mep_end), this->now());
    }
}

template <class Content>
void RegroupingSystem<Content>::close(UnitIndex unit, std::span<const UnitIndex> lost) {
    if (!has_unit(unit.value())) {
        return;  // no unit of this epoch: see prepare()
    }
    Lost gone;
    for (const UnitIndex each : lost) {
        if (const auto reads = placement_.readouts.unit_on[each.value()];
            reads != protocol::ReadoutIndex::none()) {
            gone.readouts.push_back(reads);
        }
        if (const auto builds = placement_.builders.unit_on[each.value()];
            builds != protocol::BuilderIndex::none()) {
            gone.builders.push_back(builds);
        }
    }
    close_unit(unit.value(), gone, this->now());
}

template <class Content>
std::optional<std::uint64_t> RegroupingSystem<Content>::drain(UnitIndex unit,
                                                              base::Time /*wait_until*/,
                                                              base::Time /*until*/) {
    if (!is_drained(unit)) {
        return {};
    }
    if (!has_unit(unit.value())) {
        return 0;
    }
    end_unit(unit.value(), this->now());
    count_written(unit.value());
    return states_[unit.value()].counted.next_mep;
}

template <class Content>
std::optional<protocol::NamedCounters> RegroupingSystem<Content>::shut(UnitIndex unit) {
    const base::Time now = this->now();
    NodeState& state = states_[unit.value()];
    state.before = counts(unit);
    state.made = now;
    state.suspects.clear();
    retire(unit.value());
    this->nodes().enter(unit.value(), 0, now);
    this->nodes().restart(unit.value(), now);
    return {};
}

/// Retires the node's unit and keeps its counts.
template <class Content>
void RegroupingSystem<Content>::retire(std::uint32_t node) {
    NodeState& state = states_[node];
    if (state.has_unit) {
        retire_unit(node);
        state.counted = counts(UnitIndex(node));
    }
    state.has_unit = false;
    state.epoch = 0;
    state.early.clear();
}

// ---- fates of MEPs

template <class Content>
UnitCounts RegroupingSystem<Content>::counts(UnitIndex unit) const {
    const NodeState& state = states_[unit.value()];
    UnitCounts all = state.counted;
    if (state.has_unit) {
        add_counts(unit.value(), all);
    }
    return all;
}

/// Counters of the unit's current process.
template <class Content>
protocol::NamedCounters RegroupingSystem<Content>::counters(UnitIndex unit) const {
    namespace names = protocol::counter_names;
    const NodeState& state = states_[unit.value()];
    const UnitCounts all = counts(unit);
    const UnitCounts& before = state.before;
    protocol::NamedCounters counters;
    counters.by_name = {{names::elapsed_s, (this->now() - state.made).seconds()},
                        {names::beats, this->now().ps},
                        {names::steps, static_cast<std::int64_t>(all.steps - before.steps)},
                        {names::waits, std::int64_t{waits(unit)}},
                        {names::next_mep, static_cast<std::int64_t>(all.next_mep)},
                        {names::meps_granted, all.granted - before.granted},
                        {names::meps_built, all.built - before.built},
                        {names::meps_incomplete, all.incomplete - before.incomplete},
                        {names::meps_dropped, all.dropped - before.dropped},
                        {names::meps_discarded, all.discarded - before.discarded}};
    return counters;
}

template <class Content>
std::uint64_t RegroupingSystem<Content>::incomplete_in_run() const {
    std::int64_t all = 0;
    for (std::uint32_t node = 0; run_ && node < states_.size(); ++node) {
        all += counts(UnitIndex(node)).incomplete;
    }
    return static_cast<std::uint64_t>(all);
}

template <class Content>
void RegroupingSystem<Content>::count_delivery(std::uint64_t mep) {
    const std::uint64_t number = first_mep_ + mep;
    if (number >= delivered_.size()) {
        delivered_.resize(number + 1);
    }
    twice_ += delivered_[number] ? 1 : 0;
    delivered_[number] = true;
}

template <class Content>
base::expected<void> RegroupingSystem<Content>::check_fates() const {
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
