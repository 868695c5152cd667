#include "protocol/schedule/barrier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>

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

TreeBarrier::TreeBarrier(BarrierConfig config) : config_(config) {
    const std::uint32_t participants = config.participants;
    const Participant self = config.self;
    const Participant master = config.master;
    if (config.kind == BarrierKind::centralised) {
        if (self != master) {
            parent_ = master;
        } else {
            for (Participant other = 0; other < participants; ++other) {
                if (other != master) {
                    children_.push_back(other);
                }
            }
        }
    } else {
        parent_ = self == 0 ? none : self & (self - 1);
        const std::uint32_t subtree = self == 0 ? std::bit_ceil(participants) : self & (0U - self);
        for (std::uint32_t distance = subtree / 2; distance > 0; distance /= 2) {
            if (distance < participants - self) {
                children_.push_back(self + distance);
            }
        }
    }
    has_arrived_.assign(children_.size(), false);
}

std::uint32_t TreeBarrier::place_of(Participant from) const {
    if (children_.empty()) {
        return none;
    }
    if (config_.kind == BarrierKind::centralised) {
        const bool is_child = from < config_.participants && from != config_.master;
        return is_child ? from - (from > config_.master ? 1 : 0) : none;
    }
    const auto child = std::ranges::find(children_, from);
    return child == children_.end() ? none : static_cast<std::uint32_t>(child - children_.begin());
}

DisseminationBarrier::DisseminationBarrier(BarrierConfig config)
    : config_(config),
      rounds_(static_cast<std::uint32_t>(std::bit_width(config.participants - 1))) {}

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
