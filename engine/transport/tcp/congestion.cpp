#include "transport/tcp/congestion.hpp"

#include <cmath>

namespace daqloom::transport {

using base::Bytes;
using base::Time;

namespace {

constexpr double kCubicBeta = 0.7;  ///< RFC 9438, 4.6
constexpr double kCubicC = 0.4;     ///< RFC 9438, 5
constexpr Time kSecond = base::seconds(1);

// ---- HyStart as Linux has it (net/ipv4/tcp_cubic.c): thresholds of delay and ack train
constexpr Bytes kHystartLowWindow = 16;  ///< segments
constexpr std::uint32_t kHystartSamples = 8;
constexpr Time kHystartAckSpacing = base::milliseconds(2);
constexpr Time kHystartDelayMin = base::milliseconds(4);
constexpr Time kHystartDelayMax = base::milliseconds(16);
constexpr Bytes kHystartBurst = 4 * 65536;
constexpr Time kHystartBurstMax = base::milliseconds(1);

/// What a loss leaves of a window, in whole segments, in which Linux counts: a small window with a
/// part of one more would grow again that much sooner.
Bytes kept(double share, Bytes window, const TcpConfig& config) {
    const Bytes of_it = std::llround(share * static_cast<double>(window));
    return of_it / config.mss * config.mss;
}

}  // namespace

void Congestion::grow(const AckSample& ack, const TcpConfig& config) {
    Bytes acked = ack.delivered;
    if (in_slow_start()) {
        const Bytes room = std::min(acked, ssthresh_ - cwnd_);
        cwnd_ += room;
        acked -= room;
        if (acked == 0) {
            return;
        }
    }
    if (config.congestion == CongestionControl::cubic) {
        AckSample rest = ack;
        rest.delivered = acked;
        grow_cubic(rest, config);
    } else {
        grow_linearly(acked, config);
    }
}

void Congestion::grow_linearly(Bytes acked, const TcpConfig& config) {
    acked_towards_next_ += acked;
    if (acked_towards_next_ >= cwnd_) {
        acked_towards_next_ -= cwnd_;
        cwnd_ += config.mss;
    }
}

/// As Linux has it, in whole segments: a window of a few, of which RFC 9438 lets a part of one grow
/// with each acknowledgement, waits for all of it.
void Congestion::grow_cubic(const AckSample& ack, const TcpConfig& config) {
    const std::int64_t window = cwnd_ / config.mss;
    const std::int64_t acked = (ack.delivered + config.mss - 1) / config.mss;
    if (ack.rtt > Time::zero()) {
        min_rtt_ = std::min(min_rtt_, ack.rtt);
    }
    reno_acked_ += acked;
    // The clock of Linux has ticks: an aim lasts for one at least, and while the window stays for
    // 1/32 s.
    const std::int64_t tick = config.timer_tick.ps;
    const std::int64_t age = tick > 0 ? ack.now.ps / tick - aimed_at_.ps / tick : 0;
    if (tick == 0 || window != aimed_from_ || age > kSecond.ps / tick / 32) {
        if (tick == 0 || age > 0 || epoch_ == Time::never()) {
            aimed_from_ = window;
            aimed_at_ = ack.now;
            aim_cubic(window, acked, ack.now);
        }
        keep_up_with_reno(window);
    }
    if (cubic_acked_ >= acks_to_grow_) {
        cubic_acked_ = 0;
        cwnd_ += config.mss;
    }
    cubic_acked_ += acked;
    cwnd_ += cubic_acked_ / acks_to_grow_ * config.mss;
    cubic_acked_ %= acks_to_grow_;
}

/// Sets how many segments are to be acknowledged until the window grows by one.
void Congestion::aim_cubic(std::int64_t window, std::int64_t acked, Time now) {
    if (epoch_ == Time::never()) {
        epoch_ = now;
        reno_acked_ = acked;
        w_reno_ = window;
        origin_ = std::max(w_max_, window);
        k_s_ = std::cbrt(static_cast<double>(origin_ - window) / kCubicC);
    }
    const double rtt_s = min_rtt_ == Time::never() ? 0.0 : min_rtt_.seconds();
    const double since_origin_s = (now - epoch_).seconds() + rtt_s - k_s_;
    const double from_origin = kCubicC * since_origin_s * since_origin_s * since_origin_s;
    const std::int64_t target = origin_ + static_cast<std::int64_t>(from_origin);
    acks_to_grow_ = target > window ? window / (target - window) : 100 * window;
    if (w_max_ == 0) {
        acks_to_grow_ = std::min<std::int64_t>(acks_to_grow_, 20);
    }
}

/// What Reno would have (RFC 9438, 4.3): 8/15 of a segment a round trip.
void Congestion::keep_up_with_reno(std::int64_t window) {
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

void Congestion::remember_maximum(const TcpConfig& config) {
    const std::int64_t cwnd = cwnd_ / config.mss;
    // Fast convergence (RFC 9438, 4.7): a flow that did not reach its last maximum yields room,
    // of (1 + β) / 2 = 17/20.
    w_max_ = cwnd < w_max_ ? cwnd * 17 / 20 : cwnd;
    epoch_ = Time::never();
}

void Congestion::set_threshold(Bytes threshold, const TcpConfig& config) {
    ssthresh_ = std::max(threshold, 2 * config.mss);
    acked_towards_next_ = 0;
    cubic_acked_ = 0;
    cwnd_before_timeout_ = 0;  // this congestion is real: no later mistake takes it back
    ssthresh_before_timeout_ = 0;
}

void Congestion::on_loss(const TcpConfig& config) {
    switch (config.congestion) {
        case CongestionControl::static_window:
            return;
        case CongestionControl::cubic:
            remember_maximum(config);
            set_threshold(kept(kCubicBeta, cwnd_, config), config);
            return;
        case CongestionControl::newreno:
        case CongestionControl::dctcp:
            set_threshold(kept(0.5, cwnd_, config), config);
            return;
    }
}

void Congestion::on_mark(const TcpConfig& config) {
    const double kept = 1.0 - alpha_ / 2.0;
    set_threshold(static_cast<Bytes>(kept * static_cast<double>(cwnd_)), config);
}

void Congestion::on_timeout(bool again, Bytes in_flight, const TcpConfig& config) {
    if (!again) {
        const Bytes cwnd = cwnd_;
        const Bytes ssthresh = ssthresh_;
        on_loss(config);
        cwnd_before_timeout_ = cwnd;
        ssthresh_before_timeout_ = ssthresh;
    }
    cwnd_ = in_flight + config.mss;
    acked_towards_next_ = 0;
    cubic_acked_ = 0;
    // CUBIC begins anew (RFC 9438, 4.8): no maximum to return to, and a path to be measured.
    w_max_ = 0;
    epoch_ = Time::never();
    min_rtt_ = Time::never();
    queue_found_ = false;
}

void Congestion::undo_timeout() {
    cwnd_ = std::max(cwnd_, cwnd_before_timeout_);
    ssthresh_ = std::max(ssthresh_, ssthresh_before_timeout_);
}

void Congestion::on_idle(Time idle, Time rto, const TcpConfig& config) {
    if (config.congestion == CongestionControl::static_window) {
        return;
    }
    const Bytes restart = std::min(config.mss * config.initial_window, cwnd_);
    ssthresh_ = std::max(ssthresh_, cwnd_ / 4 * 3);
    for (Time left = idle - rto; left > Time::zero() && cwnd_ > restart; left = left - rto) {
        cwnd_ /= 2;
    }
    cwnd_ = std::max(cwnd_, restart);
    epoch_ = Time::never();
}

void Congestion::count_marks(const AckSample& ack, const TcpConfig& config) {
    window_acked_ += ack.delivered;
    window_marked_ += ack.echo ? ack.delivered : 0;
    if (ack.una < window_end_) {
        return;
    }
    if (window_acked_ > 0) {
        const double fraction =
            static_cast<double>(window_marked_) / static_cast<double>(window_acked_);
        alpha_ += config.dctcp_gain * (fraction - alpha_);
    }
    window_acked_ = 0;
    window_marked_ = 0;
    window_end_ = ack.nxt;
}

/// HyStart: the path is full when a window's acknowledgements take half an RTT to come in, or when
/// each of the first of a round trip was late.
void Congestion::look_for_queue(const AckSample& ack, const TcpConfig& config) {
    if (ack.rtt == Time::zero()) {
        return;
    }
    min_rtt_ = std::min(min_rtt_, ack.rtt);
    if (ack.una > round_end_) {
        round_start_ = ack.now;
        last_ack_ = ack.now;
        round_end_ = ack.nxt;
        round_min_rtt_ = Time::never();
        round_samples_ = 0;
    }
    if (cwnd_ < kHystartLowWindow * config.mss) {
        return;
    }
    if (ack.now - last_ack_ <= kHystartAckSpacing) {
        last_ack_ = ack.now;
        // The burst that segmentation offload may hold back, at twice a window per RTT.
        const double burst_rtts =
            static_cast<double>(kHystartBurst) / (2.0 * static_cast<double>(cwnd_));
        const Time held_back =
            std::min(Time::from_seconds(burst_rtts * ack.rtt.seconds()), kHystartBurstMax);
        queue_found_ = ack.now - round_start_ > (min_rtt_ + held_back) / 2;
    }
    round_min_rtt_ = std::min(round_min_rtt_, ack.rtt);
    const Time tolerance = std::clamp(min_rtt_ / 8, kHystartDelayMin, kHystartDelayMax);
    if (round_samples_++ >= kHystartSamples && round_min_rtt_ > min_rtt_ + tolerance) {
        queue_found_ = true;
    }
    if (queue_found_) {
        ssthresh_ = cwnd_;
    }
}

}  // namespace daqloom::transport
