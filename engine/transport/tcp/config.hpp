// TCP settings common to both ends of all connections.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/distribution.hpp"
#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/units.hpp"
#include "transport/tcp/congestion/controls.hpp"

namespace daqloom::transport {

struct TcpConfig : CongestionConfig {
    DAQLOOM_FIELDS(
        TcpConfig, (CongestionControl, congestion, "Congestion control.", CongestionControl::cubic),
        (base::Bytes, receive_window, "Window beyond the next byte expected (B).", 6 << 20),
        (std::uint32_t, ack_every, "Full segments per acknowledgement (RFC 5681).", 2),
        (base::Time, delayed_ack, "Longest delay of an acknowledgement.", base::milliseconds(40)),
        (base::Time, rto_min, "Least timeout beyond the smoothed RTT, as in Linux.",
         base::milliseconds(200)),
        (base::Time, rto_max, "Longest timeout, after doubling.", base::seconds(120)),
        (base::DelayDistribution, packet_latency,
         "Time from a packet's arrival to the reaction of its host."),
        (base::Bytes, tso_burst, "Room to wait for while ACKs are due (B); 0: no wait."),
        (bool, quick_acks, "Acknowledge at once where no answer is expected, as in Linux.", true),
        (bool, rack, "Detect losses by time (RFC 8985), else by three SACKed segments.", true),
        (bool, tail_loss_probe, "Tail-loss probes (RFC 8985).", true),
        (bool, restart_after_idle, "Halve the window per idle RTO (RFC 2861).", true),
        (bool, timestamps, "12 B of option in every segment.", true))
    base::Time rto_initial = base::seconds(1);  ///< before an RTT is known, without handshake_rtt
    base::Time handshake_rtt;                   ///< RTT measured by the handshake; zero: none
    base::Time probe_margin = base::milliseconds(2);  ///< beyond two RTTs; Linux's TCP_TIMEOUT_MIN

    /// Whether segments are ECN-capable and an echoed congestion mark reduces the window.
    [[nodiscard]] bool ecn() const {
        return CongestionControls::kNeedsEcn[static_cast<std::size_t>(congestion)];
    }
    /// IPv4 and TCP headers of every segment, without SACK blocks.
    [[nodiscard]] base::Bytes header_bytes() const { return timestamps ? 52 : 40; }
    /// Expiry of a timer that is set at `now` for `delay`. As in Linux, `now` is rounded down and
    /// `delay` up to whole ticks, and one tick is added.
    [[nodiscard]] base::Time strikes(base::Time now, base::Time delay) const {
        if (timer_tick == base::Time::zero()) {
            return now + delay;
        }
        const std::int64_t tick = timer_tick.ps;
        return timer_tick * (now.ps / tick + (delay.ps + tick - 1) / tick + 1);
    }
    /// Greatest number of SACK blocks in a header, with or without timestamps (RFC 2018).
    [[nodiscard]] std::uint32_t sack_blocks() const { return timestamps ? 3 : 4; }
};

/// Fails with one sentence if the configuration cannot be simulated.
[[nodiscard]] base::expected<void> validate(const TcpConfig& config);

}  // namespace daqloom::transport
