#include "protocol/schedule/tree_barrier.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace daqloom::protocol {

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

}  // namespace daqloom::protocol
