// DAQPIPE's event building on a simulated fabric: the world of the units of protocol/ in virtual
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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

#include "systems/placement.hpp"
#include "systems/system.hpp"
#include "systems/unit_letter.hpp"

namespace daqloom::systems {

struct DaqpipeSystemConfig : SystemConfig, protocol::DaqpipeRules {
    /// The host of each readout unit, and of each builder unit; one of either may share a host
    /// (folded). The event manager is on the host of readout unit 0.
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
        (base::Bytes, bytes_built, "Bytes of the fragments of these events."),
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

class DaqpipeSystem final : public SystemOf<UnitLetter<1>> {
  public:
    /// An event given to a builder and not yet built.
    struct Assigned {
        DAQLOOM_FIELDS(Assigned, (protocol::EventId, event, "Number of each event."),
                       (protocol::BuilderIndex, builder, "Its builder unit."),
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
    /// Checks the conservation of packets, credits, events and fragments.
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
        kFlowDue,  ///< index: sender of a flow
    };
    struct InProcess {
        std::uint32_t node = 0;
        protocol::EventId event{};
    };
    struct World;
    struct Placed {
        protocol::DaqpipeUnit unit;
        protocol::ReadoutIndex readout;
        protocol::BuilderIndex builder;
        std::optional<protocol::MfpSizes> sizes;  ///< of a readout unit
        std::uint64_t next_slot = 0;
    };

    explicit DaqpipeSystem(const DaqpipeSystemConfig& config)
        : config_(config), processing_(config.seed, "processing") {}
    base::expected<void> place_units();
    base::expected<void> make_units();

    void on_letter(const Letter& letter, base::Time now) override;
    void on_written(const Letter& letter, base::Time now) override;
    void on_event(const sim::Event& event) override;
    void send(std::uint32_t from, std::uint32_t to, const protocol::UnitMessage& said,
              base::Time now);
    void await_event(base::Time now);
    void await_slot(std::uint32_t node, base::Time now);
    [[nodiscard]] const protocol::EventManager& manager() const {
        return *placed_[placement_.readouts.node_of.front()].unit.manager();
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

    DaqpipeSystemConfig config_;
    Placement placement_;
    std::vector<Placed> placed_;
    std::size_t clocks_ = 0;  ///< nodes that keep to time slots
    std::uint64_t events_ = 0;
    bool event_waits_ = false;                              ///< until the manager's backlog is gone
    std::unordered_map<std::uint64_t, Assigned> assigned_;  ///< by event not yet built
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
