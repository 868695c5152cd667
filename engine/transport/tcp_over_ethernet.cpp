#include "transport/tcp_over_ethernet.hpp"

#include <algorithm>

namespace daqloom::transport {

using base::Time;
using ethernet::Frame;

/// Receives frames that have reached their host.
struct TcpOverEthernet::Sink {
    TcpOverEthernet& transport;
    Listener& listener;
    Time now;

    [[gnu::always_inline]] void receive(const Frame& frame) const {
        if (transport.is_late_) [[unlikely]] {
            transport.take_later(frame, now);
            return;
        }
        take(frame);
    }
    [[gnu::always_inline]] void take(const Frame& frame) const {
        if (UdpEndpoints::is_datagram(frame)) [[unlikely]] {
            transport.udp_.receive(frame, now);
            return;
        }
        transport.endpoints_.receive(frame, now, listener);
    }
    void expect(const Frame& frame) const {
        if (!UdpEndpoints::is_datagram(frame)) {
            transport.endpoints_.expect(frame, listener);
        }
    }
};

base::expected<std::unique_ptr<TcpOverEthernet>> TcpOverEthernet::make(
    const ethernet::NetworkConfig& network, const TcpConfig& tcp) {
    DAQLOOM_CHECK(validate(tcp));
    std::unique_ptr<TcpOverEthernet> made(new TcpOverEthernet(tcp, network));
    DAQLOOM_CHECK(made->network_.build(network, largest_frame(tcp)));
    made->network_.plan_changes(kChange);
    return made;
}

void TcpOverEthernet::post(const Posting& message, Time latency, Time now) {
    if (message.is_datagram) [[unlikely]] {
        udp_.post(message, latency, now);
        return;
    }
    // Messages reach the sockets of a host in the order in which they are posted.
    Time& left = left_[message.from];
    left = std::max(left, now + latency);
    if (left > now) {
        delay(message, left);
    } else {
        write(message, now);
    }
}

void TcpOverEthernet::expect(NodeIndex from, NodeIndex to) const {
    const ethernet::EndpointIndex index =
        endpoints_.known(from, to, lane_by_level(service_classes_, 0));
    if (index != ethernet::EndpointIndex::none()) {
        endpoints_.prefetch(index);
        endpoints_.prefetch(ethernet::peer(index));  // the peer's inbox gets the message
    }
}

void TcpOverEthernet::close(NodeIndex host, Time now, Listener& listener) {
    ++closings_[host];
    endpoints_.close(host, now, listener);
}

void TcpOverEthernet::write(const Posting& message, Time now) {
    const EndpointIndex from = endpoint_of(message);
    if (!endpoints_.is_open(from)) [[unlikely]] {
        delay(message, now);  // the message fails, which is reported later
        return;
    }
    const MessageKind kind = message.completes ? MessageKind::completes : MessageKind::plain;
    endpoints_.write(from, message.tag, message.bytes, kind, now);
}

/// Writes a delayed message, unless its connection is over.
void TcpOverEthernet::write_delayed(std::uint32_t place, Time now, Listener& listener) {
    const auto [message, closings] = delayed_[place];
    delayed_.release(place);
    if (closings != closings_[message.from] || !endpoints_.is_open(endpoint_of(message)))
        [[unlikely]] {
        listener.on_failed(message.tag, now);
    } else {
        write(message, now);
    }
}

/// Schedules the end of the run as the first event, so that it precedes all others of that instant.
void TcpOverEthernet::end_at(Time end) {
    end_ = end;
    events_.push({end, kPause, kAtTheEnd});
}

void TcpOverEthernet::run(Time until, Listener& listener) {
    udp_.listen(listener);
    if (until < end_) {
        events_.push({until, kPause, kOnTheWay});
    }
    while (!ended_) {
        const sim::Event event = events_.pop();
        const sim::Event* next = events_.upcoming();
        if (next != nullptr && next->kind == ethernet::kDelivery) {
            network_.prefetch(LinkIndex(next->index));
        }
        if (event.kind == kPause && event.index == kOnTheWay) [[unlikely]] {
            now_ = event.at;
            return;
        }
        begin(event);
        if (event.kind == ethernet::kDelivery) [[likely]] {
            network_.on_delivery(LinkIndex(event.index), event.at, Sink{*this, listener, event.at});
        } else {
            handle(event, listener);
        }
    }
}

void TcpOverEthernet::handle(const sim::Event& event, Listener& listener) {
    switch (event.kind) {
        case ethernet::kPortFree:
            if (const Frame* begun = network_.on_port_free(LinkIndex(event.index), event.at);
                begun != nullptr && network_.port(LinkIndex(event.index)).wiring().from_host() &&
                UdpEndpoints::is_datagram(*begun)) {
                udp_.on_begun(*begun, event.at);
            }
            break;
        case kSenderTimer:
            endpoints_.on_sender_timer(EndpointIndex(event.index), event.at);
            break;
        case kDelayedAck:
            endpoints_.on_delayed_ack(EndpointIndex(event.index), event.at);
            break;
        case kBegin:
            write_delayed(event.index, event.at, listener);
            break;
        case kSample:
            network_.sample_occupancy(event.at, kSample);
            break;
        case kChange:
            network_.on_change(event.index);
            break;
        case kTaken: {
            const Frame frame = arrived_[event.index];
            arrived_.release(event.index);
            Sink{*this, listener, event.at}.take(frame);
            break;
        }
        case kPause:
            ended_ = true;
            break;
        case kUdp:
        case kUdp + 1:
            udp_.on_event(event);
            break;
        default:
            listener.on_event(event);
    }
}

base::Bytes TcpOverEthernet::bytes_on_wire(base::Bytes message) const {
    const TcpConfig& tcp = endpoints_.config();
    const base::Bytes segments = std::max<base::Bytes>(1, (message + tcp.mss - 1) / tcp.mss);
    return message +
           segments * (tcp.header_bytes() + ethernet::kFrameOverhead + ethernet::kWireOverhead);
}

void TcpOverEthernet::begin_counting(Time now, Time end, std::size_t bins) {
    endpoints_.begin_counting();
    network_.begin_counting(now, end, bins);
    network_.sample_occupancy(now, kSample);
}

Report TcpOverEthernet::report() {
    return {.packet_hops = network_.packet_hops(),
            .ack_hops = network_.ack_hops(),
            .memory = {.connections = endpoints_.memory(),
                       .packets = network_.memory() + arrived_.memory(),
                       .messages = endpoints_.message_memory() + delayed_.memory() + udp_.memory(),
                       .events = events_.memory()},
            .ethernet = network_.report(now_),
            .tcp = endpoints_.counted(),
            .infiniband = {},
            .rdma = {}};
}

std::size_t TcpOverEthernet::idle_events() const {
    const bool awaits_end = end_ != Time::never() && !ended_;
    return (awaits_end ? 1U : 0U) + (network_.is_sampling() ? 1U : 0U) + endpoints_.idle_timers();
}

base::expected<void> TcpOverEthernet::check_conservation() const {
    DAQLOOM_CHECK(network_.check_conservation());
    DAQLOOM_CHECK(udp_.check_conservation());
    return endpoints_.check_conservation();
}

}  // namespace daqloom::transport
