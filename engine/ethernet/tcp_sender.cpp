// Loss recovery: selective acknowledgements (RFC 2018, 6675), RACK and tail-loss probes (RFC 8985),
// proportional rate reduction (RFC 6937), retransmission time-outs (RFC 6298).
#include "ethernet/tcp_sender.hpp"

namespace daqloom::ethernet {

using base::Bytes;
using base::Time;

void TcpSender::recover(std::uint64_t ack, const SackBlocks* sack, bool echo, bool duplicate,
                        Time now, const TcpConfig& config) {
    const bool advanced = ack > una_;
    AckEffect effect{.now = now};
    if (advanced) {
        acknowledge_records(ack, effect);
        una_ = ack;
        backoff_ = 0;
    }
    if (sack != nullptr) {
        sack_records(*sack, effect);
    }
    last_heard_ = now;
    Time rtt{};
    if (effect.latest_sent != Time::never()) {
        rtt = now - effect.latest_sent;
        sample_rtt(rtt, config);
    }
    settle_probe(ack, advanced, duplicate, config);
    if (echo && state_ == State::open && una_ >= mark_end_) {
        congestion_.on_mark(config);
        mark_end_ = nxt_;
    }
    if (state_ != State::open && una_ >= recovery_end_) {
        if (state_ == State::recovery) {
            congestion_.leave_recovery(config);
        }
        state_ = State::open;
    }
    mark_losses(now, config);
    if (state_ == State::recovery) {
        reduce_proportionally(effect.delivered, config);
    } else {
        congestion_.on_ack({now, rtt, effect.delivered, una_, nxt_, may_grow(), echo}, config);
    }
    arm(now, config);
    if (reorder_due_ < timer_at_) {
        timer_kind_ = Timer::reorder;
        timer_at_ = reorder_due_;
    }
}

void TcpSender::acknowledge_records(std::uint64_t ack, AckEffect& effect) {
    while (!records_.empty() && records_.front().begin < ack) {
        Record& record = records_.front();
        if (record.end > ack) {
            split(0, ack);
        }
        if (records_.front().sacked) {
            sacked_ -= records_.front().length();
        } else {
            mark_delivered(records_.front(), effect);
        }
        records_.pop();
    }
}

void TcpSender::sack_records(const SackBlocks& sack, AckEffect& effect) {
    for (std::uint32_t i = 0; i < sack.count; ++i) {
        const StreamRange block = sack.blocks[i];
        for (std::uint32_t place = 0; place < records_.size(); ++place) {
            if (records_[place].begin >= block.end) {
                break;
            }
            if (records_[place].sacked || records_[place].end <= block.begin) {
                continue;
            }
            if (records_[place].begin < block.begin) {
                split(place, block.begin);
                continue;
            }
            if (records_[place].end > block.end) {
                split(place, block.end);
            }
            mark_delivered(records_[place], effect);
            records_[place].sacked = true;
            sacked_ += records_[place].length();
        }
    }
    // Neighbours that have both arrived need no border; the list stays as short as the gaps are
    // few.
    for (std::uint32_t place = 1; place < records_.size();) {
        if (records_[place].sacked && records_[place - 1].sacked) {
            records_[place - 1].end = records_[place].end;
            records_.erase(place);
        } else {
            ++place;
        }
    }
}

void TcpSender::mark_delivered(const Record& record, AckEffect& effect) {
    effect.delivered += record.length();
    if (record.lost) {
        lost_ -= record.length();
    }
    const Time rtt = effect.now - record.sent;
    if (record.retransmitted && rtt < min_rtt_) {
        return;  // the first copy arrived after all (RFC 8985, 6.2)
    }
    if (record.sent > rack_sent_ || (record.sent == rack_sent_ && record.end > rack_end_)) {
        rack_sent_ = record.sent;
        rack_end_ = record.end;
        rack_rtt_ = rtt;
    }
    if (!record.retransmitted && !record.lost &&
        (effect.latest_sent == Time::never() || record.sent > effect.latest_sent)) {
        effect.latest_sent = record.sent;
    }
}

/// RFC 8985, 7.4: a probe that had to repeat a segment and was not answered by a duplicate mended a
/// loss, which congestion control must learn of.
void TcpSender::settle_probe(std::uint64_t ack, bool advanced, bool duplicate,
                             const TcpConfig& config) {
    if (probe_end_ == 0 || ack < probe_end_) {
        return;
    }
    if (!probe_repeats_ || duplicate) {
        probe_end_ = 0;
    } else if (ack > probe_end_) {
        probe_end_ = 0;
        congestion_.on_loss(config);
        congestion_.leave_recovery(config);
    } else if (!advanced) {
        probe_end_ = 0;
    }
}

void TcpSender::mark_losses(Time now, const TcpConfig& config) {
    const Bytes before = lost_;
    reorder_due_ = Time::never();
    if (config.rack) {
        mark_losses_by_time(now, config);
    } else {
        mark_losses_by_count(config);
    }
    if (lost_ > before && state_ == State::open) {
        enter_recovery(config);
    }
}

/// RFC 8985, 6.2: lost is what left earlier than something delivered, by more than the reordering
/// window. No reordering has been seen in this network, so three SACKed segments close that window.
void TcpSender::mark_losses_by_time(Time now, const TcpConfig& config) {
    const bool certain = state_ != State::open || sacked_ >= 3 * config.mss;
    const Time reorder_window = certain || min_rtt_ == Time::never() ? Time::zero() : min_rtt_ / 4;
    Time latest = Time::zero();
    for (std::uint32_t place = 0; place < records_.size(); ++place) {
        Record& record = records_[place];
        const bool left_before =
            record.sent < rack_sent_ || (record.sent == rack_sent_ && record.end < rack_end_);
        if (record.sacked || record.lost || !left_before) {
            continue;
        }
        const Time due = record.sent + rack_rtt_ + reorder_window;
        if (due <= now) {
            mark_lost(record);
        } else {
            latest = std::max(latest, due);
        }
    }
    if (latest > Time::zero()) {
        reorder_due_ = latest;
    }
}

/// RFC 6675, 4: lost is what has more than two full segments SACKed above it.
void TcpSender::mark_losses_by_count(const TcpConfig& config) {
    Bytes sacked_above = 0;
    for (std::uint32_t place = records_.size(); place-- > 0;) {
        Record& record = records_[place];
        if (record.sacked) {
            sacked_above += record.length();
        } else if (!record.lost && !record.retransmitted && sacked_above > 2 * config.mss) {
            mark_lost(record);
        }
    }
}

void TcpSender::mark_lost(Record& record) {
    record.lost = true;
    lost_ += record.length();
}

void TcpSender::enter_recovery(const TcpConfig& config) {
    state_ = State::recovery;
    recovery_end_ = nxt_;
    probe_end_ = 0;
    prr_delivered_ = 0;
    prr_sent_ = 0;
    prr_flight_ = static_cast<Bytes>(nxt_ - una_);
    counters_.recoveries += 1;
    congestion_.on_loss(config);
}

/// RFC 6937: the window falls towards the threshold at the pace of what is delivered.
void TcpSender::reduce_proportionally(Bytes delivered, const TcpConfig& config) {
    prr_delivered_ += delivered;
    const Bytes pipe = in_flight();
    const Bytes target = congestion_.threshold();
    Bytes allowance = 0;
    if (pipe > target) {
        const double share = static_cast<double>(target) / static_cast<double>(prr_flight_);
        allowance = static_cast<Bytes>(static_cast<double>(prr_delivered_) * share) - prr_sent_;
    } else {
        const Bytes limit = std::max(prr_delivered_ - prr_sent_, delivered) + config.mss;
        allowance = std::min(target - pipe, limit);
    }
    if (prr_sent_ == 0) {
        allowance = std::max(allowance, config.mss);  // the fast retransmission always leaves
    }
    congestion_.set_window(pipe + std::max<Bytes>(allowance, 0), config);
}

/// Divides the record at `place` in two at stream offset `at`.
void TcpSender::split(std::uint32_t place, std::uint64_t at) {
    Record rear = records_[place];
    rear.begin = at;
    records_[place].end = at;
    records_.insert(place + 1, rear);
}

void TcpSender::take_retransmission(std::uint32_t place, std::uint64_t end, Time now,
                                    const TcpConfig& config) {
    if (end < records_[place].end) {
        split(place, end);
    }
    Record& record = records_[place];
    const Bytes length = record.length();
    record.lost = false;
    record.retransmitted = true;
    record.sent = now;
    lost_ -= length;
    prr_sent_ += length;
    last_sent_ = now;
    const auto segments = static_cast<std::uint64_t>((length + config.mss - 1) / config.mss);
    (state_ == State::loss ? counters_.timeout_retransmissions : counters_.fast_retransmissions) +=
        segments;
    arm(now, config);
}

std::uint64_t TcpSender::repeat_last_segment(Time now, const TcpConfig& config) {
    const Bytes length = (records_.back().length() - 1) % config.mss + 1;
    const std::uint64_t begin = nxt_ - static_cast<std::uint64_t>(length);
    if (records_.back().begin < begin) {
        split(records_.size() - 1, begin);
    }
    records_.back().retransmitted = true;
    records_.back().sent = now;
    counters_.probe_retransmissions += 1;
    return begin;
}

void TcpSender::on_reorder_timer(Time now, const TcpConfig& config) {
    mark_losses(now, config);
    if (state_ == State::recovery) {
        reduce_proportionally(0, config);
    }
    arm(now, config);
}

void TcpSender::on_retransmission_timer(Time now, const TcpConfig& config) {
    if (una_ == nxt_) {
        arm(now, config);
        return;
    }
    const Record& head = records_.front();
    if (head.retransmitted) {
        counters_.timeouts_retransmission += 1;
    } else if (last_heard_ <= head.sent && sacked_ == 0) {
        counters_.timeouts_whole_window += 1;
    } else {
        counters_.timeouts_tail += 1;
    }
    for (std::uint32_t place = 0; place < records_.size(); ++place) {
        if (!records_[place].sacked && !records_[place].lost) {
            mark_lost(records_[place]);
        }
    }
    congestion_.on_timeout(state_ == State::loss && backoff_ > 0, config);
    state_ = State::loss;
    recovery_end_ = nxt_;
    probe_end_ = 0;
    backoff_ = std::min(backoff_ + 1, 16U);
    arm(now, config);
}

}  // namespace daqloom::ethernet
