// Ports to pause because of long rings, so that no frames of their senders are lost.
//
// A ring above its threshold pauses each port from which more frames for the ring arrive, until the
// ring has fallen to half of the threshold. A port is paused as long as any ring pauses it. A pause
// also delays the port's frames for other rings, which is the price of a lossless switch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "softswitch/output_queues.hpp"
#include "softswitch/packet.hpp"

namespace daqloom::softswitch {

class Pauses {
  public:
    Pauses(std::size_t rings, std::size_t ports)
        : thresholds_(rings), by_ring_(rings), rings_of_(ports) {}

    /// Sets the number of packets above which a ring pauses ports; 0: never.
    void set_threshold(RingIndex ring, std::uint32_t packets) {
        any_ = any_ || packets > 0;
        thresholds_[ring.value()] = packets;
    }
    [[nodiscard]] bool any() const { return any_; }

    /// Records a frame from a port for a ring. Calls out.pause(port, true) if the port must pause.
    template <class Out>
    void on_frame(RingIndex ring, PortIndex ingress, const OutputQueues& queues, Out& out) {
        const std::uint32_t threshold = thresholds_[ring.value()];
        if (threshold == 0 || queues.held_packets(ring) <= threshold) [[likely]] {
            return;
        }
        std::vector<PortIndex>& paused = by_ring_[ring.value()];
        if (std::ranges::find(paused, ingress) != paused.end()) {
            return;
        }
        if (paused.empty()) {
            long_rings_.push_back(ring);
        }
        paused.push_back(ingress);
        if (++rings_of_[ingress.value()] == 1) {
            out.pause(ingress, true);
        }
    }

    /// Calls out.pause(port, false) for ports that may send again.
    template <class Out>
    void update(const OutputQueues& queues, Out& out) {
        std::erase_if(long_rings_, [&](RingIndex ring) {
            if (queues.held_packets(ring) > thresholds_[ring.value()] / 2) {
                return false;
            }
            for (const PortIndex port : by_ring_[ring.value()]) {
                if (--rings_of_[port.value()] == 0) {
                    out.pause(port, false);
                }
            }
            by_ring_[ring.value()].clear();
            return true;
        });
    }

    [[nodiscard]] bool is_paused(PortIndex port) const { return rings_of_[port.value()] > 0; }

  private:
    bool any_ = false;
    std::vector<std::uint32_t> thresholds_;
    std::vector<std::vector<PortIndex>> by_ring_;  ///< ports that a ring pauses
    std::vector<RingIndex> long_rings_;            ///< rings that pause ports
    std::vector<std::uint32_t> rings_of_;          ///< number of rings that pause each port
};

}  // namespace daqloom::softswitch
