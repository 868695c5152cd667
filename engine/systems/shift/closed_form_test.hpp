// Event building by linear shifting on small fabrics, and its time by closed forms, for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "infiniband/fabric_by_hand_test.hpp"
#include "systems/fabric_parts_test.hpp"
#include "systems/finished_run_test.hpp"
#include "systems/shift/shift_system.hpp"

namespace daqloom::systems {

using base::Time;
using protocol::PhaseChange;
using protocol::ShiftBarrier;
using protocol::ShiftStage;

inline constexpr base::Bytes kPackets = 16;  ///< packets in an MFP
inline constexpr base::Bytes kMfp = kPackets * 4096;
inline constexpr std::int64_t kByte = 40;  ///< ps, at 200 Gb/s

/// Linear shifting with a folded unit on each host, MFPs of one size and an ideal barrier.
inline ShiftSystemConfig system_on(const FabricConfig& fabric) {
    ShiftSystemConfig config;
    fabric_of(config) = fabric;
    config.slots = all_hosts(fabric);
    config.mfp_bytes.assign(fabric.hosts, kMfp);
    config.barrier = ShiftBarrier::external;
    return config;
}

inline FabricConfig star_200(std::uint32_t hosts, Time delay = base::nanoseconds(170)) {
    return star(hosts, base::gigabits_per_second(200), delay);
}

/// Unfolded linear shifting: readout units on even hosts, builder units on odd hosts.
inline ShiftSystemConfig unfolded_on(const FabricConfig& fabric) {
    ShiftSystemConfig config = system_on(fabric);
    config.slots.clear();
    for (const NodeIndex host : all_hosts(fabric)) {
        (host.value() % 2 == 0 ? config.slots : config.builder_slots).push_back(host);
    }
    config.slots.resize(config.builder_slots.size(), NodeIndex::none());
    config.mfp_bytes.assign(fabric.hosts / 2, kMfp);
    return config;
}

/// Linear shifting with long cables, slow messages and no new MFPs after two rounds, so that steps
/// consist of writes and barriers only. In a crossbar that sends one packet of an input at a time,
/// a message may wait for the whole MFP in front of it: see
/// Network.ACrossbarWithoutSpeedUpCanHoldASmallPacketUpForAWholeStream.
inline ShiftSystemConfig barrier_system(ShiftBarrier barrier, std::uint32_t units) {
    ShiftSystemConfig config = system_on(star_200(units, base::microseconds(1)));
    config.barrier = barrier;
    fabric_of(config).crossbar_speedup = 2;
    config.message_cost = base::nanoseconds(100);
    config.polling_delay = base::nanoseconds(300);
    config.source_acknowledge.mean = base::seconds(1);
    config.barrier_level_latency = base::nanoseconds(400);
    config.barrier_levels.assign(units, 1);
    return config;
}

/// Time from the last entry into a barrier of the network until all units are released: the post of
/// the arrival, up and down all levels of the tree, the poll, and the receipt of the release.
inline Time network_barrier(const ShiftSystemConfig& config, std::int64_t levels = 1) {
    return config.message_cost * 2 + config.barrier_level_latency * (2 * levels) +
           config.polling_delay;
}

inline base::DelayDistribution exponential(Time mean) {
    return {.kind = base::DelayDistribution::Kind::exponential, .mean = mean};
}

inline std::unique_ptr<ShiftSystem> play(const ShiftSystemConfig& config, Time until) {
    return systems::play<ShiftSystem>(config, until, [](auto& system) { system.record_stages(); });
}

/// Time at which the last unit entered each stage of each step.
struct Steps {
    explicit Steps(const ShiftSystem& system) {
        for (const auto& record : system.stages()) {
            Time& last = last_[{record.step, record.stage}];
            last = std::max(last, record.begin);
        }
    }
    [[nodiscard]] Time begun(std::uint64_t step) const {
        return last_.at({step, ShiftStage::entering});
    }
    [[nodiscard]] Time took(std::uint64_t step) const {
        return last_.at({step, ShiftStage::in_barrier}) - begun(step);
    }

  private:
    std::map<std::pair<std::uint64_t, ShiftStage>, Time> last_;
};

// ---- closed forms of messages and phases --------
// ------------------------------------------------

/// Time of a message on an idle network: the whole message on the wire, and its first block a
/// second time for each switch. Headers: 26 B a packet, 16 B for the address, 4 B of immediate
/// data.
struct Way {
    const FabricConfig& fabric;
    std::int64_t switches = 1;

    [[nodiscard]] Time of_wire(base::Bytes bytes) const {
        return Time{(bytes + switches * std::min<base::Bytes>(bytes, 64)) * kByte} +
               fabric.cables[0].delay * (switches + 1) + fabric.switch_latency * switches;
    }
    [[nodiscard]] Time of_control() const { return of_wire(16 + 26 + 16 + 4); }
    [[nodiscard]] Time of_mfp() const { return of_wire(kMfp + kPackets * 26 + 16 + 4); }
    [[nodiscard]] Time of_acknowledge() const { return of_wire(30); }
};

/// Time from the begin of a unit's phase until its MFP's completion.
inline Time transfer(const ShiftSystemConfig& config, std::int64_t switches = 1) {
    const Way way{fabric_of(config), switches};
    return config.message_cost + way.of_mfp() + way.of_acknowledge() + config.polling_delay;
}

/// Tolerance: on each wire a credit update of 8 B for each packet, and an acknowledgement.
constexpr Time updates(std::int64_t switches = 1) {
    return Time{(switches + 1) * ((kPackets + 1) * 8 + 30) * kByte};
}

/// Time of a whole MFP on a wire.
inline constexpr Time kAlone{(kMfp + kPackets * 26 + 16 + 4) * kByte};

}  // namespace daqloom::systems
