// The receiving half of a TCP endpoint: which bytes have arrived, and when to acknowledge them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "ethernet/sack_blocks.hpp"
#include "transport/tcp/config.hpp"

namespace daqloom::transport {

using ethernet::SackBlocks;
using ethernet::StreamRange;

class TcpReceiver {
  public:
    enum class Reaction : std::uint8_t {
        none,                          ///< wait for more, the timer is running
        acknowledge,                   ///< acknowledge immediately
        acknowledge_before_and_delay,  ///< first what came before this segment (DCTCP, RFC
                                       ///< 8257 3.2)
    };

    /// Processes a segment with payload [seq, seq + length), with or without a congestion mark.
    Reaction on_segment(std::uint64_t seq, base::Bytes length, bool marked, base::Time now,
                        const TcpConfig& config) {
        const bool turned = marked != marked_ && config.ecn();
        const std::uint64_t end = seq + static_cast<std::uint64_t>(length);
        duplicate_ = false;
        if (seq == next_ && islands_.empty()) [[likely]] {
            previous_ = next_;
            next_ = end;
            return count_segment(length, turned, marked, now, config);
        }
        marked_ = marked;
        unacknowledged_ += static_cast<std::int32_t>(length);
        accept_out_of_order(seq, end, now, config);
        return Reaction::acknowledge;
    }

    /// Acknowledges the next segments singly if the peer was silent for longer than `rto`, the
    /// current retransmission timeout of this end. After such a pause the peer may have reduced its
    /// window, which acknowledgements open again. Called before `on_segment`.
    void watch_silence(base::Time now, base::Time rto) {
        if (silence(now) > rto) {
            quick_ = kQuickAcks;
        }
    }
    /// Time since data last came in order.
    [[nodiscard]] base::Time silence(base::Time now) const { return now - in_order_at_; }

    /// Records that this end sends data. Data sent soon after an arrival count as the answer to it:
    /// the next answer is also expected to carry an acknowledgement (Linux's ping-pong mode).
    void on_answer(base::Time now, const TcpConfig& config) {
        ping_pong_ = ping_pong_ || silence(now) < config.delayed_ack;
        on_acknowledged();
    }

    /// Records that the delay of an acknowledgement is over, and no answer has carried it.
    void on_delay_over() {
        ping_pong_ = false;
        on_acknowledged();
    }

    /// Records that an acknowledgement leaves, on its own or with data.
    void on_acknowledged() {
        if (quick_ > 0 && unacknowledged_ > 0) {
            quick_ -= 1;
        }
        unacknowledged_ = 0;
        duplicate_ = false;
        ack_due_ = base::Time::never();
    }

    [[nodiscard]] std::uint64_t next() const { return next_; }
    /// In-order offset before the latest segment, which DCTCP acknowledges with the previous mark.
    [[nodiscard]] std::uint64_t previous() const { return previous_; }
    /// Time at which a delayed acknowledgement must leave.
    [[nodiscard]] base::Time ack_due() const { return ack_due_; }
    /// ECE of the next acknowledgement.
    [[nodiscard]] bool marked() const { return marked_; }
    /// Whether the latest segment had already been received before (D-SACK).
    [[nodiscard]] bool duplicate() const { return duplicate_; }
    [[nodiscard]] bool has_gap() const { return !islands_.empty(); }
    /// SACK blocks to send; `duplicate`, if not empty: a range received again, put first.
    [[nodiscard]] SackBlocks sack_blocks(std::uint32_t limit, StreamRange duplicate = {}) const;

  private:
    Reaction count_segment(base::Bytes length, bool turned, bool marked, base::Time now,
                           const TcpConfig& config) {
        marked_ = marked;
        in_order_at_ = now;
        if (turned && unacknowledged_ > 0) {
            unacknowledged_ = static_cast<std::int32_t>(length);
            ack_due_ = config.strikes(now, config.delayed_ack);
            return Reaction::acknowledge_before_and_delay;
        }
        unacknowledged_ += static_cast<std::int32_t>(length);
        // RFC 5681, 4.2: an acknowledgement for at least every second full-sized segment.
        if (unacknowledged_ > static_cast<base::Bytes>(config.ack_every - 1) * config.mss ||
            (config.quick_acks && acknowledges_quickly(length, config))) {
            return Reaction::acknowledge;
        }
        arm(now, config);
        return Reaction::none;
    }

    /// Whether to acknowledge immediately, as Linux. While no answer is expected: the first
    /// segments, and each small one, which ends the peer's data. While an answer is expected: a
    /// small segment after other data.
    [[nodiscard]] bool acknowledges_quickly(base::Bytes length, const TcpConfig& config) const {
        const bool small = length < config.mss;
        return ping_pong_ ? small && unacknowledged_ > length : small || quick_ > 0;
    }

    void arm(base::Time now, const TcpConfig& config) {
        ack_due_ = std::min(ack_due_, config.strikes(now, config.delayed_ack));
    }

    void accept_out_of_order(std::uint64_t seq, std::uint64_t end, base::Time now,
                             const TcpConfig& config);

    static constexpr std::uint8_t kQuickAcks = 16;  ///< Linux's TCP_MAX_QUICKACKS

    std::uint64_t next_ = 0;
    std::uint64_t previous_ = 0;
    base::Time ack_due_ = base::Time::never();
    base::Time in_order_at_ = base::seconds(-1'000'000);  ///< when data last came in order
    std::int32_t unacknowledged_ = 0;                     ///< bytes; no window is larger
    std::uint8_t quick_ = kQuickAcks;  ///< segments still to be acknowledged singly
    bool ping_pong_ = false;           ///< an answer is expected soon
    bool marked_ = false;
    bool duplicate_ = false;
    std::vector<StreamRange> islands_;  ///< received beyond the gap; most recently changed first
};

}  // namespace daqloom::transport
