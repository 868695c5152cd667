#include "live/transport/tcp/tcp.hpp"

#include <linux/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <stop_token>
#include <thread>

#include "base/failure_test.hpp"
#include "base/random.hpp"
#include "live/memory/clock.hpp"
#include "live/memory/no_descriptors_fixture_test.hpp"
#include "live/transport/conformance_test.hpp"
#include "live/transport/strangers_test.hpp"

namespace daqloom::live {
namespace {

std::function<base::expected<std::unique_ptr<Transport>>(const TransportConfig&)> over(
    const TcpConfig& tcp) {
    return [tcp](const TransportConfig& config) -> base::expected<std::unique_ptr<Transport>> {
        DAQLOOM_TRY(made, TcpTransport::create(config, tcp));
        return std::move(made);
    };
}

OwnedFd connect_to_unit(std::span<const std::byte> address) {
    return connect_to(socket_address(address.subspan(16)));
}

void disturb(std::span<const std::byte> address, std::span<const std::byte> bytes) {
    const OwnedFd socket = connect_to_unit(address);
    EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
}

const TransportUnderTest kTcp{.name = "tcp", .make = over({}), .disturb = disturb};
/// The kernel lifts the clamp in two cases: when it tunes the receive buffer of a connection that
/// is read at full speed, and when packets of an Ethernet use less memory than it has assumed.
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

/// Units of a run before they are connected.
struct Connectors {
    explicit Connectors(std::uint32_t units, const TcpConfig& tcp = {}) {
        for (std::uint32_t unit = 0; unit < units; ++unit) {
            const TransportConfig config{.self = UnitIndex(unit), .units = units, .epoch = 1};
            all.push_back(*TcpConnector::open(config, tcp));
            peers.push_back({.unit = UnitIndex(unit), .address = all[unit].address()});
        }
    }
    std::vector<ConnectedUnit> connect(std::uint32_t unit) {
        return *all[unit].connect(peers, test_deadline(), counters[unit]);
    }

    std::vector<TcpConnector> all;
    std::vector<Transport::Peer> peers;
    std::array<TransportCounters, 3> counters;
};

/// Networks with several paths select a path by the ports.
TEST(TcpConnector, EachPairConnectsFromItsPort) {
    constexpr std::uint32_t kUnits = 3;
    // Ports that the system does not assign by itself, different for each test process.
    const TcpConfig tcp{.first_source_port =
                            static_cast<std::uint16_t>(61'000 + 4 * (::getpid() % 1'000))};
    Connectors connectors(kUnits, tcp);
    std::array<std::vector<ConnectedUnit>, kUnits> connected;
    {
        std::vector<std::jthread> units;
        for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
            units.emplace_back([&, unit] { connected[unit] = connectors.connect(unit); });
        }
    }
    std::vector<int> ports;
    for (std::uint32_t unit = 0; unit < kUnits; ++unit) {
        ASSERT_EQ(connected[unit].size(), kUnits - 1);
        for (const ConnectedUnit& other : connected[unit]) {
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

/// Whether the descriptor is readable now, so that a wait would return immediately.
bool is_readable(int fd) {
    pollfd watched{fd, POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
}

/// A unit in a running epoch without free descriptors, while strangers wait to be accepted.
TEST(TcpConnector, AStrangerThatCannotBeLetInWakesTheUnitOnce) {
    Connectors one(1);
    TcpConnector& connector = one.all[0];
    TransportCounters& counters = one.counters[0];
    const OwnedFd first = connect_to_unit(connector.address());
    const OwnedFd second = connect_to_unit(connector.address());
    const OwnedFd third = connect_to_unit(connector.address());
    connector.refuse_late_connections(counters);  // lets in the first
    {
        const NoDescriptors full;
        int turns = 0;
        for (; is_readable(connector.fd()) && turns < 100; ++turns) {
            connector.refuse_late_connections(counters);
        }
        EXPECT_EQ(turns, 1);
    }
    // The first stranger leaves, which frees a descriptor for the next one.
    ::shutdown(first.get(), SHUT_RDWR);
    int turns = 0;
    for (; is_readable(connector.fd()) && turns < 100; ++turns) {
        connector.refuse_late_connections(counters);
    }
    EXPECT_LT(turns, 100);
    EXPECT_EQ(counters.refused_strangers, 1U);
    ::shutdown(second.get(), SHUT_RDWR);
    ::shutdown(third.get(), SHUT_RDWR);
    for (turns = 0; counters.refused_strangers < 3 && turns < 100; ++turns) {
        connector.refuse_late_connections(counters);
    }
    EXPECT_EQ(counters.refused_strangers, 3U);
}

/// Descriptors may become free while units are connecting.
TEST(TcpConnector, UnitsConnectAsSoonAsThereIsADescriptorAgain) {
    Connectors connectors(2);
    TcpConnector& first = connectors.all[0];
    std::vector<OwnedFd> strangers;
    for (int i = 0; i < 3; ++i) {
        strangers.push_back(connect_to_unit(first.address()));
    }
    {
        const NoDescriptors full;
        for (int turns = 0; is_readable(first.fd()) && turns < 100; ++turns) {
            first.refuse_late_connections(connectors.counters[0]);
            ASSERT_LT(turns, 5);
        }
    }
    std::jthread other([&] { connectors.connect(1); });
    EXPECT_EQ(connectors.connect(0).size(), 1U);
}

TEST(TcpConnector, PortsThatDoNotSufficeAreRefused) {
    const Doorbell doorbell = *Doorbell::create();
    const TransportConfig config{.self = UnitIndex(0), .units = 257, .doorbell = &doorbell};
    EXPECT_TRUE(base::fails_with("257 units need 32896 ports, so give one up to 32640",
                                 TcpTransport::create(config, {.first_source_port = 40'000})));
}

/// A proxy that units reach at another unit's address, and that flips bits of the data.
class FlippingProxy {
  public:
    /// Flips one bit in some `bytes_per_flip` bytes.
    FlippingProxy(std::span<const std::byte> address, std::uint64_t bytes_per_flip)
        : address_(address.begin(), address.end()),
          to_(socket_address(address.subspan(16))),
          listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
          bytes_per_flip_(bytes_per_flip) {
        sockaddr_in here{};
        here.sin_family = AF_INET;
        here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof here;
        auto* generic = reinterpret_cast<sockaddr*>(&here);
        EXPECT_EQ(::bind(listener_.get(), generic, length), 0);
        EXPECT_EQ(::listen(listener_.get(), 4), 0);
        ::getsockname(listener_.get(), generic, &length);
        std::memcpy(address_.data() + 16, &here, sizeof here);
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }

    [[nodiscard]] std::vector<std::byte> address() const { return address_; }
    [[nodiscard]] std::uint64_t flips() const { return flips_; }

  private:
    void run(const std::stop_token& stop) {
        std::array<OwnedFd, 2> ends;
        std::array<std::uint64_t, 2> passed{};
        while (!stop.stop_requested()) {
            std::array<pollfd, 3> watched{pollfd{listener_.get(), POLLIN, 0},
                                          pollfd{ends[0].get(), POLLIN, 0},
                                          pollfd{ends[1].get(), POLLIN, 0}};
            ::poll(watched.data(), watched.size(), 10);
            if (watched[0].revents != 0 && !ends[0]) {
                ends[0] = OwnedFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
                ends[1] = connect_to(to_);
            }
            for (std::size_t i = 0; i < 2; ++i) {
                if (watched[1 + i].revents != 0 && !pass(ends[i], ends[1 - i], passed[i])) {
                    return;
                }
            }
        }
    }

    /// Forwards bytes. The hello of a connection is not changed.
    bool pass(const OwnedFd& from, const OwnedFd& to, std::uint64_t& passed) {
        std::array<std::byte, 4'096> bytes;
        const auto count = ::recv(from.get(), bytes.data(), bytes.size(), 0);
        if (count <= 0) {
            return false;
        }
        const auto some = std::span(bytes).first(static_cast<std::size_t>(count));
        if (passed > 100 && random_.uniform_int(bytes_per_flip_) < some.size()) {
            ++flips_;
            some[random_.uniform_int(some.size())] ^= std::byte{16};
        }
        passed += some.size();
        return ::send(to.get(), some.data(), some.size(), MSG_NOSIGNAL) == count;
    }

    std::vector<std::byte> address_;
    sockaddr_in to_;
    OwnedFd listener_;
    std::uint64_t bytes_per_flip_;
    base::RandomStream random_{1, "flips"};
    std::atomic<std::uint64_t> flips_ = 0;
    std::jthread thread_;
};

/// Each round writes until a flipped header or message ends the connection.
TEST(TcpTransport, NoByteThatAProxyHasChangedIsUsed) {
    const TransportUnderTest checked{
        .name = "checked_tcp", .make = over({.checksums = true}), .disturb = disturb};
    constexpr std::size_t kBytes = 1'024;
    std::uint64_t flips = 0, ended = 0, damaged = 0, repeated = 0, right = 0;
    for (int round = 0; round < 12 || (damaged <= 12 && round < 200); ++round) {
        TestUnit writer(checked, 1, 2);
        TestUnit reader(checked, 0, 2);
        FlippingProxy proxy(reader.transport().address(), 40'000);
        const auto until = test_deadline();
        std::thread thread([&] {
            const Transport::Peer peers[] = {{UnitIndex(1), writer.transport().address()}};
            EXPECT_TRUE(reader.transport().connect(peers, until).value().empty());
        });
        const Transport::Peer peers[] = {{UnitIndex(0), proxy.address()}};
        EXPECT_TRUE(writer.transport().connect(peers, until).value().empty());
        thread.join();
        const std::size_t places = reader.arena().size() / kBytes;
        fill_pattern(writer.source(), static_cast<std::uint64_t>(round));
        reader.at_written = [&](UnitIndex, std::uint32_t place) {
            const auto there = reader.arena().subspan(kBytes * place, kBytes);
            const auto expected = writer.source().subspan(kBytes * place, kBytes);
            EXPECT_TRUE(std::ranges::equal(there, expected));
            ++right;
        };
        std::uint32_t next = 0;
        while (writer.unreachable.empty() && reader.unreachable.empty()) {
            ASSERT_LT(now(), until);
            const auto place = static_cast<std::uint32_t>(next % places);
            next +=
                writer.transport().write({.to = UnitIndex(0),
                                          .bytes = writer.source().subspan(kBytes * place, kBytes),
                                          .offset = static_cast<base::Bytes>(kBytes * place),
                                          .immediate = place})
                    ? 1
                    : 0;
            writer.poll();
            reader.poll();
        }
        const auto& one = writer.transport().counters();
        const auto& other = reader.transport().counters();
        flips += proxy.flips();
        ended += one.damaged_records + other.damaged_records;
        damaged += one.damaged_writes + other.damaged_writes;
        repeated += one.writes_repeated;
        EXPECT_EQ(one.refused_malformed + other.refused_malformed, 0U);
    }
    EXPECT_GE(ended, 12U);
    EXPECT_GT(damaged, 12U);
    EXPECT_GT(repeated, 0U);
    EXPECT_GT(right, 1'000U);
    EXPECT_LE(damaged + ended, flips);
}

/// Small buffers and a small static window, so that records arrive in many parts.
const TransportUnderTest kNarrow{
    .name = "narrow_tcp",
    .make = over({.send_buffer = 8'192, .receive_buffer = 8'192, .window = 4'096}),
    .disturb = disturb};

INSTANTIATE_TEST_SUITE_P(Tcp, TransportConformance, testing::Values(kTcp, kNarrow),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace daqloom::live
