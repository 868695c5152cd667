#include "protocol/machines/pull_builder.hpp"

#include <fmt/format.h>

#include <limits>

namespace daqloom::protocol {

namespace {

constexpr std::uint32_t most_readouts = 1'000'000;
constexpr std::uint32_t most_concurrent_events = 1'000'000;
/// Limit on the fragments of all concurrent events: one bit for each takes 128 MiB.
constexpr std::uint64_t most_pull_fragments = std::uint64_t{1} << 30;

}  // namespace

base::expected<PullBuilder> PullBuilder::make(PullBuilderConfig config) {
    DAQLOOM_REFUSE_IF(config.readouts < 1 || config.readouts > most_readouts,
                      "builder unit: {} readout units; give 1 to {}", config.readouts,
                      most_readouts);
    DAQLOOM_REFUSE_IF(
        config.concurrent_events < 1 || config.concurrent_events > most_concurrent_events,
        "builder unit: {} concurrent events; give 1 to {}", config.concurrent_events,
        most_concurrent_events);
    DAQLOOM_REFUSE_IF(
        std::uint64_t{config.readouts} * config.concurrent_events > most_pull_fragments,
        "builder unit: {} concurrent events of {} fragments; give at most {} fragments in all",
        config.concurrent_events, config.readouts, most_pull_fragments);
    return PullBuilder(config);
}

PullBuilder::PullBuilder(PullBuilderConfig config)
    : RequestingBuilder(config.readouts, config.concurrent_events),
      config_(config),
      limit_(config.outstanding_fragments == 0 ? std::numeric_limits<std::uint64_t>::max()
                                               : config.outstanding_fragments),
      words_per_slot_((std::size_t{config.readouts} + 63) / 64),
      slots_(config.concurrent_events),
      settled_(config.concurrent_events * words_per_slot_) {}

}  // namespace daqloom::protocol
