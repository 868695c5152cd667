// A system whose units may be lost: the others go on without them, epoch by epoch, as the run
// control says.
//
// The number of a unit is that of its node. In an epoch, units are placed as its members are; an
// event of a node is of its epoch, and nothing comes of it when that is over.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/expected.hpp"
#include "base/pool.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/orders.hpp"
#include "protocol/run/run_plan.hpp"
#include "systems/placement.hpp"
#include "systems/run_driver.hpp"
#include "systems/system.hpp"

namespace daqloom::systems {

/// Another order of the units in the slots of the schedule, from the end of an epoch on.
struct ScheduleChange {
    base::Time at;  ///< the epoch ends
    std::vector<NodeIndex> slots;
    std::vector<NodeIndex> builder_slots;
};

struct RegroupingConfig {
    /// Units that are lost are left out by the others, under a run control with this plan; which
    /// units there are it is told by the slots. Without flows.
    std::optional<protocol::RunPlan> run;
    /// What a new process of a unit takes until it has joined.
    base::Time launch;
    /// Where units regroup, the spare hosts, to which the units of lost ones move, each in the slot
    /// that is then its own; as many as slots, with NodeIndex::none() in all others, or empty.
    std::vector<NodeIndex> spare_slots;
    /// A unit that is lost leaves a dummy in its slot; else the slot is left out.
    bool keeps_lost_slots = true;
    /// Where units regroup.
    std::vector<ScheduleChange> schedule_changes;
};

template <class Content>
class RegroupingSystem : public SystemOf<Content>, private ControlledUnits {
  public:
    /// None: no unit is to be lost.
    [[nodiscard]] const RunDriver* run_control() const { return run_.get(); }
    /// Of a unit of the run control.
    [[nodiscard]] NodeIndex host_of(UnitIndex unit) const { return hosts_[unit.value()]; }
    /// Letters that came to units that were not, or no more, in their epoch.
    [[nodiscard]] std::uint64_t letters_dropped() const { return this->nodes().letters_dropped(); }

  protected:
    using Letters = typename SystemOf<Content>::Letters;
    using Letter = typename SystemOf<Content>::Letter;
    static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

    /// The numbers of its events among those of the system.
    struct RunEvents {
        std::uint32_t of_epoch;  ///< one of the system's, unless its node's epoch is over
        std::uint32_t control;   ///< of the run control
        std::uint32_t schedule;  ///< of `schedule_changes`
    };
    /// What a node has where units regroup.
    struct Seat {
        std::uint32_t epoch = 0;    ///< that it has prepared, if it is not over for it; 0: none
        bool has_unit = false;      ///< which has been started
        std::vector<Letter> early;  ///< of those who started before it
        UnitCounts counted;         ///< by its earlier units; `next_mep`: by all
    };
    /// Who is lost, of the units of an epoch.
    struct Lost {
        std::vector<protocol::ReadoutIndex> readouts;
        std::vector<protocol::BuilderIndex> builders;
    };
    /// MEPs that a builder unit has delivered.
    struct Delivered {
        std::uint64_t built = 0;       ///< with the MFPs of all readout units of the run
        std::uint64_t incomplete = 0;  ///< without some of them
    };

    explicit RegroupingSystem(RunEvents kinds) : kinds_(kinds) {}

    /// When all units of the run are in `placement_`; spares follow.
    base::expected<void> place_nodes(const SystemConfig& system, const RegroupingConfig& config,
                                     std::uint32_t flow_due);
    /// `readouts`, `builders`: the hosts in the slots of the run.
    base::expected<void> make_run(const SystemConfig& system, const RegroupingConfig& config,
                                  const std::vector<NodeIndex>& readouts,
                                  const std::vector<NodeIndex>& builders, bool takes_turns);

    // ---- what the system does with its units
    /// `placement_` is that of the epoch.
    virtual void begin_epoch(const std::vector<protocol::EpochSlot>& slots, base::Time now) = 0;
    /// The unit of the epoch on this node begins. The end of a lease is a number in the epoch.
    virtual void begin_unit(std::uint32_t node, std::uint64_t mep_end, base::Time now) = 0;
    virtual void lease_unit(std::uint32_t node, std::uint64_t mep_end, base::Time now) = 0;
    virtual void close_unit(std::uint32_t node, const Lost& lost, base::Time now) = 0;
    [[nodiscard]] virtual bool has_drained(std::uint32_t node) const = 0;
    /// Its epoch is over.
    virtual void end_unit(std::uint32_t node, base::Time now) = 0;
    /// The first MEP of the epoch that the next one may take, as far as the unit knows: drained or
    /// not, it has written nothing of that one.
    [[nodiscard]] virtual std::uint64_t next_mep_of(std::uint32_t node) const = 0;
    /// The unit is no more; what the system has counted of it is to be kept.
    virtual void retire_unit(std::uint32_t node) = 0;
    /// Adds what the unit has counted; its `next_mep` is counted by count_answer.
    virtual void add_counts(std::uint32_t node, UnitCounts& counts) const = 0;
    /// An event of an epoch that is over does not happen.
    virtual void forget(std::uint32_t kind, std::uint32_t index) = 0;

    /// Of what is in the epoch of this node.
    void push(base::Time at, std::uint32_t kind, std::uint32_t index, std::uint32_t node) {
        if (run_) [[unlikely]] {
            index = pending_.put({node, seats_[node].epoch, kind, index});
            kind = kinds_.of_epoch;
        }
        this->nodes().events().push({at, kind, index});
    }
    /// Events with the numbers of RunEvents.
    void on_run_event(const sim::Event& event);
    [[nodiscard]] bool has_unit(std::uint32_t node) const { return !run_ || seats_[node].has_unit; }
    /// Of those who started before the unit on this node.
    void keep_early(const Letter& letter) { seats_[letter.to].early.push_back(letter); }
    /// It has taken something in.
    void tell_run(std::uint32_t node, base::Time now) {
        if (run_) [[unlikely]] {
            run_->on_input(UnitIndex(node), now);
        }
    }
    [[nodiscard]] std::uint64_t in_epoch(std::uint64_t mep_end) const {
        return mep_end - std::min(mep_end, first_mep_);
    }
    /// MEPs delivered in this epoch, by the counters of its builder unit, which knows the members
    /// only: a MEP without the MFPs of a readout unit that is away is incomplete, as in a live run.
    template <class Counters>
    [[nodiscard]] Delivered delivered(const Counters& counted) const {
        const std::uint64_t all = counted.built + counted.incomplete;
        return lacks_readouts_ ? Delivered{0, all} : Delivered{counted.built, counted.incomplete};
    }
    /// Incomplete MEPs of the run.
    [[nodiscard]] std::uint64_t incomplete_in_run() const;
    /// A builder unit has answered this MEP of the epoch.
    void count_answer(std::uint32_t node, std::uint64_t mep) {
        std::uint64_t& next = seats_[node].counted.next_mep;
        next = std::max(next, first_mep_ + mep + 1);
    }
    void count_delivery(std::uint64_t mep);
    /// The same for all that its unit has written something of.
    void count_written(std::uint32_t node) {
        std::uint64_t& next = seats_[node].counted.next_mep;
        next = std::max(next, first_mep_ + next_mep_of(node));
    }
    /// Each MEP of the run has one fate.
    [[nodiscard]] base::expected<void> check_fates() const;

    Placement placement_;                             ///< of the units of this epoch
    Places<protocol::ReadoutIndex> readouts_in_run_;  ///< where those of the run are now
    std::uint64_t first_mep_ = 0;                     ///< of this epoch
    std::unique_ptr<RunDriver> run_;

  private:
    /// An event of a node's epoch.
    struct Pending {
        std::uint32_t node = 0;
        std::uint32_t epoch = 0;
        std::uint32_t kind = 0;
        std::uint32_t index = 0;
    };

    [[nodiscard]] base::expected<void> check(const ScheduleChange& change,
                                             const std::vector<NodeIndex>& readouts,
                                             const std::vector<NodeIndex>& builders) const;
    [[nodiscard]] std::vector<UnitIndex> units_in(const std::vector<NodeIndex>& hosts) const;
    void reschedule(const ScheduleChange& change, base::Time now);
    void place_epoch(const protocol::orders::Prepare& order, base::Time now);
    void retire(std::uint32_t node);

    // ---- of the run control
    void call_back(base::Time at, std::uint32_t number) final {
        this->nodes().events().push({at, kinds_.control, number});
    }
    [[nodiscard]] base::Time stopped_until(UnitIndex unit) const final {
        return this->nodes().stopped_until(unit.value());
    }
    void prepare(UnitIndex unit, const protocol::orders::Prepare& order, base::Time now) final;
    void start(UnitIndex unit, std::uint64_t first_mep, std::uint64_t mep_end,
               base::Time now) final;
    void lease(UnitIndex unit, std::uint64_t mep_end, base::Time now) final;
    void close(UnitIndex unit, std::span<const UnitIndex> lost, base::Time now) final;
    [[nodiscard]] bool is_drained(UnitIndex unit) const final {
        return !has_unit(unit.value()) || has_drained(unit.value());
    }
    std::uint64_t end(UnitIndex unit, base::Time now) final;
    void shut(UnitIndex unit, base::Time now) final;
    [[nodiscard]] UnitCounts counts(UnitIndex unit) const final;

    // ---- of nodes whose units may be lost
    void on_unreachable(const Letter& letter, base::Time /*now*/) final {
        run_->on_unreachable(UnitIndex(letter.from), UnitIndex(letter.to));
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
    std::vector<NodeIndex> hosts_;  ///< of each node
    std::vector<Seat> seats_;       ///< of each node
    base::Pool<Pending> pending_;
    std::uint32_t epoch_ = 0;
    bool lacks_readouts_ = false;  ///< this epoch has not all readout units of the run
    std::vector<bool> delivered_;  ///< MEPs of the run
    std::uint64_t twice_ = 0;      ///< MEPs delivered more than once
    std::vector<ScheduleChange> schedule_changes_;
};

// ---- the run ------------------------------------------------------------------------------------

template <class Content>
base::expected<void> RegroupingSystem<Content>::place_nodes(const SystemConfig& system,
                                                            const RegroupingConfig& config,
                                                            std::uint32_t flow_due) {
    for (const NodeIndex spare : config.spare_slots) {
        if (spare != NodeIndex::none()) {
            DAQLOOM_CHECK(placement_.add_spare(spare));
        }
    }
    readouts_in_run_ = placement_.readouts;
    hosts_ = placement_.hosts;
    seats_.resize(hosts_.size());
    regroups_ = config.run.has_value();
    if (!regroups_ && !config.schedule_changes.empty()) {
        return base::failure(
            std::string("the schedule changes where units regroup; expected a run control"));
    }
    return this->place(system, placement_.hosts, flow_due);
}

template <class Content>
base::expected<void> RegroupingSystem<Content>::make_run(const SystemConfig& system,
                                                         const RegroupingConfig& config,
                                                         const std::vector<NodeIndex>& readouts,
                                                         const std::vector<NodeIndex>& builders,
                                                         bool takes_turns) {
    if (!system.flows.empty()) {
        return base::failure(std::string("units regroup without flows"));
    }
    protocol::RunPlan plan = *config.run;
    plan.units = static_cast<std::uint32_t>(hosts_.size());
    plan.takes_turns = takes_turns;
    plan.builds_alone = system.local_rate.bps > 0;
    plan.slots = {.readouts = units_in(readouts),
                  .builders = units_in(builders),
                  .spares = units_in(config.spare_slots),
                  .keeps_lost = config.keeps_lost_slots};
    schedule_changes_ = config.schedule_changes;
    for (std::uint32_t change = 0; change < schedule_changes_.size(); ++change) {
        DAQLOOM_CHECK(check(schedule_changes_[change], readouts, builders));
        this->nodes().events().push({schedule_changes_[change].at, kinds_.schedule, change});
    }
    ControlledUnits& units = *this;
    run_ = std::make_unique<RunDriver>(plan, config.launch, units);
    run_->begin(base::Time::zero());
    return {};
}

/// The units are the same.
template <class Content>
base::expected<void> RegroupingSystem<Content>::check(
    const ScheduleChange& change, const std::vector<NodeIndex>& readouts,
    const std::vector<NodeIndex>& builders) const {
    const auto sorted = [](std::vector<NodeIndex> hosts) {
        std::erase(hosts, NodeIndex::none());
        std::ranges::sort(hosts);
        return hosts;
    };
    if (change.slots.size() != change.builder_slots.size() ||
        sorted(change.slots) != sorted(readouts) ||
        sorted(change.builder_slots) != sorted(builders)) {
        return base::failure(std::string(
            "another schedule has other units, or not as many slots of readout as of builder "
            "units; expected the same ones"));
    }
    return {};
}

template <class Content>
std::vector<UnitIndex> RegroupingSystem<Content>::units_in(
    const std::vector<NodeIndex>& hosts) const {
    std::vector<UnitIndex> units;
    for (const NodeIndex host : hosts) {
        units.push_back(host == NodeIndex::none() ? UnitIndex::none()
                                                  : UnitIndex(placement_.node_at.at(host)));
    }
    return units;
}

template <class Content>
void RegroupingSystem<Content>::reschedule(const ScheduleChange& change, base::Time now) {
    const protocol::RunSlots& before = run_->control().roles().slots();
    run_->reschedule(before.rearranged(units_in(change.slots), units_in(change.builder_slots)),
                     "there is another schedule", now);
}

template <class Content>
void RegroupingSystem<Content>::on_run_event(const sim::Event& event) {
    if (event.kind == kinds_.of_epoch) {
        const Pending due = pending_[event.index];
        pending_.release(event.index);
        if (due.epoch == seats_[due.node].epoch) {
            this->on_event({event.at, due.kind, due.index});
            tell_run(due.node, event.at);
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
void RegroupingSystem<Content>::prepare(UnitIndex unit, const protocol::orders::Prepare& order,
                                        base::Time now) {
    if (order.epoch < epoch_) {
        return;  // it was stopped, and the others have gone on
    }
    if (order.epoch > epoch_) {
        epoch_ = order.epoch;
        place_epoch(order, now);
    }
    seats_[unit.value()].epoch = order.epoch;
    this->nodes().enter(unit.value(), static_cast<std::uint16_t>(1 + order.epoch % 65'535), now);
}

/// From here on no unit of an earlier epoch takes part in anything. Those that have not drained
/// tell with their answers to the order up to where they wrote, as live ones do.
template <class Content>
void RegroupingSystem<Content>::place_epoch(const protocol::orders::Prepare& order,
                                            base::Time now) {
    for (std::uint32_t node = 0; node < hosts_.size(); ++node) {
        if (seats_[node].has_unit) {
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
    placement_.readouts.node_of.assign(static_cast<std::size_t>(count), kNobody);
    placement_.readouts.unit_on.assign(hosts_.size(), ReadoutIndex::none());
    placement_.builders = {{}, std::vector(hosts_.size(), BuilderIndex::none())};
    readouts_in_run_.unit_on.assign(hosts_.size(), ReadoutIndex::none());
    readouts_in_run_.node_of.assign(readouts_in_run_.node_of.size(), kNobody);
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
void RegroupingSystem<Content>::start(UnitIndex unit, std::uint64_t first_mep,
                                      std::uint64_t mep_end, base::Time now) {
    Seat& seat = seats_[unit.value()];
    if (seat.epoch != epoch_) {
        return;
    }
    first_mep_ = first_mep;
    seat.has_unit = true;
    begin_unit(unit.value(), in_epoch(mep_end), now);
    for (const Letter& letter : std::exchange(seat.early, {})) {
        this->on_letter(letter, now);
    }
}

template <class Content>
void RegroupingSystem<Content>::lease(UnitIndex unit, std::uint64_t mep_end, base::Time now) {
    if (has_unit(unit.value())) {
        lease_unit(unit.value(), in_epoch(mep_end), now);
    }
}

template <class Content>
void RegroupingSystem<Content>::close(UnitIndex unit, std::span<const UnitIndex> lost,
                                      base::Time now) {
    if (!has_unit(unit.value())) {
        return;  // as in prepare
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
    close_unit(unit.value(), gone, now);
}

template <class Content>
std::uint64_t RegroupingSystem<Content>::end(UnitIndex unit, base::Time now) {
    if (!has_unit(unit.value())) {
        return 0;
    }
    end_unit(unit.value(), now);
    count_written(unit.value());
    return seats_[unit.value()].counted.next_mep;
}

template <class Content>
void RegroupingSystem<Content>::shut(UnitIndex unit, base::Time now) {
    retire(unit.value());
    this->nodes().enter(unit.value(), 0, now);
    this->nodes().restart(unit.value(), now);
}

/// What its unit has counted is kept.
template <class Content>
void RegroupingSystem<Content>::retire(std::uint32_t node) {
    Seat& seat = seats_[node];
    if (seat.has_unit) {
        retire_unit(node);
        seat.counted = counts(UnitIndex(node));
    }
    seat.has_unit = false;
    seat.epoch = 0;
    seat.early.clear();
}

// ---- what has become of MEPs --------------------------------------------------------------------

template <class Content>
UnitCounts RegroupingSystem<Content>::counts(UnitIndex unit) const {
    const Seat& seat = seats_[unit.value()];
    UnitCounts all = seat.counted;
    if (seat.has_unit) {
        add_counts(unit.value(), all);
    }
    return all;
}

template <class Content>
std::uint64_t RegroupingSystem<Content>::incomplete_in_run() const {
    std::int64_t all = 0;
    for (std::uint32_t node = 0; run_ && node < seats_.size(); ++node) {
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
