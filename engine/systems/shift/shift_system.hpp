// Event building by linear shifting on a simulated network: runs the units of protocol/ in virtual
// time.
//
// A node has a readout unit, a builder unit, or one of each (folded). Their messages and writes are
// messages of nodes (hosts/nodes.hpp).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/distribution.hpp"
#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/pool.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "protocol/data/mfp_sizes.hpp"
#include "protocol/schedule/readout_cards.hpp"
#include "protocol/schedule/spiky_delay.hpp"
#include "protocol/units/shift_unit.hpp"
#include "systems/message_content.hpp"
#include "systems/run/regrouping_system.hpp"

namespace daqloom::systems {

/// A period in which a readout unit's card sends no acknowledgements; all are sent at its end.
struct CardStop {
    DAQLOOM_FIELDS(CardStop, (protocol::ReadoutIndex, unit, "Readout unit of the card."),
                   (base::Time, begin, "Begin of the stop."), (base::Time, end, "End of the stop."))
};

/// Configuration of linear shifting. A run control needs `card_buffer` 0, unlimited cards.
struct ShiftSystemConfig : SystemConfig, RegroupingConfig, protocol::ShiftRules {
    DAQLOOM_FIELDS(
        ShiftSystemConfig,
        (std::vector<NodeIndex>, slots, "Host in each slot of the schedule, or none: a dummy."),
        (std::vector<NodeIndex>, builder_slots,
         "Hosts of builder units if unfolded, as many as `slots`, which then lists readout units "
         "only; empty: folded, a builder unit beside each readout unit."),
        (base::DelayDistribution, phase_jitter,
         "Delay of a unit after its release from a barrier, or after the opening of its window."),
        (std::vector<base::Bytes>, mfp_bytes,
         "Mean size of an MFP, by readout unit and stream; the units in the order of their slots."),
        (std::uint32_t, streams, "Streams of a readout unit.", 1),
        (protocol::FragmentSizes, fragment_sizes, "Distribution of the sizes of fragments."),
        (base::Time, mfp_interval,
         "Time between two MFPs of a stream; 0: as fast as there is room."),
        (base::Bytes, stream_buffer, "Buffer of a stream (B).", base::Bytes{1} << 40),
        (base::Bytes, output_buffer, "Buffer of a builder unit (B).", base::Bytes{1} << 40),
        (std::vector<base::DelayDistribution>, processing,
         "Successive delays from a built MEP until its room is free again."),
        (base::Bytes, card_buffer,
         "Buffer of the card that a stream comes from; 0: without limit. Needs an interval."),
        (protocol::SpikyDelay, card_acknowledge,
         "Time from an MFP's arrival in host memory until its card has the acknowledgement; in "
         "order for each stream."),
        (std::vector<CardStop>, card_stops, "Stops of the cards' acknowledgements."),
        (base::Time, barrier_level_latency,
         "Barrier of the network: time from one level of its reduction tree to the next."),
        (std::vector<std::uint32_t>, barrier_levels,
         "Barrier of the network: levels of switches in the tree of each readout unit's group; "
         "the units in the order of their slots."))
    std::uint32_t buffered_mfps = 0;  ///< per stream; 0: two rounds of all builder units
    /// Time from the last use of an MFP until its room is free again.
    base::DelayDistribution source_acknowledge;
};

/// Counts after the warm-up, summed over the nodes; times are sums over the readout units.
struct ShiftReport {
    DAQLOOM_FIELDS(
        ShiftReport, (base::Time, window, "From the end of the warm-up to the end."),
        (std::uint64_t, meps_built, "MEPs built."),
        (std::uint64_t, meps_incomplete, "MEPs delivered without some MFPs."),
        (base::Bytes, bytes_built, "Bytes of the MFPs in the MEPs built."),
        (std::uint64_t, meps_discarded, "MEPs discarded: the output buffer was full."),
        (std::uint64_t, mfps_written,
         "MFPs written to builder units, copies within a node included."),
        (base::Bytes, bytes_written, "Bytes of the MFPs written."),
        (std::uint64_t, mfps_blocked, "MFPs that waited for a full stream buffer to drain."),
        (std::uint64_t, steps, "Phases completed, a sum over the readout units."),
        (std::uint64_t, idle_steps, "Phases without a partner: the turn of a dummy."),
        (std::uint64_t, skipped_steps, "Time windows that a unit woke up too late for."),
        (std::uint64_t, writes_overran,
         "Writes that were not complete when their time window ended."),
        (base::Time, in_barrier,
         "Time from entering a barrier to release, a sum over the readout units."),
        (base::Time, idle, "Time in phases without a partner, a sum over the readout units."),
        (base::Time, sending, "Time in phases spent sending, a sum over the readout units."),
        (base::Time, entering,
         "Time in phases held back before sending, a sum over the readout units."),
        (base::Time, asking,
         "Time in phases until the builder unit permitted writes, a sum over the readout units."),
        (std::uint64_t, requests, "Requests of readout units to write."),
        (std::uint64_t, answered_ahead,
         "Requests answered before the last writer was through, so that the next follows it."),
        (std::uint64_t, barriers, "Barriers that all units of a group have left."),
        (std::uint64_t, barriers_passed,
         "Barriers at which a unit out of step did not wait, a sum over the readout units."),
        (base::Time, waiting_for_slowest,
         "Time from entering a barrier until the last unit has, a sum over the readout units."),
        (base::Time, releasing,
         "Time from the last unit's entry to release, a sum over the readout units."),
        (base::Time, processor, "Time of processors spent on messages, a sum over the nodes."),
        (std::uint64_t, control_messages, "Messages between units, barriers and sizes included."),
        (base::Time, stopped_for_acknowledge,
         "Time that the trigger was stopped: a card had not acknowledged."),
        (base::Time, stopped_for_memory,
         "Time that the trigger was stopped: a card's memory was full."),
        (std::uint64_t, unexpected, "Inputs that units ignored; a correct run has none."))
};

/// Configuration common to all nodes, without unit numbers. `slowest`: rate of the slowest cable.
protocol::ShiftUnitConfig unit_config(const ShiftSystemConfig& config,
                                      const protocol::LinearShift& shift, base::BitRate slowest);

inline constexpr std::uint32_t kMostStreams = 8;  ///< per readout unit

/// Content of a message between nodes: one of a unit, or the write of MEP `number` and stream
/// `round`.
using ShiftContent = MessageContent<kMostStreams>;

class ShiftSystem final : public RegroupingSystem<ShiftContent> {
  public:
    /// A stage of a unit, for timelines.
    struct UnitStage {
        DAQLOOM_FIELDS(UnitStage, (base::Time, begin, "Time at which each stage began."),
                       (std::uint64_t, step, "Phases since the start."),
                       (protocol::ReadoutIndex, unit,
                        "Readout units, in the order of their slots."),
                       (protocol::ShiftStage, stage, "Values of ShiftStage."))
    };

    static base::expected<std::unique_ptr<ShiftSystem>> make(const ShiftSystemConfig& config);

    [[nodiscard]] const ShiftSystemConfig& config() const { return config_; }
    [[nodiscard]] ShiftReport report() const;
    /// Whether the run is deadlocked: all events that are left belong to flows or have no effect.
    [[nodiscard]] bool stalled() const override {
        return !run_ &&
               transport().events().size() == flows().awaited() + transport().idle_events();
    }
    /// Checks the conservation of packets, credits and MFPs. Under a run control, each MEP must be
    /// built, delivered incomplete or lost for one cause.
    [[nodiscard]] base::expected<void> check_conservation() const;
    /// Records the stages of all units from now on.
    void record_stages() { recording_ = true; }
    [[nodiscard]] const std::vector<UnitStage>& stages() const { return stages_; }

  private:
    static constexpr std::uint32_t kMostMeps = 1'000;  ///< per phase
    /// Limit on the MFPs of all units in a round; each takes some 100 B of memory.
    static constexpr std::uint64_t kMostMfps = std::uint64_t{1} << 28;

    enum EventKind : std::uint32_t {
        /// Timers of units, in the order of UnitTimer::What; index: readout unit
        kPhase = SystemNodes::kFirstOtherEvent,
        kWindow,
        kIdleOver,
        kCard,              ///< an MFP is on its card; index: readout unit · streams + stream
        kCardAcknowledged,  ///< index: readout unit · streams + stream
        kFreed,             ///< index: readout unit · streams + stream
        kProcessed,         ///< a MEP is consumed; index: see `in_process_`
        kReleased,          ///< release of a barrier outside of units; index: see `released`
        kWarm,
        kFlowDue,  ///< index: sender of a flow
        kGo,       ///< a timer of a builder unit; index: node
        // ---- see RunEvents
        kOfEpoch,
        kControl,
        kSchedule,
        kResumed,  ///< a unit has processed a release of the network; index: readout unit
    };
    struct InProcess {
        std::uint32_t node = 0;
        protocol::MepId mep{};
    };
    struct Stream {
        protocol::MfpSizes sizes;
        base::Time card_acknowledged_at;  ///< arrival of the last acknowledgement at the card
        // ---- under a run control: MFPs by their numbers in the run
        std::deque<base::Bytes> kept = {};  ///< sizes of MFPs not acknowledged
        std::uint64_t first = 0;            ///< first MFP of `kept`
        std::uint64_t taken = 0;            ///< MFPs taken from the card
        std::uint64_t offered = 0;          ///< MFPs offered to the unit of this epoch
    };
    /// A barrier that some units of a group have entered.
    struct Gathering {
        std::uint32_t released = 0;
        std::uint32_t waiting = 0;       ///< units at a barrier outside of units
        base::Time arrived;              ///< last arrival at the network's barrier
        base::Time last;                 ///< entry of the last unit
        base::Time waiting_for_slowest;  ///< sum over the units
        base::Time releasing;            ///< sum over the units
    };

    /// Outputs of cards and of units.
    struct CardsOut;
    struct World;

    explicit ShiftSystem(const ShiftSystemConfig& config);
    base::expected<void> build();
    base::expected<protocol::LinearShift> place_units();
    base::expected<void> make_units(const protocol::LinearShift& shift);

    void on_event(const sim::Event& event) override;
    void on_message(const Message& message, base::Time now) override;
    void on_written(const Message& message, base::Time now) override;
    // ---- hooks of RegroupingSystem
    void begin_epoch(const std::vector<protocol::EpochSlot>& slots, base::Time now) override;
    void begin_unit(std::uint32_t node, std::uint64_t mep_end, base::Time now) override;
    void lease_unit(std::uint32_t node, std::uint64_t mep_end, base::Time now) override;
    void close_unit(std::uint32_t node, const Lost& lost, base::Time now) override;
    [[nodiscard]] bool has_drained(std::uint32_t node) const override;
    void end_unit(std::uint32_t node, base::Time now) override;
    [[nodiscard]] std::uint64_t next_mep_of(std::uint32_t node) const override {
        return units_[node].next_mep();
    }
    void retire_unit(std::uint32_t node) override { add(units_[node], counted_); }
    void add_counts(std::uint32_t node, UnitCounts& counts) const override;
    [[nodiscard]] bool waits(UnitIndex unit) const override;
    void forget(std::uint32_t kind, std::uint32_t index) override;
    /// Gives the unit as many of the available MFPs of this epoch as it takes.
    void feed(std::uint32_t stream, base::Time now);
    /// Drops the MFPs before `mfp`: their MEPs have been answered in an earlier epoch.
    void skip_to(std::uint64_t mfp, std::uint32_t stream, base::Time now);

    base::expected<void> place_cards();
    void taken_from_card(std::uint32_t stream, base::Time now);
    void enter_stage(protocol::ReadoutIndex unit, std::uint64_t step, protocol::ShiftStage stage,
                     base::Time now);
    void leave_barrier(protocol::ReadoutIndex unit, std::uint64_t step, base::Time since,
                       base::Time now);
    /// Number of a stream in cards and events, among the streams of all readout units of the run.
    [[nodiscard]] std::uint32_t stream_number(std::uint32_t node,
                                              protocol::StreamIndex stream) const {
        return readouts_in_run_.unit_on[node].value() * config_.streams + stream.value();
    }
    /// Node of a stream's readout unit; kNoNode if the unit is lost.
    [[nodiscard]] std::uint32_t node_of_stream(std::uint32_t number) const {
        return readouts_in_run_.node_of[unit_of(number)];
    }
    [[nodiscard]] protocol::ReadoutIndex unit_of(std::uint32_t number) const {
        return protocol::ReadoutIndex(number / config_.streams);
    }
    [[nodiscard]] protocol::StreamIndex stream_of(std::uint32_t number) const {
        return protocol::StreamIndex(number % config_.streams);
    }
    /// Units that wait for each other at barriers.
    struct Group {
        std::vector<protocol::ReadoutIndex> units;
        /// Barriers that some units have entered and not all have left, by generation modulo the
        /// size. Units are up to k generations apart: if the first unit enters generation g, the
        /// last unit may just enter g - 1 - k and wait for the release of g - 1 - 2 k.
        std::vector<Gathering> gatherings;
        std::uint64_t generation = 0;  ///< generation of the last barrier outside of units
        base::Time crossing;           ///< from the last arrival to the release, both at adapters
    };

    void make_groups(const protocol::LinearShift& shift);
    /// Index of a kReleased event: the unit's group + groups · lower part of the generation.
    [[nodiscard]] std::uint32_t released(protocol::ReadoutIndex unit,
                                         std::uint64_t generation) const {
        const std::uint64_t generations = (std::uint64_t{1} << 32) / groups_.size();
        return static_cast<std::uint32_t>(generation % generations * groups_.size() +
                                          group_of_[unit]);
    }
    void enter_group(protocol::ReadoutIndex unit, std::uint32_t node, std::uint64_t generation,
                     base::Time now);
    void release_all(Group& group, base::Time now);
    void resume(protocol::ReadoutIndex unit, base::Time now);
    [[nodiscard]] Group& group_of(protocol::ReadoutIndex unit) { return groups_[group_of_[unit]]; }
    /// Whether a barrier gathers a whole group; with `neighbour` a unit waits for one other unit.
    [[nodiscard]] bool gathers() const {
        return config_.barrier != protocol::ShiftBarrier::neighbour;
    }
    [[nodiscard]] Gathering& gathering(protocol::ReadoutIndex unit, std::uint64_t generation) {
        std::vector<Gathering>& all = group_of(unit).gatherings;
        return all[generation % all.size()];
    }
    [[nodiscard]] ShiftReport sums() const;
    void add(const protocol::ShiftUnit& unit, ShiftReport& sums) const;

    ShiftSystemConfig config_;
    base::BitRate slowest_rate_;
    std::vector<protocol::ShiftUnit> units_;  ///< last unit of each node
    base::Table<protocol::ReadoutIndex, protocol::StageClock> stages_of_;
    std::vector<Stream> streams_;  ///< streams of all readout units of the run
    protocol::ReadoutCards cards_;
    base::Table<protocol::ReadoutIndex, base::RandomStream> card_delays_;
    base::Pool<InProcess> in_process_;
    std::vector<Group> groups_;
    base::Table<protocol::ReadoutIndex, std::uint32_t> group_of_;
    base::RandomStream jitter_;
    base::RandomStream processing_;
    base::RandomStream acknowledge_;
    ShiftReport counted_;
    ShiftReport before_;  ///< counts at the end of the warm-up
    bool recording_ = false;
    std::vector<UnitStage> stages_;
    std::optional<protocol::LinearShift> shift_;  ///< schedule of this epoch, under a run control
};

}  // namespace daqloom::systems
