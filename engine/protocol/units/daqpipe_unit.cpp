#include "protocol/units/daqpipe_unit.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace daqloom::protocol {

namespace {

constexpr std::uint32_t most_parallel_sends = 65'536;

}  // namespace

base::expected<DaqpipeUnit> DaqpipeUnit::make(const Config& config) {
    const DaqpipeRules& rules = config.rules;
    const bool is_timed = rules.slot > base::Time::zero();
    if (rules.parallel_sends < 1 || rules.parallel_sends > most_parallel_sends) {
        return base::failure(fmt::format("DAQPIPE: {} parallel sends; give 1 to {}",
                                         rules.parallel_sends, most_parallel_sends));
    }
    DaqpipeUnit unit(config);
    DAQLOOM_CHECK(unit.prepare({}));
    if (config.readout != ReadoutIndex::none()) {
        const std::uint64_t together = std::uint64_t{rules.credits} * rules.parallel_sends;
        const std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
        const auto limit = static_cast<std::uint32_t>(std::min(together, most));
        DAQLOOM_TRY(readout, DaqpipeReadout::make({.self = config.readout,
                                                   .builders = config.builders,
                                                   .credits = rules.credits,
                                                   .parallel_sends = rules.is_push ? limit : 0,
                                                   .is_timed = is_timed && rules.is_push}));
        unit.readout_.emplace(std::move(readout));
    }
    if (config.builder != BuilderIndex::none()) {
        DAQLOOM_TRY(builder, DaqpipeBuilder::make(
                                 {.self = config.builder,
                                  .readouts = config.readouts,
                                  .credits = rules.credits,
                                  .parallel_sends = rules.is_push ? 0 : rules.parallel_sends,
                                  .largest_fragment = config.largest_fragment,
                                  .is_timed = is_timed && !rules.is_push,
                                  .when_incomplete = config.when_incomplete}));
        unit.builder_.emplace(std::move(builder));
    }
    return unit;
}

}  // namespace daqloom::protocol
