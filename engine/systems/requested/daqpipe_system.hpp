// DAQPIPE's event building in virtual time: sources deliver each event to all readout units, and
// units may work in time slots.
#pragma once

#include <cstdint>
#include <memory>
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
#include "systems/requested/requested_system.hpp"

namespace daqloom::systems {

struct DaqpipeSystemConfig : RequestedConfig, protocol::DaqpipeRules {
    DAQLOOM_FIELDS(
        DaqpipeSystemConfig,
        (std::vector<base::Bytes>, fragment_bytes, "Mean size of a fragment, by readout unit."),
        (protocol::FragmentSizes, fragment_sizes, "Distribution of the sizes of fragments."),
        (base::Time, event_interval, "Time between two events; 0: as fast as builders take them."),
        (std::vector<base::DelayDistribution>, processing,
         "Successive delays from a built event until its memory is free again."))
};

/// Counts after the warm-up, summed over the nodes.
struct DaqpipeReport {
    DAQLOOM_FIELDS(
        DaqpipeReport, (base::Time, window, "From the end of the warm-up to the end."),
        (std::uint64_t, events_built, "Events built: of each a fragment from every readout unit."),
        (std::uint64_t, events_incomplete, "Events delivered without some fragments."),
        (base::Bytes, bytes_built, "Bytes of the fragments of the events built."),
        (std::uint64_t, fragments_written,
         "Fragments written to builder units, copies within a node included."),
        (base::Bytes, bytes_written, "Bytes of the fragments written."),
        (base::Time, processor, "Time of processors spent on messages, a sum over the nodes."),
        (std::uint64_t, control_messages, "Messages between units."),
        (std::uint64_t, events_under_way, "Events assigned and not yet built, at the end."),
        (std::uint64_t, unexpected, "Inputs that units ignored; a correct run has none."))
};

/// Configuration common to all nodes, without unit numbers.
protocol::DaqpipeUnitConfig unit_config(const DaqpipeSystemConfig& config);

class DaqpipeSystem final : public RequestedSystem<protocol::DaqpipeUnit> {
  public:
    /// An event given to a builder unit and not yet built.
    struct AssignedEvent {
        DAQLOOM_FIELDS(AssignedEvent, (protocol::EventId, event, "Number of each event."),
                       (protocol::BuilderIndex, builder,
                        "Builder unit of the event; spares have the numbers after the others."),
                       (base::Time, assigned, "Time at which the builder unit got the event."),
                       (base::Bytes, collected_bytes, "Bytes of the event's fragments received."))
    };
    /// An event built, for timelines.
    struct BuiltEvent {
        DAQLOOM_FIELDS(BuiltEvent, (protocol::EventId, event, "Number of each event."),
                       (protocol::BuilderIndex, builder, "Builder unit of the event."),
                       (base::Time, assigned, "Time at which the builder unit got the event."),
                       (base::Time, built, "Time at which the builder unit had all fragments."))
    };

    static base::expected<std::unique_ptr<DaqpipeSystem>> make(const DaqpipeSystemConfig& config);

    [[nodiscard]] const DaqpipeSystemConfig& config() const { return config_; }
    [[nodiscard]] DaqpipeReport report() const;
    /// Whether the run is deadlocked: messages or events are incomplete, and only clock events are
    /// left.
    [[nodiscard]] bool stalled() const override;
    /// Records the events built from now on.
    void record_events() { recording_ = true; }
    [[nodiscard]] const std::vector<BuiltEvent>& events_built() const { return recorded_; }
    /// Events under way, in the order of their numbers.
    [[nodiscard]] std::vector<AssignedEvent> events_under_way() const;

  private:
    enum OwnEvent : std::uint32_t {
        kEvent = kFirstOfProtocol,  ///< sources deliver the next event
        kSlot,                      ///< a time slot begins; index: node
        kProcessed,                 ///< an event is consumed; index: see `in_process_`
    };
    struct InProcess {
        std::uint32_t node = 0;
        protocol::EventId event{};
    };

    explicit DaqpipeSystem(const DaqpipeSystemConfig& config)
        : RequestedSystem(config_), config_(config), processing_(config.seed, "processing") {}

    base::expected<void> prepare_sources() override;
    void begin_all() override;
    void on_begin(std::uint32_t number, base::Time now) override;
    void on_lease(std::uint32_t /*number*/, base::Time now) override { end_event_wait(now); }
    void on_report(base::Time now) override { end_event_wait(now); }
    void on_retire(const protocol::DaqpipeUnit& unit) override { add(unit, counted_); }
    void on_counting() override;
    [[nodiscard]] base::Bytes bytes_of(const protocol::UnitMessage& message) const override {
        return message_bytes(config_.control_bytes, message);
    }
    void on_assigned(EventRecord& /*event*/) override {}
    [[nodiscard]] base::Bytes fragment_of(std::uint32_t number, protocol::EventId event) override;
    void on_built(std::uint32_t number, protocol::EventId event, const EventRecord& record,
                  base::Time now) override;
    void on_written(const Message& message, base::Time now) override;
    void on_event(const sim::Event& event) override;
    void forget(std::uint32_t kind, std::uint32_t index) override;

    void on_source_event(base::Time now);
    void await_event(base::Time now);
    /// Schedules the next event, if it waits and the event manager has assigned all earlier ones.
    void end_event_wait(base::Time now);
    /// Gives a readout unit the fragments that its source has.
    void feed(std::uint32_t number, base::Time now);
    void keep_slots(std::uint32_t number, base::Time now);
    void await_slot(std::uint32_t number, base::Time now);

    [[nodiscard]] std::uint64_t unexpected() const override { return sums().unexpected; }
    [[nodiscard]] base::expected<void> check_own_books() const override;
    [[nodiscard]] std::uint64_t events_not_built() const;
    [[nodiscard]] DaqpipeReport sums() const;
    void add(const protocol::DaqpipeUnit& unit, DaqpipeReport& sums) const;

    DaqpipeSystemConfig config_;
    base::Table<protocol::ReadoutIndex, protocol::MfpSizes> sizes_;  ///< by readout unit of the run
    std::vector<std::uint64_t> next_slot_;                           ///< by node
    std::vector<std::uint64_t> offered_;  ///< by node, next event, by its number in the run
    std::uint64_t clocks_ = 0;            ///< nodes that keep to time slots
    std::uint64_t events_ = 0;
    bool event_waits_ = false;  ///< whether the next event waits for the assignment of earlier ones
    base::Pool<InProcess> in_process_;
    base::RandomStream processing_;
    DaqpipeReport counted_;
    DaqpipeReport before_;  ///< counts at the end of the warm-up
    bool recording_ = false;
    std::vector<BuiltEvent> recorded_;
};

}  // namespace daqloom::systems
