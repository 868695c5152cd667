// The interface of a congestion control: the functions of Linux's `tcp_congestion_ops`, with
// defaults. A control derives from CongestionControlOps and hides the functions in which it
// differs; `congestion.hpp` calls them without virtual dispatch. Windows are in bytes.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "base/fields.hpp"
#include "base/units.hpp"

namespace daqloom::transport {

/// The TCP settings on which congestion controls depend.
struct CongestionConfig {
    DAQLOOM_FIELDS(CongestionConfig, (base::Bytes, mss, "Payload of a full segment (B).", 1448),
                   (std::uint32_t, initial_window,
                    "Window of a new or restarted connection (segments, RFC 6928).", 10),
                   (base::Bytes, static_window,
                    "Constant window of congestion control `static` (B)."),
                   (base::Time, timer_tick, "Tick of the hosts' timers; 0: they are exact."),
                   (bool, hystart, "CUBIC leaves slow start before it loses, as in Linux.", true),
                   (double, dctcp_g, "Weight of a new sample in DCTCP's estimate (RFC 8257).",
                    1.0 / 16.0))
};

/// Data of one acknowledgement for congestion control.
struct AckSample {
    base::Time now;
    base::Time rtt;         ///< RTT sample of this acknowledgement; zero: none
    base::Bytes delivered;  ///< newly acknowledged, cumulatively or selectively
    std::uint64_t una;      ///< stream offsets, to distinguish round trips
    std::uint64_t nxt;
    bool may_grow;  ///< cumulative, and the window had held the sender back
    bool echo;      ///< ECE
};

struct CongestionWindow {
    base::Bytes cwnd;
    base::Bytes ssthresh = base::Bytes{1} << 60;  ///< at first above any window

    [[nodiscard]] bool in_slow_start() const { return cwnd < ssthresh; }
    /// Slow start (RFC 5681, 3.1). Returns the acknowledged bytes that remain when slow start ends.
    base::Bytes slow_start(base::Bytes acked) {
        const base::Bytes growth =
            in_slow_start() ? std::min(acked, ssthresh - cwnd) : base::Bytes{0};
        cwnd += growth;
        return acked - growth;
    }
};

/// A share of a window, rounded to whole segments as in Linux: a fraction of a segment would let a
/// small window grow too early.
inline base::Bytes whole_segments(double share, base::Bytes window, base::Bytes mss) {
    return std::llround(share * static_cast<double>(window)) / mss * mss;
}

struct CongestionControlOps {
    /// Whether the sender marks its segments ECN-capable and reports echoed marks.
    static constexpr bool needs_ecn = false;
    /// Whether the window is constant: no loss, reduction or pause changes it, only a timeout.
    static constexpr bool is_fixed = false;

    static base::Bytes init(const CongestionConfig& config) {
        return config.mss * config.initial_window;
    }
    /// Called for every acknowledgement, before the sender acts on it.
    void in_ack_event(const AckSample&, const CongestionConfig&) {}
    /// Called for every acknowledgement while the window is not being reduced.
    void pkts_acked(const AckSample&, CongestionWindow&, const CongestionConfig&) {}
    /// Sending begins after a pause of `idle`.
    void tx_start(base::Time /*now*/, base::Time /*idle*/) {}
    /// The window was reduced because the connection was idle for longer than an RTO.
    void cwnd_restart() {}
    /// The retransmission timer expired, after a call of `ssthresh` if new data were lost.
    void timeout() {}
};

/// A congestion control, with the functions that have no default:
///   cong_avoid(ack, window, config) the window grows
///   ssthresh(cwnd, config)          the threshold to which a loss reduces the window
///   ssthresh_of_mark(cwnd, config)  the threshold for a mark; only if needs_ecn
template <class Control>
concept CongestionControlLike =
    std::derived_from<Control, CongestionControlOps> && std::is_trivially_copyable_v<Control> &&
    requires(Control control, CongestionWindow& window, const AckSample& ack,
             const CongestionConfig& config) {
        control.cong_avoid(ack, window, config);
        { control.ssthresh(window.cwnd, config) } -> std::same_as<base::Bytes>;
    };

}  // namespace daqloom::transport
