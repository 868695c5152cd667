#include "live/transport/tcp.hpp"

#include <gtest/gtest.h>
#include <linux/tcp.h>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "live/memory/clock.hpp"
#include "live/memory/no_descriptors_fixture_test.hpp"
#include "live/transport/conformance_test.hpp"

namespace daqloom::live {
namespace {

std::function<base::expected<std::unique_ptr<Transport>>(const TransportConfig&)> over(
    const TcpConfig& tcp) {
    return [tcp](const TransportConfig& config) -> base::expected<std::unique_ptr<Transport>> {
        DAQLOOM_TRY(made, TcpTransport::create(config, tcp));
        return std::move(made);
    };
}

/// The socket address in a unit's address: it stands at its end.
sockaddr_in socket_address_on_paper(std::span<const std::byte> address) {
    sockaddr_in internet{};
    std::memcpy(&internet, address.data() + 16, sizeof internet);
    return internet;
}

OwnedFd connect_to(std::span<const std::byte> address) {
    const sockaddr_in to = socket_address_on_paper(address);
    OwnedFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    return socket;
}

void disturb(std::span<const std::byte> address, std::span<const std::byte> bytes) {
    const OwnedFd socket = connect_to(address);
    EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
}

const TransportUnderTest kTcp{.name = "tcp", .make = over({}), .disturb = disturb};
/// The kernel would tune the receive buffer of a connection that is read as fast as it comes, and
/// lift the clamp with it; and it lifts the clamp when packets of an Ethernet use less memory than
/// it has reckoned with.
TEST(TcpSocket, AWindowHoldsHoweverFastTheOtherSideReadsAndWhateverPacketsBring) {
    constexpr base::Bytes kWindow = 32 << 10;
    constexpr int kOfEthernet = 1448;
    const TcpConfig config{.window = kWindow};
    for (const bool is_ethernet : {false, true}) {
        SocketAddress at = *address_of_node("127.0.0.1");
        const auto listener = listen_at(at, config);
        ASSERT_TRUE(listener);
        if (is_ethernet) {
            ASSERT_EQ(::setsockopt(listener->get(), IPPROTO_TCP, TCP_MAXSEG, &kOfEthernet,
                                   sizeof kOfEthernet),
                      0);
        }
        const OwnedFd sender = begin_to_connect(*address_of_node("127.0.0.1"), at, config);
        pollfd waiting{listener->get(), POLLIN, 0};
        ASSERT_EQ(::poll(&waiting, 1, 20'000), 1);
        const OwnedFd receiver = accept_one(listener->get());
        ASSERT_TRUE(sender && receiver);
        std::vector<std::byte> bytes(1 << 20);
        std::size_t received = 0;
        while (received < (64U << 20)) {
            static_cast<void>(::send(sender.get(), bytes.data(), bytes.size(), MSG_DONTWAIT));
            ASSERT_TRUE(clamp_window(receiver.get(), kWindow));
            const auto got = ::recv(receiver.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
            received += static_cast<std::size_t>(std::max<ssize_t>(got, 0));
            tcp_info info{};
            socklen_t length = sizeof info;
            ASSERT_EQ(::getsockopt(sender.get(), IPPROTO_TCP, TCP_INFO, &info, &length), 0);
            if (received > (1U << 20)) {  // what was offered before is not taken back
                ASSERT_LE(info.tcpi_snd_wnd, static_cast<std::uint32_t>(kWindow)) << is_ethernet;
            }
        }
    }
}

/// Networks with several paths choose one by the ports.
TEST(TcpMeeting, EachPairConnectsFromItsPort) {
    constexpr std::uint32_t kUnits = 3;
    // The system gives none of these by itself, and other tests have other processes.
    const TcpConfig tcp{.first_source_port =
                            static_cast<std::uint16_t>(61'000 + 4 * (::getpid() % 1'000))};
    std::vector<TcpMeeting> meetings;
    std::vector<Transport::Peer> peers;
    for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
        const TransportConfig config{.self = UnitIndex(unit), .units = kUnits, .epoch = 1};
        meetings.push_back(*TcpMeeting::open(config, tcp));
        peers.push_back({.unit = UnitIndex(unit), .address = meetings[unit].address()});
    }
    std::array<std::vector<MetUnit>, kUnits> met;
    {
        std::vector<std::jthread> units;
        for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
            units.emplace_back([&, unit] {
                TransportCounters counters;
                met[unit] =
                    *meetings[unit].meet(peers, now() + base::Time::from_seconds(60), counters);
            });
        }
    }
    std::vector<int> ports;
    for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
        ASSERT_EQ(met[unit].size(), kUnits - 1);
        for (const MetUnit& other : met[unit]) {
            if (other.unit.value() > unit) {
                sockaddr_in from{};
                socklen_t length = sizeof from;
                ::getpeername(other.socket.get(), reinterpret_cast<sockaddr*>(&from), &length);
                ports.push_back(ntohs(from.sin_port) - tcp.first_source_port);
            }
        }
    }
    std::ranges::sort(ports);
    EXPECT_EQ(ports, (std::vector{0, 1, 2}));
}

/// Whether it would be woken at once.
bool is_readable(int fd) {
    pollfd watched{fd, POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
}

/// A unit of an epoch that runs: strangers wait at its door while it has no free descriptor.
TEST(TcpMeeting, AStrangerThatCannotBeLetInWakesTheUnitOnce) {
    const TransportConfig config{.self = UnitIndex(0), .units = 1, .epoch = 1};
    TcpMeeting meeting = *TcpMeeting::open(config, {});
    TransportCounters counters;
    const OwnedFd first = connect_to(meeting.address());
    const OwnedFd second = connect_to(meeting.address());
    const OwnedFd third = connect_to(meeting.address());
    meeting.refuse_guests(counters);  // lets in the first
    {
        const NoDescriptors full;
        int turns = 0;
        for (; is_readable(meeting.fd()) && turns < 100; ++turns) {
            meeting.refuse_guests(counters);
        }
        EXPECT_EQ(turns, 1);
    }
    // The first one leaves: there is a free descriptor for the next.
    ::shutdown(first.get(), SHUT_RDWR);
    int turns = 0;
    for (; is_readable(meeting.fd()) && turns < 100; ++turns) {
        meeting.refuse_guests(counters);
    }
    EXPECT_LT(turns, 100);
    EXPECT_EQ(counters.refused_strangers, 1U);
    ::shutdown(second.get(), SHUT_RDWR);
    ::shutdown(third.get(), SHUT_RDWR);
    for (turns = 0; counters.refused_strangers < 3 && turns < 100; ++turns) {
        meeting.refuse_guests(counters);
    }
    EXPECT_EQ(counters.refused_strangers, 3U);
}

/// Descriptors may come back while units are met.
TEST(TcpMeeting, UnitsAreMetAsSoonAsThereIsADescriptorAgain) {
    std::vector<TcpMeeting> meetings;
    std::vector<Transport::Peer> peers;
    for (std::uint32_t unit = 0; unit < 2; ++unit) {
        const TransportConfig config{.self = UnitIndex(unit), .units = 2, .epoch = 1};
        meetings.push_back(*TcpMeeting::open(config, {}));
        peers.push_back({.unit = UnitIndex(unit), .address = meetings[unit].address()});
    }
    const auto until = now() + base::seconds(60);
    std::array<TransportCounters, 2> counters;
    std::vector<MetUnit> met;
    std::vector<OwnedFd> strangers;
    for (int i = 0; i < 3; ++i) {
        strangers.push_back(connect_to(meetings[0].address()));
    }
    {
        const NoDescriptors full;
        for (int turns = 0; is_readable(meetings[0].fd()) && turns < 100; ++turns) {
            meetings[0].refuse_guests(counters[0]);
            ASSERT_LT(turns, 5);
        }
    }
    std::jthread other([&] { static_cast<void>(meetings[1].meet(peers, until, counters[1])); });
    met = *meetings[0].meet(peers, until, counters[0]);
    EXPECT_EQ(met.size(), 1U);
}

TEST(TcpMeeting, PortsThatDoNotSufficeAreRefused) {
    const Doorbell doorbell = *Doorbell::create();
    const TransportConfig config{.self = UnitIndex(0), .units = 257, .doorbell = &doorbell};
    const auto made = TcpTransport::create(config, {.first_source_port = 40'000});
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().message.find("257 units need 32896 ports, so give one up to 32640"),
              std::string::npos)
        << made.error().message;
}

/// Small buffers and a static window, so that records come in many parts.
const TransportUnderTest kNarrow{
    .name = "narrow_tcp",
    .make = over({.send_buffer = 8'192, .receive_buffer = 8'192, .window = 4'096}),
    .disturb = disturb};

INSTANTIATE_TEST_SUITE_P(Tcp, TransportConformance, testing::Values(kTcp, kNarrow),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace daqloom::live
