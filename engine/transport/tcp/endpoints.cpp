#include "transport/tcp/endpoints.hpp"

#include <fmt/format.h>

#include <tuple>

namespace daqloom::transport {

using base::Time;

/// Makes both ends of a connection. The default RTT of the handshake is that of the idle path.
EndpointIndex TcpEndpoints::connect(NodeIndex from, NodeIndex to, TrafficClass traffic_class) {
    TcpConfig config = config_;
    if (config.handshake_rtt == Time::zero()) {
        config.handshake_rtt = network_.empty_latency(from, to, ethernet::kMinimumFrame) +
                               network_.empty_latency(to, from, ethernet::kMinimumFrame);
    }
    const EndpointIndex first =
        endpoints_.push_back({config, network_.host_link(from), to, traffic_class});
    endpoints_.push_back({config, network_.host_link(to), from, traffic_class});
    for (const auto& [here, there, end] : {std::tuple(from, to, first), {to, from, peer(first)}}) {
        base::Table<NodeIndex, EndpointIndex>& peers = peers_[traffic_class][here];
        if (peers.empty()) {
            peers.assign(peers_[traffic_class].size(), EndpointIndex::none());
        }
        peers[there] = end;
    }
    return first;
}

std::size_t TcpEndpoints::memory() const {
    std::size_t all = endpoints_.memory();
    for (const Endpoint& endpoint : endpoints_) {
        all += endpoint.sender.memory();
    }
    for (const Peers& peers : peers_) {
        for (const auto& row : peers) {
            all += sizeof(row) + row.memory();
        }
    }
    return all;
}

std::size_t TcpEndpoints::message_memory() const {
    std::size_t all = 0;
    for (const Endpoint& endpoint : endpoints_) {
        all += endpoint.inbox.memory();
    }
    return all;
}

std::size_t TcpEndpoints::idle_timers() const {
    for (const Endpoint& endpoint : endpoints_) {
        if (endpoint.sender.timer() != Time::never() ||
            endpoint.receiver.ack_due() != Time::never()) {
            return 0;
        }
    }
    return timers_;
}

void TcpEndpoints::on_delayed_ack(EndpointIndex index, Time now) {
    --timers_;
    Endpoint& endpoint = endpoints_[index];
    if (endpoint.ack_event != now) {
        return;  // an earlier event has replaced this one
    }
    endpoint.ack_event = Time::never();
    if (endpoint.receiver.ack_due() <= now) {
        send_ack(index, endpoint.receiver.next(), endpoint.receiver.marked(), now);
        endpoint.receiver.on_delay_over();
    }
    keep_delayed_ack(index);
}

void TcpEndpoints::on_sender_timer(EndpointIndex index, Time now) {
    --timers_;
    Endpoint& endpoint = endpoints_[index];
    if (endpoint.sender_event != now) {
        return;
    }
    endpoint.sender_event = Time::never();
    if (endpoint.sender.timer() <= now) {
        const std::uint64_t timeouts = endpoint.sender.counters().timeouts();
        SegmentSink sink{*this, index, now};
        endpoint.sender.on_timer(now, config_, sink);
        if (observer_ != nullptr && endpoint.sender.counters().timeouts() != timeouts) {
            observer_->on_timeout(index, now);
        }
    }
    keep_sender_timer(index);
}

TcpSenderCounters TcpEndpoints::counters() const {
    TcpSenderCounters sum;
    for (const Endpoint& endpoint : endpoints_) {
        TcpSenderCounters::each([&](const char*, auto member, const char*) {
            sum.*member += endpoint.sender.counters().*member;
        });
    }
    return sum;
}

base::expected<void> TcpEndpoints::check_conservation() const {
    for (const EndpointIndex index : endpoints_.indices()) {
        const TcpSender& sender = endpoints_[index].sender;
        const TcpReceiver& receiver = endpoints_[peer(index)].receiver;
        const bool ordered = sender.una() <= receiver.next() && receiver.next() <= sender.nxt() &&
                             sender.nxt() <= sender.end();
        if (!ordered) {
            return base::defect(fmt::format(
                "endpoint {}: {} B acknowledged, {} B received, {} B sent, {} B written; expected "
                "in rising order",
                index.value(), sender.una(), receiver.next(), sender.nxt(), sender.end()));
        }
        if (sender.in_flight() < 0) {
            return base::defect(fmt::format("endpoint {} has {} B in flight; expected none less",
                                            index.value(), sender.in_flight()));
        }
    }
    return {};
}

}  // namespace daqloom::transport
