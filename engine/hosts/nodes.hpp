// Simulated nodes for any protocol over any transport. A node has a processor, which sends and
// receives messages one after the other, a clock, and a host of the network.
//
// Readout and builder units live on nodes and exchange messages. A message becomes a task of its
// sender's processor, then a message of the transport and, once the receiver notices it, a task of
// the receiver's processor. A task that takes no time is done immediately, without an event.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/distribution.hpp"
#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/pool.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "hosts/clock.hpp"
#include "hosts/node_change.hpp"
#include "hosts/processor.hpp"
#include "sim/event_queue.hpp"
#include "sim/histogram.hpp"
#include "transport/transport.hpp"

namespace daqloom::hosts {

using network::NodeIndex;
using transport::ServiceLevel;

struct NodesConfig {
    DAQLOOM_FIELDS(
        NodesConfig,
        (base::Time, message_cost,
         "Time of the processor for a message, sent or received: LogGP's o."),
        (base::BitRate, send_rate,
         "Rate at which the processor makes and sends data, in addition: the inverse of LogGOPS's "
         "O; 0: takes no time."),
        (base::BitRate, receive_rate,
         "Rate at which the processor receives and checks data; 0: no time."),
        (std::uint32_t, shared_cores,
         "Cores shared by the processors of all nodes, as by the units of one machine; 0: each "
         "node has a core of its own."),
        (base::Time, polling_delay,
         "Time from the end of a transfer until the processor notices it."),
        (base::DelayDistribution, latency,
         "Time of adapter and software from a message's task until its first packet."),
        (base::Bytes, control_bytes, "Size of a message without data, sizes or offsets.", 16),
        (ServiceLevel, data_service_level, "Service level of data."),
        (ServiceLevel, control_service_level, "Service level of other messages."),
        (base::BitRate, local_rate, "Rate of copies within a node; 0: they take no time."),
        (base::Time, clock_offset, "Standard deviation of the nodes' clocks."),
        (double, clock_drift, "Standard deviation of the drift of these clocks."),
        (base::Time, duration, "Virtual time of the run.", base::milliseconds(10)),
        (base::Time, warmup, "Virtual time at the start that is not counted."),
        (std::uint64_t, seed, "Seed of all that is drawn.", 1),
        (std::vector<NodeChange>, node_changes, "Changes of nodes during the run."))
};

/// Nodes of a system whose messages carry `Content`.
template <class Content>
class Nodes final : public transport::Listener {
  public:
    static constexpr std::uint32_t kTask = transport::Transport::kFirstOtherEvent;
    static constexpr std::uint32_t kNoticed = kTask + 1;  ///< index of both: task
    static constexpr std::uint32_t kFirstOtherEvent = kTask + 2;
    /// Kind of events that change a node, above all kinds of drivers; index: number of the change.
    static constexpr std::uint32_t kChange = 0xff;

    struct Message {
        std::uint32_t from = 0;  ///< node
        std::uint32_t to = 0;    ///< node
        base::Bytes bytes = 0;
        bool is_data = false;    ///< else a control message
        bool completes = false;  ///< the sender is notified when the data are at their destination
        bool is_datagram = false;                     ///< over UDP
        std::uint16_t epoch = 0;                      ///< epoch of its nodes; see `enter`
        std::optional<ServiceLevel> service_level{};  ///< default: that of its kind
        Content content{};
    };

    /// The system whose units live on the nodes.
    class Driver {
      public:
        virtual ~Driver() = default;
        /// Received and processed by the receiver's CPU.
        virtual void on_message(const Message& message, base::Time now) = 0;
        /// The sender has the acknowledgement that the message's data are at their destination.
        virtual void on_written(const Message& message, base::Time now) = 0;
        /// A message of a flow, identified by its number, was received, has completed, or is lost.
        virtual void on_flow_received(std::uint32_t message, base::Time now) = 0;
        virtual void on_flow_written(std::uint32_t message, base::Time now) = 0;
        virtual void on_flow_lost(std::uint32_t message) = 0;
        /// The network adapter at the message's sender has given up sending it.
        virtual void on_unreachable(const Message& /*message*/, base::Time /*now*/) {}
        /// The processes on a node are killed; no process can be started there before `until`.
        virtual void on_killed(std::uint32_t /*node*/, base::Time /*until*/, base::Time /*now*/) {}
        /// Whether units continue after the loss of others.
        [[nodiscard]] virtual bool regroups() const { return false; }
        /// An event that the driver has pushed to `events()` is due.
        virtual void on_event(const sim::Event& event) = 0;
    };

    /// `hosts`: the host of each node, out of `hosts_there` hosts in the network.
    static base::expected<std::unique_ptr<Nodes>> make(
        const NodesConfig& config, std::unique_ptr<transport::Transport> transport,
        std::size_t hosts_there, const std::vector<NodeIndex>& hosts, Driver& driver) {
        std::unique_ptr<Nodes> nodes(new Nodes(config, std::move(transport), driver));
        std::vector<bool> occupied(hosts_there, false);
        base::RandomStream clocks(config.seed, "clocks");
        for (const NodeIndex host : hosts) {
            DAQLOOM_REFUSE_IF(host.value() >= hosts_there || occupied[host.value()],
                              "node {} is host {}, which is not there or another node's",
                              nodes->nodes_.size(), host.value());
            occupied[host.value()] = true;
            Node node;
            node.host = host;
            node.processor.message_cost = config.message_cost;
            node.clock.offset =
                base::Time::from_seconds(clocks.normal(0, config.clock_offset.seconds()));
            node.clock.rate = 1 + clocks.normal(0, config.clock_drift);
            nodes->nodes_.push_back(node);
        }
        DAQLOOM_CHECK(nodes->plan_changes(hosts));
        return nodes;
    }

    /// Starts recording latencies by service level.
    void record_levels() { records_levels_ = true; }
    /// Overrides the message cost for one node.
    void set_message_cost(std::uint32_t node, base::Time cost) {
        nodes_[node].processor.message_cost = cost;
    }

    /// Runs until `until`, or until no event is left.
    void run(base::Time until) {
        running_ = true;
        transport_->run(until, *this);
    }

    /// Prefetches the connection for the next message from one node to another.
    void expect(std::uint32_t from, std::uint32_t to) const {
        transport_->expect(nodes_[from].host, nodes_[to].host);
    }
    /// Sends a message. Messages within a node are memory copies and cost no processor time.
    /// `of_flow`: number of a flow's message + 1; 0 for a message between units.
    void send(const Message& message, base::Time now, std::uint32_t of_flow = 0) {
        const std::uint32_t place = transfers_.put(
            {message, of_flow, static_cast<std::uint8_t>(message.completes ? 2 : 1), false, now});
        if (!epochs_.empty()) [[unlikely]] {
            transfers_[place].message.epoch = epochs_[message.from];
        }
        const base::Time work = cost_of(message, message.from, config_.send_rate);
        if (message.from != message.to) {
            if (takes_no_time(message.from, work, now)) {
                post(message, place, now);
            } else {
                queue_task(message.from, work, 4 * place + kSend, now);
            }
        } else if (message.is_data) {
            const base::Time made =
                work == base::Time::zero() ? now : occupy(message.from, work, now);
            const base::Time end = made == base::Time::never() ? made : made + copy_(message.bytes);
            const bool is_processed = config_.receive_rate.bps > 0;
            events().push({end, is_processed ? kNoticed : kTask, 4 * place + kReceive});
            if (message.completes) {
                events().push({end, kTask, 4 * place + kComplete});
            }
        } else {
            events().push({now, kTask, 4 * place + kReceive});
        }
    }

    /// Processes, at a node, one message of the network itself, such as the release of a barrier
    /// that switches have combined. Returns the end, or never for a node stopped for good.
    base::Time process(std::uint32_t node, base::Time now) {
        return occupy(node, nodes_[node].processor.work(1, 0, {}), now);
    }
    /// Time of adapter and software from a message's task until its first packet.
    [[nodiscard]] base::Time draw_latency() { return config_.latency.draw(latency_); }

    /// Opens a node's connections for an epoch; epoch 0: none, its process has ended. From now on
    /// the node drops and counts messages of other epochs. Called within an event of the driver.
    void enter(std::uint32_t node, std::uint16_t epoch, base::Time now) {
        leave(node);
        epochs_[node] = epoch;
        transport_->close(nodes_[node].host, now, *this);
    }
    /// Ends the node's epoch without closing its connections.
    void leave(std::uint32_t node) {
        epochs_.resize(nodes_.size());
        epochs_[node] = 0;
    }
    /// Resets the processor of a node for a new process: neither stopped nor busy.
    void restart(std::uint32_t node, base::Time now) {
        Processor& processor = nodes_[node].processor;
        processor.stopped_until = processor.free_at = now;
    }
    [[nodiscard]] base::Time stopped_until(std::uint32_t node) const {
        return nodes_[node].processor.stopped_until;
    }
    /// Messages dropped because a node was not yet, or no longer, in the message's epoch.
    [[nodiscard]] std::uint64_t messages_dropped() const { return messages_dropped_; }

    [[nodiscard]] base::Time now() const { return transport_->now(); }
    [[nodiscard]] sim::EventQueue& events() { return transport_->events(); }
    [[nodiscard]] const sim::EventQueue& events() const { return transport_->events(); }
    [[nodiscard]] transport::Transport& transport() { return *transport_; }
    [[nodiscard]] const transport::Transport& transport() const { return *transport_; }
    [[nodiscard]] const Clock& clock(std::uint32_t node) const { return nodes_[node].clock; }
    /// Control messages sent over the network.
    [[nodiscard]] std::uint64_t control_messages() const { return control_messages_; }
    /// Memory of messages (B).
    [[nodiscard]] std::size_t memory() const { return transfers_.memory(); }
    [[nodiscard]] std::size_t messages_under_way() const { return transfers_.in_use(); }
    /// Processor time spent on messages, summed over all nodes.
    [[nodiscard]] base::Time processor_used() const { return processor_used_; }
    /// Latency of data to another node, from its post until the sender has the completion. Counted
    /// for completions after the warm-up, separately for units and for flows.
    [[nodiscard]] const sim::Histogram& write_latency() const { return write_latency_; }
    [[nodiscard]] const sim::Histogram& flow_write_latency() const { return flow_write_latency_; }
    /// Latency of messages by service level, from the post until all bytes are at the destination
    /// host. Counted for arrivals after the warm-up; empty if not recorded.
    [[nodiscard]] const std::vector<sim::Histogram>& level_latencies() const {
        return level_latencies_;
    }

  private:
    /// Tasks of a message, at most three; the number of a task is message · 4 + part.
    enum Part : std::uint32_t { kSend, kReceive, kComplete };

    struct Node {
        NodeIndex host;
        Processor processor;
        Clock clock;
    };
    /// A message under way. With the messages of the pull protocol, it fits into one cache line.
    struct Transfer {
        Message message;
        std::uint32_t of_flow = 0;
        std::uint8_t ends = 1;  ///< parts still to come
        bool has_arrived = false;
        base::Time posted;
    };

    Nodes(const NodesConfig& config, std::unique_ptr<transport::Transport> transport,
          Driver& driver)
        : config_(config),
          transport_(std::move(transport)),
          driver_(driver),
          copy_(config.local_rate.bps > 0 ? base::WireClock(config.local_rate) : base::WireClock()),
          latency_(config.seed, "host latency"),
          cores_(config.shared_cores) {}

    /// Processor time of a message, at its sender or at its receiver.
    [[nodiscard]] base::Time cost_of(const Message& message, std::uint32_t at,
                                     base::BitRate data) const {
        return nodes_[at].processor.work(message.from == message.to ? 0 : 1, message.bytes,
                                         message.is_data ? data : base::BitRate{});
    }
    /// Whether a node does a task of this cost immediately, without an event.
    [[nodiscard]] bool takes_no_time(std::uint32_t node, base::Time cost, base::Time now) const {
        return cost == base::Time::zero() && running_ &&
               nodes_[node].processor.stopped_until <= now;
    }

    base::Time occupy(std::uint32_t at, base::Time cost, base::Time now) {
        const base::Time end = nodes_[at].processor.occupy(cost, now, cores_);
        processor_used_ += end == base::Time::never() ? base::Time::zero() : cost;
        return end;
    }
    void queue_task(std::uint32_t at, base::Time cost, std::uint32_t task, base::Time now) {
        events().push({occupy(at, cost, now), kTask, task});
    }

    base::expected<void> plan_changes(const std::vector<NodeIndex>& hosts) {
        for (std::size_t i = 0; i < config_.node_changes.size(); ++i) {
            const NodeChange& change = config_.node_changes[i];
            DAQLOOM_TRY(node, changed_node(change, hosts, driver_.regroups()));
            changed_.push_back(node);
            events().push({change.at, kChange, static_cast<std::uint32_t>(i)});
        }
        return {};
    }
    void change(std::uint32_t index) {
        const NodeChange& what = config_.node_changes[index];
        Processor& processor = nodes_[changed_[index]].processor;
        if (what.what == NodeChange::What::stop) {
            processor.stopped_until = std::max(processor.stopped_until, what.until);
        } else if (what.what == NodeChange::What::kill) {
            driver_.on_killed(changed_[index], what.until, now());
        } else {
            processor.slowness = what.factor;
        }
    }
    /// Defers a stopped node's task until the node continues, if ever; returns whether it did so.
    bool is_deferred(const sim::Event& task) {
        const Message& message = transfers_[task.index / 4].message;
        const base::Time stopped_until =
            nodes_[task.index % 4 == kReceive ? message.to : message.from].processor.stopped_until;
        if (stopped_until <= task.at) {
            return false;
        }
        if (stopped_until != base::Time::never()) {
            events().push({stopped_until, kTask, task.index});
        }
        return true;
    }

    /// Drops a message if its epoch differs from that of the node that would send, receive or
    /// complete it. Returns whether the message was dropped.
    bool drops(std::uint32_t place, std::uint32_t node) {
        if (epochs_.empty() || transfers_[place].message.epoch == epochs_[node]) [[likely]] {
            return false;
        }
        ++messages_dropped_;
        end_part(place);
        return true;
    }
    /// Drops a message of another epoch before it is sent, with its receipt and completion.
    bool drops_unsent(std::uint32_t place) {
        const bool completes = transfers_[place].message.completes;
        const bool dropped = drops(place, transfers_[place].message.from);
        if (dropped && completes) {
            end_part(place);
        }
        return dropped;
    }

    void do_task(std::uint32_t task, base::Time now) {
        const std::uint32_t place = task / 4;
        switch (task % 4) {
            case kSend:
                if (drops_unsent(place)) [[unlikely]] {
                    return;
                }
                transfers_[place].posted = now;
                post(transfers_[place].message, place, now);
                return;
            case kReceive:
                receive(place, now);
                return;
            default:
                complete(place, now);
        }
    }

    void notice(std::uint32_t place, base::Time now) {
        const Message& message = transfers_[place].message;
        const base::Time work = cost_of(message, message.to, config_.receive_rate);
        if (takes_no_time(message.to, work, now)) {
            receive(place, now);
        } else {
            queue_task(message.to, work, 4 * place + kReceive, now);
        }
    }
    void receive(std::uint32_t place, base::Time now) {
        if (const std::uint32_t of_flow = transfers_[place].of_flow; of_flow != 0) [[unlikely]] {
            end_part(place);
            driver_.on_flow_received(of_flow - 1, now);
            return;
        }
        if (drops(place, transfers_[place].message.to)) [[unlikely]] {
            return;
        }
        const Message message = transfers_[place].message;
        end_part(place);
        driver_.on_message(message, now);
    }
    void complete(std::uint32_t place, base::Time now) {
        if (drops(place, transfers_[place].message.from)) [[unlikely]] {
            return;
        }
        const Message message = transfers_[place].message;
        const std::uint32_t of_flow = transfers_[place].of_flow;
        if (message.from != message.to && now >= config_.warmup && !message.is_datagram) {
            (of_flow == 0 ? write_latency_ : flow_write_latency_)
                .record(now - transfers_[place].posted);
        }
        end_part(place);
        if (of_flow == 0) {
            driver_.on_written(message, now);
        } else {
            driver_.on_flow_written(of_flow - 1, now);
        }
    }
    void end_part(std::uint32_t place) {
        if (--transfers_[place].ends == 0) {
            transfers_.release(place);
        }
    }

    /// Posts a message. `message`: the message at `place`, or the original if that is a copy.
    void post(const Message& message, std::uint32_t place, base::Time now) {
        control_messages_ += message.is_data ? 0 : 1;
        transport_->post({.from = nodes_[message.from].host,
                          .to = nodes_[message.to].host,
                          .bytes = message.bytes,
                          .tag = place,
                          .service_level = level_of(message),
                          .completes = message.completes,
                          .is_datagram = message.is_datagram},
                         config_.latency.draw(latency_), now);
    }

    [[nodiscard]] ServiceLevel level_of(const Message& message) const {
        return message.service_level ? *message.service_level
               : message.is_data     ? config_.data_service_level
                                     : config_.control_service_level;
    }
    void record_level(const Transfer& arrived, base::Time now) {
        const ServiceLevel level = level_of(arrived.message);
        if (level >= level_latencies_.size()) {
            level_latencies_.resize(level + 1U);
        }
        level_latencies_[level].record(now - arrived.posted);
    }

    /// Prefetches a message for the transport.
    void expect(std::uint64_t tag) const override {
        const char* post =
            reinterpret_cast<const char*>(&transfers_[static_cast<std::uint32_t>(tag)]);
        __builtin_prefetch(post);
        __builtin_prefetch(post + 63);
    }
    void on_received(std::uint64_t tag, base::Time now) override {
        const auto place = static_cast<std::uint32_t>(tag);
        transfers_[place].has_arrived = true;
        if (records_levels_ && now >= config_.warmup) [[unlikely]] {
            record_level(transfers_[place], now);
        }
        if (config_.polling_delay == base::Time::zero()) {
            notice(place, now);
        } else {
            events().push({now + config_.polling_delay, kNoticed, 4 * place + kReceive});
        }
    }
    void on_completed(std::uint64_t tag, base::Time now) override {
        const auto place = static_cast<std::uint32_t>(tag);
        events().push({now + config_.polling_delay, kTask, 4 * place + kComplete});
    }
    /// A failed message never completes; it never arrives either, unless it already has.
    void on_failed(std::uint64_t tag, base::Time now) override {
        if (epochs_.empty()) {
            return;
        }
        const auto place = static_cast<std::uint32_t>(tag);
        const Transfer failed = transfers_[place];
        if (!failed.has_arrived) {
            end_part(place);
        }
        if (failed.message.completes) {
            end_part(place);
        }
        if (failed.of_flow == 0 && failed.message.epoch == epochs_[failed.message.from]) {
            driver_.on_unreachable(failed.message, now);
        }
    }
    /// A lost datagram belongs to a flow, because units send no datagrams.
    void on_lost(std::uint64_t tag, base::Time /*now*/) override {
        const auto place = static_cast<std::uint32_t>(tag);
        const std::uint32_t of_flow = transfers_[place].of_flow;
        end_part(place);
        driver_.on_flow_lost(of_flow - 1);
    }
    void on_event(const sim::Event& event) override {
        if (event.kind == kTask) {
            if (!changed_.empty() && is_deferred(event)) [[unlikely]] {
                return;
            }
            do_task(event.index, event.at);
        } else if (event.kind == kChange) {
            change(event.index);
        } else if (event.kind == kNoticed) {
            notice(event.index / 4, event.at);
        } else {
            driver_.on_event(event);
        }
    }

    NodesConfig config_;
    std::unique_ptr<transport::Transport> transport_;
    Driver& driver_;
    std::vector<Node> nodes_;
    std::vector<std::uint32_t> changed_;  ///< node of each change
    std::vector<std::uint16_t> epochs_;   ///< epoch of each node; empty without epochs
    base::Pool<Transfer> transfers_;
    base::WireClock copy_;
    base::RandomStream latency_;
    base::Time processor_used_;
    SharedCores cores_;
    sim::Histogram write_latency_;
    sim::Histogram flow_write_latency_;
    std::vector<sim::Histogram> level_latencies_;
    bool records_levels_ = false;
    std::uint64_t control_messages_ = 0;
    std::uint64_t messages_dropped_ = 0;
    bool running_ = false;  ///< false: even tasks that take no time are events
};

}  // namespace daqloom::hosts
