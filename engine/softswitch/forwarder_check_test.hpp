// For tests and fuzzing: a switch that receives any frames and any changes of configuration. Each
// frame and each copy must leave once, be dropped once and counted, or be held.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/byte_source_test.hpp"
#include "softswitch/forwarder.hpp"

namespace daqloom::softswitch {

class ForwarderCheck {
  public:
    struct Summary {
        std::string broken_promise;  ///< the first; or nothing
        std::uint64_t sent = 0;
        std::uint64_t dropped = 0;
    };

    /// Runs a check: the first bytes select the configuration, later bytes frames and changes.
    static Summary play(std::span<const std::uint8_t> input) {
        base::ByteSource from(input);
        const auto config = config_from(from);
        auto made = Forwarder::make(config);
        return made ? ForwarderCheck(from, std::move(*made)).run() : Summary{};
    }

    // ---- outputs of the switch

    void drop(std::uint64_t handle) {
        leave(handle);
        ++summary_.dropped;
    }
    void mark(std::uint64_t handle) {
        promise(alive_.contains(handle), "a frame that is marked is in the switch");
    }
    void pause(PortIndex port, bool on) {
        promise(paused_.contains(port) != on, "a port is paused once");
        on ? static_cast<void>(paused_.insert(port)) : static_cast<void>(paused_.erase(port));
    }
    void share_with(std::uint32_t /*core*/, const Message& /*message*/) {
        promise(false, "one core shares no addresses");
    }
    std::uint64_t copy(std::uint64_t handle) {
        promise(alive_.contains(handle), "a frame that is copied is in the switch");
        return arrive();
    }

  private:
    static constexpr std::uint16_t kPorts = 3;
    static constexpr std::uint32_t kRings = 2 * kPorts + 3;
    static constexpr std::uint32_t kFlowEntries = 6;
    static constexpr std::uint32_t kMeters = 2;

    ForwarderCheck(base::ByteSource from, Forwarder forwarder)
        : from_(from), forwarder_(std::move(forwarder)) {}

    Summary run() {
        std::array<std::uint64_t, 8> handles{};
        base::Time now;
        while (!from_.empty()) {
            now += base::nanoseconds(from_.number(0, 50'000));
            const std::uint8_t what = from_.byte();
            if (what % 8 == 0) {
                change();
            } else if (what % 8 < 5) {
                const std::vector<std::uint8_t> frame = any_frame();
                const Arrival arrival{arrive(), frame, static_cast<std::uint32_t>(frame.size())};
                forwarder_.in({&arrival, 1}, any_port(), now, *this);
            } else {
                forwarder_.advance(now);
                forwarder_.update_pauses(*this);
                const auto room = std::span(handles).first(from_.byte() % (handles.size() + 1));
                const std::size_t count = forwarder_.out(any_port(), now, room);
                std::ranges::for_each(room.first(count), [this](auto handle) { leave(handle); });
                summary_.sent += count;
            }
            promise(alive_.size() == forwarder_.queues().held(), "a frame is in a ring or nowhere");
        }
        promise(summary_.dropped == counted(), "what is dropped is counted");
        forwarder_.queues().drain([this](std::uint64_t handle) { leave(handle); });
        forwarder_.update_pauses(*this);
        promise(alive_.empty() && paused_.empty(), "nothing is left in an empty switch");
        return summary_;
    }

    void promise(bool kept, const char* text) {
        if (!kept && summary_.broken_promise.empty()) {
            summary_.broken_promise = text;
        }
    }
    std::uint64_t arrive() {
        alive_.insert(next_);
        return next_++;
    }
    void leave(std::uint64_t handle) { promise(alive_.erase(handle) == 1, "a frame leaves once"); }
    [[nodiscard]] std::uint64_t counted() const {
        std::uint64_t sum = 0;
        for (std::uint16_t port = 0; port < kPorts; ++port) {
            const PortCounters& each = forwarder_.counters(PortIndex(port));
            sum += each.malformed + each.link_local + each.by_rule + each.metered + each.unknown +
                   each.storm + each.back + each.full;
        }
        return sum;
    }

    static ForwarderConfig config_from(base::ByteSource& from) {
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

    Match any_match() {
        Match match;
        if (from_.coin()) {
            match.destination = MacAddress{from_.byte()};
        }
        if (from_.coin()) {
            match.vlan = from_.byte();
        }
        if (from_.coin()) {
            match.to = IpAddress::v4(from_.byte());
            match.prefix = static_cast<std::uint8_t>(from_.number(0, 128));
        }
        if (from_.coin()) {
            match.protocol =
                static_cast<std::uint8_t>(from_.coin() ? IpProtocol::tcp : IpProtocol::udp);
            match.to_port = from_.byte();
        }
        return match;
    }

    Action any_action() {
        return {.what = static_cast<Action::What>(from_.byte() % 5),
                .ring = RingIndex(from_.byte()),
                .port = PortIndex(from_.byte())};
    }

    PortIndex any_port() { return PortIndex(from_.byte() % kPorts); }
    RingIndex any_ring() { return RingIndex(from_.byte() % kRings); }
    FlowIndex any_entry() { return FlowIndex(from_.byte() % (kFlowEntries + 1)); }
    MeterIndex any_meter() { return MeterIndex(from_.byte() % (kMeters + 1)); }

    void change() {
        switch (from_.byte() % 13) {
            case 0:
                forwarder_.set_rule(any_match(), from_.byte(), any_action());
                break;
            case 1:
                forwarder_.remove_rule(any_match(), from_.byte());
                break;
            case 2:
                forwarder_.fix_address(MacAddress{from_.byte()},
                                       from_.coin() ? from_.byte() : MacTable::kEveryVlan,
                                       any_port());
                break;
            case 3:
                forwarder_.forget_address(MacAddress{from_.byte()}, from_.byte());
                break;
            case 4:
                forwarder_.forget_port(any_port());
                break;
            case 5:
                forwarder_.queues().set_rate(any_ring(),
                                             base::megabits_per_second(from_.number(0, 10'000)));
                break;
            case 6:
                forwarder_.queues().set_limits(any_ring(),
                                               static_cast<std::uint32_t>(from_.number(0, 100)),
                                               from_.number(0, 60'000));
                break;
            case 7:
                forwarder_.set_mirrored(any_ring(), from_.coin());
                break;
            case 8:
                forwarder_.set_pause(any_ring(), from_.byte());
                break;
            case 9:
                forwarder_.set_meter(
                    any_meter(),
                    {.unit = from_.coin() ? MeterConfig::Unit::bits : MeterConfig::Unit::packets,
                     .per_second = static_cast<std::uint64_t>(from_.number(0, 1'000'000'000)),
                     .burst =
                         static_cast<std::uint64_t>(from_.number(0, 1'000'000'000'000'000'000))});
                break;
            case 10:
                forwarder_.remove_flow(any_entry());
                break;
            case 11:
                forwarder_.set_flow(any_entry(),
                                    {.match = any_match(),
                                     .priority = from_.byte(),
                                     .action = any_action(),
                                     .meter = from_.coin() ? any_meter() : MeterIndex::none()});
                break;
            default:
                forwarder_.set_limits(PortIndex(from_.byte() % (kPorts + 1)),
                                      {.floods = from_.byte(), .addresses = from_.byte()});
        }
    }

    /// A frame of arbitrary bytes, in most cases well-formed and between few hosts.
    std::vector<std::uint8_t> any_frame() {
        std::vector<std::uint8_t> frame(static_cast<std::size_t>(from_.number(0, 9'216)));
        const std::size_t head = frame.size() < 50 ? frame.size() : 50;
        for (std::size_t i = 0; i < head; ++i) {
            frame[i] = from_.byte();
        }
        if (frame.size() >= 42 && from_.coin()) {
            constexpr std::array<std::uint8_t, 4> ipv4{0x08, 0x00, 0x45, 0x00};
            std::copy(ipv4.begin(), ipv4.end(), frame.begin() + 12);
            for (const std::size_t at : {0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 26, 27, 28, 30, 31, 32}) {
                frame[at] = 0;
            }
        }
        return frame;
    }

    base::ByteSource from_;
    Forwarder forwarder_;
    Summary summary_;
    std::set<std::uint64_t> alive_;
    std::set<PortIndex> paused_;
    std::uint64_t next_ = 0;
};

}  // namespace daqloom::softswitch
