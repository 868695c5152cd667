// The ends of RDMA connections in all hosts: work queues, segmentation of messages into packets,
// acknowledgements.
//
// A host sends one packet from each of its queue pairs in turn; messages of one queue pair are sent
// one after the other. The receiver accepts the packets of a queue pair in order only and
// acknowledges each message with a packet that uses the network like any other. Where packets can
// be lost, the receiver sends one NAK for the missing packet, and the sender goes back to this
// packet; the sender also goes back after a timeout without an acknowledgement. Sent and received
// data pass the adapter's PCIe and the host's memory.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/expected.hpp"
#include "base/index.hpp"
#include "base/random.hpp"
#include "base/ring.hpp"
#include "base/units.hpp"
#include "sim/event_queue.hpp"
#include "transport/rdma/config.hpp"
#include "transport/rdma/framing.hpp"
#include "transport/rdma/host_path.hpp"
#include "transport/rdma/message.hpp"
#include "transport/rdma/queue_pair.hpp"

namespace daqloom::transport {

/// Sends messages of a `driver` over `Network`. Calls `driver.on_received(message, now)` when a
/// message is complete at its destination, then `driver.on_completed(message, now)` when the sender
/// has the acknowledgement, or `driver.on_failed(message, now)` when the sender has given up.
template <class Network>
class RdmaEndpoints {
  public:
    enum EventKind : std::uint32_t {
        kBegin = Network::kFirstOtherEvent,  ///< index: message that may be sent from now on
        kFetched,                            ///< index: virtual lane of a host
        kRetransmissionTimer,                ///< index: queue pair
        kFirstOtherEvent,
    };

    using Packet = typename Network::Packet;

    RdmaEndpoints(const RdmaConfig& config, const RdmaFraming& framing, const HostPathConfig& path,
                  std::uint32_t hosts, std::uint32_t lanes, Network& network,
                  sim::EventQueue& events)
        : config_(config),
          framing_(framing),
          path_(path),
          lanes_(lanes),
          network_(network),
          events_(events),
          hosts_(hosts),
          senders_(std::size_t{hosts} * lanes) {
        if (path_.is_limited()) {
            network.let_hosts_hold();
        }
        for (std::uint32_t host = 0; config.retry_spread > 1 && host < hosts; ++host) {
            timers_.push_back({config.seed, fmt::format("retransmission timer {}", host)});
        }
    }

    /// Posts an RDMA write, which leaves after `latency` (of the host's software and adapter) at
    /// the earliest. Returns the write's number, which is valid until it has completed or failed.
    MessageIndex post(const Message& message, base::Time latency, base::Time now) {
        const MessageIndex index = place(message);
        messages_[index].posted = now;
        messages_[index].queue_pair = queue_pair_of(message);
        ++posted_;
        if (latency > base::Time::zero() || queue_pairs_[messages_[index].queue_pair].failed) {
            events_.push({now + latency, kBegin, index.value()});
        } else {
            begin(index, now);
        }
        return index;
    }

    /// Closes all connections of a host whose process has ended or opens new ones: its writes fail,
    /// and writes to it are not answered. Must not be called within a callback of `driver`.
    template <class Driver>
    void close(NodeIndex host, base::Time now, Driver& driver) {
        for (QueuePairIndex number; number.value() < queue_pairs_.size(); ++number) {
            QueuePair& qp = queue_pairs_[number];
            qp.responder_gone = qp.responder_gone || qp.destination == host;
            if (qp.source == host && !qp.failed) {
                qp.closed = true;
                give_up(number, now, driver);
            }
        }
        for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
            senders_[SenderIndex(host.value() * lanes_ + lane)].queue_pairs.clear();
        }
    }

    template <class Driver>
    void on_event(const sim::Event& event, Driver& driver) {
        switch (event.kind & Network::kKindMask) {
            case kBegin:
                if (queue_pairs_[messages_[MessageIndex(event.index)].queue_pair].failed) {
                    fail(MessageIndex(event.index), event.at, driver);
                } else {
                    begin(MessageIndex(event.index), event.at);
                }
                break;
            case kFetched: {
                const SenderIndex sender(event.index);
                senders_[sender].fetching = false;
                supply(sender, event.at);
                break;
            }
            case kRetransmissionTimer:
                on_retransmission_timer(QueuePairIndex(event.index), event.at, driver);
                break;
            default: {
                Sink<Driver> sink{*this, driver};
                network_.on_event(event, sink);
            }
        }
    }

    /// Starts all senders that may send; called when no event of this instant is left.
    template <class Driver>
    void settle(base::Time now, Driver& driver) {
        Sink<Driver> sink{*this, driver};
        network_.settle(now, sink);
    }

    [[nodiscard]] const Message& message(MessageIndex index) const { return messages_[index]; }
    [[nodiscard]] std::uint64_t posted() const { return posted_; }
    [[nodiscard]] std::uint64_t completed() const { return completed_; }
    [[nodiscard]] const RetryCounters& retries() const { return retries_; }
    /// Memory of the queue pairs and of the messages (B).
    [[nodiscard]] std::size_t memory() const {
        std::size_t all = queue_pairs_.memory() + senders_.memory();
        for (const Sender& sender : senders_) {
            all += sender.active.memory();
            for (const auto& to : sender.queue_pairs) {
                all += to.memory();
            }
        }
        return all;
    }
    [[nodiscard]] std::size_t message_memory() const {
        return messages_.memory() + free_.capacity() * sizeof(MessageIndex);
    }

    /// Checks that messages posted = completed + failed + closed + under way, all received whole.
    [[nodiscard]] base::expected<void> check_conservation() const {
        const std::uint64_t here = messages_.size() - free_.size();
        if (posted_ != completed_ + retries_.writes_failed + closed_ + here || torn_ > 0) {
            return base::defect(
                fmt::format("{} messages posted, {} completed, {} failed, {} on connections that "
                            "were closed, {} under way, {} received with another's end",
                            posted_, completed_, retries_.writes_failed, closed_, here, torn_));
        }
        return {};
    }

  private:
    /// A virtual lane of a host.
    using SenderIndex = base::Index<struct SenderTag>;

    struct Sender {
        base::Ring<QueuePairIndex> active;  ///< the first sends the next packet
        base::Time fetched;                 ///< when the next payload has been fetched
        bool supplied = false;              ///< a packet waits in the network's queue
        bool fetching = false;
        /// Queue pairs by service level and destination; the table of an unused level is empty.
        std::vector<base::Table<NodeIndex, QueuePairIndex>> queue_pairs;
    };

    template <class Driver>
    struct Sink {
        RdmaEndpoints& endpoints;
        Driver& driver;

        void on_departure(NodeIndex host, const Packet& packet, base::Time now) {
            if (!is_response(packet.tag)) {
                endpoints.on_departure(host, packet, now);
            }
        }
        base::Time receive(const Packet& packet, base::Time now) {
            return endpoints.path_.deliver(endpoints.hosts_[packet.destination],
                                           packet.bytes - endpoints.framing_.header, now);
        }
        void on_delivered(const Packet& packet, base::Time now) {
            if (is_response(packet.tag)) {
                endpoints.on_acknowledge(packet, now, driver);
            } else {
                endpoints.on_packet(packet, now, driver);
            }
        }
    };

    [[nodiscard]] bool retries_packets() const {
        return config_.acknowledge && config_.retry_timeout > base::Time::zero();
    }

    [[nodiscard]] SenderIndex sender_of(NodeIndex host, VirtualLane lane) const {
        return SenderIndex(host.value() * lanes_ + lane.value());
    }

    QueuePairIndex queue_pair_of(const Message& message) {
        auto& by_level = senders_[sender_of(message.source, message.lane)].queue_pairs;
        if (message.service_level >= by_level.size()) {
            by_level.resize(message.service_level + std::size_t{1});
        }
        base::Table<NodeIndex, QueuePairIndex>& to = by_level[message.service_level];
        if (to.empty()) {
            to.assign(hosts_.size(), QueuePairIndex::none());
        }
        QueuePairIndex& number = to[message.destination];
        if (number == QueuePairIndex::none()) {
            QueuePair qp;
            qp.source = message.source;
            qp.destination = message.destination;
            qp.lane = message.lane;
            number = queue_pairs_.push_back(qp);
        }
        return number;
    }

    MessageIndex place(const Message& message) {
        if (free_.empty()) {
            return messages_.push_back(message);
        }
        const MessageIndex index = free_.back();
        free_.pop_back();
        messages_[index] = message;
        return index;
    }

    // ---- the requester

    void begin(MessageIndex index, base::Time now) {
        Message& message = messages_[index];
        QueuePair& qp = queue_pairs_[message.queue_pair];
        message.first_psn = qp.end_psn;
        message.end_psn = qp.end_psn = message.first_psn + message.packets(config_.mtu);
        if (qp.last != MessageIndex::none()) {
            messages_[qp.last].behind = index;
        }
        qp.last = index;
        for (MessageIndex* const each : {&qp.oldest, &qp.sending, &qp.receiving}) {
            *each = *each == MessageIndex::none() ? index : *each;
        }
        take_turn(message.queue_pair, now);
    }

    void take_turn(QueuePairIndex index, base::Time now) {
        QueuePair& qp = queue_pairs_[index];
        if (!qp.in_turn) {
            const SenderIndex sender = sender_of(qp.source, qp.lane);
            qp.in_turn = true;
            senders_[sender].active.push(index);
            supply(sender, now);
        }
    }

    /// Hands the next packet to the network once its payload has been fetched from memory.
    void supply(SenderIndex index, base::Time now) {
        Sender& sender = senders_[index];
        if (sender.supplied || sender.fetching) {
            return;
        }
        while (!sender.active.empty() && queue_pairs_[sender.active.front()].sending ==
                                             MessageIndex::none()) {  // acknowledged late
            queue_pairs_[sender.active.front()].in_turn = false;
            sender.active.pop();
        }
        if (sender.active.empty()) {
            return;
        }
        if (now < sender.fetched) {
            sender.fetching = true;
            events_.push({sender.fetched, kFetched, index.value()});
            return;
        }
        const QueuePairIndex number = sender.active.front();
        QueuePair& qp = queue_pairs_[number];
        Message& message = messages_[qp.sending];
        Packet packet;
        packet.destination = message.destination;
        packet.lane = message.lane;
        packet.bytes = static_cast<std::uint16_t>(message.next_packet(config_.mtu, framing_));
        packet.psn = qp.next_psn++;
        if (is_before(packet.psn, qp.unsent_psn)) [[unlikely]] {
            ++(qp.timed_out ? retries_.resent_for_timeout : retries_.resent_for_nak);
        } else {
            qp.unsent_psn = qp.next_psn;
        }
        const base::Bytes payload = std::min(config_.mtu, message.bytes - message.sent);
        message.sent += payload;
        message.begun = true;
        packet.tag = number.value() | (message.all_sent() ? kAckRequest : 0);
        if (path_.is_limited()) {
            sender.fetched = path_.fetch(hosts_[message.source], payload, now);
        }
        sender.supplied = true;
        sender.active.pop();
        if (message.all_sent()) {
            qp.sending = message.behind;
        }
        if (qp.sending != MessageIndex::none()) {
            sender.active.push(number);
        } else {
            qp.in_turn = false;
        }
        network_.inject(message.source, packet, now);
    }

    void on_departure(NodeIndex host, const Packet& packet, base::Time now) {
        if ((packet.tag & kAckRequest) != 0 && retries_packets()) {
            const QueuePairIndex number(packet.tag & kQueuePair);
            QueuePair& qp = queue_pairs_[number];
            qp.requested_psn = packet.psn;
            if (qp.timer == base::Time::never()) {
                restart_timer(number, now);
            }
        }
        const SenderIndex sender = sender_of(host, packet.lane);
        senders_[sender].supplied = false;
        supply(sender, now);
    }

    /// Draws the timeout of a host's timer that starts now.
    base::Time timeout(NodeIndex host) {
        const base::Time least = config_.retry_timeout;
        return timers_.empty()
                   ? least
                   : least + base::Time::from_seconds((config_.retry_spread - 1) *
                                                      timers_[host].uniform() * least.seconds());
    }

    /// Starts the retransmission timer if a requested acknowledgement has not arrived yet.
    void restart_timer(QueuePairIndex number, base::Time now) {
        QueuePair& qp = queue_pairs_[number];
        const bool waits = !qp.failed && qp.oldest != MessageIndex::none() &&
                           !is_before(qp.requested_psn, qp.unacknowledged_psn);
        qp.timer = waits ? now + timeout(qp.source) : base::Time::never();
        if (waits && !qp.timer_pending) {
            qp.timer_pending = true;
            events_.push({qp.timer, kRetransmissionTimer, number.value()});
        }  // else a pending event comes no later
    }

    template <class Driver>
    void on_acknowledge(const Packet& packet, base::Time now, Driver& driver) {
        const QueuePairIndex number(packet.tag & kQueuePair);
        QueuePair& qp = queue_pairs_[number];
        const bool is_nak = (packet.tag & kNak) != 0;
        const std::uint32_t acknowledged = packet.psn + (is_nak ? 0 : 1);  // all before this one
        if (qp.failed || is_before(acknowledged, qp.unacknowledged_psn)) {
            return;
        }
        if (acknowledged != qp.unacknowledged_psn) {
            qp.unacknowledged_psn = acknowledged;
            qp.timeouts = 0;
            if (is_before(qp.next_psn, acknowledged)) {
                go_back_to(qp, acknowledged);  // it had gone back needlessly
            }
            while (queue_pairs_[number].oldest != MessageIndex::none() &&
                   !is_before(acknowledged, messages_[queue_pairs_[number].oldest].end_psn)) {
                complete_oldest(number, now, driver);
            }
            if (retries_packets()) {
                restart_timer(number, now);
            }
        }
        if (is_nak) {
            queue_pairs_[number].timed_out = false;
            retransmit(number, now);
        }
    }

    template <class Driver>
    void on_retransmission_timer(QueuePairIndex number, base::Time now, Driver& driver) {
        QueuePair& qp = queue_pairs_[number];
        qp.timer_pending = false;
        if (qp.timer == base::Time::never()) {
            return;
        }
        if (now < qp.timer) {
            qp.timer_pending = true;
            events_.push({qp.timer, kRetransmissionTimer, number.value()});
            return;
        }
        ++retries_.timeouts;
        if (qp.timeouts++ == config_.retry_count) {
            give_up(number, now, driver);
            return;
        }
        qp.timed_out = true;
        retransmit(number, now);
    }

    /// Sends all packets again that are not acknowledged.
    void retransmit(QueuePairIndex number, base::Time now) {
        QueuePair& qp = queue_pairs_[number];
        go_back_to(qp, qp.unacknowledged_psn);
        qp.timer = base::Time::never();
        if (qp.sending != MessageIndex::none()) {
            take_turn(number, now);
        }
    }

    /// Moves the send position to the packet with this PSN, which is sent next.
    void go_back_to(QueuePair& qp, std::uint32_t psn) {
        qp.next_psn = psn;
        MessageIndex index = qp.oldest;
        while (index != MessageIndex::none() && !is_before(psn, messages_[index].end_psn)) {
            index = messages_[index].behind;
        }
        qp.sending = index;
        for (; index != MessageIndex::none(); index = messages_[index].behind) {
            Message& message = messages_[index];
            message.go_back(is_before(message.first_psn, psn) ? psn : message.first_psn,
                            config_.mtu);
        }
    }

    template <class Driver>
    void complete_oldest(QueuePairIndex number, base::Time now, Driver& driver) {
        const MessageIndex index = take_oldest(queue_pairs_[number]);
        ++completed_;
        driver.on_completed(index, now);
        free_.push_back(index);
    }

    MessageIndex take_oldest(QueuePair& qp) {
        const MessageIndex index = qp.oldest;
        qp.oldest = messages_[index].behind;
        qp.last = qp.oldest == MessageIndex::none() ? MessageIndex::none() : qp.last;
        return index;
    }

    template <class Driver>
    void give_up(QueuePairIndex number, base::Time now, Driver& driver) {
        queue_pairs_[number].failed = true;
        queue_pairs_[number].timer = base::Time::never();
        queue_pairs_[number].sending = queue_pairs_[number].receiving = MessageIndex::none();
        while (queue_pairs_[number].oldest != MessageIndex::none()) {
            fail(take_oldest(queue_pairs_[number]), now, driver);
        }
    }

    template <class Driver>
    void fail(MessageIndex index, base::Time now, Driver& driver) {
        ++(queue_pairs_[messages_[index].queue_pair].closed ? closed_ : retries_.writes_failed);
        driver.on_failed(index, now);
        free_.push_back(index);
    }

    // ---- the responder

    template <class Driver>
    void on_packet(const Packet& packet, base::Time now, Driver& driver) {
        const QueuePairIndex number(packet.tag & kQueuePair);
        QueuePair& qp = queue_pairs_[number];
        if (packet.psn != qp.expected_psn || qp.failed || qp.responder_gone) [[unlikely]] {
            on_out_of_sequence(number, packet, now);
            return;
        }
        ++qp.expected_psn;
        qp.nak_sent = false;
        if ((packet.tag & kAckRequest) == 0) {
            return;
        }
        const MessageIndex index = qp.receiving;
        torn_ += qp.expected_psn == messages_[index].end_psn ? 0 : 1;
        qp.receiving = messages_[index].behind;
        messages_[index].received = true;
        driver.on_received(index, now);
        if (config_.acknowledge) {
            acknowledge(number, kAcknowledge, packet.psn, now);
        } else {
            queue_pairs_[number].unacknowledged_psn = packet.psn + 1;
            complete_oldest(number, now, driver);
        }
    }

    void on_out_of_sequence(QueuePairIndex number, const Packet& packet, base::Time now) {
        QueuePair& qp = queue_pairs_[number];
        if (qp.failed || qp.responder_gone) {
            return;
        }
        ++retries_.out_of_sequence;
        if (!retries_packets()) {
            return;
        }
        if (is_before(packet.psn, qp.expected_psn)) {  // a repeated packet
            if ((packet.tag & kAckRequest) != 0) {
                acknowledge(number, kAcknowledge, qp.expected_psn - 1, now);
            }
        } else if (!qp.nak_sent) {
            qp.nak_sent = true;
            acknowledge(number, kNak, qp.expected_psn, now);
        }
    }

    void acknowledge(QueuePairIndex number, std::uint32_t what, std::uint32_t psn, base::Time now) {
        const QueuePair& qp = queue_pairs_[number];
        Packet packet;
        packet.tag = number.value() | what;
        packet.psn = psn;
        packet.destination = qp.source;
        packet.lane = qp.lane;
        packet.bytes = static_cast<std::uint16_t>(framing_.acknowledge());
        network_.inject(qp.destination, packet, now);
    }

    RdmaConfig config_;
    RdmaFraming framing_;
    HostPath path_;
    std::uint32_t lanes_;
    Network& network_;
    sim::EventQueue& events_;
    base::Table<NodeIndex, HostPath::Host> hosts_;
    base::Table<SenderIndex, Sender> senders_;
    base::Table<NodeIndex, base::SmallStream> timers_;  ///< by host; empty: timeouts are equal
    base::Table<QueuePairIndex, QueuePair> queue_pairs_;
    base::Table<MessageIndex, Message> messages_;
    std::vector<MessageIndex> free_;
    std::uint64_t posted_ = 0;
    std::uint64_t completed_ = 0;
    std::uint64_t closed_ = 0;  ///< messages not complete when their connection was closed
    std::uint64_t torn_ = 0;    ///< messages ended by another packet than their last
    RetryCounters retries_;
};

}  // namespace daqloom::transport
