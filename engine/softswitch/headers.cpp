#include "softswitch/headers.hpp"

namespace daqloom::softswitch {

namespace {

/// Unparsed rest of a frame. Bytes beyond the end of the frame read as 0.
class Rest {
  public:
    explicit Rest(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    [[nodiscard]] bool has(std::size_t count) const { return bytes_.size() >= count; }
    /// Big-endian number of `count` bytes at offset `at`.
    template <std::size_t count>
    [[nodiscard]] std::uint64_t number(std::size_t at) const {
        if (!has(at + count)) [[unlikely]] {
            return 0;
        }
        std::uint64_t value = 0;
        for (std::size_t i = at; i < at + count; ++i) {  // one load and a swap of bytes
            value = value << 8 | bytes_[i];
        }
        return value;
    }
    void skip(std::size_t count) {
        bytes_ = bytes_.subspan(count < bytes_.size() ? count : bytes_.size());
    }
    [[nodiscard]] std::size_t size() const { return bytes_.size(); }

  private:
    std::span<const std::uint8_t> bytes_;
};

constexpr std::uint8_t kEcn = 3;
constexpr std::uint8_t kCongestionExperienced = 3;
constexpr std::size_t kMostExtensions = 8;  ///< limit on parsed extension headers of IPv6
constexpr std::size_t kMostTags = 2;

bool is_tag(std::uint64_t type) {
    return type == static_cast<std::uint16_t>(EtherType::vlan) ||
           type == static_cast<std::uint16_t>(EtherType::provider_vlan);
}

void parse_ports(Headers& headers, std::uint64_t protocol, const Rest& rest) {
    if (protocol != static_cast<std::uint8_t>(IpProtocol::tcp) &&
        protocol != static_cast<std::uint8_t>(IpProtocol::udp)) {
        return;
    }
    headers.protocol = static_cast<IpProtocol>(protocol);
    if (rest.has(4)) {
        headers.has_ports = true;
        headers.from_port = static_cast<std::uint16_t>(rest.number<2>(0));
        headers.to_port = static_cast<std::uint16_t>(rest.number<2>(2));
    }
}

void parse_ipv4(Headers& headers, Rest rest) {
    const std::size_t length = 4 * (rest.number<1>(0) & 0xf);
    if (!rest.has(20) || rest.number<1>(0) >> 4 != 4 || length < 20) {
        return;
    }
    headers.is_ip = true;
    headers.is_ecn_capable = (rest.number<1>(1) & kEcn) != 0;
    headers.from = IpAddress::v4(static_cast<std::uint32_t>(rest.number<4>(12)));
    headers.to = IpAddress::v4(static_cast<std::uint32_t>(rest.number<4>(16)));
    const std::uint64_t protocol = rest.number<1>(9);
    const bool is_later_fragment = (rest.number<2>(6) & 0x1fff) != 0;
    rest.skip(length);
    if (!is_later_fragment) {
        parse_ports(headers, protocol, rest);
    }
}

void parse_ipv6(Headers& headers, Rest rest) {
    if (!rest.has(40) || rest.number<1>(0) >> 4 != 6) {
        return;
    }
    headers.is_ip = true;
    headers.is_ecn_capable = (rest.number<1>(1) >> 4 & kEcn) != 0;
    headers.from = {rest.number<8>(8), rest.number<8>(16)};
    headers.to = {rest.number<8>(24), rest.number<8>(32)};
    std::uint64_t next = rest.number<1>(6);
    rest.skip(40);
    for (std::size_t extension = 0; extension < kMostExtensions; ++extension) {
        constexpr std::uint64_t hop_by_hop = 0, routing = 43, fragment = 44, options = 60;
        if (next != hop_by_hop && next != routing && next != fragment && next != options) {
            parse_ports(headers, next, rest);
            return;
        }
        if (!rest.has(8) || (next == fragment && rest.number<2>(2) >> 3 != 0)) {
            return;
        }
        const std::size_t length = next == fragment ? 8 : 8 * (1 + rest.number<1>(1));
        next = rest.number<1>(0);
        rest.skip(length);
    }
}

}  // namespace

Headers headers_of(std::span<const std::uint8_t> frame) {
    Headers headers;
    Rest rest(frame);
    if (!rest.has(14)) {
        return headers;
    }
    headers.is_frame = true;
    headers.destination = {rest.number<6>(0)};
    headers.source = {rest.number<6>(6)};
    std::uint64_t type = rest.number<2>(12);
    rest.skip(14);
    for (std::size_t tag = 0; tag < kMostTags && is_tag(type) && rest.has(4); ++tag) {
        if (tag == 0) {
            headers.is_tagged = true;
            headers.priority = static_cast<std::uint8_t>(rest.number<1>(0) >> 5);
            headers.vlan = static_cast<std::uint16_t>(rest.number<2>(0) & 0xfff);
        }
        type = rest.number<2>(2);
        rest.skip(4);
    }
    headers.type = static_cast<std::uint16_t>(type);
    headers.ip_offset = static_cast<std::uint16_t>(frame.size() - rest.size());
    if (type == static_cast<std::uint16_t>(EtherType::ipv4)) {
        parse_ipv4(headers, rest);
    } else if (type == static_cast<std::uint16_t>(EtherType::ipv6)) {
        parse_ipv6(headers, rest);
    }
    return headers;
}

void mark_congestion(std::span<std::uint8_t> frame, const Headers& headers) {
    const std::size_t at = headers.ip_offset;
    if (headers.type == static_cast<std::uint16_t>(EtherType::ipv6)) {
        frame[at + 1] = static_cast<std::uint8_t>(frame[at + 1] | kCongestionExperienced << 4);
        return;
    }
    // IPv4 checksum: update in ones' complement for the first word (RFC 1624, equation 3).
    const auto before = static_cast<std::uint32_t>(frame[at] << 8 | frame[at + 1]);
    frame[at + 1] = static_cast<std::uint8_t>(frame[at + 1] | kCongestionExperienced);
    const auto after = static_cast<std::uint32_t>(frame[at] << 8 | frame[at + 1]);
    const auto checksum = static_cast<std::uint32_t>(frame[at + 10] << 8 | frame[at + 11]);
    std::uint32_t sum = (~checksum & 0xffffU) + (~before & 0xffffU) + after;
    sum = (sum & 0xffffU) + (sum >> 16);
    sum = (sum & 0xffffU) + (sum >> 16);
    frame[at + 10] = static_cast<std::uint8_t>(~sum >> 8 & 0xffU);
    frame[at + 11] = static_cast<std::uint8_t>(~sum & 0xffU);
}

}  // namespace daqloom::softswitch
