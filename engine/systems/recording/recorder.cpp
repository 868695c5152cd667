#include "systems/recording/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace daqloom::systems {

using base::Bytes;
using base::Time;
using namespace ethernet;
using transport::TcpOverEthernet;
using transport::UdpEndpoints;

namespace {

/// Ports of a connection to host i in traffic class c: from 50 000 + i to 9000 + c. A builder unit
/// opens connections, except for data in a class of their own.
constexpr std::uint32_t kListenersPorts = 9000;
constexpr std::uint32_t kOpenersPorts = 50'000;
constexpr std::uint32_t kFirstByte = 1;  ///< sequence number 0 is the SYN

std::optional<LinkIndex> find_link(const Network& network, const std::string& name) {
    for (const LinkIndex link : network.links()) {
        if (network.link_name(link) == name) {
            return link;
        }
    }
    return std::nullopt;
}

std::string no_such_link(const std::string& name, const Network& network) {
    return fmt::format(
        "there is no link \"{}\" to record; the network has {} links, from {} to {}, with .up "
        "towards the core or .down away from it",
        name, network.links().size(), network.link_name(LinkIndex(0)),
        network.link_name(LinkIndex(network.links().size() - 1)));
}

std::uint32_t milliseconds(Time now) { return static_cast<std::uint32_t>(now.ps / 1'000'000'000); }

/// Receive window, scaled to 16 bits.
std::uint16_t scaled_window(Bytes window) {
    while (window > 0xffff) {
        window /= 2;
    }
    return static_cast<std::uint16_t>(std::max<Bytes>(window, 1));
}

Ecn ecn(const Frame& frame) {
    return frame.has(kCongestionExperienced) ? Ecn::kCongested
           : frame.has(kEcnCapable)          ? Ecn::kCapable0
                                             : Ecn::kNotCapable;
}

std::uint8_t tcp_flags(const Frame& frame) {
    unsigned flags = kTcpAck;
    flags |= frame.payload != 0 ? unsigned{kTcpPsh} : 0U;
    flags |= frame.has(kEcnEcho) ? unsigned{kTcpEce} : 0U;
    return static_cast<std::uint8_t>(flags);
}

}  // namespace

base::expected<std::unique_ptr<Recorder>> Recorder::make(
    PullSystem& system, const std::map<std::string, std::string>& captures,
    const std::string& timeline) {
    auto* const stack = dynamic_cast<TcpOverEthernet*>(&system.transport());
    DAQLOOM_REFUSE_IF(stack == nullptr,
                      "only frames of TCP over Ethernet can be recorded; expected transport.kind "
                      "= tcp and network.technology = ethernet");
    auto recorder = std::unique_ptr<Recorder>(new Recorder(system, *stack));
    std::set<std::string> files;
    for (const auto& [name, file] : captures) {
        const auto link = find_link(stack->network(), name);
        if (!link) {
            return base::failure(no_such_link(name, stack->network()));
        }
        DAQLOOM_REFUSE_IF(!files.insert(file).second || file == timeline,
                          "cannot record {} to {}: another recording goes there; give each its "
                          "own file",
                          name, file);
        DAQLOOM_TRY(writer, PcapngWriter::open(file, name));
        recorder->captures_.resize(stack->network().links().size());
        recorder->captures_[*link].emplace(std::move(writer));
    }
    if (!timeline.empty()) {
        DAQLOOM_TRY(opened, Timeline::open(system, *stack, timeline));
        recorder->timeline_.emplace(std::move(opened));
    }
    Timeline* const drawn = recorder->timeline_ ? &*recorder->timeline_ : nullptr;
    stack->observe(recorder.get(), drawn);
    system.observe(drawn);
    return recorder;
}

Recorder::Recorder(PullSystem& system, TcpOverEthernet& stack)
    : system_(system),
      stack_(stack),
      window_(scaled_window(stack.endpoints().config().receive_window)) {}

Recorder::~Recorder() { let_go(); }

void Recorder::let_go() {
    stack_.observe(nullptr, nullptr);
    system_.observe(nullptr);
}

base::expected<void> Recorder::close() {
    let_go();
    for (auto& writer : captures_) {
        if (writer) {
            DAQLOOM_CHECK(writer->close());
        }
    }
    return timeline_ ? timeline_->close() : base::expected<void>{};
}

void Recorder::on_delivery(LinkIndex link, const Frame& frame, Time now) {
    if (timeline_) {
        timeline_->on_frame(now);
    }
    if (captures_.empty()) {
        return;
    }
    if (captures_[link]) {
        capture(*captures_[link], frame, now);
    }
    if (UdpEndpoints::is_datagram(frame)) {
        return;
    }
    if (stack_.network().port(link).wiring().to_host()) {
        ts_recent_.resize(stack_.endpoints().size());
        ts_recent_[frame.to] = milliseconds(now);
    }
}

void Recorder::on_drop(LinkIndex link, const Frame& frame, Time now) {
    if (timeline_) {
        timeline_->on_drop(link, frame, now);
    }
}

void Recorder::capture(PcapngWriter& writer, const Frame& frame, Time now) const {
    if (UdpEndpoints::is_datagram(frame)) {
        capture_datagram(writer, frame, now);
        return;
    }
    const EndpointIndex from = peer(frame.to);
    const EndpointIndex opened_by = opener(frame.to);
    const std::uint32_t listener = stack_.endpoints().peer_host(opened_by).value();
    const auto opener_port = static_cast<std::uint16_t>(kOpenersPorts + listener % 10'000);
    const auto listener_port =
        static_cast<std::uint16_t>(kListenersPorts + frame.traffic_class().value());
    const bool to_listener = frame.to != opened_by;

    std::array<CapturedFrame::SackBlock, 4> blocks;
    std::uint32_t count = 0;
    if (frame.has_sack()) {
        const SackBlocks& sack = stack_.network().sacks()[frame.sack];
        for (; count < sack.count; ++count) {
            const StreamRange& range = sack.blocks[count];
            blocks[count] = {static_cast<std::uint32_t>(range.begin) + kFirstByte,
                             static_cast<std::uint32_t>(range.end) + kFirstByte};
        }
    }
    writer.frame({.at = now,
                  .source_host = stack_.endpoints().peer_host(frame.to),
                  .destination_host = frame.destination(),
                  .source_port = to_listener ? opener_port : listener_port,
                  .destination_port = to_listener ? listener_port : opener_port,
                  .seq = frame.seq + kFirstByte,
                  .ack = frame.ack + kFirstByte,
                  .flags = tcp_flags(frame),
                  .traffic_class = frame.traffic_class(),
                  .ecn = ecn(frame),
                  .window = window_,
                  .timestamps = stack_.endpoints().config().timestamps,
                  .ts_value = milliseconds(now),
                  .ts_echo = ts_recent_.contains(from) ? ts_recent_[from] : 0,
                  .sack = std::span(blocks).first(count),
                  .payload_bytes = frame.payload});
}

/// Ports of a datagram to host i in traffic class c: from 50 000 + i to 9000 + c.
void Recorder::capture_datagram(PcapngWriter& writer, const Frame& frame, Time now) const {
    const std::uint32_t to = frame.destination().value();
    writer.frame({.at = now,
                  .source_host = stack_.udp()->source(frame),
                  .destination_host = frame.destination(),
                  .source_port = static_cast<std::uint16_t>(kOpenersPorts + to % 10'000),
                  .destination_port =
                      static_cast<std::uint16_t>(kListenersPorts + frame.traffic_class().value()),
                  .is_datagram = true,
                  .traffic_class = frame.traffic_class(),
                  .ecn = ecn(frame),
                  .payload_bytes = frame.payload});
}

}  // namespace daqloom::systems
