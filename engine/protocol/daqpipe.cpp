#include "protocol/daqpipe.hpp"

#include <fmt/format.h>

#include <limits>
#include <numeric>

namespace daqloom::protocol {

namespace {

using base::Bytes;

constexpr std::uint32_t most_units = 65'536;
constexpr std::uint32_t most_credits = 1'000'000;
constexpr std::uint64_t most_fragments_held = std::uint64_t{1} << 28;
constexpr Bytes largest_fragment = Bytes{1} << 32;

}  // namespace

base::expected<DaqpipeBuilder> DaqpipeBuilder::make(DaqpipeBuilderConfig config) {
    if (config.sources < 1 || config.sources > most_units || config.self >= most_units) {
        return base::failure(fmt::format("DAQPIPE builder {} with {} sources; give 1 to {}",
                                         config.self, config.sources, most_units));
    }
    if (config.credits < 1 || config.credits > most_credits ||
        std::uint64_t{config.credits} * config.sources > most_fragments_held) {
        return base::failure(
            fmt::format("DAQPIPE builder: {} credits for events of {} fragments; give 1 to {}, and "
                        "at most {} fragments in all",
                        config.credits, config.sources, most_credits, most_fragments_held));
    }
    if (config.largest_fragment < 1 || config.largest_fragment > largest_fragment) {
        return base::failure(
            fmt::format("DAQPIPE builder: largest fragment of {} bytes; give 1 to "
                        "{}",
                        config.largest_fragment, largest_fragment));
    }
    return DaqpipeBuilder(config);
}

DaqpipeBuilder::DaqpipeBuilder(DaqpipeBuilderConfig config)
    : config_(config),
      limit_(config.parallel_sends == 0 ? config.sources : config.parallel_sends),
      events_(config.credits),
      fragments_(std::size_t{config.credits} * config.sources),
      free_(config.credits),
      slot_of_(config.credits) {
    std::iota(free_.begin(), free_.end(), SlotTable::Slot{0});
}

base::expected<DaqpipeReadout> DaqpipeReadout::make(DaqpipeReadoutConfig config) {
    if (config.builders < 1 || config.builders > most_units || config.self >= most_units) {
        return base::failure(fmt::format("DAQPIPE readout {} with {} builders; give 1 to {}",
                                         config.self, config.builders, most_units));
    }
    if (config.credits < 1 || config.credits > most_credits) {
        return base::failure(
            fmt::format("DAQPIPE readout: {} credits; give 1 to {}", config.credits, most_credits));
    }
    return DaqpipeReadout(config);
}

DaqpipeReadout::DaqpipeReadout(DaqpipeReadoutConfig config)
    : config_(config),
      limit_(config.parallel_sends == 0 ? std::numeric_limits<std::uint64_t>::max()
                                        : config.parallel_sends),
      waiting_(config.builders),
      in_turn_(before_self(0)) {}

}  // namespace daqloom::protocol
