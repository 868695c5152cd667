// DAQPIPE's event building on a simulated fabric: the world of the units of protocol/ in virtual
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/distribution.hpp"
#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/pool.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "protocol/data/mfp_sizes.hpp"
#include "protocol/schedule/daqpipe_rules.hpp"
#include "protocol/units/daqpipe_unit.hpp"
#include "sim/histogram.hpp"

#include "systems/regrouping_system.hpp"
#include "systems/unit_letter.hpp"

namespace daqloom::systems {

struct DaqpipeSystemConfig : SystemConfig, RegroupingConfig, protocol::DaqpipeRules {
    /// The host of each readout unit, and of each builder unit; one of either may share a host
    /// (folded). The event manager is on the host of readout unit 0, and where units regroup, of
    /// the first one of the epoch.
    std::vector<NodeIndex> readouts;
    std::vector<NodeIndex> builders;

    /// Mean size of a fragment, by readout unit.
    std::vector<base::Bytes> fragment_bytes;
    bool is_poissonian = false;  ///< else always the mean
    /// Between two events; zero: as fast as builders take them.
    base::Time event_interval;
    /// From a built event until its memory is free again.
    base::DelayDistribution processing;
};

/// After the warm-up, all nodes together.
struct DaqpipeReport {
    DAQLOOM_FIELDS(
        DaqpipeReport, (base::Time, window, "From the end of the warm-up to the end."),
        (std::uint64_t, events_built, "Events built: of each a fragment from every readout unit."),
        (std::uint64_t, events_incomplete, "Events delivered without some fragments."),
        (base::Bytes, bytes_built, "Bytes of the fragments of all these events."),
        (std::uint64_t, fragments_written,
         "Fragments written to builder units, copies within a node included."),
        (base::Bytes, bytes_written, "Bytes of these fragments."),
        (base::Time, processor, "Time of processors spent on messages, a sum over the nodes."),
        (std::uint64_t, control_messages, "Messages between units."),
        (std::uint64_t, events_under_way, "Events assigned and not yet built, at the end."),
        (std::uint64_t, unexpected, "Inputs that units ignored; a correct run has none."))
};

/// What all units have in common: all but their own numbers.
protocol::DaqpipeUnitConfig unit_config(const DaqpipeSystemConfig& config);

class DaqpipeSystem final : public RegroupingSystem<UnitLetter<1>> {
  public:
    /// An event given to a builder and not yet built.
    struct Assigned {
        DAQLOOM_FIELDS(Assigned, (protocol::EventId, event, "Number of each event."),
                       (protocol::BuilderIndex, builder, "Its builder unit; then those on spares."),
                       (base::Time, assigned, "Time at which it was given to the builder unit."),
                       (base::Bytes, collected_bytes, "Bytes of its fragments, so far."))
    };
    /// An event built, for timelines.
    struct Built {
        DAQLOOM_FIELDS(Built, (protocol::EventId, event, "Number of each event."),
                       (protocol::BuilderIndex, builder, "Its builder unit."),
                       (base::Time, assigned, "Time at which it was given to the builder unit."),
                       (base::Time, built, "Time at which the builder unit had all fragments."))
    };

    static base::expected<std::unique_ptr<DaqpipeSystem>> make(const DaqpipeSystemConfig& config);

    [[nodiscard]] const DaqpipeSystemConfig& config() const { return config_; }
    [[nodiscard]] DaqpipeReport report() const;
    /// From the assignment of an event until it is built, after the warm-up.
    [[nodiscard]] const sim::Histogram& latency() const { return latency_; }
    /// A deadlock: only clock events are left, but messages or events are not complete.
    [[nodiscard]] bool stalled() const override;
    /// Checks the conservation of packets and credits, and of events and fragments; where units
    /// regroup, that each event has one fate.
    [[nodiscard]] base::expected<void> check_conservation() const;

    /// Keeps the events built from now on.
    void record_events() { recording_ = true; }
    [[nodiscard]] const std::vector<Built>& events_built() const { return recorded_; }
    /// By event.
    [[nodiscard]] std::vector<Assigned> events_under_way() const;

  private:
    using Note = UnitLetter<1>;
    using Say = protocol::UnitMessage::Kind;

    enum EventKind : std::uint32_t {
        kEvent = Letters::kFirstOtherEvent,  ///< the next event is there
        kSlot,                               ///< index: node
        kProcessed,                          ///< index: what was built
        kWarm,
        kFlowDue,   ///< index: sender of a flow
        kPatience,  ///< index: node; its end, while an epoch closes
        // ---- see RunEvents
        kOfEpoch,
        kControl,
        kSchedule,
    };
    struct InProcess {
        std::uint32_t node = 0;
        protocol::EventId event{};
    };
    struct World;
    struct Placed {
        protocol::DaqpipeUnit unit;  ///< the last one that the node had
        std::uint64_t next_slot = 0;
        std::uint64_t offered = 0;  ///< where units regroup: events of the run before this one
    };

    explicit DaqpipeSystem(const DaqpipeSystemConfig& config)
        : RegroupingSystem({kOfEpoch, kControl, kSchedule}),
          config_(config),
          processing_(config.seed, "processing") {}
    base::expected<void> place_units();
    base::expected<void> make_units();
    base::expected<void> begin_run();
    base::expected<protocol::DaqpipeUnit> make_unit(std::uint32_t node) const;

    void on_letter(const Letter& letter, base::Time now) override;
    void on_written(const Letter& letter, base::Time now) override;
    void on_event(const sim::Event& event) override;
    void send(std::uint32_t from, std::uint32_t to, const protocol::UnitMessage& said,
              base::Time now);
    void await_event(base::Time now);
    /// The next event may come when the event manager has given out those that are there.
    void end_event_wait(base::Time now);
    void keep_slots(std::uint32_t node, base::Time now);
    void await_slot(std::uint32_t node, base::Time now);
    /// None: its unit of this epoch has not begun, or is lost.
    [[nodiscard]] const protocol::EventManager* manager() const {
        const std::uint32_t node = placement_.readouts.node_of.front();
        return node != kNobody && has_unit(node) ? placed_[node].unit.manager() : nullptr;
    }

    // ---- of units that regroup
    void begin_epoch(const std::vector<protocol::EpochSlot>& slots, base::Time now) override;
    void begin_unit(std::uint32_t node, std::uint64_t mep_end, base::Time now) override;
    void lease_unit(std::uint32_t node, std::uint64_t mep_end, base::Time now) override;
    void close_unit(std::uint32_t node, const Lost& lost, base::Time now) override;
    [[nodiscard]] bool has_drained(std::uint32_t node) const override {
        return placed_[node].unit.is_drained();
    }
    void end_unit(std::uint32_t node, base::Time now) override;
    [[nodiscard]] std::uint64_t next_mep_of(std::uint32_t node) const override {
        return placed_[node].unit.next_event();
    }
    void retire_unit(std::uint32_t node) override { add(placed_[node].unit, counted_); }
    void add_counts(std::uint32_t node, UnitCounts& counts) const override;
    [[nodiscard]] bool waits(UnitIndex unit) const override;
    void forget(std::uint32_t kind, std::uint32_t index) override;
    /// The fragments that its source has.
    void feed(std::uint32_t node, base::Time now);
    /// The number in the run of an event of this epoch.
    [[nodiscard]] std::uint64_t in_run(protocol::EventId event) const {
        return first_mep_ + static_cast<std::uint64_t>(event);
    }
    [[nodiscard]] std::uint64_t& under_way(Say what) {
        return under_way_[static_cast<std::size_t>(what)];
    }
    [[nodiscard]] std::uint64_t under_way(Say what) const {
        return under_way_[static_cast<std::size_t>(what)];
    }
    /// The sum over units of what one of their counters says.
    template <class Machine, class Count>
    [[nodiscard]] std::uint64_t sum(const Machine* (protocol::DaqpipeUnit::*machine)() const,
                                    Count count) const;
    [[nodiscard]] DaqpipeReport sums() const;
    void add(const protocol::DaqpipeUnit& unit, DaqpipeReport& sums) const;

    DaqpipeSystemConfig config_;
    std::vector<Placed> placed_;
    std::vector<protocol::BuilderIndex> builder_on_;  ///< by node, over the whole run
    base::Table<protocol::ReadoutIndex, protocol::MfpSizes> sizes_;  ///< of those of the run
    std::size_t clocks_ = 0;  ///< nodes that keep to time slots
    std::uint64_t events_ = 0;
    bool event_waits_ = false;                              ///< until the manager's backlog is gone
    std::unordered_map<std::uint64_t, Assigned> assigned_;  ///< by event of the run
    std::array<std::uint64_t, 16> under_way_{};             ///< messages, by kind
    std::uint64_t writes_under_way_ = 0;
    base::Bytes bytes_under_way_ = 0;
    std::uint64_t refused_ = 0;  ///< messages that nobody says
    base::Pool<InProcess> in_process_;
    base::RandomStream processing_;
    sim::Histogram latency_;
    bool warm_ = false;
    DaqpipeReport counted_;
    DaqpipeReport before_;  ///< what had been counted when the warm-up ended
    bool recording_ = false;
    std::vector<Built> recorded_;
};

}  // namespace daqloom::systems
