// The time that a waiting thread polls before it sleeps.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace daqloom::live {

/// Pauses between two polls, to leave the core to its other hardware thread.
inline void pause_a_little() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/// How long to poll before sleeping: not at all after several futile polls, because polling delays
/// the awaited threads if they need this processor. Polling is tried again from time to time.
class Polling {
  public:
    static constexpr base::Time kMost = base::microseconds(20);

    [[nodiscard]] base::Time length() const {
        return in_vain_ < kBearable ? kMost : base::Time::zero();
    }
    void on_found() { in_vain_ = 0; }
    void on_slept() { in_vain_ = in_vain_ + 1 < kTryAgain ? in_vain_ + 1 : kBearable - 1; }

  private:
    static constexpr std::uint32_t kBearable = 3;  ///< futile polls in a row
    static constexpr std::uint32_t kTryAgain = 64;

    std::uint32_t in_vain_ = 0;
};

}  // namespace daqloom::live
