// A record of a unit's last stages with their times, for timelines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "live/node/node_config.hpp"
#include "protocol/units/shift_unit.hpp"

namespace daqloom::live {

/// A stage that begins at `at` and lasts until the next record.
struct StageRecord {
    base::Time at;           ///< see `now`
    std::uint64_t step = 0;  ///< step of the epoch
    std::uint32_t epoch = 0;
    /// The unit whose builder unit is the partner of this step; none: a dummy.
    UnitIndex to = UnitIndex::none();
    protocol::ShiftStage stage = protocol::ShiftStage::entering;
};

/// The last `most` records, in memory allocated beforehand. One thread adds, another takes.
class StageTrace {
  public:
    explicit StageTrace(std::size_t most) : records_(most) {}

    [[nodiscard]] bool is_on() const { return !records_.empty(); }

    void add(const StageRecord& record) {
        const std::lock_guard lock(mutex_);
        records_[added_++ % records_.size()] = record;
    }

    /// Records added since the last call, oldest first.
    std::vector<StageRecord> take() {
        std::vector<StageRecord> fresh(records_.size());
        std::unique_lock lock(mutex_);
        std::swap(fresh, records_);
        const std::uint64_t added = std::exchange(added_, 0);
        lock.unlock();
        if (added <= fresh.size()) {
            fresh.resize(added);
            return fresh;
        }
        const auto oldest = static_cast<std::ptrdiff_t>(added % fresh.size());
        std::rotate(fresh.begin(), fresh.begin() + oldest, fresh.end());
        return fresh;
    }

  private:
    std::mutex mutex_;
    std::vector<StageRecord> records_;
    std::uint64_t added_ = 0;  ///< since the last `take`
};

}  // namespace daqloom::live
