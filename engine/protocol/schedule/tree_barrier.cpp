#include "protocol/schedule/tree_barrier.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

namespace daqloom::protocol {

TreeBarrier::TreeBarrier(BarrierConfig config) : config_(config) {
    const std::uint32_t participants = config.participants;
    const Participant self = config.self;
    if (config.kind == BarrierKind::centralised) {
        parent_ = self == 0 ? none : 0;
        children_.resize(self == 0 ? participants - 1 : 0);
        std::iota(children_.begin(), children_.end(), Participant{1});
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
    if (config_.kind == BarrierKind::centralised) {
        return from > 0 && from <= children_.size() ? from - 1 : none;
    }
    const auto child = std::ranges::find(children_, from);
    return child == children_.end() ? none : static_cast<std::uint32_t>(child - children_.begin());
}

}  // namespace daqloom::protocol
