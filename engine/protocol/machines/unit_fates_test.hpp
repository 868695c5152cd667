// For checks: the lost units of each kind when an epoch is closed, and what other units know.
#pragma once

#include <cstdint>
#include <vector>

#include "base/byte_source_test.hpp"
#include "base/index.hpp"

namespace daqloom::protocol {

/// Loss of a unit, and which lost units of the other kind it knows.
template <class Other>
struct Fate {
    std::uint32_t wave = 0;              ///< wave of losses, 1 or 2; 0: none
    bool dies = false;                   ///< otherwise it goes on, unaware of its loss
    bool is_lost = false;                ///< lost by now
    bool is_closed = false;              ///< has been informed that the epoch is closed
    bool is_hurried = false;             ///< has been informed again
    base::Table<Other, bool> sees_lost;  ///< known losses of the other kind

    [[nodiscard]] bool is_dead() const { return is_lost && dies; }
    void learns(const std::vector<Other>& lost) {
        is_hurried = is_closed;
        is_closed = true;
        for (const Other other : lost) {
            sees_lost[other] = true;
        }
    }
};

template <class Unit, class Other>
using Fates = base::Table<Unit, Fate<Other>>;

/// Chooses losses: one unit in four is lost in one of the two waves.
template <class Unit, class Other>
Fates<Unit, Other> choose_fates(std::uint32_t units, std::uint32_t others,
                                base::ByteSource& input) {
    Fates<Unit, Other> fates(units, {.sees_lost = base::Table<Other, bool>(others)});
    for (Fate<Other>& fate : fates) {
        const std::uint8_t choice = input.byte();
        fate.wave = choice % 4 == 3 ? 1U + (choice >> 2) % 2 : 0U;
        fate.dies = (choice >> 3) % 2 == 1;
    }
    return fates;
}

/// Loses the units of this wave, and returns them.
template <class Unit, class Other>
std::vector<Unit> lose(Fates<Unit, Other>& fates, std::uint32_t wave) {
    std::vector<Unit> lost;
    for (const Unit unit : fates.indices()) {
        if (fates[unit].wave == wave) {
            fates[unit].is_lost = true;
            lost.push_back(unit);
        }
    }
    return lost;
}

}  // namespace daqloom::protocol
