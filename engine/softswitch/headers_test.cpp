#include "softswitch/headers.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "base/byte_source_test.hpp"

namespace daqloom::softswitch {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes operator+(Bytes bytes, const Bytes& more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return bytes;
}

Bytes octets(std::initializer_list<int> values) {
    Bytes bytes;
    for (const int value : values) {
        bytes.push_back(static_cast<std::uint8_t>(value));
    }
    return bytes;
}

Bytes ethernet(int type) {
    return octets({0x02, 0, 0, 0, 0, 0x05, 0x02, 0, 0, 0, 0, 0x06, type >> 8, type & 0xff});
}

std::uint16_t checksum(const Bytes& bytes, std::size_t begin, std::size_t length) {
    std::uint32_t sum = 0;
    for (std::size_t i = begin; i < begin + length; i += 2) {
        sum += static_cast<std::uint32_t>(bytes[i] << 8 | bytes[i + 1]);
    }
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return static_cast<std::uint16_t>(~sum);
}

/// IPv4 header from 10.0.0.1 to 10.0.0.2; `words`: its length, 5 without options.
Bytes ipv4(int protocol, int ecn = 0, int words = 5, int fragment = 0) {
    Bytes header = octets({0x40 | words,
                           ecn,
                           0,
                           40,
                           0,
                           0,
                           fragment >> 8,
                           fragment & 0xff,
                           64,
                           protocol,
                           0,
                           0,
                           10,
                           0,
                           0,
                           1,
                           10,
                           0,
                           0,
                           2});
    header.resize(4 * static_cast<std::size_t>(words));
    const std::uint16_t sum = checksum(header, 0, header.size());
    header[10] = static_cast<std::uint8_t>(sum >> 8);
    header[11] = static_cast<std::uint8_t>(sum & 0xff);
    return header;
}
/// IPv6 from 2001:db8::1 to 2001:db8::2.
Bytes ipv6(int next, int ecn = 0) {
    Bytes header = octets({0x60, ecn << 4, 0, 0, 0, 40, next, 64});
    for (const int last : {1, 2}) {
        header = header + octets({0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last});
    }
    return header;
}
Bytes ports() { return octets({0x1f, 0x90, 0x00, 0x50, 0, 0, 0, 0}); }

TEST(Headers, OfEthernet) {
    const Headers headers = headers_of(ethernet(0x0806));
    EXPECT_TRUE(headers.is_frame);
    EXPECT_EQ(headers.destination, MacAddress{0x020000000005});
    EXPECT_EQ(headers.source, MacAddress{0x020000000006});
    EXPECT_EQ(headers.type, static_cast<std::uint16_t>(EtherType::arp));
    EXPECT_FALSE(headers.is_ip);
    EXPECT_FALSE(headers.is_tagged);
    EXPECT_TRUE(MacAddress{0xffffffffffff}.is_group());
    EXPECT_TRUE(MacAddress{0x01005e000001}.is_group());
    EXPECT_FALSE(headers.destination.is_group());
}

TEST(Headers, OfVlanTags) {
    const Headers headers = headers_of(
        ethernet(0x88a8) + octets({0xe0 | 0x01, 0x02, 0x81, 0x00, 0x00, 0x09, 0x08, 0x00}) +
        ipv4(17) + ports());
    EXPECT_TRUE(headers.is_tagged);
    EXPECT_EQ(headers.vlan, 0x102);
    EXPECT_EQ(headers.priority, 7);
    EXPECT_TRUE(headers.is_ip);
    EXPECT_EQ(headers.to_port, 80);
}

TEST(Headers, OfIpv4) {
    for (const int words : {5, 15}) {
        const Headers headers = headers_of(ethernet(0x0800) + ipv4(6, 0, words) + ports());
        EXPECT_EQ(headers.protocol, IpProtocol::tcp);
        EXPECT_EQ(headers.from, IpAddress::v4(0x0a000001));
        EXPECT_EQ(headers.to, IpAddress::v4(0x0a000002));
        EXPECT_TRUE(headers.has_ports);
        EXPECT_EQ(headers.from_port, 8080);
        EXPECT_EQ(headers.to_port, 80);
        EXPECT_FALSE(headers.is_ecn_capable);
    }
}

/// Fragments after the first: the first bytes of their payload are not ports.
TEST(Headers, OfLaterFragments) {
    for (const int fragment : {0x2000, 0x2001}) {  // more follow
        const Headers headers = headers_of(ethernet(0x0800) + ipv4(17, 0, 5, fragment) + ports());
        EXPECT_TRUE(headers.is_ip);
        EXPECT_EQ(headers.has_ports, fragment == 0x2000);
    }
}

TEST(Headers, OfIpv6BehindItsExtensions) {
    const Bytes hop_by_hop = octets({60, 0, 0, 0, 0, 0, 0, 0});
    const Bytes options = octets({17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    const Headers headers = headers_of(ethernet(0x86dd) + ipv6(0) + hop_by_hop + options + ports());
    EXPECT_EQ(headers.to, (IpAddress{0x20010db800000000, 2}));
    EXPECT_EQ(headers.protocol, IpProtocol::udp);
    EXPECT_EQ(headers.to_port, 80);
}

/// RFC 3168: frames that are not ECT lack `is_ecn_capable`.
TEST(Headers, MarksCongestionAndMendsTheChecksum) {
    for (const int ecn : {1, 2}) {
        Bytes frame = ethernet(0x0800) + ipv4(6, ecn);
        const Headers headers = headers_of(frame);
        ASSERT_TRUE(headers.is_ecn_capable);
        mark_congestion(frame, headers);
        EXPECT_EQ(frame[15] & 3, 3);
        EXPECT_EQ(checksum(frame, 14, 20), 0);
        const Bytes once = frame;
        mark_congestion(frame, headers);
        EXPECT_EQ(frame, once);
    }
    Bytes frame = ethernet(0x86dd) + ipv6(6, 1);
    ASSERT_TRUE(headers_of(frame).is_ecn_capable);
    mark_congestion(frame, headers_of(frame));
    EXPECT_EQ(frame[15] >> 4 & 3, 3);
    EXPECT_EQ(frame[14] >> 4, 6);
}

/// A truncated frame has only the headers before the truncation.
TEST(Headers, OfFramesThatAreCutOff) {
    const Bytes frame =
        ethernet(0x8100) + octets({0x00, 0x05, 0x08, 0x00}) + ipv4(6, 2, 6) + ports();
    for (std::size_t length = 0; length <= frame.size(); ++length) {
        const Headers headers = headers_of({frame.data(), length});
        EXPECT_EQ(headers.is_frame, length >= 14);
        EXPECT_EQ(headers.vlan, length >= 18 ? 5 : 0);
        EXPECT_EQ(headers.is_ip, length >= 18 + 20);
        EXPECT_EQ(headers.has_ports, length >= 18 + 24 + 4);
    }
}

/// Frames of every length up to that of a jumbo frame.
TEST(Headers, OfAnyBytes) {
    for (std::size_t length = 0; length <= 9'216; ++length) {
        Bytes frame = base::random_bytes(length, length, 1);
        frame.resize(length);
        if (length > 14) {  // else it is hardly ever IP
            frame[12] = length % 2 == 0 ? 0x08 : 0x86;
            frame[13] = length % 2 == 0 ? 0x00 : 0xdd;
            frame[14] = static_cast<std::uint8_t>(length % 2 == 0 ? 0x45 : 0x60);
        }
        const Headers headers = headers_of(frame);
        EXPECT_EQ(headers.is_frame, length >= 14);
        if (headers.is_ecn_capable) {
            mark_congestion(frame, headers);
            EXPECT_TRUE(headers_of(frame).is_ecn_capable);
        }
    }
}

}  // namespace
}  // namespace daqloom::softswitch
