// For benchmarks: the design of 2015, which checks every ring in turn for due packets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace daqloom::softswitch {

/// A minimal model: rings of equal size and pace, no counters. `Clock` counts in any unit.
template <class Handle, class Clock>
class ScannedRings {
  public:
    ScannedRings(std::size_t rings, std::uint32_t depth, Clock gap)
        : rings_(rings, Ring{std::vector<Handle>(depth), 0, 0, Clock{}}),
          depth_(depth),
          gap_(gap) {}

    /// Whether there was room.
    bool put(std::size_t number, Handle handle) {
        Ring& ring = rings_[number];
        if (ring.held == depth_) {
            return false;
        }
        const std::uint32_t place = ring.head + ring.held++;
        ring.handles[place < depth_ ? place : place - depth_] = handle;
        return true;
    }
    /// Takes one handle from each due ring, as far as `due` has space; returns their number.
    std::size_t take_due(Clock now, std::span<Handle> due) {
        std::size_t count = 0;
        for (Ring& ring : rings_) {
            if (ring.held > 0 && ring.next_at <= now && count < due.size()) {
                due[count++] = take(ring);
                ring.next_at = std::max(ring.next_at, now - gap_) + gap_;
            }
        }
        return count;
    }
    template <class Release>
    void drain(Release release) {
        for (Ring& ring : rings_) {
            while (ring.held > 0) {
                release(take(ring));
            }
        }
    }

  private:
    struct Ring {
        std::vector<Handle> handles;
        std::uint32_t head = 0;
        std::uint32_t held = 0;
        Clock next_at;
    };
    Handle take(Ring& ring) {
        const Handle handle = ring.handles[ring.head];
        ring.head = ring.head + 1 == depth_ ? 0 : ring.head + 1;
        --ring.held;
        return handle;
    }

    std::vector<Ring> rings_;
    std::uint32_t depth_;
    Clock gap_;
};

}  // namespace daqloom::softswitch
