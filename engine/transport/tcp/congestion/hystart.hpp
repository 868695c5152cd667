// HyStart ends slow start before a loss, as in Linux (net/ipv4/tcp_cubic.c). It counts the path as
// full when a window's acknowledgements take half an RTT to arrive, or when each of the first
// acknowledgements of a round trip was late.
#pragma once

#include <algorithm>
#include <cstdint>

#include "transport/tcp/congestion/control.hpp"

namespace daqloom::transport {

class HyStart {
  public:
    base::Time min_rtt = base::Time::never();

    /// Measures the path anew after a timeout.
    void reset() {
        min_rtt = base::Time::never();
        queue_found_ = false;
    }
    void sample(base::Time rtt) {
        if (rtt > base::Time::zero()) {
            min_rtt = std::min(min_rtt, rtt);
        }
    }

    /// Sets the threshold to the window at the first sign of a queue in slow start.
    void pkts_acked(const AckSample& ack, CongestionWindow& window,
                    const CongestionConfig& config) {
        if (queue_found_ || ack.rtt == base::Time::zero()) {
            return;
        }
        sample(ack.rtt);
        if (ack.una > round_end_) {
            round_start_ = ack.now;
            last_ack_ = ack.now;
            round_end_ = ack.nxt;
            round_min_rtt_ = base::Time::never();
            round_samples_ = 0;
        }
        if (window.cwnd < kLowWindow * config.mss) {
            return;
        }
        if (ack.now - last_ack_ <= kAckSpacing) {
            last_ack_ = ack.now;
            // Time for which segmentation offload may delay a burst paced at two windows per RTT.
            const double burst_rtts =
                static_cast<double>(kBurst) / (2.0 * static_cast<double>(window.cwnd));
            const base::Time held_back =
                std::min(base::Time::from_seconds(burst_rtts * ack.rtt.seconds()), kBurstMax);
            queue_found_ = ack.now - round_start_ > (min_rtt + held_back) / 2;
        }
        round_min_rtt_ = std::min(round_min_rtt_, ack.rtt);
        const base::Time tolerance = std::clamp(min_rtt / 8, kDelayMin, kDelayMax);
        if (round_samples_++ >= kSamples && round_min_rtt_ > min_rtt + tolerance) {
            queue_found_ = true;
        }
        if (queue_found_) {
            window.ssthresh = window.cwnd;
        }
    }

  private:
    static constexpr base::Bytes kLowWindow = 16;  ///< segments
    static constexpr std::uint32_t kSamples = 8;
    static constexpr base::Time kAckSpacing = base::milliseconds(2);
    static constexpr base::Time kDelayMin = base::milliseconds(4);
    static constexpr base::Time kDelayMax = base::milliseconds(16);
    static constexpr base::Bytes kBurst = 4 * 65536;
    static constexpr base::Time kBurstMax = base::milliseconds(1);

    std::uint64_t round_end_ = 0;
    base::Time round_start_;
    base::Time last_ack_;
    base::Time round_min_rtt_ = base::Time::never();
    std::uint32_t round_samples_ = 0;
    bool queue_found_ = false;  ///< once is enough
};

}  // namespace daqloom::transport
