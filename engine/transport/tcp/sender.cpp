// Loss recovery: selective acknowledgements (RFC 2018, 6675), RACK and tail-loss probes (RFC 8985),
// proportional rate reduction (RFC 9937), retransmission timeouts (RFC 6298).
#include "transport/tcp/sender.hpp"

namespace daqloom::transport {

using base::Bytes;
using base::Time;

void TcpSender::recover(std::uint64_t ack, const SackBlocks* sack, AckFlags flags, Time now,
                        const TcpConfig& config) {
    if (ack > nxt_) {
        return;
    }
    const bool outstanding = una_ != nxt_;
    const bool advanced = ack > una_;
    AckEffect effect{.now = now};
    if (advanced) {
        acknowledge_records(ack, effect);
        una_ = ack;
    }
    if (sack != nullptr) {
        sack_records(*sack, effect);
    }
    last_ack_ = now;
    Time rtt{};
    if (effect.latest_sent != Time::never()) {
        rtt = now - effect.latest_sent;
        sample_rtt(rtt, config);
    }
    // The timer's back-off ends with an RTT sample (RFC 6298, 5.7); timestamps always give one.
    if (advanced && (config.timestamps || rtt > Time::zero())) {
        backoff_ = 0;
    }
    AckSample sample{now, rtt, effect.delivered, una_, nxt_, false, flags.echo};
    congestion_.on_delivery(sample, config);
    settle_probe(ack, advanced, flags.duplicate, config);
    if (state_ == State::loss && effect.loss_disproved) {
        undo_timeout();
    }
    // A reduction for a mark ends, as in Linux, when a segment sent after its beginning arrives,
    // so that the echo of an earlier mark begins no other reduction.
    const bool over = state_ == State::cwr ? una_ > recovery_end_ : una_ >= recovery_end_;
    if (over && state_ != State::open) {
        if (reducing()) {
            congestion_.end_reduction(config);
        }
        state_ = State::open;
    }
    const bool lost_more = mark_losses(now, config);
    if (flags.echo && outstanding && state_ == State::open && config.ecn()) {
        enter_cwr(config);
    }
    if (reducing()) {
        reduce_proportionally(effect.delivered, advanced && !lost_more, config);
    } else {
        sample.may_grow = advanced && may_grow();
        congestion_.on_ack(sample, config);
    }
    if (advanced) {
        restart_timer(now, config);
    } else if (sack != nullptr && una_ != nxt_) {
        choose_timer(now, config);
    }
    watch_reordering();
}

bool TcpSender::books_hold() const {
    Bytes sacked = 0;
    Bytes lost = 0;
    std::uint64_t next = una_;
    for (std::uint32_t place = 0; place < records_.size(); ++place) {
        const Record& record = records_[place];
        if (record.begin != next || record.end <= record.begin || (record.sacked && record.lost)) {
            return false;
        }
        next = record.end;
        sacked += record.sacked ? record.length() : 0;
        lost += record.lost ? record.length() : 0;
    }
    return next == nxt_ && sacked == sacked_ && lost == lost_;
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
        if (block.begin <= una_ || block.end > nxt_ || block.begin >= block.end) {
            continue;  // an old range, or one that the peer made up
        }
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
            records_[place].lost = false;
            sacked_ += records_[place].length();
        }
    }
    // Adjacent records that have both arrived are merged, so that the list grows only with the
    // number of gaps.
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
        effect.loss_disproved = effect.loss_disproved || !record.retransmitted;
    }
    const Time rtt = effect.now - record.sent;
    if (record.retransmitted && rtt < min_rtt_) {
        // The first copy arrived, not the second (RFC 8985, 6.2); uncertain while no RTT is known.
        effect.loss_disproved = effect.loss_disproved || min_rtt_ != Time::never();
        return;
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

/// Settles a tail-loss probe (RFC 8985, 7.4). A probe that repeated a segment, and whose answer
/// reports no duplicate, has repaired a loss, which is reported to congestion control.
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
        congestion_.end_reduction(config);
        state_ = State::open;
    } else if (!advanced) {
        probe_end_ = 0;
    }
}

/// Returns whether a new loss was found.
bool TcpSender::mark_losses(Time now, const TcpConfig& config) {
    const Bytes before = lost_;
    reorder_due_ = Time::never();
    if (config.rack) {
        mark_losses_by_time(now, config);
    } else {
        mark_losses_by_count(config);
    }
    // A segment that was sent during a recovery and is missing after it begins another recovery.
    if (lost_ > 0 && state_ < State::recovery) {
        enter_recovery(config);
    }
    return lost_ > before;
}

void TcpSender::watch_reordering() {
    if (reorder_due_ < timer_at_) {
        timer_kind_ = Timer::reorder;
        timer_at_ = reorder_due_;
    }
}

/// RFC 8985, 6.2: a segment is lost if a segment sent later by more than the reordering window has
/// arrived. Without reordering, as here, three SACKed segments set this window to zero.
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
        reorder_due_ = config.strikes(now, latest - now);
    }
}

/// RFC 6675, 4: a segment is lost if more than two full segments above it are SACKed.
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

void TcpSender::begin_reduction() {
    recovery_end_ = nxt_;
    probe_end_ = 0;
    prr_delivered_ = 0;
    prr_sent_ = 0;
    prr_window_ = congestion_.window();
}

void TcpSender::enter_cwr(const TcpConfig& config) {
    begin_reduction();
    congestion_.on_mark(config);
    state_ = State::cwr;
}

/// Enters recovery; a loss while a mark reduces the window only deepens this reduction.
void TcpSender::enter_recovery(const TcpConfig& config) {
    if (state_ == State::open || una_ >= recovery_end_) {
        begin_reduction();
    }
    probe_end_ = 0;
    congestion_.on_loss(config);
    counters_.recoveries += 1;
    state_ = State::recovery;
}

/// RFC 9937: the window falls towards the threshold at the pace of delivery. Below the threshold,
/// the window may rise again while there is progress and no further loss (6.2: SafeACK). As in
/// Linux, the number of segments that may leave is rounded up, and is in proportion to the window
/// before the reduction, not to the bytes that were in flight.
void TcpSender::reduce_proportionally(Bytes delivered, bool progress, const TcpConfig& config) {
    if (delivered == 0) {
        return;
    }
    const std::int64_t newly = segments_in(delivered, config);
    prr_delivered_ += newly;
    const Bytes pipe = in_flight();
    const Bytes target = congestion_.threshold();
    Bytes room = 0;
    if (pipe > target) {
        const std::int64_t share = (prr_delivered_ * target + prr_window_ - 1) / prr_window_;
        room = (share - prr_sent_) * config.mss;
    } else {
        const std::int64_t limit = std::max(prr_delivered_ - prr_sent_, newly) + (progress ? 1 : 0);
        room = std::min(target - pipe, limit * config.mss);
    }
    if (prr_sent_ == 0) {
        room = std::max(room, config.mss);  // the fast retransmission always leaves
    }
    congestion_.set_window(pipe + std::max<Bytes>(room, 0), config);
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
    last_sent_ = now;
    const std::int64_t segments = segments_in(length, config);
    prr_sent_ += segments;
    (state_ == State::loss ? counters_.timeout_retransmissions : counters_.fast_retransmissions) +=
        static_cast<std::uint64_t>(segments);
    if (place == 0) {
        restart_timer(now, config);
        watch_reordering();  // suspected segments are still waited for
    }
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
    const bool recovering = state_ == State::recovery;
    mark_losses(now, config);
    // During recovery the window stays (as in Linux), because lost segments have left space for
    // their retransmissions. When recovery begins, this space is one segment.
    if (state_ == State::recovery && !recovering) {
        reduce_proportionally(config.mss, false, config);
    }
    choose_timer(now, config);
    watch_reordering();
}

void TcpSender::on_retransmission_timer(Time now, const TcpConfig& config) {
    const Record& head = records_.front();
    if (head.retransmitted) {
        counters_.timeouts_retransmission += 1;
    } else if (last_ack_ <= head.sent && sacked_ == 0) {
        counters_.timeouts_whole_window += 1;
    } else {
        counters_.timeouts_tail += 1;
    }
    const bool reneged = head.sacked;  // RFC 2018, 8: the receiver may have thrown it away
    for (std::uint32_t place = 0; place < records_.size(); ++place) {
        Record& record = records_[place];
        if (reneged && record.sacked) {
            record.sacked = false;
            sacked_ -= record.length();
        }
        // RFC 8985, 6.3: a segment sent less than an RTT ago may still be acknowledged.
        const bool recent = config.rack && place > 0 && now - record.sent < rack_rtt_;
        if (!record.sacked && !record.lost && !recent) {
            mark_lost(record);
        }
    }
    // A window of data causes one reduction, whether its loss is found by SACK or by a timeout.
    const bool again =
        (reducing() && una_ < recovery_end_) || (state_ == State::loss && backoff_ > 0);
    congestion_.on_timeout(again, in_flight(), config);
    state_ = State::loss;
    recovery_end_ = nxt_;
    probe_end_ = 0;
    reorder_due_ = Time::never();
    backoff_ = std::min(backoff_ + 1, 16U);
    restart_timer(now, config);
}

/// Undoes the effects of a spurious timeout (RFC 5682 in Linux's form for SACK): a segment counted
/// lost at the timeout has arrived without retransmission, or sooner than its second copy can.
void TcpSender::undo_timeout() {
    for (std::uint32_t place = 0; place < records_.size(); ++place) {
        records_[place].lost = false;
    }
    lost_ = 0;
    rack_sent_ = Time::zero();  // the copy that RACK recorded is in doubt
    rack_end_ = 0;
    state_ = State::open;
    congestion_.undo_timeout();
}

}  // namespace daqloom::transport
