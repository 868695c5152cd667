// The hosts of a fabric: work queues, packets out of messages, acknowledges.
//
// A host sends the messages of its connections in turn, a packet each; messages of one connection
// one after the other. The receiver acknowledges each message with a packet that uses the fabric
// like any other. What a host sends or receives goes through its adapter's PCIe and its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ring.hpp"
#include "base/units.hpp"
#include "infiniband/message.hpp"
#include "infiniband/network.hpp"
#include "sim/event_queue.hpp"

namespace daqloom::infiniband {

struct HostConfig {
    base::Bytes mtu = 4096;     ///< payload of a packet
    base::BitRate pcie_rate;    ///< of the adapter, each way; 0: no limit
    base::BitRate memory_rate;  ///< of a host's memory, all traffic together; 0: no limit
    /// How often what is sent crosses memory, and what is received: written by its source and
    /// fetched; delivered and read by what comes next.
    std::uint32_t memory_passes = 2;
    bool acknowledge = true;  ///< else a message is complete when it has been received
};

/// What a host's bytes go through, first come, first served: one way of its adapter's PCIe, and
/// with each pass its memory.
class HostPath {
  public:
    explicit HostPath(const HostConfig& config)
        : pcie_(clock_of(config.pcie_rate)),
          memory_(clock_of(config.memory_rate)),
          has_pcie_(config.pcie_rate.bps > 0),
          passes_(config.memory_rate.bps > 0 ? config.memory_passes : 0) {}

    struct Host {
        base::Time out;  // when each is free
        base::Time in;
        base::Time memory;
    };

    [[nodiscard]] bool is_limited() const { return has_pcie_ || passes_ > 0; }
    /// When that much, asked for now, has been fetched from memory.
    base::Time fetch(Host& host, base::Bytes bytes, base::Time now) const {
        return pass(host.out, host, bytes, now);
    }
    /// When that much, here now, is in memory.
    base::Time deliver(Host& host, base::Bytes bytes, base::Time now) const {
        return pass(host.in, host, bytes, now);
    }

  private:
    static base::WireClock clock_of(base::BitRate rate) {
        return base::WireClock(rate.bps > 0 ? rate : base::gigabits_per_second(1));
    }
    base::Time pass(base::Time& way, Host& host, base::Bytes bytes, base::Time now) const {
        way = std::max(way, now) + (has_pcie_ ? pcie_(bytes) : base::Time::zero());
        host.memory = std::max(host.memory, now) + memory_(bytes * passes_);
        return std::max(way, host.memory);
    }

    base::WireClock pcie_;
    base::WireClock memory_;
    bool has_pcie_;
    base::Bytes passes_;  // 0: no limit
};

/// Drives `Network` for whoever posts messages: `driver.on_received(message, now)` when all of one
/// is at its destination, `driver.on_completed(message, now)` when the sender knows.
class Hosts {
  public:
    enum EventKind : std::uint32_t {
        kBegin = Network::kFirstOtherEvent,  // index: message that may be sent from now on
        kFetched,                            // index: host · lanes + lane
        kFirstOtherEvent,
    };

    Hosts(const HostConfig& config, std::uint32_t hosts, std::uint32_t lanes, Network& network,
          sim::EventQueue& events)
        : config_(config),
          path_(config),
          lanes_(lanes),
          network_(network),
          events_(events),
          hosts_(hosts),
          senders_(std::size_t{hosts} * lanes) {
        if (path_.is_limited()) {
            network.let_hosts_hold();
        }
    }

    /// An RDMA write; it goes out after `latency` (of the host's software and adapter) at the
    /// earliest. Returns the number by which it is known until it is completed.
    MessageIndex post(const Message& message, base::Time latency, base::Time now) {
        const MessageIndex index = place(message);
        messages_[index].posted = now;
        ++posted_;
        if (latency > base::Time::zero()) {
            events_.push({now + latency, kBegin, index});
        } else {
            begin(index, now);
        }
        return index;
    }

    template <class Driver>
    void on_event(const sim::Event& event, Driver& driver) {
        switch (event.kind & Network::kKindMask) {
            case kBegin:
                begin(event.index, event.at);
                break;
            case kFetched: {
                Sender& sender = senders_[event.index];
                sender.fetching = false;
                supply(event.index, event.at);
                break;
            }
            default: {
                Sink<Driver> sink{*this, driver};
                network_.on_event(event, sink);
            }
        }
    }

    /// To be called when no event of this instant is left.
    template <class Driver>
    void settle(base::Time now, Driver& driver) {
        Sink<Driver> sink{*this, driver};
        network_.settle(now, sink);
    }

    [[nodiscard]] const Message& message(MessageIndex index) const { return messages_[index]; }
    [[nodiscard]] std::uint64_t posted() const { return posted_; }
    [[nodiscard]] std::uint64_t completed() const { return completed_; }

  private:
    static constexpr MessageIndex kNone = ~MessageIndex{0};
    static constexpr std::uint32_t kAcknowledge = std::uint32_t{1} << 31;  // in a packet's tag

    struct Sender {
        base::Ring<MessageIndex> active;  // the next packet is of the first
        base::Time fetched;               // the next payload has been
        bool supplied = false;            // a packet waits in the network's queue
        bool fetching = false;
    };

    template <class Driver>
    struct Sink {
        Hosts& hosts;
        Driver& driver;

        void on_departure(const Packet& packet, base::Time now) {
            if ((packet.tag & kAcknowledge) == 0) {
                const std::size_t sender = hosts.sender_of(packet.source, packet.lane);
                hosts.senders_[sender].supplied = false;
                hosts.supply(sender, now);
            }
        }
        base::Time take_in(const Packet& packet, base::Time now) {
            return hosts.path_.deliver(hosts.hosts_[packet.destination],
                                       packet.bytes - kHeaderBytes, now);
        }
        void on_delivered(const Packet& packet, base::Time now) {
            const MessageIndex index = packet.tag & ~kAcknowledge;
            if ((packet.tag & kAcknowledge) != 0) {
                hosts.complete(index, now, driver);
                return;
            }
            Message& message = hosts.messages_[index];
            message.received += std::min(hosts.config_.mtu, message.bytes - message.received);
            if (message.received < message.bytes) {
                return;
            }
            driver.on_received(index, now);
            if (hosts.config_.acknowledge) {
                hosts.acknowledge(index, now);
            } else {
                hosts.complete(index, now, driver);
            }
        }
    };

    [[nodiscard]] std::size_t sender_of(NodeIndex host, VirtualLane lane) const {
        return std::size_t{host} * lanes_ + lane;
    }

    MessageIndex place(const Message& message) {
        if (free_.empty()) {
            messages_.push_back(message);
            return static_cast<MessageIndex>(messages_.size() - 1);
        }
        const MessageIndex index = free_.back();
        free_.pop_back();
        messages_[index] = message;
        return index;
    }

    void begin(MessageIndex index, base::Time now) {
        const Message& message = messages_[index];
        const std::size_t sender = sender_of(message.source, message.lane);
        base::Ring<MessageIndex>& active = senders_[sender].active;
        for (std::uint32_t i = 0; i < active.size(); ++i) {
            MessageIndex last = active[i];
            if (messages_[last].destination != message.destination) {
                continue;
            }
            while (messages_[last].behind != kNone) {
                last = messages_[last].behind;
            }
            messages_[last].behind = index;
            return;
        }
        active.push(index);
        supply(sender, now);
    }

    /// Puts the next packet where the network takes it, once its payload has been fetched.
    void supply(std::size_t index, base::Time now) {
        Sender& sender = senders_[index];
        if (sender.supplied || sender.fetching || sender.active.empty()) {
            return;
        }
        if (now < sender.fetched) {
            sender.fetching = true;
            events_.push({sender.fetched, kFetched, static_cast<std::uint32_t>(index)});
            return;
        }
        const MessageIndex number = sender.active.front();
        Message& message = messages_[number];
        Packet packet;
        packet.tag = number;
        packet.destination = message.destination;
        packet.lane = message.lane;
        packet.bytes = static_cast<std::uint16_t>(message.next_packet(config_.mtu));
        const base::Bytes payload = std::min(config_.mtu, message.bytes - message.sent);
        message.sent += payload;
        message.begun = true;
        if (path_.is_limited()) {
            sender.fetched = path_.fetch(hosts_[message.source], payload, now);
        }
        sender.supplied = true;
        sender.active.pop();
        if (!message.all_sent()) {
            sender.active.push(number);
        } else if (message.behind != kNone) {
            sender.active.push(message.behind);
        }
        network_.inject(message.source, packet, now);
    }

    void acknowledge(MessageIndex index, base::Time now) {
        const Message& message = messages_[index];
        Packet packet;
        packet.tag = index | kAcknowledge;
        packet.destination = message.source;
        packet.lane = message.lane;
        packet.bytes = static_cast<std::uint16_t>(kAcknowledgeBytes);
        network_.inject(message.destination, packet, now);
    }

    template <class Driver>
    void complete(MessageIndex index, base::Time now, Driver& driver) {
        ++completed_;
        driver.on_completed(index, now);
        free_.push_back(index);
    }

    HostConfig config_;
    HostPath path_;
    std::uint32_t lanes_;
    Network& network_;
    sim::EventQueue& events_;
    std::vector<HostPath::Host> hosts_;
    std::vector<Sender> senders_;
    std::vector<Message> messages_;
    std::vector<MessageIndex> free_;
    std::uint64_t posted_ = 0;
    std::uint64_t completed_ = 0;
};

}  // namespace daqloom::infiniband
