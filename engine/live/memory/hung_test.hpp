// For tests: time limit for waits that should end immediately.
#pragma once

#include "base/units.hpp"

namespace daqloom::live {

inline constexpr base::Time kHung = base::seconds(60);  ///< ends a test that would hang

}  // namespace daqloom::live
