// Pull event building in virtual time: the world of the units of protocol/.
//
// Requests and fragments are letters. What the event manager and builder units tell each other are
// letters as well, or it takes no time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/fields.hpp"
#include "base/pool.hpp"
#include "base/ring.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/schedule/pull_rules.hpp"
#include "protocol/units/pull_unit.hpp"
#include "sim/histogram.hpp"
#include "systems/regrouping_system.hpp"
#include "systems/unit_letter.hpp"

namespace daqloom::systems {

struct PullSystemConfig : SystemConfig, RegroupingConfig, protocol::PullRules {
    /// The host of each readout unit, and of each builder unit; one of either may share a host. The
    /// event manager is on the host of readout unit 0, and where units regroup, of the first one of
    /// the epoch.
    std::vector<NodeIndex> readouts;
    std::vector<NodeIndex> builders;

    base::Bytes request_size = 100;
    /// What the event manager and builder units tell each other takes its way through the network,
    /// as large as a request; else it takes no time.
    bool manager_is_networked = false;
    base::Time readout_cost_per_message;  ///< of the host's processor, one message at a time
    base::Time builder_cost_per_message;
};

/// Called for every event that is built, for timelines.
class EventObserver {
  public:
    virtual ~EventObserver() = default;
    virtual void on_built(protocol::EventId event, protocol::BuilderIndex builder,
                          base::Time assigned, base::Time now) = 0;
};

/// After the warm-up.
struct PullReport {
    DAQLOOM_FIELDS(PullReport, (base::Time, window, "From the end of the warm-up to the end."),
                   (std::uint64_t, events_built, "Events built."),
                   (std::uint64_t, events_incomplete, "Events delivered without some fragments."),
                   (std::uint64_t, events_arrived, "Events accepted by the trigger."),
                   (std::uint64_t, events_in_flight, "Events assigned and not built, at the end."),
                   (std::uint64_t, events_waiting, "Events not assigned, at the end."),
                   (base::Bytes, bytes_built, "Bytes of all these events."))
};

/// The events built in one bin of the recorded time, and the sum of their latencies.
struct BuiltBin {
    DAQLOOM_FIELDS(BuiltBin, (std::uint64_t, events, "Events built in each bin."),
                   (base::Time, latency, "Sum of their collection latencies."))
};

/// Of the unit on a node; which units these are is not said.
protocol::PullUnitConfig unit_config(const PullSystemConfig& config);

/// A request, or the fragment of event `number`.
using PullNote = UnitLetter<1>;

class PullSystem final : public RegroupingSystem<PullNote> {
  public:
    /// Fails with one sentence about what cannot be simulated.
    static base::expected<std::unique_ptr<PullSystem>> make(const PullSystemConfig& config);

    [[nodiscard]] PullReport report() const;
    /// From the assignment of an event, as its builder unit hears of it, until it is built, after
    /// the warm-up.
    [[nodiscard]] const sim::Histogram& latency() const { return latency_; }
    /// As many as `bins`; empty before the warm-up ends.
    [[nodiscard]] const std::vector<BuiltBin>& built_bins() const { return built_bins_; }
    [[nodiscard]] const PullSystemConfig& config() const { return config_; }
    [[nodiscard]] bool stalled() const override { return false; }  ///< the trigger goes on
    /// Checks the conservation of what the network carries; where units regroup, that each event
    /// has one fate.
    [[nodiscard]] base::expected<void> check_conservation() const;

    void observe(EventObserver* observer) { observer_ = observer; }

  private:
    enum EventKind : std::uint32_t {
        kArrival = Letters::kFirstOtherEvent,
        kResponse,   ///< index: slot of timers_
        kProcessed,  ///< the same
        kWarm,
        kFlowDue,  ///< index: sender of a flow
        // ---- see RunEvents
        kOfEpoch,
        kControl,
        kSchedule,
    };

    struct EventRecord {
        base::Bytes size;
        base::Time assigned;    ///< when its builder unit hears of it
        base::Bytes collected;  ///< of its fragments, so far, where units regroup
        bool finished;
    };

    /// Of a unit: a response, or a built event.
    struct Timer {
        protocol::UnitTimer timer;
        std::uint32_t node = 0;
    };
    /// From the event manager to a builder unit, or from it.
    struct Told {
        protocol::UnitMessage said;
        std::uint32_t from = 0;  ///< node
        std::uint32_t to = 0;
    };

    /// Of the unit on a node, where units regroup.
    struct Served {
        std::uint32_t to_write = 0;  ///< fragments that are due after the response time
        std::uint64_t written = 0;   ///< in this epoch
    };
    /// What event managers have done.
    struct Managed {
        std::uint64_t events = 0;
        std::uint64_t assigned = 0;
    };

    struct World;

    PullSystem(const PullSystemConfig& config, protocol::EventSizes sizes);
    base::expected<void> make_units();
    [[nodiscard]] protocol::PullUnitConfig config_of(std::uint32_t node) const;

    void on_letter(const Letter& letter, base::Time now) override;
    void on_written(const Letter& /*letter*/, base::Time /*now*/) override {}
    void on_event(const sim::Event& event) override;

    void on_timer(std::uint32_t place, base::Time now);
    void on_warm(base::Time now);
    void finish(protocol::EventId event, std::uint32_t node, base::Time now);
    void tell(base::Time now);

    // ---- of units that regroup
    void begin_epoch(const std::vector<protocol::EpochSlot>& slots, base::Time now) override;
    void begin_unit(std::uint32_t node, std::uint64_t event_end, base::Time now) override;
    void lease_unit(std::uint32_t node, std::uint64_t event_end, base::Time now) override;
    void close_unit(std::uint32_t node, const Lost& lost, base::Time now) override;
    [[nodiscard]] bool has_drained(std::uint32_t node) const override {
        return units_[node].is_drained() && served_[node].to_write == 0;
    }
    void end_unit(std::uint32_t /*node*/, base::Time /*now*/) override {}
    [[nodiscard]] std::uint64_t next_mep_of(std::uint32_t node) const override {
        return units_[node].next_event();
    }
    void retire_unit(std::uint32_t node) override;
    void add_counts(std::uint32_t node, UnitCounts& counts) const override;
    [[nodiscard]] bool waits(UnitIndex unit) const override;
    void forget(std::uint32_t kind, std::uint32_t index) override;

    [[nodiscard]] std::uint32_t manager_node() const { return placement_.readouts.node_of.front(); }
    /// None: its unit of this epoch has not begun, or is lost.
    [[nodiscard]] const protocol::EventManager* manager() const {
        const std::uint32_t node = manager_node();
        return node != kNobody && has_unit(node) ? units_[node].manager() : nullptr;
    }
    /// Those of earlier epochs as well.
    [[nodiscard]] Managed managed() const;
    [[nodiscard]] protocol::ReadoutIndex readout_on(std::uint32_t node) const {
        return placement_.readouts.unit_on[node];
    }
    [[nodiscard]] bool is_recorded(protocol::EventId event) const {
        return static_cast<std::uint64_t>(event) - first_record_ < records_.size();
    }
    EventRecord& record(protocol::EventId event) {
        return records_[static_cast<std::uint32_t>(static_cast<std::uint64_t>(event) -
                                                   first_record_)];
    }

    PullSystemConfig config_;
    std::vector<protocol::PullUnit> units_;           ///< by node: the last one that it had
    std::vector<protocol::BuilderIndex> builder_on_;  ///< by node, over the whole run
    protocol::EventSizes sizes_;
    base::RandomStream processing_random_;
    protocol::FragmentShares shares_;

    base::Ring<EventRecord> records_;  ///< of the events of this epoch that are not processed
    std::uint64_t first_record_ = 0;
    base::Pool<Timer> timers_;
    std::vector<Told> told_;  ///< and not yet heard

    std::vector<Served> served_;  ///< by node, where units regroup
    Managed before_;              ///< in earlier epochs
    std::uint64_t unbuilt_ = 0;   ///< events that were assigned in earlier epochs, and never built

    bool warm_ = false;
    std::uint64_t built_ = 0;
    std::uint64_t arrived_cold_ = 0;
    std::uint64_t built_cold_ = 0;
    std::uint64_t incomplete_cold_ = 0;
    base::Bytes bytes_built_ = 0;
    sim::Histogram latency_;
    std::vector<BuiltBin> built_bins_;
    EventObserver* observer_ = nullptr;
};

}  // namespace daqloom::systems
