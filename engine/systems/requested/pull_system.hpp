// Pull event building in virtual time.
//
// Messages between the event manager and builder units travel through the network, or take no time.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/fields.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/schedule/pull_rules.hpp"
#include "protocol/units/pull_unit.hpp"
#include "systems/requested/requested_system.hpp"

namespace daqloom::systems {

struct PullSystemConfig : RequestedConfig, protocol::PullRules {
    DAQLOOM_FIELDS(
        PullSystemConfig,
        (std::vector<NodeIndex>, storages,
         "Host of each storage unit, on which there is no other unit."),
        (base::Bytes, request_size, "Size of a request (B).", 100),
        (bool, manager_is_networked,
         "Messages between the event manager and builder units travel through the network, as "
         "large as a request, else they take no time."),
        (base::Time, readout_cost_per_message,
         "Time of a readout unit's processor for a message, one message at a time."),
        (base::Time, builder_cost_per_message, "Time of a builder unit's processor for a message."))
};

/// Observer of built events, for timelines.
class EventObserver {
  public:
    virtual ~EventObserver() = default;
    virtual void on_built(protocol::EventId event, protocol::BuilderIndex builder,
                          base::Time assigned, base::Time now) = 0;
};

/// Counts after the warm-up.
struct PullReport {
    DAQLOOM_FIELDS(PullReport, (base::Time, window, "From the end of the warm-up to the end."),
                   (std::uint64_t, events_built, "Events built."),
                   (std::uint64_t, events_incomplete, "Events delivered without some fragments."),
                   (std::uint64_t, events_arrived, "Events accepted by the trigger."),
                   (std::uint64_t, events_in_flight, "Events assigned and not built, at the end."),
                   (std::uint64_t, events_waiting, "Events not assigned, at the end."),
                   (base::Bytes, bytes_built, "Bytes of the events built."),
                   (std::uint64_t, events_accepted, "Events that were accepted for storage."),
                   (std::uint64_t, events_stored, "Events that arrived at a storage unit."),
                   (base::Bytes, bytes_stored, "Bytes of the events stored."),
                   (std::uint64_t, events_unstored,
                    "Accepted events that no storage unit acknowledged in time."),
                   (std::uint64_t, events_storing,
                    "Accepted events that their builder units hold at the end."),
                   (sim::Histogram, storage_latency,
                    "From the time an event is built until it is at a storage unit."))
};

/// The events built in one bin of the recorded time, and the sum of their latencies.
struct BuiltBin {
    DAQLOOM_FIELDS(BuiltBin, (std::uint64_t, events, "Events built in each bin."),
                   (base::Time, latency, "Sum of their collection latencies."))
};

/// Configuration common to all nodes, without unit numbers.
protocol::PullUnitConfig unit_config(const PullSystemConfig& config);

class Recorder;

class PullSystem final : public RequestedSystem<protocol::PullUnit> {
  public:
    /// Fails with one sentence about what cannot be simulated.
    static base::expected<std::unique_ptr<PullSystem>> make(const PullSystemConfig& config);

    [[nodiscard]] PullReport report() const;
    /// Events built by bin of time, as many bins as `bins`; empty before the warm-up ends.
    [[nodiscard]] const std::vector<BuiltBin>& built_bins() const { return built_bins_; }
    [[nodiscard]] const PullSystemConfig& config() const { return config_; }
    [[nodiscard]] bool stalled() const override { return false; }  ///< the trigger never stops

    void observe(EventObserver* observer) { observer_ = observer; }
    /// Recorder of this run, or null.
    [[nodiscard]] std::shared_ptr<Recorder>& recorder() { return recorder_; }

  private:
    /// Counts of the event managers of all epochs.
    struct ManagerCounts {
        std::uint64_t events = 0;
        std::uint64_t assigned = 0;
    };

    /// An accepted event, from its end of building until its last copy is acknowledged.
    struct Accepted {
        base::Time built;
        base::Bytes size = 0;
        std::uint32_t copies = 0;  ///< not acknowledged
        bool is_stored = false;
    };
    /// Counts of copies and acknowledgements between builder units and storage units.
    struct StorageCounts {
        std::uint64_t events = 0;
        base::Bytes bytes = 0;
        std::uint64_t copies_under_way = 0;
        std::uint64_t copies_received = 0;
        std::uint64_t acknowledgements_under_way = 0;
    };
    using StorageCounters = protocol::StorageSender::Counters;

    PullSystem(const PullSystemConfig& config, protocol::EventSizes sizes);

    base::expected<void> prepare_sources() override;
    void begin_all() override { settle(placement_.readouts.node_of.front(), base::Time::zero()); }
    void on_begin(std::uint32_t number, base::Time now) override;
    void on_epoch() override { unbuilt_ = before_.assigned - built_; }
    void on_retire(const protocol::PullUnit& unit) override;
    void on_counting() override;
    [[nodiscard]] base::Bytes bytes_of(const protocol::UnitMessage& /*message*/) const override {
        return config_.request_size;
    }
    [[nodiscard]] bool is_at_once(Kind kind) const override {
        return !config_.manager_is_networked && kind != Kind::request && kind != Kind::last_answer;
    }
    void on_request(std::uint32_t number, protocol::EventId event, base::Time now) override;
    /// Collection latency counts from the assignment's arrival at the builder unit.
    void on_assignment(EventRecord& event, base::Time now) override { event.assigned = now; }
    void on_assigned(EventRecord& event) override { event.size = sizes_.next(); }
    [[nodiscard]] base::Bytes fragment_of(std::uint32_t number, protocol::EventId event) override;
    void on_built(std::uint32_t number, protocol::EventId event, const EventRecord& record,
                  base::Time now) override;
    void store(std::uint32_t number, protocol::EventId event, protocol::StorageIndex to,
               base::Time now) override;
    void on_storage_message(const Message& message, base::Time now) override;
    [[nodiscard]] base::expected<void> check_own_books() const override;

    /// Counts of this and of earlier epochs.
    [[nodiscard]] ManagerCounts managed() const;
    /// Sum over all builder units.
    [[nodiscard]] StorageCounters sent() const;

    PullSystemConfig config_;
    protocol::EventSizes sizes_;
    protocol::FragmentShares shares_;
    ManagerCounts before_;       ///< counts of earlier epochs
    std::uint64_t unbuilt_ = 0;  ///< events assigned in earlier epochs and never built

    std::uint64_t built_ = 0;
    std::uint64_t arrived_cold_ = 0;
    std::uint64_t built_cold_ = 0;
    std::uint64_t incomplete_cold_ = 0;
    base::Bytes bytes_built_ = 0;
    std::unordered_map<protocol::EventId, Accepted> accepted_;
    StorageCounts stored_;
    StorageCounts stored_cold_;
    StorageCounters sent_cold_;
    sim::Histogram storage_latency_;
    std::vector<BuiltBin> built_bins_;
    EventObserver* observer_ = nullptr;
    std::shared_ptr<Recorder> recorder_;  ///< refers to the system, and is destroyed first
};

}  // namespace daqloom::systems
