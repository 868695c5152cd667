#include "ethernet/software_switch.hpp"

#include "ethernet/schedule.hpp"

namespace daqloom::ethernet {

using base::Bytes;
using base::Time;

namespace {

/// Limit on the packets in all rings of a core, so that rings without limit reserve finite memory.
constexpr std::uint64_t kMostHeld = std::uint64_t{1} << 24;

/// Correction of a frame's length to that of its IP packet: no Ethernet header and check sequence.
constexpr std::int32_t kIpOnly = -static_cast<std::int32_t>(kFrameOverhead);

}  // namespace

SoftwareSwitch::SoftwareSwitch(const SoftwareSwitchConfig& config, std::uint32_t ports,
                               std::uint32_t classes, Bytes mark, std::span<const Way> ways)
    : config_(config), classes_(classes), inputs_(ports), first_of_(ports) {
    std::vector<softswitch::OutputConfig> configs(config.cores);
    const auto add_rings = [&](std::uint16_t port, base::BitRate rate) {
        std::vector<softswitch::RingConfig>& rings = configs[core_of(port)].rings;
        for (std::uint32_t each = 0; each < classes; ++each) {
            rings.push_back({.port = softswitch::PortIndex(port),
                             .priority = static_cast<std::uint8_t>(each),
                             .rate = rate,
                             .packets = config.ring_packets,
                             .mark_bytes = mark});
        }
        return static_cast<std::uint32_t>(rings.size()) - classes;
    };
    for (std::uint16_t port = 0; port < ports; ++port) {
        first_of_[port] = add_rings(port, {0});
    }
    for (const Way& way : ways) {
        ways_[{way.host, way.port}] = add_rings(way.port, config.pace);
    }
    for (softswitch::OutputConfig& each : configs) {
        each.ports = static_cast<std::uint16_t>(ports);
        each.packets = std::min(kMostHeld, std::uint64_t{config.ring_packets} * each.rings.size());
        each.overhead =
            config.pace_counts_wire ? static_cast<std::int32_t>(kWireOverhead) : kIpOnly;
        cores_.emplace_back(each);
    }
    if (config.pause_at > 0) {
        pauses_.emplace(cores_.front().queues.rings(), ports);
        for (const auto& [way, first] : ways_) {
            for (std::uint32_t each = 0; each < classes; ++each) {
                pauses_->set_threshold(softswitch::RingIndex(first + each), config.pause_at);
            }
        }
    }
}

std::optional<Time> SoftwareSwitch::wake(std::uint32_t number, Time at) {
    Core& core = cores_[number];
    at = std::max(at, core.free_at);
    if (at >= core.wakes_at) {
        return std::nullopt;
    }
    core.wakes_at = at;
    return at;
}

/// Ends a turn. Its duration is the cost of its batch, whose frames go into rings in the next turn.
std::optional<Time> SoftwareSwitch::end_of_turn(Core& core, Time now, std::uint32_t bursts,
                                                Bytes moved, bool goes_on) {
    const auto frames = static_cast<std::int64_t>(core.batch.size());
    core.free_at = now + Time{bursts * config_.batch_cost.ps + frames * config_.packet_cost.ps};
    if (config_.memory_bandwidth.bps > 0 && moved > 0) {
        constexpr Bytes crossings = 2;
        memory_free_at_ = std::max(memory_free_at_, now) +
                          base::WireClock(config_.memory_bandwidth)(crossings * moved);
        core.free_at = std::max(core.free_at, memory_free_at_);
    }
    Time next = core.queues.next_due();
    if (frames > 0 || goes_on) {
        next = core.free_at;
    }
    core.wakes_at = next == Time::never() ? next : std::max(next, core.free_at);
    return core.wakes_at == Time::never() ? std::nullopt : std::optional(core.wakes_at);
}

Bytes SoftwareSwitch::bytes_inside() const {
    Bytes all = 0;
    for (const base::Ring<Descriptor>& waiting : inputs_) {
        for (std::uint32_t i = 0; i < waiting.size(); ++i) {
            all += frames_[waiting[i].frame].bytes;
        }
    }
    for (const Core& core : cores_) {
        for (const Descriptor& descriptor : core.batch) {
            all += frames_[descriptor.frame].bytes;
        }
        for (softswitch::RingIndex ring{}; ring.value() < core.queues.rings(); ++ring) {
            all += core.queues.held_bytes(ring);
        }
    }
    return all;
}

}  // namespace daqloom::ethernet
