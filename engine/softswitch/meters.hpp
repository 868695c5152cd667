// Meters of OpenFlow: policers, which drop frames above a rate and have no queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/index.hpp"
#include "base/units.hpp"

namespace daqloom::softswitch {

using MeterIndex = base::Index<struct SwitchMeterTag>;

struct MeterConfig {
    enum class Unit : std::uint8_t { bits, packets };
    Unit unit = Unit::bits;
    std::uint64_t per_second = 0;  ///< bits of frames without check sequence, or packets
    std::uint64_t burst = 0;       ///< bucket depth in bits or packets; one more frame passes
};

struct MeterCounters {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    std::uint64_t dropped = 0;  ///< dropped packets
    std::uint64_t dropped_bytes = 0;
};

/// A token bucket, as the generic cell rate algorithm (ITU-T I.371): each frame delays the time at
/// which the bucket is full. A frame does not conform if this time is more than a burst ahead.
class TokenBucket {
  public:
    /// Whether a frame conforms. `cost`: time to gain its tokens; `burst`: to fill the bucket.
    bool takes(base::Time cost, base::Time burst, base::Time now) {
        const base::Time full_at = std::max(full_at_, now);
        const bool is_within = full_at - now <= burst;
        full_at_ = is_within ? full_at + cost : full_at;
        return is_within;
    }

  private:
    base::Time full_at_;
};

/// Nothing is allocated after construction.
class Meters {
  public:
    /// Lower bound of rates, so that times fit 64 bits.
    static constexpr std::uint64_t kLeastRate = 1;
    static constexpr base::Time kLongestBurst = base::seconds(100'000);

    explicit Meters(std::size_t most) : meters_(most) {}

    /// Configures a meter and resets its counters.
    void set(MeterIndex index, const MeterConfig& config) {
        Meter& meter = meters_[index.value()];
        meter = {};
        meter.unit = config.unit;
        meter.ps_per_unit = 1e12 / static_cast<double>(std::max(config.per_second, kLeastRate));
        meter.burst = {static_cast<std::int64_t>(
            std::min(static_cast<double>(config.burst) * meter.ps_per_unit,
                     static_cast<double>(kLongestBurst.ps)))};
    }

    /// Whether the meter admits a frame.
    bool passes(MeterIndex index, std::uint32_t bytes, base::Time now) {
        Meter& meter = meters_[index.value()];
        ++meter.counted.packets;
        meter.counted.bytes += bytes;
        const double units = meter.unit == MeterConfig::Unit::bits ? 8.0 * bytes : 1.0;
        const base::Time cost{static_cast<std::int64_t>(units * meter.ps_per_unit)};
        if (meter.bucket.takes(cost, meter.burst, now)) {
            return true;
        }
        ++meter.counted.dropped;
        meter.counted.dropped_bytes += bytes;
        return false;
    }

    [[nodiscard]] std::size_t size() const { return meters_.size(); }
    [[nodiscard]] const MeterCounters& counters(MeterIndex index) const {
        return meters_[index.value()].counted;
    }

  private:
    struct Meter {
        MeterCounters counted;
        TokenBucket bucket;
        base::Time burst;
        double ps_per_unit = 0;
        MeterConfig::Unit unit = MeterConfig::Unit::bits;
    };

    std::vector<Meter> meters_;
};

}  // namespace daqloom::softswitch
