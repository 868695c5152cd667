// The TCP endpoints of all hosts, driven by frames and timers of a simulated network.
//
// A connection with two endpoints is made, already established, when a host first writes to
// another. It ends when the process on one of the hosts ends or opens new connections: the kernel
// there resets the connection, and a segment informs the other end. The content of messages is not
// stored; a stream records the end of each message and the application's label for it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/huge_pages.hpp"
#include "base/index.hpp"
#include "base/ring.hpp"
#include "base/units.hpp"
#include "ethernet/frame.hpp"
#include "ethernet/network.hpp"
#include "network/graph.hpp"
#include "transport/tcp/config.hpp"
#include "transport/tcp/receiver.hpp"
#include "transport/tcp/sender.hpp"
#include "transport/tcp/stream_offset.hpp"

namespace daqloom::transport {

using ethernet::EndpointIndex;
using ethernet::Frame;
using ethernet::kCongestionExperienced;
using ethernet::kDuplicate;
using ethernet::kEcnCapable;
using ethernet::kEcnEcho;
using ethernet::kNoSack;
using ethernet::kReset;
using ethernet::kRetransmission;
using ethernet::LinkIndex;
using ethernet::peer;
using ethernet::TrafficClass;
using network::NodeIndex;

/// Kind of a message: `completes` requests a message of kind `completion` in return.
enum class MessageKind : std::uint8_t { plain, completes, completion };

/// A message of an application, complete in the stream when the byte before `end` has arrived.
struct StreamMessage {
    std::uint64_t end;
    std::uint64_t label : 62;
    MessageKind kind : 2;
};
static_assert(sizeof(StreamMessage) == 16);
inline constexpr std::uint64_t kLabels = (std::uint64_t{1} << 62) - 1;

/// Size of a completion: libfabric's tcp provider answers a write with delivery completion by a
/// bare header. TCP's own acknowledgement is no substitute, as it may be delayed.
inline constexpr base::Bytes kCompletionBytes = 16;

// ---- kinds of event; index: endpoint
inline constexpr std::uint32_t kSenderTimer = ethernet::kFirstHostEvent;
inline constexpr std::uint32_t kDelayedAck = ethernet::kFirstHostEvent + 1;

/// Called when the retransmission timer of an endpoint expires, to record timelines.
class TimeoutObserver {
  public:
    virtual ~TimeoutObserver() = default;
    virtual void on_timeout(EndpointIndex endpoint, base::Time now) = 0;
};

class TcpEndpoints {
  public:
    TcpEndpoints(const TcpConfig& config, std::uint32_t hosts, std::uint32_t classes,
                 ethernet::Network& network, sim::EventQueue& events)
        : config_(config), network_(network), events_(events), peers_(classes, Peers(hosts)) {}

    /// Endpoint at `from` of its connection in this class with `to`; connects the two if necessary.
    EndpointIndex endpoint(NodeIndex from, NodeIndex to, TrafficClass traffic_class) {
        // Fast path for an answer to the last message received: a look-up would miss the cache.
        if (from == last_receiver_host_ &&
            ethernet::address_of(to, traffic_class) == endpoints_[last_receiver_].address) {
            return last_receiver_;
        }
        const EndpointIndex index = known(from, to, traffic_class);
        return index == EndpointIndex::none() ? connect(from, to, traffic_class) : index;
    }
    /// Endpoint of an existing connection; none if there is no connection yet.
    [[nodiscard]] EndpointIndex known(NodeIndex from, NodeIndex to,
                                      TrafficClass traffic_class) const {
        const base::Table<NodeIndex, EndpointIndex>& peers = peers_[traffic_class][from];
        return peers.contains(to) ? peers[to] : EndpointIndex::none();
    }

    /// Closes all connections of a host whose process has ended or opens new connections. Calls
    /// `app.on_failed(label, now)` for each message from the host that has not arrived, or lacks
    /// its requested completion. A peer fails its own messages when the reset arrives.
    template <class App>
    void close(NodeIndex host, base::Time now, App& app) {
        last_receiver_host_ = NodeIndex::none();
        for (Peers& of_class : peers_) {
            for (EndpointIndex& index : of_class[host]) {
                if (index != EndpointIndex::none() && is_open(index)) {
                    send_reset(index, now);
                    give_up(index, now, app);
                }
                index = EndpointIndex::none();
            }
        }
    }
    /// Whether an endpoint can be written to.
    [[nodiscard]] bool is_open(EndpointIndex index) const {
        return !endpoints_[index].sender.abandoned();
    }

    /// The application at `from` writes a message to its peer; its label is below 2⁶².
    void write(EndpointIndex from, std::uint64_t label, base::Bytes bytes, MessageKind kind,
               base::Time now) {
        Endpoint& endpoint = endpoints_[from];
        endpoint.sender.write(bytes);
        StreamMessage& message = endpoints_[peer(from)].inbox.append();
        message.end = endpoint.sender.end();
        message.label = label & kLabels;
        message.kind = kind;
        SegmentSink sink{*this, from, now};
        endpoint.sender.transmit(now, config_, sink);
        keep_sender_timer(from);
    }

    /// Handles a frame that has reached its host. Calls `app.on_received(label, now)` for each
    /// message that it completes and `app.on_completed(label, now)` for each message of this end
    /// whose completion has arrived; the application may write within these calls.
    template <class App>
    [[gnu::always_inline]] void receive(const Frame& frame, base::Time now, App& app) {
        Endpoint& endpoint = endpoints_[frame.to];
        SegmentSink sink{*this, frame.to, now};
        TcpSender& sender = endpoint.sender;
        if (sender.abandoned() || frame.sack == kReset) [[unlikely]] {
            end_connection(frame, now, app);
            return;
        }
        if (static_cast<std::uint32_t>(sender.una()) != frame.ack || frame.sack != kNoSack ||
            frame.has(kEcnEcho | kDuplicate)) {
            take_ack(endpoint, frame, now);
            sender.transmit(now, config_, sink);
            keep_sender_timer(frame.to);
        }
        if (frame.payload != 0) {
            take_data(frame, now);
            keep_delayed_ack(frame.to);
            if (endpoint.has_message()) {
                last_receiver_ = frame.to;
                last_receiver_host_ = frame.destination();
                receive_messages(frame.to, now, app);
            }
        }
    }

    /// Prefetches the endpoint of a frame that will soon reach its host. A segment below the MSS
    /// ends a message. Its label is not yet in the cache, so this message is prefetched
    /// (`app.expect(label)`) when the next segment below the MSS is announced.
    template <class App>
    void expect(const Frame& frame, const App& app) {
        prefetch(frame.to);
        if (frame.payload != 0 && frame.payload < config_.mss) {
            const Endpoint& earlier = endpoints_[std::exchange(expected_, frame.to)];
            if (!earlier.inbox.empty()) {
                app.expect(earlier.inbox.front().label);
            }
        }
    }

    /// Prefetches the endpoint that will soon receive a frame: among thousands, each endpoint
    /// leaves the cache between two frames. A miss on one of its seven cache lines costs more than
    /// all other work for an acknowledgement.
    void prefetch(EndpointIndex index) const {
        const Endpoint& endpoint = endpoints_[index];
        const char* const end = static_cast<const char*>(endpoint.sender.rarely_touched());
        for (auto line = reinterpret_cast<const char*>(&endpoint); line < end; line += 64) {
            __builtin_prefetch(line);
        }
    }

    void on_sender_timer(EndpointIndex index, base::Time now);
    void on_delayed_ack(EndpointIndex index, base::Time now);

    void observe(TimeoutObserver* observer) { observer_ = observer; }

    [[nodiscard]] const TcpConfig& config() const { return config_; }
    [[nodiscard]] std::size_t size() const { return endpoints_.size(); }
    /// Memory of the connections and of the messages in them (B).
    [[nodiscard]] std::size_t memory() const;
    [[nodiscard]] std::size_t message_memory() const;
    [[nodiscard]] const TcpSender& sender(EndpointIndex index) const {
        return endpoints_[index].sender;
    }
    [[nodiscard]] const TcpReceiver& receiver(EndpointIndex index) const {
        return endpoints_[index].receiver;
    }
    [[nodiscard]] NodeIndex peer_host(EndpointIndex index) const {
        return ethernet::host_in(endpoints_[index].address);
    }
    /// Number of pending timer events if every timer has been stopped; else 0.
    [[nodiscard]] std::size_t idle_timers() const;
    /// Counters of all endpoints, over the whole run.
    [[nodiscard]] TcpSenderCounters counters() const;
    void begin_counting() { before_ = counters(); }
    /// Counters since counting began.
    [[nodiscard]] TcpSenderCounters counted() const { return base::since(counters(), before_); }
    /// Checks that every byte written is received, in flight or unsent; if not, returns a sentence
    /// that names the endpoint.
    [[nodiscard]] base::expected<void> check_conservation() const;

  private:
    struct alignas(64) Endpoint {
        Endpoint(const TcpConfig& config, LinkIndex nic_link, NodeIndex other,
                 TrafficClass traffic_class)
            : nic(nic_link), address(ethernet::address_of(other, traffic_class)), sender(config) {}

        [[nodiscard]] bool has_message() const {
            return !inbox.empty() && inbox.front().end <= receiver.next();
        }

        TcpReceiver receiver;
        base::Ring<StreamMessage, 2> inbox;  ///< messages not yet complete here, in stream order
        base::Time ack_event = base::Time::never();     ///< earliest pending kDelayedAck
        base::Time sender_event = base::Time::never();  ///< earliest pending kSenderTimer
        LinkIndex nic;
        std::uint32_t address;  ///< of its frames: the peer's host and the class
        TcpSender sender;
    };
    static_assert(sizeof(TcpReceiver) == 64);  // one cache line

    /// Sends the segments of an endpoint.
    struct SegmentSink {
        TcpEndpoints& endpoints;
        EndpointIndex from;
        base::Time now;

        void segment(std::uint64_t offset, base::Bytes length, bool again) const {
            endpoints.send_segment(from, offset, length, again, now);
        }
    };

    EndpointIndex connect(NodeIndex from, NodeIndex to, TrafficClass traffic_class);

    /// Delivers complete messages. Each looks the endpoint up, as calls of `app` may move it.
    template <class App>
    [[gnu::noinline]] void receive_messages(EndpointIndex index, base::Time now, App& app) {
        while (endpoints_[index].has_message()) {
            const StreamMessage message = endpoints_[index].inbox.front();
            endpoints_[index].inbox.pop();
            if (message.kind == MessageKind::completion) [[unlikely]] {
                app.on_completed(message.label, now);
                continue;
            }
            if (message.kind == MessageKind::completes) [[unlikely]] {
                write(index, message.label, kCompletionBytes, MessageKind::completion, now);
            }
            app.on_received(message.label, now);
        }
    }

    /// Handles a reset; answers a frame that arrives after the connection's end by a reset.
    template <class App>
    [[gnu::noinline]] void end_connection(const Frame& frame, base::Time now, App& app) {
        if (frame.has_sack()) {
            network_.sacks().release(frame.sack);
        }
        if (frame.sack != kReset) {
            send_reset(frame.to, now);
        } else if (is_open(frame.to)) {
            give_up(frame.to, now, app);
        }
    }

    /// Fails this end's messages that have not arrived, or whose completion has not arrived.
    template <class App>
    void give_up(EndpointIndex index, base::Time now, App& app) {
        Endpoint& endpoint = endpoints_[index];
        endpoint.sender.abandon();
        endpoint.receiver.on_acknowledged();
        std::vector<std::uint64_t> failed;
        for (const EndpointIndex end : {peer(index), index}) {
            base::Ring<StreamMessage, 2> kept;
            for (; !endpoints_[end].inbox.empty(); endpoints_[end].inbox.pop()) {
                const StreamMessage message = endpoints_[end].inbox.front();
                if ((message.kind == MessageKind::completion) == (end == index)) {
                    failed.push_back(message.label);
                } else {
                    kept.push(message);
                }
            }
            endpoints_[end].inbox = std::move(kept);
        }
        for (const std::uint64_t label : failed) {
            app.on_failed(label, now);
        }
    }

    void send_reset(EndpointIndex from, base::Time now) {
        const Endpoint& end = endpoints_[from];
        send(from, {end.sender.nxt(), end.receiver.next(), 0, 0, kReset, 0}, now);
    }

    void take_ack(Endpoint& endpoint, const Frame& frame, base::Time now) {
        const bool duplicate = frame.has(kDuplicate);
        const SackBlocks* sack = frame.sack == kNoSack ? nullptr : &network_.sacks()[frame.sack];
        const bool has_new_blocks = sack != nullptr && sack->count > (duplicate ? 1U : 0U);
        endpoint.sender.on_ack(unwrap(frame.ack, endpoint.sender.una()),
                               has_new_blocks ? sack : nullptr,
                               {.echo = frame.has(kEcnEcho), .duplicate = duplicate}, now, config_);
        if (sack != nullptr) {
            network_.sacks().release(frame.sack);
        }
    }

    void take_data(const Frame& frame, base::Time now) {
        Endpoint& endpoint = endpoints_[frame.to];
        TcpReceiver& receiver = endpoint.receiver;
        // The sender's cache lines are touched only after a silence longer than the minimum RTO, as
        // every timeout is at least that long.
        if (receiver.silence(now) > config_.rto_min) [[unlikely]] {
            receiver.watch_silence(now, endpoint.sender.retransmission_timeout());
        }
        const bool marked = frame.has(kCongestionExperienced);
        const std::uint64_t begin = unwrap(frame.seq, receiver.next());
        const auto reaction = receiver.on_segment(begin, frame.payload, marked, now, config_);
        if (reaction == TcpReceiver::Reaction::acknowledge) {
            const std::uint64_t end = begin + (receiver.duplicate() ? frame.payload : 0U);
            send_ack(frame.to, receiver.next(), receiver.marked(), now, {begin, end});
            receiver.on_acknowledged();
        } else if (reaction == TcpReceiver::Reaction::acknowledge_before_and_delay) {
            send_ack(frame.to, receiver.previous(), !receiver.marked(), now);
        }
    }

    void send_segment(EndpointIndex from, std::uint64_t offset, base::Bytes length, bool again,
                      base::Time now) {
        Endpoint& endpoint = endpoints_[from];
        unsigned flags = endpoint.receiver.marked() ? kEcnEcho : 0U;
        flags |= config_.ecn() ? kEcnCapable : 0U;
        flags |= again ? kRetransmission : 0U;
        send(from, {offset, endpoint.receiver.next(), length, 0, kNoSack, flags}, now);
        endpoint.receiver.on_answer(now, config_);
    }

    void send_ack(EndpointIndex from, std::uint64_t ack, bool marked, base::Time now,
                  StreamRange duplicate = {}) {
        Endpoint& endpoint = endpoints_[from];
        base::Bytes options = 0;
        std::uint32_t sack = kNoSack;
        const bool repeats = duplicate.begin != duplicate.end;
        if (endpoint.receiver.has_gap() || repeats) [[unlikely]] {
            const SackBlocks blocks =
                endpoint.receiver.sack_blocks(config_.sack_blocks(), duplicate);
            options = 4 + 8 * static_cast<base::Bytes>(blocks.count);  // RFC 2018, with padding
            sack = network_.sacks().put(blocks);
        }
        unsigned flags = marked ? kEcnEcho : 0U;
        flags |= repeats ? kDuplicate : 0U;
        send(from, {endpoint.sender.nxt(), ack, 0, options, sack, flags}, now);
    }

    struct Segment {
        std::uint64_t seq;
        std::uint64_t ack;
        base::Bytes payload;
        base::Bytes options;  ///< beyond those of every segment
        std::uint32_t sack;
        unsigned flags;
    };

    void send(EndpointIndex from, const Segment& segment, base::Time now) {
        const Endpoint& endpoint = endpoints_[from];
        const base::Bytes bytes = std::max(
            segment.payload + segment.options + config_.header_bytes() + ethernet::kFrameOverhead,
            ethernet::kMinimumFrame);
        Frame& frame =
            network_.append(endpoint.nic, ethernet::class_in(endpoint.address), bytes, now);
        frame.seq = static_cast<std::uint32_t>(segment.seq);
        frame.ack = static_cast<std::uint32_t>(segment.ack);
        frame.to = peer(from);
        frame.sack = segment.sack;
        frame.payload = static_cast<std::uint16_t>(segment.payload);
        frame.bytes = static_cast<std::uint16_t>(bytes);
        frame.send_to(endpoint.address, segment.flags);
    }

    /// Schedules a sender's timer event. The deadline moves with nearly every acknowledgement,
    /// mostly later: an event is added only if the pending one would fire too late. An event that
    /// fires too early checks the deadline again.
    void keep_sender_timer(EndpointIndex index) {
        Endpoint& endpoint = endpoints_[index];
        if (endpoint.sender.timer() < endpoint.sender_event) {
            endpoint.sender_event = endpoint.sender.timer();
            events_.push({endpoint.sender_event, kSenderTimer, index.value()});
            ++timers_;
        }
    }
    void keep_delayed_ack(EndpointIndex index) {
        Endpoint& endpoint = endpoints_[index];
        if (endpoint.receiver.ack_due() < endpoint.ack_event) {
            endpoint.ack_event = endpoint.receiver.ack_due();
            events_.push({endpoint.ack_event, kDelayedAck, index.value()});
            ++timers_;
        }
    }

    TcpConfig config_;
    ethernet::Network& network_;
    sim::EventQueue& events_;
    base::Table<EndpointIndex, Endpoint, base::HugePages<Endpoint>> endpoints_;
    /// Endpoints by local and remote host; a host's row is empty before its first connection.
    using Peers = base::Table<NodeIndex, base::Table<NodeIndex, EndpointIndex>>;
    base::Table<TrafficClass, Peers> peers_;
    std::size_t timers_ = 0;  ///< pending events of both kinds
    TimeoutObserver* observer_ = nullptr;
    TcpSenderCounters before_;  ///< counters when counting began

    EndpointIndex last_receiver_;  ///< endpoint that received the latest complete message
    NodeIndex last_receiver_host_ = NodeIndex::none();  ///< host of `last_receiver_`
    EndpointIndex expected_;  ///< endpoint of the latest announced end of a message
};

}  // namespace daqloom::transport
