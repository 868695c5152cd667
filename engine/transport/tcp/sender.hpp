// The sending half of a TCP endpoint: which bytes are sent or retransmitted, and when.
//
//        una              nxt                end
//         v                v                  v
//   ......|== in flight ===|.... unsent ......|        (offsets in the stream)
//
// The data in flight form a short list of records. A record is a range of bytes that left together,
// as in a socket buffer of Linux; a reply of a hundred segments stays one record until a loss. The
// common case (in order, no loss) is inline here; loss recovery is in sender.cpp.
//
// The sender does no I/O: time is an argument, and segments are sent through `Out::segment(offset,
// length, retransmission)`.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/fields.hpp"
#include "base/ring.hpp"
#include "base/units.hpp"
#include "transport/tcp/config.hpp"
#include "transport/tcp/congestion.hpp"
#include "transport/tcp/receiver.hpp"

namespace daqloom::transport {

/// Retransmissions and expiries of the retransmission timer, by cause.
struct TcpSenderCounters {
    DAQLOOM_FIELDS(
        TcpSenderCounters,
        (std::uint64_t, fast_retransmissions, "Segments sent again, found lost by SACK or RACK."),
        (std::uint64_t, probe_retransmissions, "Tail-loss probes that repeat a segment."),
        (std::uint64_t, timeout_retransmissions, "Segments sent again after a timeout."),
        (std::uint64_t, timeouts_whole_window, "Timeouts: no part of the flight was acknowledged."),
        (std::uint64_t, timeouts_tail, "Timeouts: the end of a flight was lost."),
        (std::uint64_t, timeouts_retransmission, "Timeouts: a retransmission was lost."),
        (std::uint64_t, recoveries, "Fast recoveries begun."))

    [[nodiscard]] std::uint64_t timeouts() const {
        return timeouts_whole_window + timeouts_tail + timeouts_retransmission;
    }
};

/// Flags of an acknowledgement.
struct AckFlags {
    bool echo = false;       ///< ECN echo: a segment arrived with a congestion mark
    bool duplicate = false;  ///< D-SACK: a segment arrived twice
};

class TcpSender {
  public:
    explicit TcpSender(const TcpConfig& config) : rto_(config.rto_initial), congestion_(config) {
        if (config.handshake_rtt > base::Time::zero()) {
            sample_rtt(config.handshake_rtt, config);
        }
    }

    /// Appends `length` bytes of the application to the stream.
    void write(base::Bytes length) { end_ += static_cast<std::uint64_t>(length); }

    /// Sends all segments that the windows allow: lost segments first, then new ones.
    template <class Out>
    void transmit(base::Time now, const TcpConfig& config, Out& out) {
        if (lost_ > 0) [[unlikely]] {
            retransmit_lost(now, config, [&](std::uint64_t begin, base::Bytes length) {
                out.segment(begin, length, true);
            });
        }
        if (nxt_ != end_) {
            transmit_new(now, config, out);
        }
    }

    /// Handles an acknowledgement of all bytes before `ack`; ignores an acknowledgement of bytes
    /// that were never sent.
    void on_ack(std::uint64_t ack, const SackBlocks* sack, AckFlags flags, base::Time now,
                const TcpConfig& config) {
        const bool advances = ack - una_ - 1 < nxt_ - una_;  // una < ack <= nxt
        const bool plain = advances && sack == nullptr && !flags.echo && state_ == State::open &&
                           sacked_ == 0 && lost_ == 0 && probe_end_ == 0 &&
                           timer_kind_ != Timer::reorder;
        if (!plain) [[unlikely]] {
            recover(ack, sack, flags, now, config);
            return;
        }
        const auto acked = static_cast<base::Bytes>(ack - una_);
        base::Time sent = base::Time::never();
        while (!records_.empty()) {
            Record& record = records_.front();
            sent = record.retransmitted ? base::Time::never() : record.sent;
            if (record.end > ack) {
                record.begin = std::max(record.begin, ack);
                break;
            }
            records_.pop();
            if (records_.empty() || records_.front().begin >= ack) {
                break;
            }
        }
        una_ = ack;
        last_ack_ = now;
        backoff_ = 0;
        base::Time rtt{};
        if (sent != base::Time::never()) [[likely]] {  // Karn: repeats give no RTT sample
            rtt = now - sent;
            sample_rtt(rtt, config);
            rack_sent_ = sent;
            rack_end_ = ack;
            rack_rtt_ = rtt;
        }
        const AckSample sample{now, rtt, acked, una_, nxt_, may_grow(), false};
        congestion_.on_delivery(sample, config);
        congestion_.on_ack(sample, config);
        restart_timer(now, config);
    }

    /// Handles the timer due at `timer()`. Returns whether `transmit` may send segments now.
    template <class Out>
    void on_timer(base::Time now, const TcpConfig& config, Out& out) {
        switch (timer_kind_) {
            case Timer::none:
                return;
            case Timer::reorder:
                on_reorder_timer(now, config);
                break;
            case Timer::probe:
                on_probe_timer(now, config,
                               [&](std::uint64_t begin, base::Bytes length, bool again) {
                                   out.segment(begin, length, again);
                               });
                return;
            case Timer::retransmission:
                on_retransmission_timer(now, config);
                break;
        }
        transmit(now, config, out);
    }

    /// Ends this half of the connection: it sends nothing more, and only its counters may be read.
    void abandon() {
        abandoned_ = true;
        timer_kind_ = Timer::none;
        timer_at_ = base::Time::never();
    }
    [[nodiscard]] bool abandoned() const { return abandoned_; }

    /// The time at which `on_timer` must be called; Time::never() if no timer runs.
    [[nodiscard]] base::Time timer() const { return timer_at_; }

    [[nodiscard]] std::uint64_t una() const { return una_; }
    [[nodiscard]] std::uint64_t nxt() const { return nxt_; }
    /// Memory beyond the object itself (B).
    [[nodiscard]] std::size_t memory() const { return records_.memory(); }
    [[nodiscard]] std::uint64_t end() const { return end_; }
    /// Bytes believed to be in the network (RFC 6675's pipe).
    [[nodiscard]] base::Bytes in_flight() const {
        return static_cast<base::Bytes>(nxt_ - una_) - sacked_ - lost_;
    }
    /// Recomputes the bytes in flight, SACKed and lost, and compares them with the running sums.
    [[nodiscard]] bool books_hold() const;
    [[nodiscard]] base::Time smoothed_rtt() const { return srtt_; }
    [[nodiscard]] base::Time retransmission_timeout() const { return rto_; }
    [[nodiscard]] const Congestion& congestion() const { return congestion_; }
    [[nodiscard]] const TcpSenderCounters& counters() const { return counters_; }
    /// Address of the first member that slow start without losses never touches.
    [[nodiscard]] const void* rarely_touched() const { return congestion_.rarely_touched(); }

  private:
    /// Congestion states in the order of Linux; no segment is known to be lost before `recovery`.
    /// `cwr`: the congestion window is being reduced because of a mark.
    enum class State : std::uint8_t { open, cwr, recovery, loss };
    enum class Timer : std::uint8_t { none, retransmission, probe, reorder };

    struct Record {
        std::uint64_t begin;
        std::uint64_t end;
        base::Time sent;
        bool sacked;
        bool lost;  ///< and not sent again since
        bool retransmitted;

        [[nodiscard]] base::Bytes length() const { return static_cast<base::Bytes>(end - begin); }
    };

    template <class Out>
    void transmit_new(base::Time now, const TcpConfig& config, Out& out) {
        if (nxt_ == una_) {
            begin_flight(now, config);
        }
        const auto unsent = static_cast<base::Bytes>(end_ - nxt_);
        const auto receiver_room = static_cast<base::Bytes>(una_ - nxt_) + config.receive_window;
        base::Bytes room = std::min(congestion_.window() - in_flight(), receiver_room);
        if (config.tso_burst > 0 && waits_for_burst(room, unsent, config)) {
            note_usage(room < receiver_room);
            return;
        }
        const std::uint64_t begin = nxt_;
        base::Bytes left = unsent;
        while (left > 0) {
            const base::Bytes length = std::min(config.mss, left);
            if (length > room) {
                break;
            }
            out.segment(nxt_, length, false);
            nxt_ += static_cast<std::uint64_t>(length);
            room -= length;
            left -= length;
        }
        if (nxt_ != begin) {
            append_record(begin, now);
            last_sent_ = now;
            if (reducing()) [[unlikely]] {
                prr_sent_ += segments_in(static_cast<base::Bytes>(nxt_ - begin), config);
            }
            if (begin == una_) {
                restart_timer(now, config);
            } else if (timer_kind_ == Timer::probe) {
                choose_timer(now, config);
            }
        }
        note_usage(congestion_.window() - in_flight() < config.mss);
    }

    void append_record(std::uint64_t begin, base::Time now) {
        if (!records_.empty()) {
            Record& last = records_.back();
            if (last.sent == now && !last.sacked && !last.lost && !last.retransmitted) {
                last.end = nxt_;
                return;
            }
        }
        records_.push({begin, nxt_, now, false, false, false});
    }

    /// Ends a pause: nothing is in flight.
    void begin_flight(base::Time now, const TcpConfig& config) {
        const base::Time idle = now - last_sent_;
        if (config.restart_after_idle && idle > rto_ && una_ > 0) [[unlikely]] {
            congestion_.on_idle(idle, rto_, config);
        }
        congestion_.on_start(now, idle, config);
    }

    /// Whether to delay new data so that segmentation offload hands the NIC a whole burst, or a
    /// third of the window (as Linux's tcp_tso_should_defer). The sender waits only while
    /// acknowledgements are due and no segment is lost.
    [[nodiscard]] bool waits_for_burst(base::Bytes room, base::Bytes unsent,
                                       const TcpConfig& config) const {
        const base::Bytes burst = std::min(config.tso_burst, congestion_.window() / 3);
        return in_flight() > 0 && state_ < State::recovery && room < burst && room < unsent;
    }

    /// Marks an unused window, which must not grow (RFC 7661; Linux's tcp_cwnd_validate).
    void note_usage(bool limited) {
        const base::Bytes flight = in_flight();
        if (una_ >= usage_round_ || limited || (!window_limited_ && flight > flight_peak_)) {
            window_limited_ = limited;
            flight_peak_ = flight;
            usage_round_ = nxt_;
        }
    }
    [[nodiscard]] bool may_grow() const {
        return window_limited_ ||
               (congestion_.in_slow_start() && congestion_.window() < 2 * flight_peak_);
    }

    void sample_rtt(base::Time rtt, const TcpConfig& config) {
        if (rtt < min_rtt_) {
            min_rtt_ = rtt;
        }
        if (srtt_ == base::Time::zero()) [[unlikely]] {  // RFC 6298, 2.2
            srtt_ = rtt;
            rttvar_ = rtt / 2;
        } else {  // RFC 6298, 2.3
            const std::int64_t error = rtt.ps - srtt_.ps;
            rttvar_.ps += ((error < 0 ? -error : error) - rttvar_.ps) >> 2;
            srtt_.ps += error >> 3;
        }
        rto_ = std::min(srtt_ + std::max(rttvar_ * 4, config.rto_min), config.rto_max);
    }

    /// Restarts the retransmission timer (RFC 6298, 5.1 to 5.3).
    void restart_timer(base::Time now, const TcpConfig& config) {
        if (una_ == nxt_) {
            timer_kind_ = Timer::none;
            timer_at_ = base::Time::never();
            return;
        }
        retransmission_at_ = config.strikes(now, backed_off_rto(config));
        choose_timer(now, config);
    }

    /// Selects the timer's action: a tail-loss probe if allowed, else a retransmission.
    void choose_timer(base::Time now, const TcpConfig& config) {
        timer_kind_ = Timer::retransmission;
        timer_at_ = retransmission_at_;
        if (config.tail_loss_probe && state_ < State::recovery && sacked_ == 0 && probe_end_ == 0 &&
            srtt_ > base::Time::zero()) {
            // RFC 8985, 7.2: the probe leaves after two RTTs and a margin, or when the timeout
            // expires. As in Linux, the margin for a single segment covers a delayed
            // acknowledgement.
            const bool single = in_flight() <= config.mss;
            const base::Time margin = single ? config.rto_min : config.probe_margin;
            timer_kind_ = Timer::probe;
            timer_at_ = std::min(config.strikes(now, srtt_ * 2 + margin), retransmission_at_);
        }
    }

    [[nodiscard]] base::Time backed_off_rto(const TcpConfig& config) const {
        return rto_ < config.rto_max / (std::int64_t{1} << backoff_)
                   ? rto_ * (std::int64_t{1} << backoff_)
                   : config.rto_max;
    }

    /// Number of segments in `length` bytes, the last of which may be short.
    static std::int64_t segments_in(base::Bytes length, const TcpConfig& config) {
        return (length + config.mss - 1) / config.mss;
    }

    /// Effect of one acknowledgement on the records of sent data, summed while they are walked.
    struct AckEffect {
        base::Time now;
        base::Bytes delivered = 0;
        base::Time latest_sent = base::Time::never();  ///< latest segment sent only once
        bool loss_disproved = false;  ///< the first copy of a segment counted lost has arrived
    };

    void recover(std::uint64_t ack, const SackBlocks* sack, AckFlags flags, base::Time now,
                 const TcpConfig& config);
    void acknowledge_records(std::uint64_t ack, AckEffect& effect);
    void sack_records(const SackBlocks& sack, AckEffect& effect);
    void mark_delivered(const Record& record, AckEffect& effect);
    void settle_probe(std::uint64_t ack, bool advanced, bool duplicate, const TcpConfig& config);
    void mark_lost(Record& record);
    bool mark_losses(base::Time now, const TcpConfig& config);
    void mark_losses_by_time(base::Time now, const TcpConfig& config);
    void mark_losses_by_count(const TcpConfig& config);
    [[nodiscard]] bool reducing() const {
        return state_ == State::cwr || state_ == State::recovery;
    }
    void begin_reduction();
    void enter_cwr(const TcpConfig& config);
    void enter_recovery(const TcpConfig& config);
    void reduce_proportionally(base::Bytes delivered, bool progress, const TcpConfig& config);
    void undo_timeout();
    void watch_reordering();
    void split(std::uint32_t place, std::uint64_t at);
    void on_reorder_timer(base::Time now, const TcpConfig& config);
    void on_retransmission_timer(base::Time now, const TcpConfig& config);
    template <class Segment>
    void on_probe_timer(base::Time now, const TcpConfig& config, Segment&& segment);
    template <class Segment>
    void retransmit_lost(base::Time now, const TcpConfig& config, Segment&& segment);
    void take_retransmission(std::uint32_t place, std::uint64_t end, base::Time now,
                             const TcpConfig& config);
    std::uint64_t repeat_last_segment(base::Time now, const TcpConfig& config);

    // ---- touched by every acknowledgement
    std::uint64_t una_ = 0;
    std::uint64_t nxt_ = 0;
    std::uint64_t end_ = 0;
    base::Bytes sacked_ = 0;
    base::Bytes lost_ = 0;
    base::Time timer_at_ = base::Time::never();
    base::Time retransmission_at_ = base::Time::never();
    Timer timer_kind_ = Timer::none;
    State state_ = State::open;
    bool window_limited_ = false;
    bool abandoned_ = false;
    std::uint32_t backoff_ = 0;

    base::Ring<Record, 1> records_;
    base::Time srtt_;
    base::Time rttvar_;
    base::Time rto_;
    base::Time min_rtt_ = base::Time::never();
    base::Time last_sent_;

    base::Time last_ack_;
    base::Bytes flight_peak_ = 0;
    std::uint64_t usage_round_ = 0;
    std::uint64_t probe_end_ = 0;  ///< `nxt_` when a probe left; 0: no probe

    // ---- RACK (RFC 8985): the latest-sent segment known to be delivered
    base::Time rack_sent_;
    std::uint64_t rack_end_ = 0;
    base::Time rack_rtt_;
    Congestion congestion_;

    // ---- recovery and probes
    base::Time reorder_due_ = base::Time::never();
    std::uint64_t recovery_end_ = 0;
    bool probe_repeats_ = false;
    std::int64_t prr_delivered_ = 0;  ///< RFC 9937, segments
    std::int64_t prr_sent_ = 0;
    base::Bytes prr_window_ = 0;  ///< before the reduction
    TcpSenderCounters counters_;
};

template <class Segment>
void TcpSender::retransmit_lost(base::Time now, const TcpConfig& config, Segment&& segment) {
    for (std::uint32_t place = 0; place < records_.size() && lost_ > 0; ++place) {
        if (!records_[place].lost) {
            continue;
        }
        const std::uint64_t begin = records_[place].begin;
        std::uint64_t end = begin;
        base::Bytes room = congestion_.window() - in_flight();
        while (end < records_[place].end) {
            const base::Bytes length =
                std::min(config.mss, static_cast<base::Bytes>(records_[place].end - end));
            if (length > room) {
                break;
            }
            segment(end, length);
            end += static_cast<std::uint64_t>(length);
            room -= length;
        }
        if (end == begin) {
            return;
        }
        take_retransmission(place, end, now, config);
    }
}

template <class Segment>
void TcpSender::on_probe_timer(base::Time now, const TcpConfig& config, Segment&& segment) {
    // RFC 8985, 7.3: the probe is new data that the receiver accepts, if any, else the last
    // segment.
    probe_end_ = nxt_;
    const auto unsent = static_cast<base::Bytes>(end_ - nxt_);
    const base::Bytes length = std::min(config.mss, unsent);
    const bool fits = static_cast<base::Bytes>(nxt_ - una_) + length <= config.receive_window;
    probe_repeats_ = length == 0 || !fits;
    if (probe_repeats_) {
        const std::uint64_t begin = repeat_last_segment(now, config);
        segment(begin, static_cast<base::Bytes>(nxt_ - begin), true);
    } else {
        const std::uint64_t begin = nxt_;
        nxt_ += static_cast<std::uint64_t>(length);
        segment(begin, length, false);
        append_record(begin, now);
        probe_end_ = nxt_;
    }
    last_sent_ = now;
    restart_timer(now, config);
}

}  // namespace daqloom::transport
