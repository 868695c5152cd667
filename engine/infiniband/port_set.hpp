// Sets of the ports of one node, as bits. Every set of a fabric has the width of the node with the
// most ports.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace daqloom::infiniband {

/// First member of an empty set.
inline constexpr std::uint32_t kNoPlace = ~std::uint32_t{0};

/// Sets of places 0 … width − 1, by index.
template <class Index>
class PortSets {
  public:
    PortSets() = default;
    PortSets(std::size_t sets, std::uint32_t width)
        : words_((width + 63) / 64), bits_(sets * words_, 0) {}

    void add(Index set, std::uint32_t place) { word(set, place) |= bit(place); }
    void remove(Index set, std::uint32_t place) { word(set, place) &= ~bit(place); }
    void clear(Index set) {
        for (std::size_t w = 0; w < words_; ++w) {
            bits_[set.value() * words_ + w] = 0;
        }
    }
    [[nodiscard]] bool has(Index set, std::uint32_t place) const {
        return (bits_[set.value() * words_ + place / 64] & bit(place)) != 0;
    }
    [[nodiscard]] bool empty(Index set) const {
        std::uint64_t any = 0;
        for (std::size_t w = 0; w < words_; ++w) {
            any |= bits_[set.value() * words_ + w];
        }
        return any == 0;
    }

    /// The first member at or after `from`; kNoPlace if there is no such member.
    [[nodiscard]] std::uint32_t next(Index set, std::uint32_t from) const {
        std::size_t w = from / 64;
        if (w >= words_) {
            return kNoPlace;
        }
        std::uint64_t ahead = bits_[set.value() * words_ + w] & (~std::uint64_t{0} << (from % 64));
        while (ahead == 0) {
            if (++w == words_) {
                return kNoPlace;
            }
            ahead = bits_[set.value() * words_ + w];
        }
        return static_cast<std::uint32_t>(64 * w) +
               static_cast<std::uint32_t>(std::countr_zero(ahead));
    }

    /// The first member at or after `from`; if there is no such member, the first of the set.
    [[nodiscard]] std::uint32_t next_in_turn(Index set, std::uint32_t from) const {
        const std::uint32_t ahead = next(set, from);
        return ahead != kNoPlace ? ahead : next(set, 0);
    }

    /// Calls `visit(place)` for every member. `visit` may change other sets, but not this one.
    template <class Visit>
    void each(Index set, Visit visit) const {
        for (std::size_t w = 0; w < words_; ++w) {
            for (std::uint64_t left = bits_[set.value() * words_ + w]; left != 0;
                 left &= left - 1) {
                visit(static_cast<std::uint32_t>(64 * w) +
                      static_cast<std::uint32_t>(std::countr_zero(left)));
            }
        }
    }

  private:
    [[nodiscard]] std::uint64_t& word(Index set, std::uint32_t place) {
        return bits_[set.value() * words_ + place / 64];
    }
    static std::uint64_t bit(std::uint32_t place) { return std::uint64_t{1} << (place % 64); }

    std::size_t words_ = 0;
    std::vector<std::uint64_t> bits_;
};

}  // namespace daqloom::infiniband
