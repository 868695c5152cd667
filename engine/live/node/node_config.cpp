#include "live/node/node_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "protocol/data/event_size.hpp"
#include "protocol/data/mfp.hpp"
#include "protocol/data/pattern.hpp"

namespace daqloom::live {

using base::Bytes;
using protocol::PatternSizes;
using protocol::ReadoutIndex;

std::uint32_t units_in(const std::vector<UnitIndex>& slots) {
    return static_cast<std::uint32_t>(
        slots.size() - static_cast<std::size_t>(std::ranges::count(slots, UnitIndex::none())));
}

base::expected<Bytes> largest_fragment(const NodeConfig& config) {
    DAQLOOM_TRY(event, protocol::largest_event(config.event_size, config.seed));
    const std::uint32_t readouts = units_in(config.slots.readouts);
    DAQLOOM_REFUSE_IF(!config.share.empty() && config.share.size() != readouts,
                      "{} shares of {} readout units; give one for each", config.share.size(),
                      readouts);
    const protocol::FragmentShares shares(readouts, config.share);
    Bytes largest = 0;
    for (ReadoutIndex readout; readout.value() < readouts; ++readout) {
        largest = std::max(largest, shares.fragment(event, readout));
    }
    return largest;
}

base::expected<NodeConfig> with_pieces(NodeConfig config) {
    if (config.protocol != Protocol::pull) {
        return config;
    }
    DAQLOOM_TRY(largest, largest_fragment(config));
    const Bytes pieces =
        (largest + PatternSizes::largest_fragment - 1) / PatternSizes::largest_fragment;
    DAQLOOM_REFUSE_IF(
        pieces > protocol::most_mfp_fragments,
        "a fragment of {} bytes; give at most {}: smaller events, or more readout units", largest,
        protocol::most_mfp_fragments * PatternSizes::largest_fragment);
    config.packing = static_cast<std::uint32_t>(pieces);
    return config;
}

}  // namespace daqloom::live
