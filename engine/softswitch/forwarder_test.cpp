#include "softswitch/forwarder.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/failure_test.hpp"
#include "softswitch/forwarder_check_test.hpp"

namespace daqloom::softswitch {
namespace {

using base::Time;
using Frame = std::vector<std::uint8_t>;
using Ports = std::vector<std::uint16_t>;

constexpr std::uint16_t kPorts = 4;
constexpr MacAddress kBroadcast{0xffffffffffff};

MacAddress host(std::uint64_t number) { return {0x020000000000 + number}; }

/// TCP over IPv4 to address 10.0.0.`to` and port `port`, in 64 B.
Frame frame_of(MacAddress source, MacAddress destination, std::uint32_t to = 0,
               std::uint16_t port = 0, std::uint16_t tag = 0) {
    Frame frame;
    const auto append = [&frame](std::uint64_t value, int bytes) {
        for (int byte = bytes - 1; byte >= 0; --byte) {
            frame.push_back(static_cast<std::uint8_t>(value >> (8 * byte)));
        }
    };
    append(destination.value, 6);
    append(source.value, 6);
    if (tag != 0) {
        append(0x8100, 2);
        append(tag, 2);
    }
    append(0x0800, 2);
    append(0x4500002e, 4);
    append(0, 4);
    append(0x4006, 2);
    append(0, 2);
    append(0x0a000000, 4);
    append(0x0a000000 + to, 4);
    append(1, 2);
    append(port, 2);
    frame.resize(64);
    return frame;
}

/// Numbers the frames, and records the fate of each.
class Driver {
  public:
    explicit Driver(const ForwarderConfig& config)
        : forwarder_(base::value_of(Forwarder::make(config))) {}

    std::uint64_t in(std::uint16_t port, const Frame& frame, Time now = {}) {
        const std::uint64_t handle = next_++;
        alive_[handle] = handle;
        const Arrival arrival{handle, frame, static_cast<std::uint32_t>(frame.size())};
        forwarder_.in({&arrival, 1}, PortIndex(port), now, *this);
        return handle;
    }
    /// Sends frames from a port; returns the handles of their originals.
    std::vector<std::uint64_t> out(std::uint16_t port, Time now = {}, std::size_t room = 64) {
        forwarder_.advance(now);
        std::vector<std::uint64_t> handles(room);
        handles.resize(forwarder_.out(PortIndex(port), now, handles));
        for (std::uint64_t& handle : handles) {
            handle = take(handle);
        }
        return handles;
    }
    /// Ports that send the frame, in ascending order.
    Ports ports_of(std::uint64_t frame, Time now = {}) {
        Ports found;
        for (std::uint16_t port = 0; port < kPorts; ++port) {
            const auto sent = out(port, now);
            found.insert(found.end(), static_cast<std::size_t>(std::ranges::count(sent, frame)),
                         port);
        }
        return found;
    }
    /// Ports that send a frame that has come in.
    Ports forwards(std::uint16_t port, const Frame& frame, Time now = {}) {
        return ports_of(in(port, frame, now), now);
    }

    void drop(std::uint64_t handle) {
        take(handle);
        ++dropped_;
    }
    void pause(PortIndex port, bool on) { pauses_.emplace_back(port.value(), on); }
    [[nodiscard]] const std::vector<std::pair<std::uint16_t, bool>>& pauses() const {
        return pauses_;
    }
    void mark(std::uint64_t handle) {
        EXPECT_TRUE(alive_.contains(handle));
        marked_.push_back(handle);
    }
    void share_with(std::uint32_t core, const Message& message) {
        messages_.emplace_back(core, message);
    }
    [[nodiscard]] std::vector<std::pair<std::uint32_t, Message>> messages() {
        return std::exchange(messages_, {});
    }
    std::uint64_t copy(std::uint64_t handle) {
        alive_[next_] = alive_.at(handle);
        ++copies_;
        return next_++;
    }

    [[nodiscard]] Forwarder& forwarder() { return forwarder_; }
    [[nodiscard]] const PortCounters& counted(std::uint16_t port) const {
        return forwarder_.counters(PortIndex(port));
    }
    [[nodiscard]] std::size_t alive() const { return alive_.size(); }
    [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
    [[nodiscard]] std::uint64_t copies() const { return copies_; }

  private:
    /// Original of a handle; throws if the handle was already released.
    std::uint64_t take(std::uint64_t handle) {
        const std::uint64_t original = alive_.at(handle);
        alive_.erase(handle);
        return original;
    }

    Forwarder forwarder_;
    std::map<std::uint64_t, std::uint64_t> alive_;  ///< original of each handle
    std::vector<std::uint64_t> marked_;
    std::vector<std::pair<std::uint32_t, Message>> messages_;
    std::vector<std::pair<std::uint16_t, bool>> pauses_;
    std::uint64_t next_ = 0;
    std::uint64_t dropped_ = 0;
    std::uint64_t copies_ = 0;
};

/// Four ports with a ring each, and rings for rules.
ForwarderConfig config_of(std::uint32_t more_rings = 0, RingConfig each = {}) {
    ForwarderConfig config;
    config.output.ports = kPorts;
    for (std::uint16_t port = 0; port < kPorts; ++port) {
        config.output.rings.push_back({.port = PortIndex(port)});
    }
    config.output.rings.resize(kPorts + more_rings, each);
    return config;
}

Action to_ring(std::uint32_t ring) {
    return {.what = Action::What::queue, .ring = RingIndex(ring)};
}
Action to_port(std::uint16_t port) { return {.what = Action::What::port, .port = PortIndex(port)}; }

Match to_ip(std::uint32_t to) {
    Match match;
    match.to = IpAddress::v4(0x0a000000 + to);
    return match;
}

TEST(Forwarder, FloodsUntilItKnows) {
    Driver driver(config_of());
    EXPECT_EQ(driver.forwards(0, frame_of(host(1), host(2))), (Ports{1, 2, 3}));
    EXPECT_EQ(driver.forwards(2, frame_of(host(2), host(1))), (Ports{0}));
    EXPECT_EQ(driver.forwards(0, frame_of(host(1), host(2))), (Ports{2}));
    EXPECT_EQ(driver.counted(0).flooded, 1U);
    EXPECT_EQ(driver.copies(), 2U);
    EXPECT_EQ(driver.alive(), 0U);
    for (std::uint16_t port = 0; port < kPorts; ++port) {
        Ports others{0, 1, 2, 3};
        others.erase(others.begin() + port);
        EXPECT_EQ(driver.forwards(port, frame_of(host(port), kBroadcast)), others);
    }
}

TEST(Forwarder, APortFloodsNoMoreThanItMay) {
    ForwarderConfig config = config_of();
    config.limits = {{.floods = 20, .addresses = 2}};
    Driver driver(config);
    // At 20 floods/s a frame takes 50 ms of the bucket, 100 ms long: three frames pass together.
    const auto floods = [&](std::uint16_t port, Time now) {
        return !driver.forwards(port, frame_of(host(1), kBroadcast), now).empty();
    };
    const Time now = base::seconds(1);
    EXPECT_TRUE(floods(0, now) && floods(0, now) && floods(0, now));
    EXPECT_FALSE(floods(0, now));
    EXPECT_FALSE(floods(0, now + base::milliseconds(49)));
    const Time later = now + base::milliseconds(50);
    EXPECT_TRUE(floods(0, later));
    EXPECT_EQ(driver.counted(0).storm, 2U);
    EXPECT_EQ(driver.counted(0).flooded, 4U);
    for (int frame = 0; frame < 100; ++frame) {
        EXPECT_TRUE(floods(1, later)) << "a port without a limit";
    }
    for (std::uint64_t source : {5, 6, 7}) {
        driver.in(0, frame_of(host(source), host(1)), later);
    }
    EXPECT_EQ(driver.counted(0).not_learned, 1U);
    EXPECT_EQ(driver.forwarder().addresses().learned_at(PortIndex(0)), 2U);
    EXPECT_TRUE(driver.forwarder().set_limits(PortIndex(0), {}));
    for (int frame = 0; frame < 100; ++frame) {
        EXPECT_TRUE(floods(0, later)) << "its limit is gone";
    }
    EXPECT_FALSE(driver.forwarder().set_limits(PortIndex(kPorts), {}));
    config.limits.resize(kPorts + 1);
    EXPECT_FALSE(Forwarder::make(config));
}

TEST(Forwarder, DropsFramesWithoutAnOutput) {
    ForwarderConfig config = config_of();
    config.floods_unknown = false;
    Driver driver(config);
    driver.in(0, frame_of(host(1), host(2)));
    driver.in(0, frame_of(host(3), host(1)));  // it is there
    driver.in(0, frame_of(host(1), MacAddress{0x0180c2000001}));
    driver.in(0, Frame(13));
    const PortCounters& counted = driver.counted(0);
    EXPECT_EQ(counted.packets, 4U);
    EXPECT_EQ(counted.bytes, 3 * 64U + 13);
    EXPECT_EQ(counted.unknown, 1U);
    EXPECT_EQ(counted.back, 1U);
    EXPECT_EQ(counted.link_local, 1U);
    EXPECT_EQ(counted.malformed, 1U);
    EXPECT_EQ(driver.dropped(), 4U);
    EXPECT_EQ(driver.alive(), 0U);
}

TEST(Forwarder, RulesComeBeforeAddresses) {
    Driver driver(config_of(1, {.port = PortIndex(3)}));
    Forwarder& forwarder = driver.forwarder();
    driver.in(1, frame_of(host(2), kBroadcast));
    driver.ports_of(0);
    EXPECT_TRUE(forwarder.set_rule(to_ip(7), 1, to_ring(4)));
    EXPECT_TRUE(forwarder.set_rule(to_ip(8), 1, to_port(2)));
    EXPECT_TRUE(forwarder.set_rule(to_ip(9), 1, {.what = Action::What::drop}));
    EXPECT_TRUE(forwarder.set_rule({}, 0, {.what = Action::What::forward}));
    EXPECT_FALSE(forwarder.set_rule(to_ip(1), 1, to_ring(5)));
    EXPECT_FALSE(forwarder.set_rule(to_ip(1), 1, to_port(4)));
    const auto sent_to = [&](std::uint32_t to) {
        return driver.forwards(0, frame_of(host(1), host(2), to));
    };
    EXPECT_EQ(sent_to(7), (Ports{3}));
    EXPECT_EQ(forwarder.queues().counters(RingIndex(4)).packets, 1U);
    EXPECT_EQ(sent_to(8), (Ports{2}));
    EXPECT_TRUE(sent_to(9).empty());
    EXPECT_EQ(driver.counted(0).by_rule, 1U);
    EXPECT_EQ(sent_to(6), (Ports{1}));
    EXPECT_TRUE(forwarder.remove_rule(to_ip(7), 1));
    EXPECT_EQ(sent_to(7), (Ports{1}));
}

TEST(Forwarder, EntriesOfAControllerComeBeforeRules) {
    ForwarderConfig config = config_of(1, {.port = PortIndex(3)});
    config.most_flow_entries = 2;
    config.most_meters = 1;
    Driver driver(config);
    Forwarder& forwarder = driver.forwarder();
    const auto goes = [&](std::uint32_t to, Time now) {
        return driver.forwards(0, frame_of(host(1), host(9), to), now);
    };
    const Ports nowhere;
    ASSERT_TRUE(forwarder.set_rule(to_ip(5), 9, to_ring(4)));
    EXPECT_EQ(goes(5, {}), (Ports{3}));
    FlowEntry entry{.match = to_ip(5), .action = to_port(1)};
    ASSERT_TRUE(forwarder.set_flow(FlowIndex(0), entry));
    EXPECT_EQ(goes(5, {}), (Ports{1}));
    EXPECT_EQ(goes(5, {}), (Ports{1}));  // of the cache
    entry.action = {.what = Action::What::flood};
    ASSERT_TRUE(forwarder.set_flow(FlowIndex(0), entry));
    EXPECT_EQ(goes(5, {}), (Ports{1, 2, 3}));
    entry.action = {.what = Action::What::drop};
    ASSERT_TRUE(forwarder.set_flow(FlowIndex(0), entry));
    EXPECT_EQ(goes(5, {}), nowhere);
    EXPECT_EQ(driver.counted(0).by_rule, 1U);
    // The meter allows two frames of 64 B together, and a further frame after 64 us at 8 Mb/s.
    ASSERT_TRUE(forwarder.set_meter(MeterIndex(0), {.per_second = 8'000'000, .burst = 512}));
    EXPECT_FALSE(forwarder.set_meter(MeterIndex(1), {}));
    entry.action = {.what = Action::What::forward};  // as by the rule
    entry.meter = MeterIndex(0);
    ASSERT_TRUE(forwarder.set_flow(FlowIndex(0), entry));
    const Time later = base::milliseconds(2);
    EXPECT_EQ(goes(5, later), (Ports{3}));
    EXPECT_EQ(goes(5, later), (Ports{3}));
    EXPECT_EQ(goes(5, later), nowhere);
    EXPECT_EQ(driver.counted(0).metered, 1U);
    EXPECT_EQ(goes(5, later + base::microseconds(64)), (Ports{3}));
    EXPECT_EQ(forwarder.flow_table().counters(FlowIndex(0)).packets, 8U);
    EXPECT_EQ(forwarder.flow_table().counters(FlowIndex(0)).bytes, 8 * 64U);
    forwarder.remove_flow(FlowIndex(0));
    EXPECT_EQ(goes(5, later), (Ports{3}));
    EXPECT_EQ(forwarder.flow_table().counters(FlowIndex(0)).packets, 8U);
    entry.action = to_port(kPorts);
    EXPECT_FALSE(forwarder.set_flow(FlowIndex(0), entry));  // no such port
    EXPECT_EQ(driver.alive(), 0U);
}

TEST(Forwarder, OfSeveralCoresEachHasTheRingsOfItsPorts) {
    // Ports 0 and 2 belong to core 0. Frames between these ports stay in the core; other frames,
    // and learned addresses, are passed on. Messages received are handled like own frames.
    ForwarderConfig config = config_of();
    config.share = {.number = 0, .cores = 2};
    Driver core(config);
    const auto kinds = [&core] {
        std::vector<std::pair<Message::What, PortIndex>> found;
        for (const auto& [other, message] : core.messages()) {
            EXPECT_EQ(other, 1U);
            found.emplace_back(message.what, message.ingress);
        }
        return found;
    };
    using Kinds = std::vector<std::pair<Message::What, PortIndex>>;
    constexpr auto frame = Message::What::frame;
    constexpr auto address = Message::What::address;
    core.in(0, frame_of(host(1), kBroadcast));
    EXPECT_EQ(core.out(2).size(), 1U);
    EXPECT_EQ(kinds(),
              (Kinds{{address, PortIndex(0)}, {frame, PortIndex(0)}, {frame, PortIndex(0)}}));
    core.in(2, frame_of(host(2), host(1)));
    EXPECT_EQ(core.out(0).size(), 1U);
    EXPECT_EQ(kinds(), (Kinds{{address, PortIndex(2)}}));
    core.in(2, frame_of(host(2), host(1)));  // it is no news any more
    EXPECT_EQ(kinds(), Kinds{});
    const Packet where{host(3).value, 0, RingIndex{}};
    core.forwarder().on_message({where, PortIndex(1), address}, {}, core);
    core.in(0, frame_of(host(1), host(3)));
    EXPECT_EQ(kinds(), (Kinds{{frame, PortIndex(0)}}));
    EXPECT_EQ(core.out(0).size(), 1U);
    // A frame that another core received, for a full ring of this core: counted at its ingress.
    config.output.rings[0].packets = 1;
    Driver full(config);
    const Arrival held{full.in(2, frame_of(host(2), kBroadcast)), {}, 64};
    std::ignore = full.messages();
    full.forwarder().on_message({{held.handle + 1, 64, RingIndex(0)}, PortIndex(3)}, {}, full);
    EXPECT_EQ(full.counted(3).full, 1U);
}

TEST(Forwarder, ClassesOfAPortHaveRingsOfTheirOwn) {
    ForwarderConfig config;
    config.classes = 2;
    config.output.ports = kPorts;
    for (std::uint16_t port = 0; port < kPorts; ++port) {
        config.output.rings.push_back({.port = PortIndex(port), .priority = 0});
        config.output.rings.push_back({.port = PortIndex(port), .priority = 5});
    }
    Driver driver(config);
    driver.forwarder().fix_address(host(2), 0, PortIndex(1));
    const auto low = driver.in(0, frame_of(host(1), host(2)));
    const auto high = driver.in(0, frame_of(host(1), host(2), 0, 0, 7 << 13));
    EXPECT_EQ(driver.out(1), (std::vector<std::uint64_t>{high, low}));
}

/// A cached flow is decided again after a millisecond, and immediately after a change of rules.
TEST(Forwarder, RemembersFlowsForAWhile) {
    Driver driver(config_of(2, {.port = PortIndex(3)}));
    Forwarder& forwarder = driver.forwarder();
    const Frame frame = frame_of(host(1), host(2), 7);
    forwarder.fix_address(host(3), 0, PortIndex(1));
    driver.in(1, frame_of(host(2), host(3)));  // learned
    driver.out(1);
    EXPECT_EQ(driver.forwards(0, frame), (Ports{1}));
    driver.in(2, frame_of(host(2), host(3)));  // moved
    driver.out(1);
    EXPECT_EQ(driver.forwards(0, frame), (Ports{1}));
    EXPECT_EQ(driver.forwards(0, frame, base::milliseconds(2)), (Ports{2}));
    for (const std::uint32_t ring : {4U, 5U}) {
        forwarder.set_rule(to_ip(7), 1, to_ring(ring));
        driver.in(0, frame, base::milliseconds(2));
        EXPECT_EQ(forwarder.queues().counters(RingIndex(ring)).packets, 1U);
    }
}

TEST(Forwarder, RefusesInvalidSwitches) {
    const auto expect_refused = [](const char* words, auto spoil) {
        ForwarderConfig config = config_of();
        spoil(config);
        EXPECT_TRUE(base::fails_with(words, Forwarder::make(config)));
    };
    expect_refused("3 rings", [](auto& config) { config.output.rings.pop_back(); });
    expect_refused("ring 2 of port 1",
                   [](auto& config) { config.output.rings[2].port = PortIndex(1); });
    expect_refused("0 classes", [](auto& config) { config.classes = 0; });
}

TEST(Forwarder, LosesNothingThatIsNotCounted) {
    ForwarderCheck::Summary all;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        const auto run = ForwarderCheck::play(base::random_bytes(seed, 50'000, 10'000));
        ASSERT_EQ(run.broken_promise, "") << "seed " << seed;
        all.sent += run.sent;
        all.dropped += run.dropped;
    }
    EXPECT_GT(all.sent, 1'000U);
    EXPECT_GT(all.dropped, 1'000U);
}

TEST(Forwarder, FramesOfAMirroredRingAreCopiedToAPort) {
    ForwarderConfig config = config_of(1, {.port = PortIndex(1), .packets = 2});
    config.mirror = PortIndex(3);
    Driver driver(config);
    const RingIndex ring(kPorts);
    driver.forwarder().set_rule(to_ip(5), 0, to_ring(kPorts));
    EXPECT_EQ(driver.forwards(0, frame_of(host(1), host(2), 5)), (Ports{1}));
    driver.forwarder().set_mirrored(ring, true);
    driver.forwarder().set_mirrored(ring, true);
    EXPECT_EQ(driver.forwards(0, frame_of(host(1), host(2), 5)), (Ports{1, 3}));
    for (int i = 0; i < 3; ++i) {  // also the one that has no room
        driver.in(0, frame_of(host(1), host(2), 5));
    }
    EXPECT_EQ(driver.counted(0).full, 1U);
    EXPECT_EQ(driver.counted(0).mirrored, 4U);
    EXPECT_EQ(driver.out(1).size(), 2U);
    EXPECT_EQ(driver.out(3).size(), 3U);
    driver.forwarder().set_mirrored(ring, false);
    EXPECT_EQ(driver.forwards(0, frame_of(host(1), host(2), 5)), (Ports{1}));
    EXPECT_EQ(driver.alive(), 0U);
}

TEST(Forwarder, ALongRingPausesThePortsThatFillIt) {
    Driver driver(config_of());
    Forwarder& forwarder = driver.forwarder();
    forwarder.fix_address(host(2), 0, PortIndex(1));
    forwarder.set_pause(RingIndex(1), 10);
    using Pauses = std::vector<std::pair<std::uint16_t, bool>>;
    for (int i = 0; i < 10; ++i) {
        driver.in(0, frame_of(host(1), host(2)));
    }
    EXPECT_EQ(driver.pauses(), Pauses{});
    driver.in(0, frame_of(host(1), host(2)));
    driver.in(0, frame_of(host(1), host(2)));  // port 0 is paused already
    driver.in(2, frame_of(host(3), host(2)));
    EXPECT_EQ(driver.pauses(), (Pauses{{0, true}, {2, true}}));
    EXPECT_FALSE(forwarder.pauses().is_paused(PortIndex(3)));  // it sends to others
    driver.out(1, {}, 7);
    forwarder.update_pauses(driver);
    EXPECT_EQ(driver.pauses().size(), 2U);  // six are left
    driver.out(1, {}, 1);
    forwarder.update_pauses(driver);
    EXPECT_EQ(driver.pauses(), (Pauses{{0, true}, {2, true}, {0, false}, {2, false}}));
    // A port paused by two rings may send when neither ring pauses it.
    forwarder.fix_address(host(4), 0, PortIndex(3));
    forwarder.set_pause(RingIndex(3), 2);
    for (int i = 0; i < 12; ++i) {
        driver.in(0, frame_of(host(1), host(2)));
        driver.in(0, frame_of(host(1), host(4)));
    }
    EXPECT_TRUE(forwarder.pauses().is_paused(PortIndex(0)));
    driver.out(1);
    forwarder.update_pauses(driver);
    EXPECT_TRUE(forwarder.pauses().is_paused(PortIndex(0)));
    driver.out(3);
    forwarder.update_pauses(driver);
    EXPECT_FALSE(forwarder.pauses().is_paused(PortIndex(0)));
    EXPECT_EQ(driver.pauses().size(), 6U);
}

TEST(Forwarder, FramesOfEveryLengthHaveOneFate) {
    ForwarderConfig config = config_of();
    for (RingConfig& ring : config.output.rings) {
        ring.packets = 1'000'000;
    }
    base::RandomStream random(3, "frames");
    Driver driver(config);
    for (std::size_t size = 0; size <= 9'216; ++size) {
        Frame frame(size);
        std::generate_n(frame.begin(), std::min<std::size_t>(size, 60),
                        [&] { return static_cast<std::uint8_t>(random.uniform_int(256)); });
        if (size >= 14 && size % 3 == 0) {  // one that claims to be IP
            frame[12] = size % 2 == 0 ? 0x08 : 0x86;
            frame[13] = size % 2 == 0 ? 0x00 : 0xdd;
        }
        driver.in(static_cast<std::uint16_t>(size % kPorts), frame);
    }
    std::uint64_t counted = 0;
    std::uint64_t malformed = 0;
    for (std::uint16_t port = 0; port < kPorts; ++port) {
        const PortCounters& each = driver.counted(port);
        malformed += each.malformed;
        counted += each.malformed + each.link_local + each.unknown + each.back + each.full;
    }
    EXPECT_EQ(malformed, 14U);
    EXPECT_EQ(driver.dropped(), counted);
    EXPECT_EQ(9'217 + driver.copies(), driver.alive() + counted);
}

TEST(Forwarder, AMillionAddressesTakeNobodysPlace) {
    ForwarderConfig config = config_of();
    config.addresses.most = 1'000;
    Driver driver(config);
    driver.in(1, frame_of(host(2), kBroadcast));
    for (std::uint16_t port = 0; port < kPorts; ++port) {
        driver.out(port);
    }
    for (std::uint64_t i = 0; i < 1'000'000; ++i) {
        driver.in(2, frame_of(MacAddress{0x040000000000 + i}, host(2)));
        if (i % 32 == 0) {
            driver.out(1);
            // A known address stays known: no frame is copied to other ports.
            ASSERT_EQ(driver.forwards(0, frame_of(host(1), host(2))), (Ports{1}));
        }
        if (i % 32 == 31) {
            driver.out(1);
        }
    }
    EXPECT_LE(driver.forwarder().addresses().size(), 1'000U);
    EXPECT_GT(driver.forwarder().addresses().counters().full, 990'000U);
    EXPECT_EQ(driver.copies(), 2U);
}

TEST(Forwarder, AStuckPortInAStormOfBroadcastsDelaysNoOtherPort) {
    ForwarderConfig config = config_of();
    for (RingConfig& ring : config.output.rings) {
        ring.packets = 100;
    }
    Driver driver(config);
    std::uint64_t sent = 0;
    for (int i = 0; i < 10'000; ++i) {  // port 1 takes nothing
        driver.in(0, frame_of(host(1), kBroadcast));
        sent += driver.out(2).size();
    }
    EXPECT_EQ(sent, 10'000U);
    EXPECT_EQ(driver.counted(0).flooded, 10'000U);
    EXPECT_EQ(driver.counted(0).full, 10'000U * (kPorts - 2) - 100U * (kPorts - 2));
    EXPECT_EQ(driver.forwarder().queues().held_packets(RingIndex(1)), 100U);
}

}  // namespace
}  // namespace daqloom::softswitch
