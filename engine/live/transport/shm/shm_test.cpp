#include "live/transport/shm/shm.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <utility>

#include "live/transport/conformance_test.hpp"

namespace daqloom::live {
namespace {

base::expected<std::unique_ptr<Transport>> make_shm(const TransportConfig& config) {
    auto made = ShmTransport::create(config);
    if (!made) {
        return tl::unexpected(made.error());
    }
    return std::move(*made);
}

std::string name_in(std::span<const std::byte> address) {
    return {reinterpret_cast<const char*>(address.data()), address.size()};
}

void disturb_shm(std::span<const std::byte> address, std::span<const std::byte> bytes) {
    const auto to = Handover::connect(name_in(address));
    if (to) {
        static_cast<void>(to->send(bytes));
    }
}

const TransportUnderTest kShm{.name = "shm", .make = make_shm, .disturb = disturb_shm};

INSTANTIATE_TEST_SUITE_P(Shm, TransportConformance, testing::Values(kShm),
                         testing::PrintToStringParamName());

/// Unit 1 of 2, which knows the token and is controlled by the test; unit 0 is under test.
class AHostileUnit : public testing::Test {
  protected:
    /// Layout on the socket.
    struct Greeting {
        std::uint64_t magic = 0x6d6f6f6c'71616431;
        Token token = {std::byte{7}};
        std::uint32_t epoch = 1;
        UnitIndex unit{1};
        std::array<std::byte, 64> address{};
    };

    void SetUp() override {
        std::ranges::copy(std::as_bytes(std::span(name)), greeting.address.begin());
    }

    /// Unit 0 connects while the hostile unit sends hello and answers with `fds`.
    std::vector<UnitIndex> connect_with(std::span<const int> fds) {
        std::vector<UnitIndex> missing;
        std::thread ours([&] {
            const std::byte* begin = greeting.address.data();
            const Transport::Peer peers[] = {{UnitIndex(1), {begin, begin + name.size()}}};
            missing = unit.transport().connect(peers, test_deadline()).value();
        });
        auto to = Handover::connect(name_in(unit.transport().address())).value();
        EXPECT_TRUE(to.send(std::as_bytes(std::span(&greeting, 1))));
        from.emplace(listener.accept(test_deadline()).value());
        EXPECT_TRUE(from->receive(test_deadline()));
        EXPECT_TRUE(from->send(std::as_bytes(std::span(&greeting, 1)), fds));
        auto welcome = to.receive(test_deadline());
        if (welcome && welcome->fds.size() == 4) {
            ring = SharedMemory::attach(std::move(welcome->fds[0]),
                                        SharedMemory::Access::read_write, 1 << 20)
                       .value();
        }
        ours.join();
        from_us.emplace(std::move(to));
        return missing;
    }

    void connect() {
        const int fds[] = {own_ring.fd(), doorbell.page_fd(), doorbell.event_fd()};
        ASSERT_TRUE(connect_with(fds).empty());
        ASSERT_TRUE(ring);
    }
    void expect_refused(const std::vector<int>& fds) {
        EXPECT_EQ(connect_with(fds), Units{1});
        EXPECT_EQ(refused(), 1U);
    }
    void expect_unreachable() {
        unit.poll();
        EXPECT_EQ(unit.unreachable, Units{1});
        EXPECT_EQ(refused(), 1U);
    }

    [[nodiscard]] std::uint64_t refused() { return unit.transport().counters().refused_malformed; }

    TestUnit unit{kShm, 0, 2};
    std::string name = "daqloom/test/" + std::to_string(::getpid());
    HandoverListener listener = HandoverListener::listen(name).value();
    Greeting greeting;
    SharedMemory own_ring =
        SharedMemory::create("ring", message_ring_bytes(ShmConfig{}.ring_bytes)).value();
    Doorbell doorbell = Doorbell::create().value();
    std::optional<Handover> from;
    std::optional<Handover> from_us;
    SharedMemory ring;  ///< to our unit
};

TEST_F(AHostileUnit, ThatBehavesIsConnected) {
    connect();
    MessageRingWriter writer(ring.bytes());
    EXPECT_EQ(writer.put(1, std::as_bytes(std::span("hello"))), MessageRingWriter::Put::done);
    EXPECT_TRUE(unit.poll());
    EXPECT_EQ(unit.messages.size(), 1U);
    EXPECT_EQ(refused(), 0U);
}

TEST_F(AHostileUnit, ThatHandsOverTooFewDescriptorsIsNotConnected) {
    expect_refused({own_ring.fd(), doorbell.page_fd()});
}

TEST_F(AHostileUnit, ThatHandsOverARingOfAnotherSizeIsNotConnected) {
    const auto small = SharedMemory::create("ring", 4096).value();
    expect_refused({small.fd(), doorbell.page_fd(), doorbell.event_fd()});
}

TEST_F(AHostileUnit, ThatHandsOverNoMemoryIsNotConnected) {
    expect_refused({doorbell.event_fd(), doorbell.event_fd(), own_ring.fd()});
}

TEST_F(AHostileUnit, WhoseRingMakesNoSenseIsUnreachableAndCounted) {
    connect();
    reinterpret_cast<MessageRingHeader*>(ring.bytes().data())->written = 1 << 20;
    expect_unreachable();
}

TEST_F(AHostileUnit, WhoseMessageIsOfAnUnknownKindIsUnreachableAndCounted) {
    connect();
    MessageRingWriter writer(ring.bytes());
    ASSERT_EQ(writer.put(3, {}), MessageRingWriter::Put::done);
    ASSERT_EQ(writer.put(1, {}), MessageRingWriter::Put::done);
    expect_unreachable();
    EXPECT_TRUE(unit.messages.empty());
}

TEST_F(AHostileUnit, ThatReadsBeyondTheWrittenBytesIsUnreachableAndCounted) {
    connect();
    reinterpret_cast<MessageRingHeader*>(own_ring.bytes().data())->read = 1 << 20;
    const std::vector<std::byte> message(Transport::most_message);
    for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(unit.transport().send(UnitIndex(1), message));
    }
    expect_unreachable();
}

TEST_F(AHostileUnit, WithoutAnArenaCannotBeWrittenTo) {
    connect();
    EXPECT_TRUE(unit.transport().write({.to = UnitIndex(1), .bytes = unit.source().first(1)}));
    unit.poll();
    EXPECT_EQ(unit.unreachable, Units{1});
}

TEST(ShmTransport, CountsSilentVisitors) {
    TestUnit a(kShm, 0, 2);
    TestUnit b(kShm, 1, 2);
    const auto silent = Handover::connect(name_in(a.transport().address())).value();
    TestUnit* units[] = {&a, &b};
    for (const auto& missing : connect_all(units, test_deadline())) {
        EXPECT_TRUE(missing.empty());
    }
    EXPECT_EQ(a.transport().counters().refused_strangers, 1U);
    EXPECT_TRUE(silent.is_closed());
}

TEST(ShmTransport, NeedsADoorbellAndAUnitOfTheRun) {
    const auto doorbell = Doorbell::create().value();
    EXPECT_FALSE(ShmTransport::create({.self = UnitIndex(0), .units = 1}));
    EXPECT_FALSE(ShmTransport::create({.self = UnitIndex(1), .units = 1, .doorbell = &doorbell}));
    EXPECT_TRUE(ShmTransport::create({.self = UnitIndex(0), .units = 1, .doorbell = &doorbell}));
}

TEST(ShmTransport, NeedsARingThatHoldsTheLargestMessage) {
    const auto doorbell = Doorbell::create().value();
    const TransportConfig config{.doorbell = &doorbell};
    EXPECT_FALSE(ShmTransport::create(config, {.ring_bytes = 16'384}));
    EXPECT_FALSE(ShmTransport::create(config, {.ring_bytes = 65'535}));
    EXPECT_FALSE(ShmTransport::create(config, {.writes = 0}));
    EXPECT_TRUE(ShmTransport::create(config, {.ring_bytes = 32'768}));
}

}  // namespace
}  // namespace daqloom::live
