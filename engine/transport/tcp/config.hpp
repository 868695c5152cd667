// The TCP settings of both ends of every connection.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/distribution.hpp"
#include "base/expected.hpp"
#include "base/units.hpp"
#include "transport/tcp/congestion/controls.hpp"

namespace daqloom::transport {

struct TcpConfig : CongestionConfig {
    CongestionControl congestion = CongestionControl::cubic;
    base::Bytes receive_window = 6 << 20;  ///< beyond the next byte expected
    std::uint32_t ack_every = 2;           ///< full segments per acknowledgement (RFC 5681)
    base::Time delayed_ack = base::milliseconds(40);
    base::Time rto_min = base::milliseconds(200);  ///< added to the smoothed RTT at least, as Linux
    base::Time rto_initial = base::seconds(1);     ///< while no RTT is known: no handshake_rtt
    base::Time rto_max = base::seconds(120);
    base::Time handshake_rtt;  ///< what opening the connection measured; zero: nothing
    base::Time probe_margin = base::milliseconds(2);  ///< beyond two RTTs; Linux's TCP_TIMEOUT_MIN
    base::DelayDistribution packet_latency;  ///< from a packet's arrival to what its host does
    base::Bytes tso_burst = 0;               ///< room to wait for while ACKs are due; 0: no wait
    bool quick_acks = true;          ///< without delay where no answer is expected, as Linux
    bool rack = true;                ///< RFC 8985; without it three SACKed segments (RFC 6675)
    bool tail_loss_probe = true;     ///< RFC 8985
    bool restart_after_idle = true;  ///< window halves per idle RTO (RFC 2861)
    bool timestamps = true;          ///< 12 B of option in every segment

    /// Segments are marked ECN-capable, and an echo reduces the window.
    [[nodiscard]] bool ecn() const {
        return CongestionControls::visit(
            congestion,
            []<class Control>(std::type_identity<Control>) { return Control::needs_ecn; });
    }
    /// IPv4 and TCP headers of every segment, without SACK blocks.
    [[nodiscard]] base::Bytes header_bytes() const { return timestamps ? 52 : 40; }
    /// The expiry of a timer that is set at `now` for `delay`. Linux rounds the present down and
    /// the duration up to ticks, and adds one.
    [[nodiscard]] base::Time strikes(base::Time now, base::Time delay) const {
        if (timer_tick == base::Time::zero()) {
            return now + delay;
        }
        const std::int64_t tick = timer_tick.ps;
        return timer_tick * (now.ps / tick + (delay.ps + tick - 1) / tick + 1);
    }
    /// SACK blocks that fit beside the timestamps (RFC 2018).
    [[nodiscard]] std::uint32_t sack_blocks() const { return timestamps ? 3 : 4; }
};

/// An error of one sentence if it cannot be simulated.
[[nodiscard]] base::expected<void> validate(const TcpConfig& config);

}  // namespace daqloom::transport
