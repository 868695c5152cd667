// Software switches in a network: their turns, and the pause frames that they send and receive.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ethernet/network.hpp"

namespace daqloom::ethernet {

using base::Bytes;
using base::Time;

void Network::start_software_switches() {
    software_.resize(switches_.size());
    for (const SwitchIndex at : switches_.indices()) {
        const SwitchNode& node = switches_[at];
        if (!node.is_software) {
            continue;
        }
        const SwitchConfig& config = node.buffer.config();
        std::vector<SoftwareSwitch::Way> ways;
        for (const NodeIndex host : config.software.destinations) {
            const std::uint32_t route = node.routes[host];
            const LinkIndex single(route);
            const std::span<const LinkIndex> links =
                route < kGroups ? std::span(&single, 1) : std::span(node.groups[route - kGroups]);
            for (const LinkIndex link : links) {
                ways.push_back({host, ports_[link].wiring().from_port});
            }
        }
        const std::uint32_t classes =
            config.schedule.scheduling == Scheduling::strict ? kTrafficClasses : 1;
        software_[at].itself = std::make_unique<SoftwareSwitch>(
            config.software, static_cast<std::uint32_t>(node.port_links.size()), classes,
            config.ecn_threshold, ways);
        software_[at].first = static_cast<std::uint32_t>(switch_of_core_.size());
        switch_of_core_.resize(switch_of_core_.size() + config.software.cores, at);
    }
}

/// The network's side of a software switch's turn.
struct Network::AroundSwitch {
    /// Free descriptors of an output. If none is free, `room_at` is the time when one will be.
    std::uint32_t room(std::uint16_t port) {
        const LinkIndex link = node.port_links[port];
        network.settle_port(node, port, now);
        const FifoPort& out = network.ports_[link];
        const std::uint32_t descriptors = node.buffer.config().software.descriptors;
        std::uint32_t used = out.waiting();
        if (out.is_scheduled()) {
            used += network.schedulers_[link]->waiting();
        }
        if (used >= descriptors && out.waiting() > 0) {
            room_at = std::min(room_at, out.next_departure());
        }
        return used < descriptors ? descriptors - used : 0;
    }
    void send(std::uint16_t port, const Frame& frame) {
        const LinkIndex link = node.port_links[port];
        FifoPort& out = network.ports_[link];
        if (out.is_scheduled()) {
            network.send_scheduled(link, 0, frame, now);
        } else {
            network.send(out, link, frame, now);
        }
    }
    void drop(std::uint16_t port, const Frame& frame) {
        node.buffer.release(port, frame.bytes);
        network.drop(node, port, node.port_links[port], frame, now);
    }
    void mark(Frame& frame) {
        if (frame.has(kEcnCapable)) {
            frame.mark(kCongestionExperienced);
            ++network.marks_;
        }
    }
    void wake(std::uint32_t core) { network.wake_switch(at, core, now); }
    void pause(std::uint16_t port, bool on) { network.send_pause(node.port_links[port], on, now); }

    Network& network;
    SwitchIndex at;
    SwitchNode& node;
    Time now;
    Time room_at = Time::never();
};

void Network::receive(SwitchIndex at, std::uint16_t input, LinkIndex out, const Frame& frame,
                      Time now) {
    SwitchNode& node = switches_[at];
    SoftwareSwitch& software = *software_[at].itself;
    const std::uint16_t port = ports_[out].wiring().from_port;
    if (!software.receive(input, port, frame)) {
        drop(node, port, out, frame, now);
        return;
    }
    node.buffer.charge(port, frame.bytes);
    if (node.occupancy) {
        record_if_raised(node, now);
    }
    wake_switch(at, software.core_of(input), now);
}

void Network::wake_switch(SwitchIndex at, std::uint32_t core, Time when) {
    const SwitchCores& software = software_[at];
    if (const std::optional<Time> next = software.itself->wake(core, when)) {
        events_.push({*next, kPortFree, kCores + software.first + core});
    }
}

void Network::on_switch_turn(std::uint32_t index, Time now) {
    const SwitchIndex at = switch_of_core_[index];
    const SwitchCores& software = software_[at];
    AroundSwitch around{*this, at, switches_[at], now};
    std::optional<Time> next;
    do {  // while turns take no time
        next = software.itself->turn(index - software.first, now, around);
    } while (next == now);
    if (next) {
        events_.push({*next, kPortFree, kCores + index});
    }
    if (around.room_at != Time::never()) {
        wake_switch(at, index - software.first, std::max(around.room_at, now));
    }
}

/// Sends a pause frame (IEEE 802.3, annex 31B) after the frame that the port has begun to send. A
/// pause frame takes no place in a queue, as it is short and rare. The pause lasts until the frame
/// that ends it, because a real pause frame is repeated before it expires.
void Network::send_pause(LinkIndex back, bool on, Time now) {
    constexpr Bytes bytes = 64;
    const FifoPort& port = ports_[back];
    const Time at = std::max(now, port.free_at()) +
                    base::WireClock(port.rate())(bytes + kWireOverhead) + port.delay();
    const LinkIndex paused(back.value() ^ 1U);  // the other direction of the cable
    events_.push({at, kPortFree, paused.value() + (on ? kHolds : kGoesOn)});
    ++pauses_;
}

void Network::on_pause(LinkIndex link, bool on, Time now) {
    ScheduledPort& port = *schedulers_[link];
    for (std::uint32_t each = 0; each < kTrafficClasses; ++each) {
        if (on) {
            port.hold(TrafficClass(each));
        } else {
            port.resume(TrafficClass(each));
        }
    }
    wake(link, now);
}

}  // namespace daqloom::ethernet
