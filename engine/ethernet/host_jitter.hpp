// Random delays of the frames of one host.
//
// Frames of hosts that send with equal periods would meet a full port in the same order for ever,
// and the buffer space freed by a departing frame would always go to the same host (S. Floyd and V.
// Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways", Internetworking: Research and
// Experience 3(3), 1992). Real hosts and switches do not keep a phase to the nanosecond.
//
// Two random delays keep the order of frames. An idle adapter begins its next frame late. Frames
// reach the switch late by at most their own time on the wire; this delay is a random walk with
// steps of at most half that time. Equal frames in a row have all phases with equal probability,
// and are at least half a period apart. No throughput is lost: a busy wire has no gaps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/random.hpp"
#include "base/units.hpp"

namespace daqloom::ethernet {

class HostJitter {
  public:
    /// `longest`: longest delay of an idle adapter, as a multiple of the frame's time on the wire.
    HostJitter(double longest, base::SmallStream random) : longest_(longest), random_(random) {}

    /// Begin of a frame sent at `now` that takes `wire`, on a wire that is free at `free_at`.
    base::Time start(base::Time now, base::Time free_at, base::Time wire) {
        drawn_ = random_();
        if (free_at > now) {
            return now;
        }
        const double share = longest_ * 0x1p-20 * static_cast<double>(drawn_ >> 44);
        return now + base::Time{static_cast<std::int64_t>(share * static_cast<double>(wire.ps))};
    }
    /// Arrival at the switch of the frame started last; `at`: arrival without the random delay.
    base::Time arrival(base::Time at, base::Time wire) {
        const auto step = static_cast<std::int64_t>(drawn_ % kOne) - kOne / 2;
        late_ = kOne - std::abs(kOne - std::abs(late_ + step));  // reflected at both ends
        arrived_ = std::max(arrived_, at + base::Time{(wire.ps * late_) >> 20});
        return arrived_;
    }

  private:
    static constexpr std::int64_t kOne = 1 << 20;

    double longest_;
    base::SmallStream random_;
    std::uint64_t drawn_ = 0;  ///< draws for the frame that starts
    /// Delay of the last frame, in units of 1/kOne of that frame's time on the wire.
    std::int64_t late_ = static_cast<std::int64_t>(random_() % kOne);
    base::Time arrived_;  ///< arrival of the last frame at the switch
};

}  // namespace daqloom::ethernet
