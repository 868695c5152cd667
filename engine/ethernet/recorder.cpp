#include "ethernet/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace daqloom::ethernet {

using base::Bytes;
using base::Time;

namespace {

constexpr std::uint16_t kReadoutPort = 9000;
/// A connection to readout unit i is from port 50 000 + i.
constexpr std::uint32_t kBuilderPorts = 50'000;
constexpr std::uint32_t kFirstByte = 1;  ///< the SYN took number 0

std::optional<LinkIndex> find_link(const Network& network, const std::string& name) {
    for (LinkIndex i = 0; i < network.links(); ++i) {
        if (network.link_name(i) == name) {
            return i;
        }
    }
    return std::nullopt;
}

std::string no_such_link(const std::string& name, const RackConfig& config) {
    return fmt::format(
        "there is no link \"{}\" to record; links are source.0 to source.{}, uplink.0 to uplink.{} "
        "and access.0 to access.{}, with .up towards the core or .down away from it",
        name, config.readouts - 1, config.uplinks - 1, config.builders - 1);
}

std::uint32_t milliseconds(Time now) { return static_cast<std::uint32_t>(now.ps / 1'000'000'000); }

/// The receive window, scaled as far down as 16 bits need.
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
    Rack& rack, const std::map<std::string, std::string>& captures, const std::string& timeline) {
    auto recorder = std::unique_ptr<Recorder>(new Recorder(rack));
    std::set<std::string> files;
    for (const auto& [name, file] : captures) {
        const auto link = find_link(rack.network(), name);
        if (!link) {
            return base::failure(no_such_link(name, rack.config()));
        }
        if (!files.insert(file).second || file == timeline) {
            return base::failure(
                fmt::format("cannot record {} to {}: another recording goes there; give each its "
                            "own file",
                            name, file));
        }
        auto writer = PcapngWriter::open(file, name);
        if (!writer) {
            return tl::unexpected(writer.error());
        }
        recorder->captures_.resize(rack.network().links());
        recorder->captures_[*link].emplace(std::move(*writer));
    }
    if (!timeline.empty()) {
        auto opened = Timeline::open(rack, timeline);
        if (!opened) {
            return tl::unexpected(opened.error());
        }
        recorder->timeline_.emplace(std::move(*opened));
    }
    rack.observe(recorder.get(), recorder.get(), recorder.get());
    return recorder;
}

Recorder::Recorder(Rack& rack)
    : rack_(rack),
      window_(scaled_window(rack.config().tcp.receive_window)),
      heard_(rack.hosts().size()) {}

Recorder::~Recorder() { rack_.observe(nullptr, nullptr, nullptr); }

base::expected<void> Recorder::close() {
    rack_.observe(nullptr, nullptr, nullptr);
    for (auto& writer : captures_) {
        if (writer) {
            if (auto closed = writer->close(); !closed) {
                return closed;
            }
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
    if (rack_.network().link(link).wiring().to_switch == Wiring::kHost) {
        heard_[frame.to] = milliseconds(now);
    }
}

void Recorder::on_drop(LinkIndex link, const Frame& frame, Time now) {
    if (timeline_) {
        timeline_->on_drop(link, frame, now);
    }
}

void Recorder::on_timeout(EndpointIndex endpoint, Time now) {
    if (timeline_) {
        timeline_->on_timeout(endpoint, now);
    }
}

void Recorder::on_built(protocol::EventId event, protocol::BuilderIndex builder, Time assigned,
                        Time now) {
    if (timeline_) {
        timeline_->on_built(event, builder, assigned, now);
    }
}

void Recorder::capture(PcapngWriter& writer, const Frame& frame, Time now) const {
    const EndpointIndex from = frame.to ^ 1;
    const std::uint32_t readout = frame.to / 2 % rack_.config().readouts;
    const auto builder_port = static_cast<std::uint16_t>(kBuilderPorts + readout % 10'000);
    const bool to_readout = frame.to % 2 == 1;

    std::array<CapturedFrame::SackBlock, 4> blocks;
    std::uint32_t count = 0;
    if (frame.sack != kNoSack) {
        const SackBlocks& sack = rack_.network().sacks()[frame.sack];
        for (; count < sack.count; ++count) {
            const StreamRange& range = sack.blocks[count];
            blocks[count] = {static_cast<std::uint32_t>(range.begin) + kFirstByte,
                             static_cast<std::uint32_t>(range.end) + kFirstByte};
        }
    }
    writer.frame({.at = now,
                  .source_host = rack_.hosts().peer_host(frame.to),
                  .destination_host = frame.destination(),
                  .source_port = to_readout ? builder_port : kReadoutPort,
                  .destination_port = to_readout ? kReadoutPort : builder_port,
                  .seq = frame.seq + kFirstByte,
                  .ack = frame.ack + kFirstByte,
                  .flags = tcp_flags(frame),
                  .ecn = ecn(frame),
                  .window = window_,
                  .timestamps = rack_.config().tcp.timestamps,
                  .ts_value = milliseconds(now),
                  .ts_echo = heard_[from],
                  .sack = std::span(blocks).first(count),
                  .payload_bytes = frame.payload});
}

}  // namespace daqloom::ethernet
