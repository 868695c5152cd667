// Flows: messages without event building, as load generators and network benchmarks post them.
// Flows run on the nodes of any system, with or without units.
//
// A source of a flow posts each message when it is due. While `outstanding` messages of the source
// await completion, the next message is postponed until one of them completes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/pool.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "network/graph.hpp"
#include "sim/histogram.hpp"
#include "transport/transport.hpp"

namespace daqloom::systems {

struct Flow {
    /// Random destination: for each message, one of the other hosts in `flow_hosts`.
    static constexpr std::uint32_t kAnyOther = ~std::uint32_t{0};

    DAQLOOM_FIELDS(
        Flow, (std::string, name, "Name, on which the draws of the sources depend."),
        (std::vector<std::uint32_t>, sources, "Sources, as places in `flow_hosts`."),
        (std::uint32_t, destination, "Destination, as a place in `flow_hosts`, or ANY_OTHER.",
         kAnyOther),
        (transport::ServiceLevel, service_level, "Service level of the messages."),
        (base::Bytes, bytes, "Size of a message."),
        (std::uint64_t, messages, "Messages of each source; 0: without end."),
        (base::Time, start, "Time of the first message."),
        (base::Time, interval,
         "Mean time from one message to the next; 0: as soon as there is room."),
        (double, load,
         "Share of the source's wire that messages take, headers included, in place of `interval`, "
         "0 to 1; 0: `interval` counts."),
        (bool, is_poissonian, "Intervals are exponential, else all alike."),
        (std::uint32_t, outstanding, "Messages of a source under way at a time.", 128),
        (bool, is_datagram, "Over UDP: `outstanding` messages wait for their adapter."))
};

struct FlowsConfig {
    DAQLOOM_FIELDS(FlowsConfig,
                   (std::vector<network::NodeIndex>, flow_hosts, "Hosts between which flows are."),
                   (std::vector<Flow>, flows, "Flows."))
};

/// Counts of a flow, summed over its sources.
struct FlowCount {
    DAQLOOM_FIELDS(FlowCount, (std::uint64_t, messages, "Messages that have arrived."),
                   (base::Bytes, bytes, "Bytes of their payload."),
                   (std::uint64_t, lost, "Messages over UDP that lost a datagram."))
};

class FlowTraffic {
  public:
    /// A message that has arrived, for timelines.
    struct Arrival {
        DAQLOOM_FIELDS(Arrival, (base::Time, posted, "Time at which each message was posted."),
                       (base::Time, arrived, "Time at which the receiver had the message."),
                       (std::uint32_t, source, "Place of the sender in `flow_hosts`."),
                       (std::uint32_t, flow,
                        "Flow of the message, in the order of the configuration."))
    };
    /// A message for the nodes to carry.
    struct Message {
        std::uint32_t from = 0;  ///< place in `flow_hosts`
        std::uint32_t to = 0;    ///< place in `flow_hosts`
        base::Bytes bytes = 0;
        transport::ServiceLevel service_level = 0;
        bool is_datagram = false;
        std::uint32_t number = 0;  ///< place among the messages under way
    };
    /// Interface of the system that carries the messages between its nodes.
    class Carrier {
      public:
        virtual ~Carrier() = default;
        virtual void carry(const Message& message, base::Time now) = 0;
        /// Calls `on_due` with this sender at `at`.
        virtual void wake(std::uint32_t sender, base::Time at) = 0;
    };

    static base::expected<FlowTraffic> make(const FlowsConfig& config, std::uint64_t seed,
                                            const network::Graph& graph,
                                            const transport::Transport& transport);

    /// Starts all flows at time zero.
    void start(Carrier& carrier);
    /// Starts counting, at the end of the warm-up.
    void begin_counting();

    void on_due(std::uint32_t sender, base::Time now, Carrier& carrier);
    void on_received(std::uint32_t message, base::Time now);
    void on_written(std::uint32_t message, base::Time now, Carrier& carrier);
    void on_lost(std::uint32_t message);

    /// Counts after the warm-up, by flow.
    [[nodiscard]] std::vector<FlowCount> counted() const;
    /// Latency of a flow: from the post of a message until it is received, for arrivals after the
    /// warm-up.
    [[nodiscard]] const sim::Histogram& latency(std::uint32_t flow) const { return latency_[flow]; }
    /// Latencies by flow.
    [[nodiscard]] const std::vector<sim::Histogram>& latencies() const { return latency_; }
    /// Senders that wait for an event to post their next message.
    [[nodiscard]] std::uint32_t awaited() const { return awaited_; }
    /// Checks that each message has arrived, is lost or is under way.
    [[nodiscard]] base::expected<void> check_conservation() const;

    /// Records the messages that arrive from now on.
    void record_messages() { recording_ = true; }
    [[nodiscard]] const std::vector<Arrival>& arrivals() const { return recorded_; }

  private:
    /// One source of a flow.
    struct Sender {
        std::uint32_t flow = 0;
        std::uint32_t place = 0;  ///< in `flow_hosts`
        double interval_ps = 0;
        base::RandomStream random;
        double offset_ps = 0;                 ///< from the flow's start to the next message
        base::Time due = base::Time::zero();  ///< instant of the next message
        std::uint64_t posted = 0;
        std::uint32_t outstanding = 0;
        bool is_awaited = false;  ///< an event will come at `due`
    };
    struct UnderWay {
        std::uint32_t sender = 0;
        std::uint8_t ends = 2;  ///< pending: arrival at the receiver, completion at the sender
        base::Time posted;
    };

    base::expected<void> check(const Flow& flow, const transport::Transport& transport) const;
    void add_senders(std::uint32_t flow, std::uint64_t seed, const network::Graph& graph,
                     const transport::Transport& transport);
    [[nodiscard]] std::vector<double> intervals_ps(const Flow& flow, const network::Graph& graph,
                                                   const transport::Transport& transport) const;
    void supply(std::uint32_t index, base::Time now, Carrier& carrier);
    void post(std::uint32_t index, base::Time now, Carrier& carrier);
    void set_due(Sender& sender) const;
    void end(std::uint32_t message);

    FlowsConfig config_;
    std::vector<Sender> senders_;
    base::Pool<UnderWay> under_way_;
    std::vector<sim::Histogram> latency_;    ///< by flow
    std::vector<FlowCount> counted_;         ///< by flow
    std::vector<FlowCount> counted_before_;  ///< counts at the end of the warm-up
    std::uint64_t posted_ = 0;
    std::uint64_t completed_ = 0;
    std::uint32_t awaited_ = 0;
    bool warm_ = false;
    bool recording_ = false;
    std::vector<Arrival> recorded_;
};

}  // namespace daqloom::systems
