#include "ethernet/pcapng.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace daqloom::ethernet {
namespace {

constexpr std::uint32_t kEthernetHeader = 14;
constexpr std::uint32_t kIpHeader = 20;
constexpr std::uint32_t kTcpHeader = 20;
/// Longest headers: 14 + 20 + 60, rounded up by 2.
constexpr std::uint32_t kLongestHeader = 96;
constexpr std::uint32_t kShortestFrame = 60;
constexpr std::uint32_t kLongestPayload = 65'535 - kIpHeader - 60;
constexpr std::uint32_t kUdpHeader = 8;
constexpr std::uint8_t kTcpProtocol = 6;
constexpr std::uint8_t kUdpProtocol = 17;

/// A header or block under construction, with fields in big-endian or little-endian order.
class Buffer {
  public:
    void u8(std::uint32_t v) { bytes_ += static_cast<char>(v & 0xff); }
    void big16(std::uint32_t v) { u8(v >> 8), u8(v); }
    void big32(std::uint32_t v) { big16(v >> 16), big16(v); }
    void little16(std::uint32_t v) { u8(v), u8(v >> 8); }
    void little32(std::uint32_t v) { little16(v), little16(v >> 16); }
    void little64(std::uint64_t v) {
        little32(static_cast<std::uint32_t>(v));
        little32(static_cast<std::uint32_t>(v >> 32));
    }
    void text(std::string_view text) { bytes_ += text; }
    void zeros(std::size_t n) { bytes_.append(n, '\0'); }
    void pad_to_four() { zeros((4 - bytes_.size() % 4) % 4); }
    void resize(std::size_t n) { bytes_.resize(n, '\0'); }
    void put_big16(std::size_t at, std::uint32_t v) {
        bytes_[at] = static_cast<char>(v >> 8 & 0xff);
        bytes_[at + 1] = static_cast<char>(v & 0xff);
    }

    [[nodiscard]] std::size_t size() const { return bytes_.size(); }
    [[nodiscard]] std::string_view view() const { return bytes_; }

  private:
    std::string bytes_;
};

/// RFC 1071 over an even number of bytes, continuing `sum`.
std::uint32_t internet_checksum(std::string_view bytes, std::uint32_t sum) {
    assert(bytes.size() % 2 == 0);
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
        sum += std::uint32_t{static_cast<std::uint8_t>(bytes[i])} << 8 |
               static_cast<std::uint8_t>(bytes[i + 1]);
    }
    while (sum > 0xffff) {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    return ~sum & 0xffff;
}

std::uint32_t ip_address(network::NodeIndex host) { return 10U << 24 | (host.value() + 1U); }

void append_hardware_address(Buffer& out, network::NodeIndex host) {
    out.big16(0x0200);
    out.big32(host.value() + 1U);
}

Buffer tcp_options(const CapturedFrame& frame) {
    Buffer out;
    if (frame.timestamps) {
        out.big32(0x01'01'08'0a);  // two of padding; timestamps, 10 bytes
        out.big32(frame.ts_value);
        out.big32(frame.ts_echo);
    }
    const auto blocks = std::min<std::size_t>(frame.sack.size(), frame.timestamps ? 3 : 4);
    if (blocks > 0) {
        out.big16(0x01'01);
        out.u8(5);
        out.u8(static_cast<std::uint32_t>(2 + 8 * blocks));
        for (const auto& block : frame.sack.first(blocks)) {
            out.big32(block.begin);
            out.big32(block.end);
        }
    }
    return out;
}

/// TCP header without its checksum.
Buffer tcp_header(const CapturedFrame& frame) {
    const auto options = tcp_options(frame);
    Buffer out;
    out.big16(frame.source_port);
    out.big16(frame.destination_port);
    out.big32(frame.seq);
    out.big32(frame.ack);
    out.u8((kTcpHeader + static_cast<std::uint32_t>(options.size())) / 4 << 4);
    out.u8(frame.flags);
    out.big16(frame.window);
    out.big16(0);
    out.big16(0);  // urgent pointer
    out.text(options.view());
    return out;
}

/// UDP header without its checksum.
Buffer udp_header(const CapturedFrame& frame, std::uint32_t payload) {
    Buffer out;
    out.big16(frame.source_port);
    out.big16(frame.destination_port);
    out.big16(kUdpHeader + payload);
    out.big16(0);
    return out;
}

struct Headers {
    Buffer bytes;
    std::uint32_t frame_bytes;  ///< with the payload and the padding of a short frame
};

Headers headers(const CapturedFrame& frame) {
    assert(frame.payload_bytes <= kLongestPayload);
    const auto payload = std::min(frame.payload_bytes, kLongestPayload);
    const auto protocol = frame.is_datagram ? kUdpProtocol : kTcpProtocol;
    Buffer transport = frame.is_datagram ? udp_header(frame, payload) : tcp_header(frame);
    const auto length = static_cast<std::uint32_t>(transport.size()) + payload;
    const auto source = ip_address(frame.source_host);
    const auto destination = ip_address(frame.destination_host);

    Buffer out;
    append_hardware_address(out, frame.destination_host);
    append_hardware_address(out, frame.source_host);
    out.big16(0x0800);  // IPv4

    out.u8(0x45);  // version 4, five words
    out.u8(std::uint32_t{frame.traffic_class.value()} << 5 | static_cast<std::uint32_t>(frame.ecn));
    out.big16(kIpHeader + length);
    out.big16(0);       // identification
    out.big16(0x4000);  // do not fragment
    out.u8(64);         // time to live
    out.u8(protocol);
    out.big16(0);  // checksum, below
    out.big32(source);
    out.big32(destination);
    out.put_big16(kEthernetHeader + 10,
                  internet_checksum(out.view().substr(kEthernetHeader, kIpHeader), 0));

    // Sum over the pseudo-header (RFC 9293, 3.1; RFC 768); a payload of zeros adds nothing.
    const auto pseudo_header = (source >> 16) + (source & 0xffff) + (destination >> 16) +
                               (destination & 0xffff) + protocol + length;
    const std::uint32_t sum = internet_checksum(transport.view(), pseudo_header);
    const bool is_none = frame.is_datagram && sum == 0;  // 0 would mean: not computed
    transport.put_big16(frame.is_datagram ? 6 : 16, is_none ? 0xffff : sum);
    out.text(transport.view());

    const auto frame_bytes = kEthernetHeader + kIpHeader + length;
    return {std::move(out), std::max(frame_bytes, kShortestFrame)};
}

/// A pcapng block: type, length, body padded to four bytes, length again.
std::string block(std::uint32_t type, Buffer body) {
    body.pad_to_four();
    const auto length = static_cast<std::uint32_t>(12 + body.size());
    Buffer out;
    out.little32(type);
    out.little32(length);
    out.text(body.view());
    out.little32(length);
    return std::string(out.view());
}

void append_option(Buffer& out, std::uint32_t code, std::string_view value) {
    const auto kept = value.substr(0, 0xffff);
    out.little16(code);
    out.little16(static_cast<std::uint32_t>(kept.size()));
    out.text(kept);
    out.pad_to_four();
}

void append_count(Buffer& out, std::uint32_t code, std::uint64_t count) {
    out.little16(code);
    out.little16(8);
    out.little64(count);
}

void append_end_of_options(Buffer& out) { out.little32(0); }

std::string section_header() {
    Buffer body;
    body.little32(0x1a2b3c4d);  // byte order
    body.little16(1);           // version 1.0
    body.little16(0);
    body.little64(~std::uint64_t{0});  // length of the section: not given
    append_option(body, 4, "daqloom");
    append_end_of_options(body);
    return block(0x0a0d0d0a, body);
}

std::string interface_description(std::string_view name, std::uint32_t snap_length) {
    Buffer body;
    body.little16(1);  // Ethernet
    body.little16(0);
    body.little32(snap_length);
    append_option(body, 2, name);
    // Times are in nanoseconds: Wireshark overflows on picoseconds (wiretap/pcapng.c of 4.0).
    append_option(body, 9, "\x09");
    append_end_of_options(body);
    return block(1, body);
}

/// Beginning of packet and statistics blocks: interface and time.
Buffer stamped(base::Time at) {
    const auto ns = static_cast<std::uint64_t>(at.ps / 1000);
    Buffer body;
    body.little32(0);
    body.little32(static_cast<std::uint32_t>(ns >> 32));
    body.little32(static_cast<std::uint32_t>(ns));
    return body;
}

std::string interface_statistics(base::Time at, std::uint64_t frames, std::uint64_t left_out) {
    auto body = stamped(at);
    append_count(body, 4, frames + left_out);
    append_count(body, 5, left_out);
    append_end_of_options(body);
    return block(5, body);
}

}  // namespace

base::expected<PcapngWriter> PcapngWriter::open(std::string path, std::string_view interface_name,
                                                Options options) {
    options.snap_length = std::max(options.snap_length, kLongestHeader);
    return base::AtomicFile::create(std::move(path)).map([&](base::AtomicFile&& file) {
        file.write(section_header());
        file.write(interface_description(interface_name, options.snap_length));
        return PcapngWriter(std::move(file), options);
    });
}

PcapngWriter::PcapngWriter(base::AtomicFile file, Options options)
    : file_(std::move(file)), options_(options) {}

void PcapngWriter::frame(const CapturedFrame& frame) {
    last_ = frame.at;
    if (frames_ == options_.max_frames) {
        ++left_out_;
        return;
    }
    ++frames_;
    auto [captured, frame_bytes] = headers(frame);
    captured.resize(std::min(frame_bytes, options_.snap_length));
    auto body = stamped(frame.at);
    body.little32(static_cast<std::uint32_t>(captured.size()));
    body.little32(frame_bytes);
    body.text(captured.view());
    file_.write(block(6, std::move(body)));
}

base::expected<void> PcapngWriter::close() {
    file_.write(interface_statistics(last_, frames_, left_out_));
    return file_.commit();
}

}  // namespace daqloom::ethernet
