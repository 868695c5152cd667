// Pull event building in virtual time: simulated hosts drive the state machines of protocol/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/pool.hpp"
#include "base/ring.hpp"
#include "ethernet/network.hpp"
#include "ethernet/rack_config.hpp"
#include "ethernet/tcp_hosts.hpp"
#include "protocol/data/event_size.hpp"
#include "protocol/machines/pull_builder.hpp"
#include "protocol/machines/pull_readout.hpp"
#include "protocol/schedule/arrivals.hpp"
#include "protocol/schedule/event_manager.hpp"
#include "sim/event_queue.hpp"
#include "sim/fingerprint.hpp"
#include "sim/statistics.hpp"

namespace daqloom::ethernet {

/// Called for every event that begins and ends, for timelines.
class EventObserver {
  public:
    virtual ~EventObserver() = default;
    virtual void on_built(protocol::EventId event, protocol::BuilderIndex builder,
                          base::Time assigned, base::Time now) = 0;
};

/// The counters of a run; all except the `total_` ones count from the end of the warm-up.
struct RackReport {
    base::Time window;  ///< from the end of the warm-up to the end
    std::uint64_t events_built = 0;
    std::uint64_t events_arrived = 0;
    std::uint64_t events_in_flight = 0;  ///< assigned, and not built at the end
    std::uint64_t events_waiting = 0;    ///< not assigned at the end
    base::Bytes bytes_built = 0;
    std::uint64_t drops = 0;
    std::uint64_t injected_losses = 0;
    std::uint64_t marks = 0;
    TcpSenderCounters tcp;
    std::vector<LinkCounters> links;
    std::vector<std::uint64_t> drops_by_link;
    base::Bytes core_peak = 0;
    base::Bytes tor_peak = 0;
    base::Time tor_peak_at;
    std::uint64_t total_sim_events = 0;
    std::uint64_t total_packet_hops = 0;
    std::uint64_t total_ack_hops = 0;
    std::uint64_t total_pending_peak = 0;

    /// Calls see(name, member, meaning) for each field but those of links.
    template <class See>
    static void each(See see) {
        using Report = RackReport;
        see("window", &Report::window, "From the end of the warm-up to the end.");
        see("events_built", &Report::events_built, "Events built.");
        see("events_arrived", &Report::events_arrived, "Events accepted by the trigger.");
        see("events_in_flight", &Report::events_in_flight,
            "Events assigned and not built, at the end.");
        see("events_waiting", &Report::events_waiting, "Events not assigned, at the end.");
        see("bytes_built", &Report::bytes_built, "Bytes of the events built.");
        see("drops", &Report::drops, "Frames dropped by switches.");
        see("injected_losses", &Report::injected_losses, "Frames lost as configured.");
        see("marks", &Report::marks, "Frames marked for congestion (ECN).");
        see("tcp", &Report::tcp, "Retransmissions and timeouts.");
        see("core_peak_bytes", &Report::core_peak, "Most bytes in the core switch at a time.");
        see("tor_peak_bytes", &Report::tor_peak, "Most bytes in the top-of-rack switch at a time.");
        see("tor_peak_at", &Report::tor_peak_at, "When that was reached first.");
        see("sim_events", &Report::total_sim_events,
            "Events that the simulator processed, over the whole run.");
        see("packet_hops", &Report::total_packet_hops,
            "Frames delivered by a link, over all links and the whole run.");
        see("ack_hops", &Report::total_ack_hops, "Of these, frames without payload.");
        see("pending_peak", &Report::total_pending_peak,
            "Most events pending at a time, over the whole run.");
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

class Rack {
  public:
    /// Fails with one sentence if `validate` does.
    static base::expected<std::unique_ptr<Rack>> make(const RackConfig& config);

    Rack(const Rack&) = delete;
    Rack& operator=(const Rack&) = delete;

    /// Simulates up to `until`, at most to the end. Events that are due exactly at the end of the
    /// run are not processed, however often the run was paused.
    void run(base::Time until);

    [[nodiscard]] base::Time now() const { return now_; }
    [[nodiscard]] RackReport report();
    [[nodiscard]] const sim::Histogram& latency() const { return latency_; }
    /// As long as the bins of the occupancy, and as many; empty before the warm-up ends.
    [[nodiscard]] const std::vector<BuiltBin>& built_bins() const { return built_bins_; }
    [[nodiscard]] const RackConfig& config() const { return config_; }
    [[nodiscard]] const Network& network() const { return network_; }
    [[nodiscard]] const TcpHosts& hosts() const { return hosts_; }
    [[nodiscard]] base::expected<void> check_conservation() const;
    /// A hash of all events processed, in order: when, of which kind, and of what.
    [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_.value(); }

    void observe(Observer* frames, TimeoutObserver* timeouts, EventObserver* events) {
        network_.observe(frames);
        hosts_.observe(timeouts);
        event_observer_ = events;
    }

    static constexpr std::uint32_t kCore = 0;
    static constexpr std::uint32_t kTor = 1;

    [[nodiscard]] LinkIndex readout_up(std::uint32_t readout) const { return 2 * readout; }
    [[nodiscard]] LinkIndex uplink_down(std::uint32_t i) const { return 2 * config_.readouts + i; }
    [[nodiscard]] LinkIndex access_down(std::uint32_t builder) const {
        return 2 * (config_.readouts + config_.uplinks + builder);
    }

    /// Endpoint of `builder` on its connection to `readout`; that of the readout unit is one more.
    [[nodiscard]] EndpointIndex endpoint(std::uint32_t builder, std::uint32_t readout) const {
        return 2 * (builder * config_.readouts + readout);
    }

    /// A message is complete at an endpoint (TcpHosts calls it).
    void on_message(EndpointIndex at, const Message& message, base::Time now);

  private:
    enum ApplicationEvent : std::uint32_t {
        kArrival = kFirstApplicationEvent,
        kResponse,   ///< index: slot of pending_
        kProcessed,  ///< index: slot of pending_
        kProcessor,  ///< index: host whose processor has finished its first piece of work
        kWarm,
        kSample,  ///< of the occupancy of the switches
        kPause,
        kEnd,
    };

    enum class Work : std::uint8_t { send_request, take_request, send_fragment, take_fragment };

    struct EventRecord {
        base::Bytes size;
        base::Time assigned;
        bool finished;
        bool begun;
    };

    /// A response or a built event that is due later.
    struct Pending {
        std::uint64_t event;
        base::Bytes bytes;
        std::uint32_t builder;
        std::uint32_t readout;
    };

    /// Work in front of a host's processor; done in order, one message at a time.
    struct Task {
        base::Time done;
        std::uint64_t event;
        base::Bytes bytes;
        EndpointIndex endpoint;
        Work work;
    };

    struct Host {
        base::Time cost;
        base::Time free_at;
        base::Ring<Task> tasks;
    };

    struct ProtocolSink;
    struct FrameSink;

    Rack(const RackConfig& config, protocol::Arrivals arrivals, protocol::EventSizes sizes,
         protocol::EventManager manager, std::vector<protocol::PullBuilder> builders);

    void wire();
    void handle(const sim::Event& event);
    void on_arrival();
    void on_response(std::uint32_t slot);
    void on_processed(std::uint32_t slot);
    void on_processor(std::uint32_t host);
    void on_warm();
    void on_sample();
    void begin(std::uint64_t event, std::uint32_t builder);
    void finish(std::uint64_t event, std::uint32_t builder);
    /// Queues work for the processor of `host`; done at once if messages cost no time.
    void submit(std::uint32_t host, Work work, EndpointIndex endpoint, std::uint64_t event,
                base::Bytes bytes);
    void perform(Work work, EndpointIndex endpoint, std::uint64_t event, base::Bytes bytes);
    void schedule_arrival();
    void schedule(base::Time after, ApplicationEvent kind, const Pending& pending);
    Pending take_pending(std::uint32_t slot);
    EventRecord& record(std::uint64_t event) {
        return records_[static_cast<std::uint32_t>(event - first_record_)];
    }
    [[nodiscard]] std::uint32_t readout_host(std::uint32_t readout) const { return readout; }
    [[nodiscard]] std::uint32_t builder_host(std::uint32_t builder) const {
        return config_.readouts + builder;
    }

    RackConfig config_;
    sim::EventQueue events_;
    Network network_;
    TcpHosts hosts_;
    base::Time now_;

    protocol::Arrivals arrivals_;
    protocol::EventSizes sizes_;
    protocol::EventManager manager_;
    std::vector<protocol::PullBuilder> builders_;
    std::vector<protocol::PullReadout> readouts_;
    base::RandomStream processing_random_;
    protocol::FragmentShares shares_;
    std::vector<Host> processors_;

    base::Ring<EventRecord> records_;
    std::uint64_t first_record_ = 0;
    base::Pool<Pending> pending_;
    std::vector<std::uint32_t> done_builders_;  ///< reported, the event manager not yet told

    bool warm_ = false;
    bool ended_ = false;
    std::uint64_t begun_ = 0;
    std::uint64_t built_ = 0;
    std::uint64_t arrived_ = 0;
    std::uint64_t arrived_cold_ = 0;
    std::uint64_t built_cold_ = 0;
    base::Bytes bytes_built_ = 0;
    sim::Histogram latency_;
    std::vector<BuiltBin> built_bins_;
    std::vector<LinkCounters> links_cold_;
    std::vector<std::uint64_t> drops_cold_;
    TcpSenderCounters tcp_cold_;
    std::uint64_t losses_cold_ = 0;
    std::uint64_t marks_cold_ = 0;
    std::uint64_t sim_events_ = 0;
    sim::Fingerprint fingerprint_;
    EventObserver* event_observer_ = nullptr;
};

}  // namespace daqloom::ethernet
