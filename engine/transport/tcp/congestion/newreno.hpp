// NewReno (RFC 5681, 6582): a loss halves the window; each window acknowledged adds one segment.
#pragma once

#include "transport/tcp/congestion/control.hpp"

namespace daqloom::transport {

class NewReno : public CongestionControlOps {
  public:
    void cong_avoid(const AckSample& ack, CongestionWindow& window,
                    const CongestionConfig& config) {
        const base::Bytes acked = window.slow_start(ack.delivered);
        if (acked == 0) {
            return;
        }
        acked_towards_next_ += acked;
        if (acked_towards_next_ >= window.cwnd) {
            acked_towards_next_ -= window.cwnd;
            window.cwnd += config.mss;
        }
    }
    base::Bytes ssthresh(base::Bytes cwnd, const CongestionConfig& config) {
        acked_towards_next_ = 0;
        return whole_segments(0.5, cwnd, config.mss);
    }
    void timeout() { acked_towards_next_ = 0; }

  protected:
    base::Bytes acked_towards_next_ = 0;  ///< congestion avoidance: bytes acknowledged since growth
};

}  // namespace daqloom::transport
