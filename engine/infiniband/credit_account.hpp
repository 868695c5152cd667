// Flow control of one virtual lane at one input: blocks taken, freed, and announced to the sender.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "infiniband/fabric_config.hpp"

namespace daqloom::infiniband {

/// All counts are in blocks since the start of the run: credited ≤ announced ≤ freed ≤ taken.
struct CreditAccount {
    std::int64_t taken = 0;  ///< blocks of packets whose transmission to here has begun
    std::int64_t freed = 0;  ///< blocks of packets that have left as a whole
    std::int64_t announced = 0;
    base::Time next_update;                  ///< earliest time of the next update
    base::Time timer = base::Time::never();  ///< time of an event that checks for freed blocks
};

/// A packet that leaves a buffer block by block.
struct Drain {
    base::Time begin;          ///< block k is free at begin + clock(end of block k)
    base::WireClock clock;     ///< clock of the wire that it leaves by
    std::uint32_t packet = 0;  ///< number chosen by the caller
    std::int32_t bytes = 0;
    VirtualLane lane;

    [[nodiscard]] std::int64_t blocks() const { return (bytes + kBlockBytes - 1) / kBlockBytes; }
    [[nodiscard]] base::Time end_of(std::int64_t block) const {
        return begin + clock(std::min<base::Bytes>(kBlockBytes * (block + 1), bytes));
    }
    /// Blocks freed at `now` or before.
    [[nodiscard]] std::int64_t freed(base::Time now) const {
        std::int64_t low = 0;  // blocks below are free
        std::int64_t high = blocks();
        while (low < high) {
            const std::int64_t middle = (low + high) / 2;
            if (end_of(middle) <= now) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }
};

/// Packets that are leaving the buffers of one input, over all virtual lanes; few at a time.
class Drains {
  public:
    void add(const Drain& drain) { drains_.push_back(drain); }

    /// Removes a packet if it is draining; a packet may also free its buffer as a whole.
    void remove(std::uint32_t packet) {
        const auto found = std::find_if(drains_.begin(), drains_.end(),
                                        [&](const Drain& drain) { return drain.packet == packet; });
        if (found != drains_.end()) {
            *found = drains_.back();
            drains_.pop_back();
        }
    }

    /// Blocks of a lane freed up to now by packets that are still leaving.
    [[nodiscard]] std::int64_t freed(VirtualLane lane, base::Time now) const {
        std::int64_t sum = 0;
        for (const Drain& drain : drains_) {
            sum += drain.lane == lane ? drain.freed(now) : 0;
        }
        return sum;
    }

    /// Time at which the next block of a lane becomes free; never if no packet is leaving.
    [[nodiscard]] base::Time next(VirtualLane lane, base::Time now) const {
        base::Time soonest = base::Time::never();
        for (const Drain& drain : drains_) {
            const std::int64_t freed = drain.lane == lane ? drain.freed(now) : drain.blocks();
            if (freed < drain.blocks()) {
                soonest = std::min(soonest, drain.end_of(freed));
            }
        }
        return soonest;
    }

  private:
    std::vector<Drain> drains_;
};

}  // namespace daqloom::infiniband
