#include "ethernet/tcp_hosts.hpp"

#include <fmt/format.h>

namespace daqloom::ethernet {

using base::Time;

void TcpHosts::on_delayed_ack(EndpointIndex index, Time now) {
    Endpoint& endpoint = endpoints_[index];
    if (endpoint.ack_event != now) {
        return;  // an earlier event has taken its place
    }
    endpoint.ack_event = Time::never();
    if (endpoint.receiver.ack_due() <= now) {
        send_ack(index, endpoint.receiver.next(), endpoint.receiver.marked(), now);
        endpoint.receiver.on_delay_over();
    }
    keep_delayed_ack(index);
}

void TcpHosts::on_sender_timer(EndpointIndex index, Time now) {
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

TcpSenderCounters TcpHosts::counters() const {
    TcpSenderCounters sum;
    for (const Endpoint& endpoint : endpoints_) {
        const TcpSenderCounters& one = endpoint.sender.counters();
        sum.fast_retransmissions += one.fast_retransmissions;
        sum.probe_retransmissions += one.probe_retransmissions;
        sum.timeout_retransmissions += one.timeout_retransmissions;
        sum.timeouts_whole_window += one.timeouts_whole_window;
        sum.timeouts_tail += one.timeouts_tail;
        sum.timeouts_retransmission += one.timeouts_retransmission;
        sum.recoveries += one.recoveries;
    }
    return sum;
}

base::expected<void> TcpHosts::check_conservation() const {
    for (EndpointIndex index = 0; index < endpoints_.size(); ++index) {
        const TcpSender& sender = endpoints_[index].sender;
        const TcpReceiver& receiver = endpoints_[index ^ 1].receiver;
        const bool ordered = sender.una() <= receiver.next() && receiver.next() <= sender.nxt() &&
                             sender.nxt() <= sender.end();
        if (!ordered) {
            return base::defect(fmt::format(
                "endpoint {}: {} B acknowledged, {} B received, {} B sent, {} B written; expected "
                "in rising order",
                index, sender.una(), receiver.next(), sender.nxt(), sender.end()));
        }
        if (sender.in_flight() < 0) {
            return base::defect(fmt::format("endpoint {} has {} B in flight; expected none less",
                                            index, sender.in_flight()));
        }
    }
    return {};
}

}  // namespace daqloom::ethernet
