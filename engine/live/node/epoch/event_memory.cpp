#include "live/node/epoch/event_memory.hpp"

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

constexpr Bytes kEventLine = 64;

/// The largest MFP. Sums of Poissonian fragment sizes are also Poissonian.
base::expected<Bytes> largest_mfp(const NodeConfig& config, bool has_sizes) {
    const Bytes packing = config.packing;
    const Bytes padding = packing * ((Bytes{1} << protocol::usual_mfp_align) - 1);
    const Bytes overhead = protocol::mfp_overhead(static_cast<std::uint16_t>(config.packing));
    if (has_sizes) {
        DAQLOOM_TRY(fragment, largest_fragment(config));
        return overhead + fragment + padding;
    }
    const Bytes mean =
        config.fragment_bytes.empty() ? 0 : *std::ranges::max_element(config.fragment_bytes);
    return overhead + protocol::largest_mfp(config.fragment_sizes, packing * mean) + padding;
}

}  // namespace

base::expected<EventMemory> EventMemory::of(const NodeConfig& config, const Units& units,
                                            std::uint32_t slots,
                                            const protocol::RequestedWords& words, bool has_sizes) {
    DAQLOOM_REFUSE_IF(slots < 1 || slots > Immediate::slots,
                      "{} {}; at most {} events fit the immediate bits of a write, give 1 to {}",
                      slots, words.slots, Immediate::slots, Immediate::slots);
    DAQLOOM_REFUSE_IF(units.readouts > Immediate::streams,
                      "{} readout units; at most {} fit the immediate bits of a write, give fewer",
                      units.readouts, Immediate::streams);
    DAQLOOM_TRY(mfp, largest_mfp(config, has_sizes));
    const EventMemory memory{
        .header = protocol::aligned(protocol::mep_overhead(units.readouts_in_run), kEventLine),
        .place = protocol::aligned(mfp, kEventLine),
        .alignment = config.output_alignment,
        .readouts = units.readouts,
        .slots = slots};
    DAQLOOM_REFUSE_IF(memory.bytes() > config.output_buffer,
                      "{} {} of up to {} bytes take {} bytes of the output buffer, which "
                      "has {}; give fewer {} or a larger output buffer",
                      slots, words.slots_of_events, memory.stride(), memory.bytes(),
                      config.output_buffer, words.slots);
    const Bytes collected = memory.place * slots * units.builders;
    DAQLOOM_REFUSE_IF(collected > config.stream_buffer,
                      "{} builder units with {} {} collect packets of up to {} bytes at a "
                      "time, {} bytes of each stream, whose buffer has {}; give fewer {} "
                      "or a larger stream buffer",
                      units.builders, slots, words.slots, memory.place, collected,
                      config.stream_buffer, words.slots);
    return memory;
}

}  // namespace daqloom::live
