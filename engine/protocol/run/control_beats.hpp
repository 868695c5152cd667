// Beats of the run control, which units pass on to each other, and the end of a unit's lease while
// it does not reach the run control.
//
// Each heartbeat a unit sends the newest beat that it knows to the member 1, 2, 4, … places
// further. A unit that alone is cut off thus learns of newer beats than its own, and its lease
// ends. If no unit learns of a newer beat, the run control has ended, and all go on until the grace
// is over.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

/// The beats that a unit knows in one epoch. All times are of the unit's own clock.
class ControlBeats {
  public:
    struct Config {
        base::Time heartbeat = base::milliseconds(200);
        base::Time fault_timeout = base::seconds(1);
        base::Time grace = base::Time::zero();  ///< 0: leases are not extended
    };

    /// `members`: in the same order at all units; `self` is one of them.
    ControlBeats(const Config& config, UnitIndex self, std::vector<UnitIndex> members,
                 base::Time now)
        : config_(config), members_(std::move(members)), contact_at_(now), risen_at_(now) {
        place_ = static_cast<std::size_t>(std::ranges::find(members_, self) - members_.begin());
    }

    /// The run control has renewed the lease.
    void renewed(base::Time now, std::uint64_t beat) {
        own_ = std::max(own_, beat);
        learn(now, beat);
    }
    /// Another unit has passed on a beat.
    void on_beat(base::Time now, std::uint64_t beat) {
        contact_at_ = now;
        learn(now, beat);
    }

    /// The unit to which the newest beat is to be sent now; none: not yet.
    UnitIndex due(base::Time now) {
        if (config_.grace == base::Time::zero() || members_.size() < 2 || now < next_at_) {
            return UnitIndex::none();
        }
        next_at_ = now + config_.heartbeat;
        const std::size_t to = (place_ + distance_) % members_.size();
        distance_ = 2 * distance_ < members_.size() ? 2 * distance_ : 1;
        return members_[to];
    }
    [[nodiscard]] std::uint64_t newest() const { return newest_; }

    /// End of a lease that the run control has granted until `until`.
    [[nodiscard]] base::Time end_of(base::Time now, base::Time until) const {
        const bool is_alone = is_behind(now) || is_isolated(now);
        return now < until || is_alone ? until : until + config_.grace;
    }

  private:
    void learn(base::Time now, std::uint64_t beat) {
        if (beat > newest_) {
            newest_ = beat;
            risen_at_ = now;
        }
    }
    /// Other units hear the run control. A difference that does not grow is one from the time
    /// before the run control ended.
    [[nodiscard]] bool is_behind(base::Time now) const {
        const std::int64_t beats = config_.fault_timeout.ps / config_.heartbeat.ps;
        const auto usual = static_cast<std::uint64_t>(std::max<std::int64_t>(0, (beats - 2) / 2));
        return newest_ > own_ + usual && now - risen_at_ < config_.fault_timeout;
    }
    /// No unit reaches this one.
    [[nodiscard]] bool is_isolated(base::Time now) const {
        return members_.size() > 1 && now - contact_at_ > config_.fault_timeout - config_.heartbeat;
    }

    Config config_;
    std::vector<UnitIndex> members_;
    std::size_t place_ = 0;
    std::size_t distance_ = 1;
    std::uint64_t own_ = 0;
    std::uint64_t newest_ = 0;
    base::Time next_at_ = base::Time::zero();
    base::Time contact_at_;
    base::Time risen_at_;
};

}  // namespace daqloom::protocol
