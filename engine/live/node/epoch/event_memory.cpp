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

/// Number of events that a builder unit collects at a time, and the name of the rule.
struct AtATime {
    std::uint32_t events;
    const char* rule;
    const char* rule_for_events;
};

AtATime at_a_time(const NodeConfig& config) {
    return config.protocol == Protocol::pull
               ? AtATime{config.concurrent_events, "concurrent events", "concurrent events"}
               : AtATime{config.credits, "credits", "credits for events"};
}

/// The sum of Poissonian sizes is Poissonian.
base::expected<Bytes> largest_mfp(const NodeConfig& config) {
    const Bytes packing = config.packing;
    const Bytes padding = packing * ((Bytes{1} << config.align) - 1);
    const Bytes overhead = protocol::mfp_overhead(static_cast<std::uint16_t>(config.packing));
    if (config.protocol == Protocol::pull) {
        DAQLOOM_TRY(fragment, largest_fragment(config));
        return overhead + fragment + padding;
    }
    const Bytes mean =
        config.fragment_bytes.empty() ? 0 : *std::ranges::max_element(config.fragment_bytes);
    return overhead + protocol::largest_mfp(config.fragment_sizes, packing * mean) + padding;
}

}  // namespace

base::expected<EventMemory> EventMemory::of(const NodeConfig& config, const Units& units) {
    const auto [events, rule, rule_for_events] = at_a_time(config);
    if (events < 1 || events > Immediate::slots) {
        return base::failure(
            fmt::format("{} {}; the 32 bits that come with a write can tell {} apart, give 1 "
                        "to that",
                        events, rule, Immediate::slots));
    }
    if (units.readouts > Immediate::streams) {
        return base::failure(
            fmt::format("{} readout units; the 32 bits that come with a write can tell {} apart, "
                        "give fewer",
                        units.readouts, Immediate::streams));
    }
    DAQLOOM_TRY(mfp, largest_mfp(config));
    const EventMemory memory{
        .header = protocol::aligned(protocol::mep_overhead(units.readouts_in_run), kEventLine),
        .place = protocol::aligned(mfp, kEventLine),
        .readouts = units.readouts,
        .slots = events};
    if (memory.bytes() > config.output_buffer) {
        return base::failure(
            fmt::format("{} {} of up to {} bytes take {} bytes of the output buffer, which "
                        "has {}; give fewer {} or a larger output buffer",
                        events, rule_for_events, memory.event_bytes(), memory.bytes(),
                        config.output_buffer, rule));
    }
    const Bytes collected = memory.place * events * units.builders;
    if (collected > config.stream_buffer) {
        return base::failure(fmt::format(
            "{} builder units with {} {} collect packets of up to {} bytes at a "
            "time, {} bytes of each stream, whose buffer has {}; give fewer {} "
            "or a larger stream buffer",
            units.builders, events, rule, memory.place, collected, config.stream_buffer, rule));
    }
    return memory;
}

}  // namespace daqloom::live
