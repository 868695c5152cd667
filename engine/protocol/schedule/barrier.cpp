#include "protocol/schedule/barrier.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace daqloom::protocol {

namespace {

constexpr std::uint32_t most_participants = 1'000'000;

std::optional<std::string> problem_of(const BarrierConfig& config) {
    if (config.participants < 1 || config.participants > most_participants) {
        return fmt::format("barrier: {} participants; give 1 to {}", config.participants,
                           most_participants);
    }
    if (config.self >= config.participants || config.master >= config.participants) {
        return fmt::format("barrier: participant {} with master {}; give 0 to {}", config.self,
                           config.master, config.participants - 1);
    }
    return std::nullopt;
}

}  // namespace

base::expected<Barrier> Barrier::make(BarrierConfig config) {
    if (const auto problem = problem_of(config)) {
        return base::failure(*problem);
    }
    if (config.kind == BarrierKind::dissemination) {
        return Barrier(DisseminationBarrier(config));
    }
    if (config.kind == BarrierKind::neighbour) {
        return Barrier(NeighbourBarrier(config));
    }
    return Barrier(TreeBarrier(config));
}

}  // namespace daqloom::protocol
