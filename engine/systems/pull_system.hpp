// Pull event building in virtual time: nodes drive the state machines of protocol/.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/pool.hpp"
#include "base/ring.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/machines/pull_builder.hpp"
#include "protocol/machines/pull_readout.hpp"
#include "protocol/schedule/arrivals.hpp"
#include "protocol/schedule/event_manager.hpp"
#include "sim/histogram.hpp"
#include "systems/placement.hpp"
#include "systems/pull_config.hpp"
#include "systems/system.hpp"

namespace daqloom::systems {

/// Called for every event that is built, for timelines.
class EventObserver {
  public:
    virtual ~EventObserver() = default;
    virtual void on_built(protocol::EventId event, protocol::BuilderIndex builder,
                          base::Time assigned, base::Time now) = 0;
};

/// After the warm-up.
struct PullReport {
    base::Time window;  ///< from the end of the warm-up to the end
    std::uint64_t events_built = 0;
    std::uint64_t events_arrived = 0;
    std::uint64_t events_in_flight = 0;  ///< assigned, and not built at the end
    std::uint64_t events_waiting = 0;    ///< not assigned at the end
    base::Bytes bytes_built = 0;

    /// Calls see(name, member, meaning) for each field.
    template <class See>
    static void each(See see) {
        using Report = PullReport;
        see("window", &Report::window, "From the end of the warm-up to the end.");
        see("events_built", &Report::events_built, "Events built.");
        see("events_arrived", &Report::events_arrived, "Events accepted by the trigger.");
        see("events_in_flight", &Report::events_in_flight,
            "Events assigned and not built, at the end.");
        see("events_waiting", &Report::events_waiting, "Events not assigned, at the end.");
        see("bytes_built", &Report::bytes_built, "Bytes of the events built.");
    }
};

/// The events built in one bin of the recorded time, and the sum of their latencies.
struct BuiltBin {
    std::uint64_t events = 0;
    base::Time latency;

    /// Calls see(name, member, meaning) for each field.
    template <class See>
    static void each(See see) {
        see("events", &BuiltBin::events, "Events built in each bin.");
        see("latency", &BuiltBin::latency, "Sum of their collection latencies.");
    }
};

/// A request for a fragment, or the fragment.
struct PullNote {
    std::uint64_t event = 0;
    protocol::ReadoutIndex readout{};
    protocol::BuilderIndex builder{};
};

class PullSystem final : public SystemOf<PullNote> {
  public:
    /// Fails with one sentence if `validate` does.
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
        kResponse,   ///< index: slot of pending_
        kProcessed,  ///< index: slot of pending_
        kWarm,
        kFlowDue,  ///< index: sender of a flow
    };

    struct EventRecord {
        base::Bytes size;
        base::Time assigned;
        bool finished;
    };

    /// A response or a built event that is due later.
    struct Pending {
        PullNote note;
        base::Bytes bytes;
    };

    struct BuilderOut;
    struct ManagerOut;
    struct ReadoutOut;

    PullSystem(const PullSystemConfig& config, protocol::Arrivals arrivals,
               protocol::EventSizes sizes, protocol::EventManager manager,
               base::Table<protocol::BuilderIndex, protocol::PullBuilder> builders);

    void on_letter(const Letter& letter, base::Time now) override;
    void on_written(const Letter& /*letter*/, base::Time /*now*/) override {}
    void on_event(const sim::Event& event) override;

    void on_arrival(base::Time now);
    void on_response(std::uint32_t slot, base::Time now);
    void on_processed(std::uint32_t slot, base::Time now);
    void on_warm(base::Time now);
    void begin(std::uint64_t event, protocol::BuilderIndex builder, base::Time now);
    void finish(std::uint64_t event, protocol::BuilderIndex builder, base::Time now);
    void schedule_arrival(base::Time now);
    Pending take_pending(std::uint32_t slot) {
        pending_.release(slot);
        return pending_[slot];
    }
    EventRecord& record(std::uint64_t event) {
        return records_[static_cast<std::uint32_t>(event - first_record_)];
    }

    PullSystemConfig config_;
    Placement placement_;
    protocol::Arrivals arrivals_;
    protocol::EventSizes sizes_;
    protocol::EventManager manager_;
    base::Table<protocol::BuilderIndex, protocol::PullBuilder> builders_;
    base::Table<protocol::ReadoutIndex, protocol::PullReadout> readouts_;
    base::RandomStream processing_random_;
    protocol::FragmentShares shares_;

    base::Ring<EventRecord> records_;
    std::uint64_t first_record_ = 0;
    base::Pool<Pending> pending_;
    std::vector<protocol::BuilderIndex>
        done_builders_;  ///< reported, the event manager not yet told

    bool warm_ = false;
    std::uint64_t begun_ = 0;
    std::uint64_t built_ = 0;
    std::uint64_t arrived_ = 0;
    std::uint64_t arrived_cold_ = 0;
    std::uint64_t built_cold_ = 0;
    base::Bytes bytes_built_ = 0;
    sim::Histogram latency_;
    std::vector<BuiltBin> built_bins_;
    EventObserver* observer_ = nullptr;
};

}  // namespace daqloom::systems
