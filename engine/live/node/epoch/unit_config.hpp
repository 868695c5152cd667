// Configurations of a node's protocol units in an epoch, derived from the node's configuration and
// the epoch's members.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "live/memory/clock.hpp"
#include "live/node/epoch/event_memory.hpp"
#include "live/node/epoch/members.hpp"
#include "live/node/node_config.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/data/mep_layout.hpp"
#include "protocol/units/shift_unit.hpp"

namespace daqloom::live {

/// MFPs start on cache lines, so that non-temporal stores fill whole lines.
inline constexpr base::Bytes kMfpAlignment = 64;

inline protocol::WhenIncomplete when_incomplete(const NodeConfig& config) {
    return config.delivers_incomplete ? protocol::WhenIncomplete::deliver
                                      : protocol::WhenIncomplete::drop;
}

/// `output_meps`: limit on MEPs in the output buffer, independent of their sizes.
inline protocol::ShiftUnitConfig shift_unit_config(const NodeConfig& config, const Members& members,
                                                   std::uint64_t output_meps) {
    auto unit = protocol::ShiftUnitConfig::sized(config, members.shift, config.streams);
    unit.self = members.readout_of[config.self];
    unit.keep_groups_of(members.readout_in_run);
    protocol::PushReadoutConfig& readout = unit.readout;
    readout.largest_mfp = std::min(config.stream_buffer, protocol::largest_mfp_size);
    // The real limit is the stream's buffer; this value is only an upper bound.
    readout.stream_buffer = readout.largest_mfp * (base::Bytes{readout.buffered_mfps} + 2);
    unit.builder.self = members.builder_of[config.self];
    unit.builder.output_buffer = config.output_buffer;
    unit.builder.output_meps = output_meps;
    unit.builder.when_full = config.when_full;
    unit.builder.when_incomplete = when_incomplete(config);
    unit.builder.layout = {
        .header = protocol::mep_overhead(members.readouts_in_run * config.streams),
        .alignment = kMfpAlignment};
    unit.builder.output_alignment = config.output_alignment;
    return unit;
}

/// Units that wait at this unit's barriers, itself included; none: it has no readout unit.
inline std::vector<UnitIndex> units_at_barrier(const NodeConfig& config, const Members& members) {
    protocol::ShiftUnitConfig unit{config};
    unit.keep_groups_of(members.readout_in_run);
    const auto& groups = unit.barrier_groups;
    const protocol::ReadoutIndex self = members.readout_of[config.self];
    std::vector<UnitIndex> units;
    for (const protocol::ReadoutIndex each : members.readouts.indices()) {
        if (self != protocol::ReadoutIndex::none() &&
            (groups.empty() || groups[each.value()] == groups[self.value()])) {
            units.push_back(members.readouts[each]);
        }
    }
    return units;
}

/// Configuration of a unit whose builder units request fragments.
template <class Unit>
typename Unit::Config requested_unit_config(const NodeConfig& config, const Members& members,
                                            const EventMemory& memory) {
    return {.rules = config,
            .readout = members.readout_of[config.self],
            .builder = members.builder_of[config.self],
            .readouts = memory.readouts,
            .builders = static_cast<std::uint32_t>(members.builders.size()),
            .largest_fragment = memory.place,
            .when_incomplete = when_incomplete(config),
            .seed = config.seed,
            .begin = now()};
}

}  // namespace daqloom::live
