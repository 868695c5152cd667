#include "protocol/schedule/barrier.hpp"

#include <fmt/format.h>

namespace daqloom::protocol {

namespace {

constexpr std::uint32_t most_participants = 1'000'000;

base::expected<void> check(const BarrierConfig& config) {
    DAQLOOM_REFUSE_IF(config.participants < 1 || config.participants > most_participants,
                      "barrier: {} participants; give 1 to {}", config.participants,
                      most_participants);
    DAQLOOM_REFUSE_IF(config.self >= config.participants, "barrier: participant {}; give 0 to {}",
                      config.self, config.participants - 1);
    return {};
}

}  // namespace

base::expected<Barrier> Barrier::make(BarrierConfig config) {
    DAQLOOM_CHECK(check(config));
    if (config.kind == BarrierKind::dissemination) {
        return Barrier(DisseminationBarrier(config));
    }
    if (config.kind == BarrierKind::neighbour) {
        return Barrier(NeighbourBarrier(config));
    }
    return Barrier(TreeBarrier(config));
}

}  // namespace daqloom::protocol
