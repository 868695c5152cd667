// Detects duplicate MEPs at a unit's consumer.
#pragma once

#include <cstdint>
#include <vector>

namespace daqloom::live {

/// Remembers the last 65 536 MEP numbers, because concurrent MEPs finish in any order.
class DuplicateFilter {
  public:
    /// Adds a MEP number. False: the MEP is a duplicate, or too old to decide.
    bool add(std::uint64_t mep) {
        if (mep >= end_) {
            for (std::uint64_t number = mep - end_ < kWindow ? end_ : mep - kWindow + 1;
                 number < mep; ++number) {
                received_[number % kWindow] = false;
            }
            end_ = mep + 1;
        } else if (end_ - mep > kWindow || received_[mep % kWindow]) {
            return false;
        }
        received_[mep % kWindow] = true;
        return true;
    }

  private:
    static constexpr std::uint64_t kWindow = 1U << 16;
    std::vector<bool> received_ = std::vector<bool>(kWindow);
    std::uint64_t end_ = 0;  ///< one more than the largest number
};

}  // namespace daqloom::live
