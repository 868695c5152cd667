#include "transport/udp/endpoints.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace daqloom::transport {

using base::Bytes;
using base::Time;
using ethernet::EndpointIndex;
using ethernet::Frame;

namespace {

Bytes frame_bytes(Bytes payload) {
    return std::max(payload + kUdpHeaders + ethernet::kFrameOverhead, ethernet::kMinimumFrame);
}

}  // namespace

UdpEndpoints::UdpEndpoints(ethernet::Network& network, sim::EventQueue& events,
                           const ethernet::NetworkConfig& config, Bytes frame,
                           std::uint32_t first_event)
    : network_(network),
      events_(events),
      payload_(frame - ethernet::kFrameOverhead - kUdpHeaders),
      first_event_(first_event),
      classes_(config.classes()),
      service_classes_(config.service_classes),
      senders_(std::size_t{config.hosts} * config.classes()) {
    network_.observe_losses(this);
}

Bytes UdpEndpoints::bytes_on_wire(Bytes message) const {
    const Bytes full = message / payload_;
    const Bytes rest = message % payload_;
    return full * (frame_bytes(payload_) + ethernet::kWireOverhead) +
           (rest == 0 ? 0 : frame_bytes(rest) + ethernet::kWireOverhead);
}

void UdpEndpoints::post(const Posting& message, Time latency, Time now) {
    ++posted_;
    const std::uint32_t place =
        messages_.put({.posting = message, .unsent = message.bytes, .unsettled = message.bytes});
    if (latency > Time::zero()) {
        events_.push({now + latency, first_event_ + kBegins, place});
    } else {
        begin(place, now);
    }
}

void UdpEndpoints::begin(std::uint32_t place, Time now) {
    Sender& sender = senders_[sender_of(messages_[place].posting)];
    sender.push(place);
    if (sender.size() == 1) {
        send(place, now);
    }
}

/// Sends the next datagram of the first message.
void UdpEndpoints::send(std::uint32_t place, Time now) {
    Message& message = messages_[place];
    const Posting& posting = message.posting;
    const ethernet::TrafficClass traffic_class = class_of(posting);
    const ethernet::LinkIndex link = network_.host_link(posting.from);
    const Bytes payload = std::min(payload_, message.unsent);
    const Bytes bytes = frame_bytes(payload);
    message.unsent -= payload;
    const Time start = std::max(now, network_.port(link).free_at());
    Frame& frame = network_.append(link, traffic_class, bytes, now);
    frame.seq = place;
    frame.ack = 0;
    frame.to = EndpointIndex(kDatagram | (posting.from.value() << 1 ^ posting.to.value() << 16));
    frame.sack = ethernet::kNoSack;
    frame.payload = static_cast<std::uint16_t>(payload);
    frame.bytes = static_cast<std::uint16_t>(bytes);
    frame.send_to(ethernet::address_of(posting.to, traffic_class), 0);
    if (frame.at != Time::never()) {  // else the port reports its departure
        events_.push({start, first_event_ + kDeparts, sender_of(posting)});
    }
}

void UdpEndpoints::on_event(const sim::Event& event) {
    if (event.kind == first_event_ + kDeparts) {
        on_departure(event.index, event.at);
    } else {
        begin(event.index, event.at);
    }
}

void UdpEndpoints::on_begun(const Frame& datagram, Time now) {
    on_departure(sender_of(messages_[datagram.seq].posting), now);
}

void UdpEndpoints::on_departure(std::uint32_t sender, Time now) {
    const Message message = messages_[senders_[sender].front()];
    if (message.unsent == 0) {
        senders_[sender].pop();
    }
    if (!senders_[sender].empty()) {
        send(senders_[sender].front(), now);
    }
    if (message.unsent == 0 && message.posting.completes) {
        listener_->on_completed(message.posting.tag, now);
    }
}

void UdpEndpoints::on_frame_lost(const Frame& frame, Time now) {
    if (is_datagram(frame)) {
        messages_[frame.seq].is_lost = true;
        settle(frame, now);
    }
}

/// Counts a datagram as arrived or lost.
void UdpEndpoints::settle(const Frame& datagram, Time now) {
    Message& message = messages_[datagram.seq];
    message.unsettled -= datagram.payload;
    if (message.unsettled > 0) {
        return;
    }
    const bool is_lost = message.is_lost;
    const std::uint64_t tag = message.posting.tag;
    messages_.release(datagram.seq);
    if (is_lost) {
        ++lost_;
        listener_->on_lost(tag, now);
    } else {
        ++received_;
        listener_->on_received(tag, now);
    }
}

std::size_t UdpEndpoints::memory() const {
    std::size_t bytes = messages_.memory() + senders_.capacity() * sizeof(Sender);
    for (const Sender& sender : senders_) {
        bytes += sender.memory();
    }
    return bytes;
}

base::expected<void> UdpEndpoints::check_conservation() const {
    if (posted_ != received_ + lost_ + messages_.in_use()) {
        return base::defect(
            fmt::format("{} messages were posted over UDP, {} have arrived, {} are lost, {} are "
                        "under way",
                        posted_, received_, lost_, messages_.in_use()));
    }
    return {};
}

}  // namespace daqloom::transport
