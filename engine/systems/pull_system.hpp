// Pull event building in virtual time: the world of the units of protocol/.
//
// Requests and fragments are letters. What the event manager and builder units tell each other is
// none: it takes no time.
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
#include "systems/placement.hpp"
#include "systems/system.hpp"
#include "systems/unit_letter.hpp"

namespace daqloom::systems {

struct PullSystemConfig : SystemConfig, protocol::PullRules {
    /// The host of each readout unit, and of each builder unit; one of either may share a host.
    std::vector<NodeIndex> readouts;
    std::vector<NodeIndex> builders;

    base::Bytes request_size = 100;
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
                   (std::uint64_t, events_arrived, "Events accepted by the trigger."),
                   (std::uint64_t, events_in_flight, "Events assigned and not built, at the end."),
                   (std::uint64_t, events_waiting, "Events not assigned, at the end."),
                   (base::Bytes, bytes_built, "Bytes of the events built."))
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

class PullSystem final : public SystemOf<PullNote> {
  public:
    /// Fails with one sentence about what cannot be simulated.
    static base::expected<std::unique_ptr<PullSystem>> make(const PullSystemConfig& config);

    [[nodiscard]] PullReport report() const;
    /// From the assignment of an event until it is built, after the warm-up.
    [[nodiscard]] const sim::Histogram& latency() const { return latency_; }
    /// As many as `bins`; empty before the warm-up ends.
    [[nodiscard]] const std::vector<BuiltBin>& built_bins() const { return built_bins_; }
    [[nodiscard]] const PullSystemConfig& config() const { return config_; }
    [[nodiscard]] bool stalled() const override { return false; }  ///< the trigger goes on
    [[nodiscard]] base::expected<void> check_conservation() const { return check_books(); }

    void observe(EventObserver* observer) { observer_ = observer; }

  private:
    enum EventKind : std::uint32_t {
        kArrival = Letters::kFirstOtherEvent,
        kResponse,   ///< index: slot of timers_
        kProcessed,  ///< the same
        kWarm,
        kFlowDue,  ///< index: sender of a flow
    };

    struct EventRecord {
        base::Bytes size;
        base::Time assigned;
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
        protocol::BuilderIndex builder{};
    };

    struct World;

    PullSystem(const PullSystemConfig& config, protocol::EventSizes sizes);
    base::expected<void> make_units();

    void on_letter(const Letter& letter, base::Time now) override;
    void on_written(const Letter& /*letter*/, base::Time /*now*/) override {}
    void on_event(const sim::Event& event) override;

    void on_timer(std::uint32_t place, base::Time now);
    void on_warm(base::Time now);
    void finish(protocol::EventId event, protocol::BuilderIndex builder, base::Time now);
    void tell(base::Time now);
    [[nodiscard]] const protocol::EventManager::Counters& managed() const {
        return units_.front().manager()->counters();
    }
    [[nodiscard]] protocol::ReadoutIndex readout_on(std::uint32_t node) const {
        return node < config_.readouts.size() ? protocol::ReadoutIndex(node)
                                              : protocol::ReadoutIndex::none();
    }
    EventRecord& record(protocol::EventId event) {
        return records_[static_cast<std::uint32_t>(static_cast<std::uint64_t>(event) -
                                                   first_record_)];
    }

    PullSystemConfig config_;
    Placement placement_;
    std::vector<protocol::PullUnit> units_;  ///< by node; readout unit i is on node i
    protocol::EventSizes sizes_;
    base::RandomStream processing_random_;
    protocol::FragmentShares shares_;

    base::Ring<EventRecord> records_;
    std::uint64_t first_record_ = 0;
    base::Pool<Timer> timers_;
    std::vector<Told> told_;  ///< and not yet heard

    bool warm_ = false;
    std::uint64_t built_ = 0;
    std::uint64_t arrived_cold_ = 0;
    std::uint64_t built_cold_ = 0;
    base::Bytes bytes_built_ = 0;
    sim::Histogram latency_;
    std::vector<BuiltBin> built_bins_;
    EventObserver* observer_ = nullptr;
};

}  // namespace daqloom::systems
