#include "transport/tcp/congestion.hpp"

#include <cmath>

namespace daqloom::transport {

using base::Bytes;
using base::Time;

namespace {

constexpr double kCubicBeta = 0.7;  ///< RFC 9438, 4.6
constexpr double kCubicC = 0.4;     ///< RFC 9438, 5
constexpr double kCubicRenoGain = 3.0 * (1.0 - kCubicBeta) / (1.0 + kCubicBeta);

// ---- HyStart as Linux has it (net/ipv4/tcp_cubic.c): thresholds of delay and ack train
constexpr Bytes kHystartLowWindow = 16;  ///< segments
constexpr std::uint32_t kHystartSamples = 8;
constexpr Time kHystartAckSpacing = base::milliseconds(2);
constexpr Time kHystartDelayMin = base::milliseconds(4);
constexpr Time kHystartDelayMax = base::milliseconds(16);
constexpr Bytes kHystartBurst = 4 * 65536;
constexpr Time kHystartBurstMax = base::milliseconds(1);

double segments(Bytes bytes, const TcpConfig& config) {
    return static_cast<double>(bytes) / static_cast<double>(config.mss);
}

Bytes bytes(double segment_count, const TcpConfig& config) {
    return static_cast<Bytes>(segment_count * static_cast<double>(config.mss));
}

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

void Congestion::grow_cubic(const AckSample& ack, const TcpConfig& config) {
    const double cwnd = segments(cwnd_, config);
    if (epoch_ == Time::never()) {
        epoch_ = ack.now;
        w_reno_ = cwnd;
        origin_ = std::max(w_max_, cwnd);
        k_s_ = std::cbrt((origin_ - cwnd) / kCubicC);
    }
    if (ack.rtt > Time::zero()) {
        min_rtt_ = std::min(min_rtt_, ack.rtt);
    }
    const double rtt_s = min_rtt_ == Time::never() ? 0.0 : min_rtt_.seconds();
    const double t = (ack.now - epoch_).seconds() + rtt_s;
    const double since_origin = t - k_s_;
    const double cubic = kCubicC * since_origin * since_origin * since_origin + origin_;
    const double acked = segments(ack.delivered, config);
    w_reno_ += kCubicRenoGain * acked / cwnd;

    // As Linux: never more than half a segment per segment, and before the first loss at least a
    // twentieth of one.
    const double floor = w_max_ == 0 ? 0.05 : 0.0;
    const double target = std::max(cubic, w_reno_);
    growth_ += std::clamp((target - cwnd) / cwnd, floor, 0.5) * acked;
    const double whole = std::floor(growth_);
    growth_ -= whole;
    cwnd_ += bytes(whole, config);
}

void Congestion::remember_maximum(const TcpConfig& config) {
    const double cwnd = segments(cwnd_, config);
    // Fast convergence (RFC 9438, 4.7): a flow that did not reach its last maximum yields room.
    w_max_ = cwnd < w_max_ ? cwnd * (1.0 + kCubicBeta) / 2.0 : cwnd;
    epoch_ = Time::never();
}

void Congestion::set_threshold(Bytes threshold, const TcpConfig& config) {
    ssthresh_ = std::max(threshold, 2 * config.mss);
    acked_towards_next_ = 0;
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
