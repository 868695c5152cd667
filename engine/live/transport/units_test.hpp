// For tests: units, by their numbers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "live/transport/transport.hpp"

namespace daqloom::live {

struct Units : std::vector<UnitIndex> {
    using std::vector<UnitIndex>::vector;
    Units(std::initializer_list<std::uint32_t> numbers) : vector(numbers.begin(), numbers.end()) {}
};

}  // namespace daqloom::live
