// What a frame says of where it goes: Ethernet, VLAN, ARP, IPv4, IPv6, UDP, TCP.
//
// Frames are hostile input. What is cut off or contradicts itself ends the look; what came before
// it counts.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace daqloom::softswitch {

/// Of Ethernet, in the order of the wire, as a number of 48 bits.
struct MacAddress {
    std::uint64_t value = 0;

    /// Also broadcasts.
    [[nodiscard]] bool is_group() const { return (value >> 40 & 1) != 0; }
    friend auto operator<=>(MacAddress, MacAddress) = default;
};

/// Of IPv6, or of IPv4 as ::ffff:a.b.c.d (RFC 4291).
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
    bool has_ports = false;  ///< it is UDP or TCP, and no later fragment of a datagram
    bool is_ecn_capable = false;
    bool is_tagged = false;
    MacAddress destination;
    MacAddress source;
    std::uint16_t vlan = 0;       ///< of the outermost tag; 0: none, or priority only
    std::uint8_t priority = 0;    ///< of that tag
    std::uint16_t type = 0;       ///< behind the tags
    std::uint16_t ip_offset = 0;  ///< of the IP header in the frame
    IpProtocol protocol = IpProtocol::none;
    IpAddress from;
    IpAddress to;
    std::uint16_t from_port = 0;
    std::uint16_t to_port = 0;
};

/// `frame` from its destination address on; without its check sequence.
[[nodiscard]] Headers headers_of(std::span<const std::uint8_t> frame);

/// Sets Congestion Experienced in the IP header (RFC 3168), and mends the checksum of IPv4 (RFC
/// 1624). To be called with the headers of that very frame, if they say that it is ECN capable.
void mark_congestion(std::span<std::uint8_t> frame, const Headers& headers);

}  // namespace daqloom::softswitch
