// For tests: event building under linear shifting on small fabrics, and how long it takes on paper.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "infiniband/fabric_by_hand_test.hpp"
#include "systems/shift/shift_system.hpp"

#include "systems/fabric_parts_test.hpp"
#include "systems/finished_run_test.hpp"

namespace daqloom::systems {

using base::Time;
using protocol::PhaseChange;
using protocol::ShiftBarrier;
using protocol::ShiftStage;

inline constexpr base::Bytes kPackets = 16;  ///< of an MFP
inline constexpr base::Bytes kMfp = kPackets * 4096;
inline constexpr std::int64_t kByte = 40;  ///< ps, at 200 Gb/s

/// A unit on each host of a fabric, in their order, MFPs of one size, an ideal barrier.
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

/// Readout units on the even hosts, builder units on the odd ones.
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

/// Long cables, dear messages, and no new MFPs after two rounds: steps of nothing but writes and
/// barriers. Of a crossbar that sends one packet of an input at a time, a message may wait for the
/// whole MFP in front of it: see
/// Network.ACrossbarWithoutSpeedUpCanHoldASmallPacketUpForAWholeStream.
inline ShiftSystemConfig barrier_system(ShiftBarrier barrier, std::uint32_t units) {
    ShiftSystemConfig config = system_on(star_200(units, base::microseconds(1)));
    config.barrier = barrier;
    fabric_of(config).crossbar_speedup = 2;
    config.message_cost = base::nanoseconds(100);
    config.polling_delay = base::nanoseconds(300);
    config.source_acknowledge.mean = base::seconds(1);
    return config;
}

inline base::DelayDistribution exponential(Time mean) {
    return {.kind = base::DelayDistribution::Kind::exponential, .mean = mean};
}

inline std::unique_ptr<ShiftSystem> play(const ShiftSystemConfig& config, Time until) {
    return systems::play<ShiftSystem>(config, until, [](auto& system) { system.record_stages(); });
}

/// When the last unit got to each stage of each step.
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

// ---- how long messages and phases take, on paper ------------------------------------------------

/// A message of an idle network, from its first byte to its last: all of it on the wire, and of
/// each switch on the way its first block once more. Headers: 26 B a packet, 16 B for the address,
/// 4 B of immediate data.
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

/// From a unit's turn until it knows that its MFP has been written.
inline Time transfer(const ShiftSystemConfig& config, std::int64_t switches = 1) {
    const Way way{fabric_of(config), switches};
    return config.message_cost + way.of_mfp() + way.of_acknowledge() + config.polling_delay;
}

/// Time that may be added: on each wire a credit update of 8 B for each packet, and an acknowledge.
constexpr Time updates(std::int64_t switches = 1) {
    return Time{(switches + 1) * ((kPackets + 1) * 8 + 30) * kByte};
}

/// All of an MFP on a wire.
inline constexpr Time kAlone{(kMfp + kPackets * 26 + 16 + 4) * kByte};

}  // namespace daqloom::systems
