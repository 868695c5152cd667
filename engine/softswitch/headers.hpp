// Parsed headers: Ethernet, VLAN, ARP, IPv4, IPv6, UDP, TCP.
//
// Frames are hostile input. Parsing ends at a truncated or inconsistent header; the headers before
// are valid.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace daqloom::softswitch {

/// Ethernet address as a number of 48 bits, in wire order.
struct MacAddress {
    std::uint64_t value = 0;

    /// Multicast and broadcast.
    [[nodiscard]] bool is_group() const { return (value >> 40 & 1) != 0; }
    friend auto operator<=>(MacAddress, MacAddress) = default;
};

/// IPv6 address, or an IPv4 address mapped to ::ffff:a.b.c.d (RFC 4291).
struct IpAddress {
    std::uint64_t high = 0;
    std::uint64_t low = 0;

    static constexpr IpAddress v4(std::uint32_t address) {
        return {0, std::uint64_t{0xffff} << 32 | address};
    }
    friend auto operator<=>(const IpAddress&, const IpAddress&) = default;
};

enum class EtherType : std::uint16_t {
    ipv4 = 0x0800,
    arp = 0x0806,
    vlan = 0x8100,
    ipv6 = 0x86dd,
    provider_vlan = 0x88a8,
    flow_control = 0x8808,  ///< pause frames: no switch forwards them (IEEE 802.3, 31B)
};

enum class IpProtocol : std::uint8_t { none = 0, tcp = 6, udp = 17 };

struct Headers {
    bool is_frame = false;  ///< there is an Ethernet header
    bool is_ip = false;
    bool has_ports = false;  ///< UDP or TCP, and not a later fragment of a datagram
    bool is_ecn_capable = false;
    bool is_tagged = false;
    MacAddress destination;
    MacAddress source;
    std::uint16_t vlan = 0;       ///< VLAN of the outermost tag; 0: no tag, or priority only
    std::uint8_t priority = 0;    ///< priority of the outermost tag
    std::uint16_t type = 0;       ///< EtherType behind the tags
    std::uint16_t ip_offset = 0;  ///< offset of the IP header in the frame
    IpProtocol protocol = IpProtocol::none;
    IpAddress from;
    IpAddress to;
    std::uint16_t from_port = 0;
    std::uint16_t to_port = 0;
};

/// Parses `frame`, which begins with the destination address and has no check sequence.
[[nodiscard]] Headers headers_of(std::span<const std::uint8_t> frame);

/// Sets Congestion Experienced in the IP header (RFC 3168), and updates the checksum of IPv4 (RFC
/// 1624). `headers` must be those of the frame, with `is_ecn_capable`.
void mark_congestion(std::span<std::uint8_t> frame, const Headers& headers);

}  // namespace daqloom::softswitch
