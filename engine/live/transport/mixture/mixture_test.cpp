#include "live/transport/mixture/mixture.hpp"

#include <utility>

#include "base/expected_test.hpp"
#include "live/transport/conformance_test.hpp"
#include "live/transport/make.hpp"
#include "live/transport/strangers_test.hpp"

namespace daqloom::live {
namespace {

HostId host(std::uint32_t number) { return {static_cast<std::byte>(number)}; }

/// Units of the same parity share a host.
base::expected<std::unique_ptr<Transport>> make_mixed(const TransportConfig& config) {
    DAQLOOM_TRY(between, make_transport("tcp", config));
    DAQLOOM_TRY(mixed,
                MixedTransport::create(config, std::move(between), host(config.self.value() % 2)));
    return std::move(mixed);
}

/// Sends to both transports of the unit.
void disturb_mixed(std::span<const std::byte> address, std::span<const std::byte> bytes) {
    std::uint64_t length = 0;
    std::memcpy(&length, address.data() + sizeof(HostId), sizeof length);
    const auto rest = address.subspan(sizeof(HostId) + sizeof length);
    const auto name = rest.first(length);
    if (const auto to = Handover::connect({reinterpret_cast<const char*>(name.data()), length})) {
        static_cast<void>(to->send(bytes));
    }
    const auto socket = connect_to(socket_address(rest.subspan(length + 16)));
    static_cast<void>(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

const TransportUnderTest kMixed{
    .name = "shm_and_tcp", .make = make_mixed, .disturb = disturb_mixed};

INSTANTIATE_TEST_SUITE_P(Mixed, TransportConformance, testing::Values(kMixed),
                         testing::PrintToStringParamName());

/// Units 0 and 2 are on one host, unit 1 is on another: TCP has a connection to unit 1 only.
TEST(MixedTransport, UsesTheNetworkBetweenHostsOnly) {
    TestRun run(kMixed, 3);
    run[0].transport().wait(base::Time::zero());
    for (std::uint32_t to = 0; to < 3; ++to) {
        send(run, 0, to, pattern(100, to));
        write(run, 0, {.to = UnitIndex(to), .bytes = run[0].source().first(1000), .context = to});
    }
    ASSERT_TRUE(run.poll_until([&] { return run[0].done.size() == 3; }));
    run.settle();
    EXPECT_EQ(run[0].transport().counters().messages_sent, 3U);
    EXPECT_EQ(run[0].transport().counters().writes, 3U);
    EXPECT_EQ(run[0].transport().counters().written_bytes, 3000U);
    const auto connections = run[0].transport().connections();
    ASSERT_EQ(connections.size(), 1U);
    EXPECT_EQ(connections[0].to, UnitIndex(1));
}

TEST(MixedTransport, IsMadeByItsName) {
    const auto doorbell = base::value_of(Doorbell::create());
    EXPECT_TRUE(make_transport("shm+tcp", {.doorbell = &doorbell}));
    const auto wrong = make_transport("shm+gossip", {.doorbell = &doorbell});
    ASSERT_FALSE(wrong);
    EXPECT_TRUE(wrong.error().message.starts_with("there is no transport 'gossip'"));
}

TEST(MixedTransport, AHostHasOneIdentity) {
    EXPECT_EQ(base::value_of(host_id()), base::value_of(host_id()));
    EXPECT_NE(base::value_of(host_id()), HostId{});
}

}  // namespace
}  // namespace daqloom::live
