// CUBIC (RFC 9438) in Linux's form (net/ipv4/tcp_cubic.c): the window grows by whole segments, but
// in the RFC by a fraction of a segment with each acknowledgement.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "transport/tcp/congestion/control.hpp"
#include "transport/tcp/congestion/hystart.hpp"

namespace daqloom::transport {

class Cubic : public CongestionControlOps {
  public:
    void pkts_acked(const AckSample& ack, CongestionWindow& window,
                    const CongestionConfig& config) {
        if (config.hystart && window.in_slow_start()) {
            hystart_.pkts_acked(ack, window, config);
        }
    }

    void cong_avoid(const AckSample& ack, CongestionWindow& window,
                    const CongestionConfig& config) {
        if (const base::Bytes rest = window.slow_start(ack.delivered); rest > 0) {
            grow(ack, (rest + config.mss - 1) / config.mss, window, config);
        }
    }

    base::Bytes ssthresh(base::Bytes cwnd, const CongestionConfig& config) {
        const std::int64_t window = cwnd / config.mss;
        // Fast convergence (RFC 9438, 4.7): a flow that did not reach its last maximum sets the
        // next one to (1 + β) / 2 = 17/20 of its window, and so leaves bandwidth to other flows.
        w_max_ = window < w_max_ ? window * 17 / 20 : window;
        epoch_ = base::Time::never();
        acked_ = 0;
        return whole_segments(kBeta, cwnd, config.mss);
    }

    /// Moves the epoch by the application's idle time, for which the window must not grow.
    void tx_start(base::Time now, base::Time idle) {
        if (epoch_ != base::Time::never()) {
            epoch_ = std::min(now, epoch_ + idle);
        }
    }
    void cwnd_restart() { epoch_ = base::Time::never(); }
    /// Restarts CUBIC (RFC 9438, 4.8) without a last maximum; HyStart measures the path again.
    void timeout() {
        acked_ = 0;
        w_max_ = 0;
        epoch_ = base::Time::never();
        hystart_.reset();
    }

  private:
    static constexpr double kBeta = 0.7;  ///< RFC 9438, 4.6
    static constexpr double kC = 0.4;     ///< RFC 9438, 5
    static constexpr base::Time kSecond = base::seconds(1);

    void grow(const AckSample& ack, std::int64_t acked, CongestionWindow& cwnd,
              const CongestionConfig& config) {
        const std::int64_t window = cwnd.cwnd / config.mss;
        hystart_.sample(ack.rtt);
        reno_acked_ += acked;
        // The growth set by `aim` is renewed at most once per tick of Linux's clock or, while the
        // window is unchanged, after 1/32 s.
        const std::int64_t tick = config.timer_tick.ps;
        const std::int64_t age = tick > 0 ? ack.now.ps / tick - aimed_at_.ps / tick : 0;
        if (tick == 0 || window != aimed_from_ || age > kSecond.ps / tick / 32) {
            if (tick == 0 || age > 0 || epoch_ == base::Time::never()) {
                aimed_from_ = window;
                aimed_at_ = ack.now;
                aim(window, acked, ack.now);
            }
            keep_up_with_reno(window);
        }
        if (acked_ >= acks_to_grow_) {
            acked_ = 0;
            cwnd.cwnd += config.mss;
        }
        acked_ += acked;
        cwnd.cwnd += acked_ / acks_to_grow_ * config.mss;
        acked_ %= acks_to_grow_;
    }

    /// Sets the number of segments to be acknowledged until the window grows by one segment.
    void aim(std::int64_t window, std::int64_t acked, base::Time now) {
        if (epoch_ == base::Time::never()) {
            epoch_ = now;
            reno_acked_ = acked;
            w_reno_ = window;
            origin_ = std::max(w_max_, window);
            k_s_ = std::cbrt(static_cast<double>(origin_ - window) / kC);
        }
        const base::Time min_rtt = hystart_.min_rtt;
        const double rtt_s = min_rtt == base::Time::never() ? 0.0 : min_rtt.seconds();
        const double since_origin_s = (now - epoch_).seconds() + rtt_s - k_s_;
        const double from_origin = kC * since_origin_s * since_origin_s * since_origin_s;
        const std::int64_t target = origin_ + static_cast<std::int64_t>(from_origin);
        acks_to_grow_ = target > window ? window / (target - window) : 100 * window;
        if (w_max_ == 0) {
            acks_to_grow_ = std::min<std::int64_t>(acks_to_grow_, 20);
        }
    }

    /// Follows the window that Reno would have (RFC 9438, 4.3): 8/15 segment more per round trip.
    void keep_up_with_reno(std::int64_t window) {
        const std::int64_t acks_of_reno = std::max<std::int64_t>(1, window * 15 / 8);
        if (reno_acked_ > acks_of_reno) {
            const std::int64_t more = (reno_acked_ - 1) / acks_of_reno;
            reno_acked_ -= more * acks_of_reno;
            w_reno_ += more;
        }
        if (w_reno_ > window) {
            acks_to_grow_ = std::min(acks_to_grow_, window / (w_reno_ - window));
        }
        acks_to_grow_ = std::max<std::int64_t>(acks_to_grow_, 2);
    }

    HyStart hystart_;  ///< the only part that acknowledgements touch in slow start

    // ---- in segments and seconds
    base::Time epoch_ = base::Time::never();  ///< time of the last reduction
    std::int64_t w_max_ = 0;                  ///< maximum before the last loss; 0: none
    std::int64_t origin_ = 0;
    std::int64_t w_reno_ = 0;        ///< Reno's window
    std::int64_t reno_acked_ = 0;    ///< acknowledged since `w_reno_` grew
    std::int64_t acked_ = 0;         ///< acknowledged since the window grew
    std::int64_t acks_to_grow_ = 2;  ///< segments to acknowledge per segment of growth
    std::int64_t aimed_from_ = 0;    ///< window at the last call of `aim`
    base::Time aimed_at_;            ///< time of the last call of `aim`
    double k_s_ = 0;
};

}  // namespace daqloom::transport
