// Pull event building in virtual time: the state machines of protocol/, driven by simulated hosts.
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
#include "protocol/arrivals.hpp"
#include "protocol/event_manager.hpp"
#include "protocol/event_size.hpp"
#include "protocol/pull_builder.hpp"
#include "protocol/pull_readout.hpp"
#include "sim/event_queue.hpp"
#include "sim/statistics.hpp"

namespace daqloom::ethernet {

/// Called for every event that begins and ends, for timelines.
class EventObserver {
  public:
    virtual ~EventObserver() = default;
    virtual void on_built(protocol::EventId event, protocol::BuilderIndex builder,
                          base::Time assigned, base::Time now) = 0;
};

/// What a run has counted; all but the `total_` numbers from the end of the warm-up on.
struct RackReport {
    base::Time window;  // from the end of the warm-up to the end
    std::uint64_t events_built = 0;
    std::uint64_t events_arrived = 0;
    std::uint64_t events_incomplete = 0;  // assigned, and not built at the end
    std::uint64_t events_waiting = 0;     // not assigned at the end
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
};

/// The events built in one bin of the recorded time, and the sum of their latencies.
struct BuiltBin {
    std::uint64_t events = 0;
    base::Time latency;
};

class Rack {
  public:
    /// Fails with one sentence if `validate` does.
    static base::expected<std::unique_ptr<Rack>> make(const RackConfig& config);

    Rack(const Rack&) = delete;
    Rack& operator=(const Rack&) = delete;

    /// Simulates up to `until`, at most to the end. What is due at the very end of the run does not
    /// happen any more, however often the run was paused.
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
    [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }

    void observe(Observer* frames, TimeoutObserver* timeouts, EventObserver* events) {
        network_.observe(frames);
        hosts_.observe(timeouts);
        event_observer_ = events;
    }

    static constexpr std::uint16_t kCore = 0;
    static constexpr std::uint16_t kTor = 1;

    [[nodiscard]] LinkIndex source_up(std::uint32_t source) const { return 2 * source; }
    [[nodiscard]] LinkIndex uplink_down(std::uint32_t i) const { return 2 * config_.sources + i; }
    [[nodiscard]] LinkIndex access_down(std::uint32_t builder) const {
        return 2 * (config_.sources + config_.uplinks + builder);
    }

    /// Endpoint of `builder` on its connection to `source`; that of the source is one more.
    [[nodiscard]] EndpointIndex endpoint(std::uint32_t builder, std::uint32_t source) const {
        return 2 * (builder * config_.sources + source);
    }

    /// A message is complete at an endpoint (TcpHosts calls it).
    void on_message(EndpointIndex at, const Message& message, base::Time now);

  private:
    enum ApplicationEvent : std::uint32_t {
        kArrival = kFirstApplicationEvent,
        kResponse,   // index: slot of pending_
        kProcessed,  // index: slot of pending_
        kProcessor,  // index: host whose processor has finished its first piece of work
        kWarm,
        kSample,  // of the occupancy of the switches
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

    /// A response or a built event whose time has not come.
    struct Pending {
        std::uint64_t event;
        base::Bytes bytes;
        std::uint32_t builder;
        std::uint32_t source;
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

    struct Outlet;
    struct FrameOutlet;

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
    /// Lets the processor of `host` do a piece of work, now if messages cost it nothing.
    void submit(std::uint32_t host, Work work, EndpointIndex endpoint, std::uint64_t event,
                base::Bytes bytes);
    void perform(Work work, EndpointIndex endpoint, std::uint64_t event, base::Bytes bytes);
    void schedule_arrival();
    void schedule(base::Time after, ApplicationEvent kind, const Pending& pending);
    Pending take_pending(std::uint32_t slot);
    EventRecord& record(std::uint64_t event) {
        return records_[static_cast<std::uint32_t>(event - first_record_)];
    }
    [[nodiscard]] std::uint32_t source_host(std::uint32_t source) const { return source; }
    [[nodiscard]] std::uint32_t builder_host(std::uint32_t builder) const {
        return config_.sources + builder;
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
    std::vector<std::uint32_t> done_builders_;  // reported, the event manager not yet told

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
    std::uint64_t fingerprint_ = 0xcbf29ce484222325;  // FNV-1a's offset basis
    EventObserver* event_observer_ = nullptr;
};

}  // namespace daqloom::ethernet
