// For checks: which units of a kind are lost, when an epoch is closed, and what the others know.
#pragma once

#include <cstdint>
#include <vector>

#include "base/byte_source_test.hpp"

namespace daqloom::protocol {

/// What becomes of a unit, and what it knows of the units of the other kind.
struct Fate {
    std::uint32_t wave = 0;       ///< of losses, in which it is, 1 or 2; 0: none
    bool dies = false;            ///< else it goes on, and is not told
    bool is_lost = false;         ///< by now
    bool is_closed = false;       ///< has been told that the epoch is closed
    bool is_hurried = false;      ///< has been told again
    std::vector<bool> sees_lost;  ///< the units of the other kind

    [[nodiscard]] bool is_dead() const { return is_lost && dies; }
    void learns(const std::vector<std::uint32_t>& lost) {
        is_hurried = is_closed;
        is_closed = true;
        for (const std::uint32_t other : lost) {
            sees_lost[other] = true;
        }
    }
};

using Fates = std::vector<Fate>;

/// One in four is lost, sooner or later.
inline Fates choose_fates(std::uint32_t units, std::uint32_t others, base::ByteSource& input) {
    Fates fates(units, Fate{.sees_lost = std::vector<bool>(others)});
    for (Fate& fate : fates) {
        const std::uint8_t choice = input.byte();
        fate.wave = choice % 4 == 3 ? 1U + (choice >> 2) % 2 : 0U;
        fate.dies = (choice >> 3) % 2 == 1;
    }
    return fates;
}

/// Those of this wave, which are lost from now on.
inline std::vector<std::uint32_t> lose(Fates& fates, std::uint32_t wave) {
    std::vector<std::uint32_t> lost;
    for (std::uint32_t unit = 0; unit < fates.size(); ++unit) {
        if (fates[unit].wave == wave) {
            fates[unit].is_lost = true;
            lost.push_back(unit);
        }
    }
    return lost;
}

}  // namespace daqloom::protocol
