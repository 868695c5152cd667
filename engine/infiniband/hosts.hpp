// The hosts of a fabric: work queues, segmentation of messages into packets, acknowledges.
//
// A host sends one packet of each of its connections (queue pairs) in turn; messages of one
// connection are sent one after the other. The receiver accepts the packets of a connection in
// order only and acknowledges each message with a packet that uses the fabric like any other. Where
// packets can be lost, it sends one NAK for the missing packet, and the sender goes back to that
// packet; the sender also goes back after a timeout without an acknowledge. Sent and received data
// pass the adapter's PCIe and the host's memory.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/expected.hpp"
#include "base/ring.hpp"
#include "base/units.hpp"
#include "infiniband/connection.hpp"
#include "infiniband/message.hpp"
#include "infiniband/network.hpp"
#include "sim/event_queue.hpp"

namespace daqloom::infiniband {

struct HostConfig {
    base::Bytes mtu = 4096;          ///< payload of a packet
    base::BitRate pcie_rate = {};    ///< of the adapter, each way; 0: no limit
    base::BitRate memory_rate = {};  ///< of a host's memory, all traffic together; 0: no limit
    /// How often what is sent crosses memory, and what is received: written by its source and
    /// fetched; delivered and read by what comes next.
    std::uint32_t memory_passes = 2;
    bool acknowledge = true;  ///< else a message is complete when it has been received
    /// From the departure of a message's last packet until it is sent again; zero: nothing is ever
    /// sent again, and a connection that has lost a packet delivers nothing more.
    base::Time retry_timeout = {};
    std::uint32_t retry_count = 7;  ///< retries in a row before a connection fails
};

/// Counters of losses and retries, over the whole run.
struct RetryCounters {
    std::uint64_t resent_for_nak = 0;      ///< packets sent again after a NAK
    std::uint64_t resent_for_timeout = 0;  ///< packets sent again after a timeout
    std::uint64_t timeouts = 0;
    std::uint64_t writes_failed = 0;  ///< messages of failed connections

    /// Calls see(name, member, meaning) for each field.
    template <class See>
    static void each(See see) {
        using Retries = RetryCounters;
        see("resent_for_nak", &Retries::resent_for_nak, "Packets sent again after a NAK.");
        see("resent_for_timeout", &Retries::resent_for_timeout,
            "Packets sent again after a timeout.");
        see("timeouts", &Retries::timeouts, "Timeouts without an acknowledge.");
        see("writes_failed", &Retries::writes_failed, "Messages of failed connections.");
    }
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
/// is at its destination, `driver.on_completed(message, now)` when the sender knows,
/// `driver.on_failed(message, now)` when it has given up instead.
class Hosts {
  public:
    enum EventKind : std::uint32_t {
        kBegin = Network::kFirstOtherEvent,  // index: message that may be sent from now on
        kFetched,                            // index: host · lanes + lane
        kOverdue,                            // index: connection
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
    /// earliest. Returns the number by which it is known until it is completed or has failed.
    MessageIndex post(const Message& message, base::Time latency, base::Time now) {
        const MessageIndex index = place(message);
        messages_[index].posted = now;
        messages_[index].connection = connection_of(message);
        ++posted_;
        if (latency > base::Time::zero() || connections_[messages_[index].connection].failed) {
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
                if (connections_[messages_[event.index].connection].failed) {
                    fail(event.index, event.at, driver);
                } else {
                    begin(event.index, event.at);
                }
                break;
            case kFetched: {
                Sender& sender = senders_[event.index];
                sender.fetching = false;
                supply(event.index, event.at);
                break;
            }
            case kOverdue:
                on_overdue(event.index, event.at, driver);
                break;
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
    [[nodiscard]] const RetryCounters& retries() const { return retries_; }

    /// Messages: posted = completed + failed + still here; each was received as a whole.
    [[nodiscard]] base::expected<void> check_conservation() const {
        const std::uint64_t here = messages_.size() - free_.size();
        if (posted_ != completed_ + retries_.writes_failed + here || torn_ > 0) {
            return base::defect(
                fmt::format("{} messages posted, {} completed, {} failed, {} under way, {} "
                            "received with another's end",
                            posted_, completed_, retries_.writes_failed, here, torn_));
        }
        return {};
    }

  private:
    // In a packet's tag, beside the connection.
    static constexpr std::uint32_t kAcknowledge = std::uint32_t{1} << 31;  // up to this packet
    static constexpr std::uint32_t kMissing = std::uint32_t{1} << 30;      // from this one on
    static constexpr std::uint32_t kAsks = std::uint32_t{1} << 29;         // for an acknowledge
    static constexpr std::uint32_t kConnection = kAsks - 1;

    struct Sender {
        base::Ring<ConnectionIndex> active;  // the next packet is of the first
        base::Time fetched;                  // the next payload has been
        bool supplied = false;               // a packet waits in the network's queue
        bool fetching = false;
        std::vector<ConnectionIndex> connections;  // by destination; empty before the first
    };

    template <class Driver>
    struct Sink {
        Hosts& hosts;
        Driver& driver;

        void on_departure(NodeIndex host, const Packet& packet, base::Time now) {
            if ((packet.tag & (kAcknowledge | kMissing)) == 0) {
                hosts.on_departure(host, packet, now);
            }
        }
        base::Time take_in(const Packet& packet, base::Time now) {
            return hosts.path_.deliver(hosts.hosts_[packet.destination],
                                       packet.bytes - kHeaderBytes, now);
        }
        void on_delivered(const Packet& packet, base::Time now) {
            if ((packet.tag & (kAcknowledge | kMissing)) != 0) {
                hosts.on_answer(packet, now, driver);
            } else {
                hosts.on_packet(packet, now, driver);
            }
        }
    };

    [[nodiscard]] bool retries_packets() const {
        return config_.acknowledge && config_.retry_timeout > base::Time::zero();
    }

    [[nodiscard]] std::size_t sender_of(NodeIndex host, VirtualLane lane) const {
        return std::size_t{host} * lanes_ + lane;
    }

    ConnectionIndex connection_of(const Message& message) {
        std::vector<ConnectionIndex>& to =
            senders_[sender_of(message.source, message.lane)].connections;
        if (to.empty()) {
            to.assign(hosts_.size(), kConnection);
        }
        ConnectionIndex& number = to[message.destination];
        if (number == kConnection) {
            number = static_cast<ConnectionIndex>(connections_.size());
            Connection connection;
            connection.source = message.source;
            connection.destination = message.destination;
            connection.lane = message.lane;
            connections_.push_back(connection);
        }
        return number;
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

    // The sender.

    void begin(MessageIndex index, base::Time now) {
        Message& message = messages_[index];
        Connection& connection = connections_[message.connection];
        message.first = connection.end;
        message.end = connection.end = message.first + message.packets(config_.mtu);
        if (connection.last != kNoMessage) {
            messages_[connection.last].behind = index;
        }
        connection.last = index;
        for (MessageIndex* const each :
             {&connection.oldest, &connection.sending, &connection.receiving}) {
            *each = *each == kNoMessage ? index : *each;
        }
        take_turn(message.connection, now);
    }

    void take_turn(ConnectionIndex index, base::Time now) {
        Connection& connection = connections_[index];
        if (!connection.in_turn) {
            const std::size_t sender = sender_of(connection.source, connection.lane);
            connection.in_turn = true;
            senders_[sender].active.push(index);
            supply(sender, now);
        }
    }

    /// Puts the next packet where the network takes it, once its payload has been fetched.
    void supply(std::size_t index, base::Time now) {
        Sender& sender = senders_[index];
        if (sender.supplied || sender.fetching) {
            return;
        }
        while (!sender.active.empty() &&
               connections_[sender.active.front()].sending == kNoMessage) {  // acknowledged late
            connections_[sender.active.front()].in_turn = false;
            sender.active.pop();
        }
        if (sender.active.empty()) {
            return;
        }
        if (now < sender.fetched) {
            sender.fetching = true;
            events_.push({sender.fetched, kFetched, static_cast<std::uint32_t>(index)});
            return;
        }
        const ConnectionIndex number = sender.active.front();
        Connection& connection = connections_[number];
        Message& message = messages_[connection.sending];
        Packet packet;
        packet.destination = message.destination;
        packet.lane = message.lane;
        packet.bytes = static_cast<std::uint16_t>(message.next_packet(config_.mtu));
        packet.sequence = connection.next++;
        const base::Bytes payload = std::min(config_.mtu, message.bytes - message.sent);
        message.sent += payload;
        message.begun = true;
        packet.tag = number | (message.all_sent() ? kAsks : 0);
        if (path_.is_limited()) {
            sender.fetched = path_.fetch(hosts_[message.source], payload, now);
        }
        sender.supplied = true;
        sender.active.pop();
        if (message.all_sent()) {
            connection.sending = message.behind;
        }
        if (connection.sending != kNoMessage) {
            sender.active.push(number);
        } else {
            connection.in_turn = false;
        }
        network_.inject(message.source, packet, now);
    }

    void on_departure(NodeIndex host, const Packet& packet, base::Time now) {
        if ((packet.tag & kAsks) != 0 && retries_packets()) {
            const ConnectionIndex number = packet.tag & kConnection;
            Connection& connection = connections_[number];
            connection.asked = packet.sequence;
            if (connection.deadline == base::Time::never()) {
                await_answer(number, now);
            }
        }
        const std::size_t sender = sender_of(host, packet.lane);
        senders_[sender].supplied = false;
        supply(sender, now);
    }

    /// From now on, if something that has been asked for is still to come.
    void await_answer(ConnectionIndex number, base::Time now) {
        Connection& connection = connections_[number];
        const bool waits = !connection.failed && connection.oldest != kNoMessage &&
                           !is_before(connection.asked, connection.acknowledged);
        connection.deadline = waits ? now + config_.retry_timeout : base::Time::never();
        if (waits && !connection.timer_set) {
            connection.timer_set = true;
            events_.push({connection.deadline, kOverdue, number});
        }  // else an event comes no later
    }

    template <class Driver>
    void on_answer(const Packet& packet, base::Time now, Driver& driver) {
        const ConnectionIndex number = packet.tag & kConnection;
        Connection& connection = connections_[number];
        const bool is_missing = (packet.tag & kMissing) != 0;
        const std::uint32_t there = packet.sequence + (is_missing ? 0 : 1);  // all packets before
        if (connection.failed || is_before(there, connection.acknowledged)) {
            return;
        }
        if (there != connection.acknowledged) {
            connection.acknowledged = there;
            connection.timeouts = 0;
            if (is_before(connection.next, there)) {
                go_to(connection, there);  // it had gone back, for nothing
            }
            while (connections_[number].oldest != kNoMessage &&
                   !is_before(there, messages_[connections_[number].oldest].end)) {
                complete_oldest(number, now, driver);
            }
            if (retries_packets()) {
                await_answer(number, now);
            }
        }
        if (is_missing) {
            retries_.resent_for_nak += connections_[number].next - there;
            send_again(number, now);
        }
    }

    template <class Driver>
    void on_overdue(ConnectionIndex number, base::Time now, Driver& driver) {
        Connection& connection = connections_[number];
        connection.timer_set = false;
        if (connection.deadline == base::Time::never()) {
            return;
        }
        if (now < connection.deadline) {
            connection.timer_set = true;
            events_.push({connection.deadline, kOverdue, number});
            return;
        }
        ++retries_.timeouts;
        if (connection.timeouts++ == config_.retry_count) {
            give_up(number, now, driver);
            return;
        }
        retries_.resent_for_timeout += connection.next - connection.acknowledged;
        send_again(number, now);
    }

    /// All that is not known to be there.
    void send_again(ConnectionIndex number, base::Time now) {
        Connection& connection = connections_[number];
        go_to(connection, connection.acknowledged);
        connection.deadline = base::Time::never();
        if (connection.sending != kNoMessage) {
            take_turn(number, now);
        }
    }

    /// Goes back: the next packet to be sent is this one.
    void go_to(Connection& connection, std::uint32_t sequence) {
        connection.next = sequence;
        MessageIndex index = connection.oldest;
        while (index != kNoMessage && !is_before(sequence, messages_[index].end)) {
            index = messages_[index].behind;
        }
        connection.sending = index;
        for (; index != kNoMessage; index = messages_[index].behind) {
            Message& message = messages_[index];
            message.go_back(is_before(message.first, sequence) ? sequence : message.first,
                            config_.mtu);
        }
    }

    template <class Driver>
    void complete_oldest(ConnectionIndex number, base::Time now, Driver& driver) {
        const MessageIndex index = take_oldest(connections_[number]);
        ++completed_;
        driver.on_completed(index, now);
        free_.push_back(index);
    }

    MessageIndex take_oldest(Connection& connection) {
        const MessageIndex index = connection.oldest;
        connection.oldest = messages_[index].behind;
        connection.last = connection.oldest == kNoMessage ? kNoMessage : connection.last;
        return index;
    }

    template <class Driver>
    void give_up(ConnectionIndex number, base::Time now, Driver& driver) {
        connections_[number].failed = true;
        connections_[number].deadline = base::Time::never();
        connections_[number].sending = connections_[number].receiving = kNoMessage;
        while (connections_[number].oldest != kNoMessage) {
            fail(take_oldest(connections_[number]), now, driver);
        }
    }

    template <class Driver>
    void fail(MessageIndex index, base::Time now, Driver& driver) {
        ++retries_.writes_failed;
        driver.on_failed(index, now);
        free_.push_back(index);
    }

    // The receiver.

    template <class Driver>
    void on_packet(const Packet& packet, base::Time now, Driver& driver) {
        const ConnectionIndex number = packet.tag & kConnection;
        Connection& connection = connections_[number];
        if (packet.sequence != connection.expected || connection.failed) [[unlikely]] {
            on_unexpected(number, packet, now);
            return;
        }
        ++connection.expected;
        connection.complained = false;
        if ((packet.tag & kAsks) == 0) {
            return;
        }
        const MessageIndex index = connection.receiving;
        torn_ += connection.expected == messages_[index].end ? 0 : 1;
        connection.receiving = messages_[index].behind;
        driver.on_received(index, now);
        if (config_.acknowledge) {
            answer(number, kAcknowledge, packet.sequence, now);
        } else {
            connections_[number].acknowledged = packet.sequence + 1;
            complete_oldest(number, now, driver);
        }
    }

    void on_unexpected(ConnectionIndex number, const Packet& packet, base::Time now) {
        Connection& connection = connections_[number];
        if (!retries_packets() || connection.failed) {
            return;
        }
        if (is_before(packet.sequence, connection.expected)) {  // once more
            if ((packet.tag & kAsks) != 0) {
                answer(number, kAcknowledge, connection.expected - 1, now);
            }
        } else if (!connection.complained) {
            connection.complained = true;
            answer(number, kMissing, connection.expected, now);
        }
    }

    void answer(ConnectionIndex number, std::uint32_t what, std::uint32_t sequence,
                base::Time now) {
        const Connection& connection = connections_[number];
        Packet packet;
        packet.tag = number | what;
        packet.sequence = sequence;
        packet.destination = connection.source;
        packet.lane = connection.lane;
        packet.bytes = static_cast<std::uint16_t>(kAcknowledgeBytes);
        network_.inject(connection.destination, packet, now);
    }

    HostConfig config_;
    HostPath path_;
    std::uint32_t lanes_;
    Network& network_;
    sim::EventQueue& events_;
    std::vector<HostPath::Host> hosts_;
    std::vector<Sender> senders_;
    std::vector<Connection> connections_;
    std::vector<Message> messages_;
    std::vector<MessageIndex> free_;
    std::uint64_t posted_ = 0;
    std::uint64_t completed_ = 0;
    std::uint64_t torn_ = 0;  // messages taken for received by another packet than their last
    RetryCounters retries_;
};

}  // namespace daqloom::infiniband
