// The congestion window of one connection: how it grows and how it shrinks.
//
// It does not depend on sequence numbers or timers; the sender reports acknowledgements, losses,
// marks and timeouts. Windows are in bytes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.hpp"
#include "transport/tcp/config.hpp"

namespace daqloom::transport {

/// The information of one acknowledgement for congestion control.
struct AckSample {
    base::Time now;
    base::Time rtt;         ///< of this acknowledgement; zero when it gave no sample
    base::Bytes delivered;  ///< newly acknowledged, cumulatively or selectively
    std::uint64_t una;      ///< stream offsets, to tell one round trip from the next
    std::uint64_t nxt;
    bool may_grow;  ///< it acknowledged the next byte, and the window had held the sender back
    bool echo;      ///< ECE
};

class Congestion {
  public:
    explicit Congestion(const TcpConfig& config)
        : cwnd_(config.congestion == CongestionControl::static_window
                    ? config.static_window
                    : config.mss * config.initial_window) {}

    [[nodiscard]] base::Bytes window() const { return cwnd_; }
    [[nodiscard]] base::Bytes threshold() const { return ssthresh_; }
    [[nodiscard]] bool in_slow_start() const { return cwnd_ < ssthresh_; }
    /// DCTCP's estimate of the fraction of bytes marked.
    [[nodiscard]] double marked_fraction() const { return alpha_; }
    /// Slow start touches what lies before this.
    [[nodiscard]] const void* rarely_touched() const { return &cwnd_before_timeout_; }

    /// Every acknowledgement, before anything that follows from it.
    void on_delivery(const AckSample& ack, const TcpConfig& config) {
        if (config.congestion == CongestionControl::dctcp) {
            count_marks(ack, config);
        }
    }

    /// The acknowledgements while the window is not being reduced.
    void on_ack(const AckSample& ack, const TcpConfig& config) {
        if (config.congestion == CongestionControl::static_window) {
            cwnd_ = config.static_window;
            return;
        }
        if (config.congestion == CongestionControl::cubic && config.hystart && in_slow_start() &&
            !queue_found_) {
            look_for_queue(ack, config);
        }
        if (ack.may_grow) {
            grow(ack, config);
        }
    }

    /// A loss was found: sets the threshold to which the window is to be reduced.
    void on_loss(const TcpConfig& config);
    /// A mark was echoed (DCTCP only): the same.
    void on_mark(const TcpConfig& config);
    /// The retransmission timer expired with `in_flight` not counted lost; `again` when the same
    /// data had cost a reduction before. One segment goes first, of a static window too.
    void on_timeout(bool again, base::Bytes in_flight, const TcpConfig& config);
    /// The timeout was spurious: its reduction is undone.
    void undo_timeout();
    /// The connection was idle for `idle`, longer than `rto` (RFC 2861: decay, as Linux).
    void on_idle(base::Time idle, base::Time rto, const TcpConfig& config);

    /// Sending begins after a pause: CUBIC's window does not grow for the idle time of the
    /// application.
    void on_start(base::Time now, base::Time idle) {
        if (epoch_ != base::Time::never()) {
            epoch_ = std::min(now, epoch_ + idle);
        }
    }

    /// A reduction sets the window itself, acknowledgement by acknowledgement (RFC 9937).
    void set_window(base::Bytes window, const TcpConfig& config) {
        if (config.congestion != CongestionControl::static_window) {
            cwnd_ = std::max(window, config.mss);
        }
    }
    void end_reduction(const TcpConfig& config) { set_window(ssthresh_, config); }

  private:
    void set_threshold(base::Bytes threshold, const TcpConfig& config);
    void grow(const AckSample& ack, const TcpConfig& config);
    void grow_linearly(base::Bytes acked, const TcpConfig& config);
    void grow_cubic(const AckSample& ack, const TcpConfig& config);
    void aim_cubic(std::int64_t window, std::int64_t acked, base::Time now);
    void keep_up_with_reno(std::int64_t window);
    void count_marks(const AckSample& ack, const TcpConfig& config);
    void look_for_queue(const AckSample& ack, const TcpConfig& config);
    void remember_maximum(const TcpConfig& config);

    static constexpr base::Bytes kUnlimited = base::Bytes{1} << 60;

    // ---- what acknowledgements touch in slow start lies together: the window, and HyStart, one
    // round trip at a time
    base::Bytes cwnd_;
    base::Bytes ssthresh_ = kUnlimited;
    base::Time min_rtt_ = base::Time::never();
    std::uint64_t round_end_ = 0;
    base::Time round_start_;
    base::Time last_ack_;
    base::Time round_min_rtt_ = base::Time::never();
    std::uint32_t round_samples_ = 0;
    bool queue_found_ = false;  ///< once is enough

    base::Bytes acked_towards_next_ = 0;  ///< congestion avoidance: bytes acknowledged since growth
    base::Time epoch_ = base::Time::never();  ///< CUBIC: when the window was reduced last
    base::Bytes cwnd_before_timeout_ = 0;
    base::Bytes ssthresh_before_timeout_ = 0;

    // ---- CUBIC (RFC 9438), in segments and seconds
    std::int64_t w_max_ = 0;  ///< before the last loss; 0: none yet
    std::int64_t origin_ = 0;
    std::int64_t w_reno_ = 0;        ///< what Reno's window would be
    std::int64_t reno_acked_ = 0;    ///< since that grew
    std::int64_t cubic_acked_ = 0;   ///< since the window grew
    std::int64_t acks_to_grow_ = 2;  ///< of segments, by one
    std::int64_t aimed_from_ = 0;    ///< the window when that was last computed, and
    base::Time aimed_at_;            ///< when that was
    double k_s_ = 0;

    // ---- DCTCP (RFC 8257)
    double alpha_ = 1.0;
    base::Bytes window_acked_ = 0;
    base::Bytes window_marked_ = 0;
    std::uint64_t window_end_ = 0;
};

}  // namespace daqloom::transport
