// libFuzzer: for any frames and any changes of configuration, each frame and each copy leaves once,
// is dropped once, or is held.
#include <cstdlib>
#include <set>

#include "base/byte_source_test.hpp"
#include "softswitch/forwarder.hpp"

namespace daqloom::softswitch {
namespace {

constexpr std::uint16_t kPorts = 3;
constexpr std::uint32_t kRings = 2 * kPorts + 3;
constexpr std::uint32_t kFlowEntries = 6;
constexpr std::uint32_t kMeters = 2;

/// Driver of the switch: aborts if a handle returns that it has not given away.
struct Driver {
    void drop(std::uint64_t handle) {
        if (alive.erase(handle) != 1) {
            std::abort();
        }
    }
    void mark(std::uint64_t handle) const {
        if (!alive.contains(handle)) {
            std::abort();
        }
    }
    void pause(PortIndex port, bool on) {
        if (paused.contains(port) == on) {
            std::abort();
        }
        on ? static_cast<void>(paused.insert(port)) : static_cast<void>(paused.erase(port));
    }
    /// Never called: there is one core.
    static void tell(std::uint32_t, const Message&) { std::abort(); }
    std::uint64_t copy(std::uint64_t handle) {
        mark(handle);
        alive.insert(next);
        return next++;
    }

    std::set<std::uint64_t> alive;
    std::set<PortIndex> paused;
    std::uint64_t next = 0;
};

ForwarderConfig config_from(base::ByteSource& from) {
    ForwarderConfig config;
    config.classes = 2;
    config.output.ports = kPorts;
    for (std::uint32_t ring = 0; ring < kRings; ++ring) {
        config.output.rings.push_back(
            {.port = PortIndex(ring / 2 % kPorts),
             .priority = static_cast<std::uint8_t>(ring < 2 * kPorts ? ring % 2 : 0),
             .rate = base::megabits_per_second(from.coin() ? from.number(1, 10'000) : 0),
             .packets = static_cast<std::uint32_t>(from.number(1, 100)),
             .bytes = from.number(64, 60'000),
             .mark_bytes = from.coin() ? from.number(1, 5'000) : 0});
    }
    config.output.packets = static_cast<std::uint64_t>(from.number(1, 200));
    if (from.coin()) {
        config.output.shared = {.buffer = from.number(0, 100'000),
                                .dedicated = from.number(0, 50'000),
                                .dedicated_ports = from.byte(),
                                .alpha = from.byte() / 64.0,
                                .port_limit = from.number(0, 50'000),
                                .cell_size = from.number(0, 300),
                                .cell_metadata = from.byte()};
    }
    config.output.quantum = static_cast<std::uint32_t>(from.number(1'600, 10'000));
    config.addresses = {.most = static_cast<std::uint32_t>(from.number(1, 50)),
                        .ageing = base::microseconds(from.number(1, 60'000))};
    for (int port = 0; port < kPorts && from.coin(); ++port) {
        config.limits.push_back({.floods = from.byte(), .addresses = from.byte()});
    }
    config.most_rules = static_cast<std::uint32_t>(from.number(0, 40));
    config.most_flow_entries = kFlowEntries;
    config.most_meters = kMeters;
    config.floods_unknown = from.coin();
    config.mirror = from.coin() ? PortIndex(from.byte() % kPorts) : PortIndex::none();
    return config;
}

Match match_from(base::ByteSource& from) {
    Match match;
    if (from.coin()) {
        match.destination = MacAddress{from.byte()};
    }
    if (from.coin()) {
        match.vlan = from.byte();
    }
    if (from.coin()) {
        match.to = IpAddress::v4(from.byte());
        match.prefix = static_cast<std::uint8_t>(from.number(0, 128));
    }
    if (from.coin()) {
        match.protocol = from.coin() ? IpProtocol::tcp : IpProtocol::udp;
        match.to_port = from.byte();
    }
    return match;
}

Action action_from(base::ByteSource& from) {
    return {.what = static_cast<Action::What>(from.byte() % 5),
            .ring = RingIndex(from.byte()),
            .port = PortIndex(from.byte())};
}

void change(Forwarder& forwarder, base::ByteSource& from) {
    switch (from.byte() % 13) {
        case 12:
            forwarder.set_limits(PortIndex(from.byte() % (kPorts + 1)),
                                 {.floods = from.byte(), .addresses = from.byte()});
            break;
        case 11:
            forwarder.set_flow(FlowIndex(from.byte() % (kFlowEntries + 1)),
                               {.match = match_from(from),
                                .priority = from.byte(),
                                .action = action_from(from),
                                .meter = from.coin() ? MeterIndex(from.byte() % (kMeters + 1))
                                                     : MeterIndex::none()});
            break;
        case 10:
            forwarder.remove_flow(FlowIndex(from.byte() % (kFlowEntries + 1)));
            break;
        case 9:
            forwarder.set_meter(
                MeterIndex(from.byte() % (kMeters + 1)),
                {.unit = from.coin() ? MeterConfig::Unit::bits : MeterConfig::Unit::packets,
                 .per_second = static_cast<std::uint64_t>(from.number(0, 1'000'000'000)),
                 .burst = static_cast<std::uint64_t>(from.number(0, 1'000'000'000'000'000'000))});
            break;
        case 8:
            forwarder.set_pause(RingIndex(from.byte() % kRings), from.byte());
            break;
        case 7:
            forwarder.set_mirrored(RingIndex(from.byte() % kRings), from.coin());
            break;
        case 0:
            forwarder.set_rule(match_from(from), from.byte(), action_from(from));
            break;
        case 1:
            forwarder.remove_rule(match_from(from), from.byte());
            break;
        case 2:
            forwarder.fix_address(MacAddress{from.byte()},
                                  from.coin() ? from.byte() : MacTable::kEveryVlan,
                                  PortIndex(from.byte() % kPorts));
            break;
        case 3:
            forwarder.forget_address(MacAddress{from.byte()}, from.byte());
            break;
        case 4:
            forwarder.forget_port(PortIndex(from.byte() % kPorts));
            break;
        case 5:
            forwarder.queues().set_rate(RingIndex(from.byte() % kRings),
                                        base::megabits_per_second(from.number(0, 10'000)));
            break;
        default:
            forwarder.queues().set_limits(RingIndex(from.byte() % kRings),
                                          static_cast<std::uint32_t>(from.number(0, 100)),
                                          from.number(0, 60'000));
    }
}

/// Mostly a well-formed frame between few hosts; else arbitrary bytes.
std::vector<std::uint8_t> frame_from(base::ByteSource& from) {
    std::vector<std::uint8_t> frame(static_cast<std::size_t>(from.number(0, 9'216)));
    const std::size_t head = frame.size() < 50 ? frame.size() : 50;
    for (std::size_t i = 0; i < head; ++i) {
        frame[i] = from.byte();
    }
    if (frame.size() >= 42 && from.coin()) {
        constexpr std::array<std::uint8_t, 4> ipv4{0x08, 0x00, 0x45, 0x00};
        std::copy(ipv4.begin(), ipv4.end(), frame.begin() + 12);
        for (const std::size_t at : {0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 26, 27, 28, 30, 31, 32}) {
            frame[at] = 0;
        }
    }
    return frame;
}

void play(base::ByteSource from) {
    auto made = Forwarder::make(config_from(from));
    if (!made) {
        return;
    }
    Forwarder& forwarder = *made;
    Driver driver;
    base::Time now;
    std::array<std::uint64_t, 8> handles{};
    while (!from.empty()) {
        now += base::nanoseconds(from.number(0, 50'000));
        const std::uint8_t what = from.byte();
        if (what % 8 == 0) {
            change(forwarder, from);
        } else if (what % 8 < 5) {
            const std::vector<std::uint8_t> frame = frame_from(from);
            driver.alive.insert(driver.next);
            const Arrived arrived{driver.next++, frame, static_cast<std::uint32_t>(frame.size())};
            forwarder.in({&arrived, 1}, PortIndex(from.byte() % kPorts), now, driver);
        } else {
            forwarder.advance(now);
            forwarder.look_at_pauses(driver);
            const std::size_t room = from.byte() % (handles.size() + 1);
            const std::size_t count =
                forwarder.out(PortIndex(from.byte() % kPorts), now, std::span(handles).first(room));
            for (std::size_t i = 0; i < count; ++i) {
                driver.drop(handles[i]);
            }
        }
        if (driver.alive.size() != forwarder.queues().held()) {
            std::abort();
        }
    }
    forwarder.queues().drain([&](std::uint64_t handle) { driver.drop(handle); });
    forwarder.look_at_pauses(driver);
    if (!driver.alive.empty() || !driver.paused.empty()) {
        std::abort();
    }
}

}  // namespace
}  // namespace daqloom::softswitch

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    daqloom::softswitch::play(daqloom::base::ByteSource({data, size}));
    return 0;
}
