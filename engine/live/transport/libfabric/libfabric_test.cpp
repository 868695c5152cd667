#include "live/transport/libfabric/libfabric.hpp"

#include <linux/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <thread>

#include "base/random.hpp"
#include "live/memory/clock.hpp"
#include "live/transport/conformance_test.hpp"
#include "live/transport/libfabric/endpoint.hpp"
#include "live/transport/make.hpp"
#include "live/transport/strangers_test.hpp"

/// LeakSanitizer's suppressions: without an event queue, libfabric's tcp from version 2 on frees no
/// description of a connection's end.
extern "C" const char* __lsan_default_suppressions();   // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
    return FI_MAJOR_VERSION >= 2 ? "leak:libfabric.so" : "";
}

namespace daqloom::live {
namespace {

/// Sends raw bytes from a process outside of the run that has a unit's address. It needs the unit
/// to poll, so it runs in its own thread.
void send_raw(const std::string& provider, std::span<const std::byte> address,
              std::span<const std::byte> bytes) {
    static std::vector<std::jthread> strangers;
    strangers.emplace_back([provider, address = std::vector(address.begin(), address.end()),
                            bytes = std::vector(bytes.begin(), bytes.end())] {
        auto ours = ofi::Endpoints::open({.provider = provider}, 0, 1).value();
        const auto to = ours.add_address(address).value();
        ASSERT_TRUE(ours.use(bytes, FI_SEND));
        fi_context2 context{};
        fi_cq_data_entry done{};
        bool is_sent = false;
        for (const auto deadline = test_deadline(); now() < deadline;) {
            is_sent =
                is_sent || ::fi_send(ours.get(ofi::Path::messages), bytes.data(), bytes.size(),
                                     ours.descriptor_of(bytes.data()), to.at[0], &context) == 0;
            if (::fi_cq_read(ours.queue().cq.get(), &done, 1) != -FI_EAGAIN) {
                break;
            }
            std::this_thread::yield();
        }
    });
}

std::string as_test_name(std::string name) {
    std::ranges::replace_if(
        name, [](unsigned char c) { return !std::isalnum(c); }, '_');
    return name;
}

/// Limit on the number of waits of an idle unit within a tenth of a second.
int most_waits(const Provider& provider) {
    if (provider.name.starts_with("net") &&
        FI_VERSION_LT(ofi::library()->version(), FI_VERSION(1, 18))) {
        return 1'000'000'000;  // its descriptor can be read for ever after the first completion
    }
    return provider.has_wait_fd ? 50 : 200;
}

/// libfabric 2 posts a receive while it closes a connection (ofiwg/libfabric issue 11828).
std::string crash_in_write(const Provider& provider) {
    const bool is_new = FI_VERSION_GE(ofi::library()->version(), FI_VERSION(2, 0));
    return is_new && provider.name.ends_with("ofi_rxm")
               ? "ofi_rxm of libfabric 2 crashes when a unit ends during a write"
               : "";
}

TransportUnderTest over(const Provider& provider, base::Bytes most_per_write,
                        const std::string& suffix) {
    return {.name = as_test_name(provider.name) + suffix,
            .make =
                [name = provider.name, most_per_write](const TransportConfig& config) {
                    return make_libfabric(config,
                                          {.provider = name, .most_per_write = most_per_write});
                },
            .disturb = [name = provider.name](
                           std::span<const std::byte> address,
                           std::span<const std::byte> bytes) { send_raw(name, address, bytes); },
            .tells_of_death = false,
            .crash_in_write = crash_in_write(provider),
            .most_waits = most_waits(provider),
            // Under this load, datagrams are lost, and each is sent again after a longer delay.
            .rounds = provider.name.starts_with("udp") ? 20U : 200U};
}

/// Suitable providers that are offered but not tested. `sockets` (deprecated since 1.11) does not
/// report free space. `net` of 1.17 leaks, and sometimes ends a process whose connections have all
/// ended. `shm` leaves files in /dev/shm when it is killed, as tests do.
bool is_left_out(const std::string& provider) {
    return provider == "sockets" || provider == "net" || provider == "net;ofi_rxm" ||
           provider == "shm";
}

/// All tested providers of this machine, and one of them again with writes in parts.
std::vector<TransportUnderTest> transports() {
    std::vector<TransportUnderTest> all;
    for (const auto& provider : libfabric_providers()) {
        if (is_left_out(provider.name)) {
            continue;
        }
        all.push_back(over(provider, base::Bytes{1} << 62, ""));
        if (all.size() == 1) {
            all.push_back(over(provider, 3'000, "_in_parts"));
        }
    }
    return all;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportConformance);
INSTANTIATE_TEST_SUITE_P(Libfabric, TransportConformance, testing::ValuesIn(transports()),
                         testing::PrintToStringParamName());

// ---- Strangers, over TCP

constexpr const char* kTcpProvider = "tcp;ofi_rxm";

TransportUnderTest over_tcp() {
    Provider tcp;
    tcp.name = kTcpProvider;
    return over(tcp, base::Bytes{1} << 62, "");
}

/// The TCP port of a unit, which is at the end of the unit's address.
sockaddr_in port_of(TestUnit& unit) {
    const std::vector<std::byte> address = unit.transport().address();
    return socket_address(std::span(address).last(sizeof(sockaddr_in)));
}

bool works(TestRun& run) {
    const std::vector<std::byte> message(100, std::byte{1});
    const auto before = run[1].messages.size();
    return run.poll_until([&] { return run[0].transport().send(UnitIndex(1), message); }) &&
           run.poll_until([&] { return run[1].messages.size() > before; });
}

/// Runs a test in its own process, which then exits: `tcp` of 1.17 leaks strangers whose messages
/// are incomplete when it is closed.
template <class Body>
void expect_alone(Body body) {
    EXPECT_EXIT(
        {
            body();
            ::_exit(testing::Test::HasFailure() ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
}

TEST(LibfabricStranger, GarbageOnAUnitsPortDoesNoHarm) {
    expect_alone([] {
        TestRun run(over_tcp(), 2);
        const sockaddr_in port = port_of(run[1]);
        ASSERT_EQ(port.sin_family, AF_INET);
        ASSERT_EQ(port.sin_addr.s_addr, htonl(INADDR_LOOPBACK)) << "bound to more than its node";
        base::RandomStream random(1, "garbage");
        std::vector<OwnedFd> sockets;
        for (const std::size_t size : {0, 1, 16, 24, 100, 300, 5'000, 100'000}) {
            auto socket = connect_to(port);
            std::vector<std::uint64_t> garbage(size / 8 + 1);
            std::ranges::generate(garbage, random);
            ::send(socket.get(), garbage.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (size % 100 != 0) {
                sockets.push_back(std::move(socket));  // stays open; the others are closed at once
            }
            EXPECT_TRUE(works(run));
        }
        run.settle();
        EXPECT_TRUE(works(run));
        EXPECT_TRUE(run[0].unreachable.empty());
        EXPECT_TRUE(run[1].unreachable.empty());
    });
}

TEST(LibfabricStranger, ASilentVisitorKeepsNoUnitAwake) {
    expect_alone([] {
        TestRun run(over_tcp(), 2);
        connect_to(port_of(run[1]));
        run.settle();
        // The unit may be woken a thousand times in vain; after that it polls every millisecond.
        // Some wake-ups may still come from the beginning of the test.
        const auto start = now();
        for (int i = 0; i < 1'200; ++i) {
            run[1].poll();
            run[1].transport().wait(now() + base::milliseconds(2));
        }
        EXPECT_GE(now() - start, base::milliseconds(90));
        EXPECT_TRUE(works(run));
    });
}

TEST(LibfabricStranger, AMessageThatIsTooLongIsRefusedAndCounted) {
    TestRun run(over_tcp(), 2);
    for (const std::size_t size : {20'000, 100'000, 3'000'000}) {
        send_raw(kTcpProvider, run[1].transport().address(), std::vector<std::byte>(size));
    }
    EXPECT_TRUE(
        run.poll_until([&] { return run[1].transport().counters().refused_malformed >= 3; }));
    EXPECT_TRUE(works(run));
    EXPECT_TRUE(run[1].unreachable.empty());
}

TEST(LibfabricStranger, AWriteWithAnotherKeyTouchesNothing) {
    TestRun run(over_tcp(), 2);
    fill_pattern(run[1].arena(), 1);
    const std::vector<std::byte> bytes(1'000);
    auto stranger = ofi::Endpoints::open({.provider = kTcpProvider}, bytes.size(), 1).value();
    ASSERT_TRUE(stranger.use(bytes, FI_WRITE));
    const auto to = stranger.add_address(run[1].transport().address()).value();
    fi_context2 context{};
    const auto write = [&] {
        return ::fi_writedata(stranger.get(ofi::Path::writes), bytes.data(), bytes.size(),
                              stranger.descriptor_of(bytes.data()), 77, to.at[1], to.base,
                              to.key ^ 1, &context);
    };
    fi_cq_data_entry done{};
    ASSERT_TRUE(run.poll_until([&] {
        ::fi_cq_read(stranger.queue().cq.get(), &done, 1);
        return write() == 0;
    }));
    // The other unit refuses the write; the provider decides whether this side gets a report.
    for (int i = 0; i < 1'000; ++i) {
        ::fi_cq_read(stranger.queue().cq.get(), &done, 1);
        run[1].poll();
    }
    EXPECT_TRUE(works(run));
    EXPECT_TRUE(has_pattern(run[1].arena(), 1));
    EXPECT_TRUE(run[1].written.empty());
    EXPECT_TRUE(run[1].unreachable.empty());
}

TEST(Libfabric, SetsTheCongestionControlOfItsConnections) {
    auto transport = over_tcp();
    transport.make = [](const TransportConfig& config) {
        return make_libfabric(config, {.provider = kTcpProvider, .congestion_control = "reno"});
    };
    TestRun run(transport, 3);
    int connections = 0;
    for (int fd = 0; fd < 1024; ++fd) {
        std::array<char, 16> name{};
        socklen_t length = name.size();
        sockaddr_in peer;
        socklen_t size = sizeof peer;
        if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
            ::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &length) == 0) {
            EXPECT_STREQ(name.data(), "reno");
            ++connections;
        }
    }
    EXPECT_GE(connections, 2 * 3) << "both ends of what connects three units";
    EXPECT_TRUE(works(run));
}

TEST(Libfabric, ReportsErrorsInOneSentence) {
    const auto doorbell = Doorbell::create().value();
    TransportConfig config;
    EXPECT_NE(make_libfabric(config, {}).error().message.find("doorbell"), std::string::npos);
    config.doorbell = &doorbell;
    const auto none = make_libfabric(config, {.provider = "warp"});
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message.find("'warp'"), std::string::npos);
    EXPECT_NE(none.error().message.find(kTcpProvider), std::string::npos) << none.error().message;
    const auto elsewhere =
        make_libfabric(config, {.provider = kTcpProvider, .node = "203.0.113.7"});
    ASSERT_FALSE(elsewhere);
    EXPECT_NE(elsewhere.error().message.find("'203.0.113.7'"), std::string::npos);
    EXPECT_TRUE(make_libfabric(config, {.provider = kTcpProvider, .node = "lo"}));
    EXPECT_TRUE(make_libfabric(config, {.provider = kTcpProvider, .domain = "lo"}));
    const auto absent = make_libfabric(config, {.provider = kTcpProvider, .domain = "mlx5_9"});
    ASSERT_FALSE(absent);
    EXPECT_NE(absent.error().message.find("no domain 'mlx5_9'"), std::string::npos);
    const auto unknown =
        make_libfabric(config, {.provider = kTcpProvider, .congestion_control = "westward-ho"});
    ASSERT_FALSE(unknown);
    EXPECT_NE(unknown.error().message.find("'westward-ho'"), std::string::npos);
}

TEST(MakeTransport, KnowsTransportsByTheirNames) {
    const auto doorbell = Doorbell::create().value();
    TransportConfig config;
    config.doorbell = &doorbell;
    const auto names = transport_names();
    for (const std::string name : {"shm", "tcp", "libfabric:tcp;ofi_rxm"}) {
        EXPECT_TRUE(make_transport(name, config)) << name;
        EXPECT_NE(std::ranges::find(names, name), names.end());
    }
    for (const std::string name : {"", "tcp;ofi_rxm", "libfabric:", "libfabric:none", "shm:"}) {
        const auto made = make_transport(name, config);
        ASSERT_FALSE(made) << name;
        EXPECT_NE(made.error().message.find("tcp;ofi_rxm"), std::string::npos)
            << made.error().message;
    }
}

}  // namespace
}  // namespace daqloom::live
