#include "live/node/daqpipe_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "protocol/data/immediate.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/data/mep_layout.hpp"
#include "protocol/data/mfp.hpp"
#include "protocol/data/mfp_sizes.hpp"

namespace daqloom::live {

namespace {

using base::Bytes;
using protocol::Immediate;

constexpr Bytes kLine = 64;

/// The sum of Poissonian sizes is Poissonian.
Bytes largest_mfp(const NodeConfig& config) {
    const Bytes mean =
        config.fragment_bytes.empty() ? 0 : *std::ranges::max_element(config.fragment_bytes);
    const Bytes packing = config.packing;
    const Bytes padding = packing * ((Bytes{1} << config.align) - 1);
    return protocol::mfp_overhead(static_cast<std::uint16_t>(config.packing)) +
           protocol::largest_mfp(config.sizes, packing * mean) + padding;
}

}  // namespace

base::expected<DaqpipeMemory> DaqpipeMemory::of(const NodeConfig& config, const Units& units) {
    if (config.credits < 1 || config.credits > Immediate::slots) {
        return base::failure(
            fmt::format("{} credits; the 32 bits that come with a write can tell {} apart, give 1 "
                        "to that",
                        config.credits, Immediate::slots));
    }
    if (units.readouts > Immediate::streams) {
        return base::failure(
            fmt::format("{} readout units; the 32 bits that come with a write can tell {} apart, "
                        "give fewer",
                        units.readouts, Immediate::streams));
    }
    const DaqpipeMemory memory{
        .header = protocol::aligned(protocol::mep_overhead(units.readouts_in_run), kLine),
        .place = protocol::aligned(largest_mfp(config), kLine),
        .readouts = units.readouts,
        .credits = config.credits};
    if (memory.bytes() > config.output_buffer) {
        return base::failure(fmt::format(
            "{} credits for events of up to {} bytes take {} bytes of the output "
            "buffer, which has {}; give fewer credits or a larger output buffer",
            config.credits, memory.event_bytes(), memory.bytes(), config.output_buffer));
    }
    const Bytes collected = memory.place * config.credits * units.builders;
    if (collected > config.stream_buffer) {
        return base::failure(fmt::format(
            "{} builder units with {} credits collect packets of up to {} bytes at a "
            "time, {} bytes of each stream, whose buffer has {}; give fewer credits "
            "or a larger stream buffer",
            units.builders, config.credits, memory.place, collected, config.stream_buffer));
    }
    return memory;
}

}  // namespace daqloom::live
