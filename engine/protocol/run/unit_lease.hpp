// The lease of a unit, kept by the unit. It counts from the sending of the last received report.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/units.hpp"

namespace daqloom::protocol {

/// All times are of the unit's own clock. The run control's part is in leases.hpp.
class UnitLease {
  public:
    /// Limit on reports whose sending times are kept; leases from older reports have expired.
    static constexpr std::size_t most_unconfirmed = 1000;

    struct Lease {
        std::uint64_t mep_end = 0;  ///< the first MEP that may not be answered
        base::Time until;           ///< end of the lease
        std::uint64_t beat = 0;     ///< last beat of the run control
    };

    /// Sets how long the unit may begin MEPs after the sending of a report that was received.
    void set_length(base::Time length) { length_ = length; }

    /// A report is about to be sent; returns its number.
    std::uint64_t sending(base::Time now) {
        if (sent_.size() == most_unconfirmed) {
            sent_.pop_front();
        }
        sent_.push_back({++number_, now});
        return number_;
    }

    /// Begins a new epoch, in which no MEP is leased yet.
    void begin(std::uint32_t epoch) {
        epoch_ = epoch;
        mep_end_ = 0;
    }

    [[nodiscard]] Lease leased() const { return {mep_end_, until_, beat_}; }

    /// Renews the lease after the run control has received report `report`. Returns the new lease.
    Lease renew(std::uint32_t epoch, std::uint64_t report, std::uint64_t mep_end,
                std::uint64_t beat = 0) {
        beat_ = std::max(beat_, beat);
        while (!sent_.empty() && sent_.front().number <= report) {
            if (sent_.front().number == report) {
                until_ = std::max(until_, sent_.front().at + length_);
            }
            sent_.pop_front();
        }
        if (epoch == epoch_) {
            mep_end_ = std::max(mep_end_, mep_end);
        }
        return leased();
    }

  private:
    struct Sent {
        std::uint64_t number;
        base::Time at;
    };

    base::Time length_ = base::Time::zero();
    std::deque<Sent> sent_;
    std::uint64_t number_ = 0;
    base::Time until_ = base::Time::zero();
    std::uint32_t epoch_ = 0;
    std::uint64_t mep_end_ = 0;
    std::uint64_t beat_ = 0;
};

}  // namespace daqloom::protocol
