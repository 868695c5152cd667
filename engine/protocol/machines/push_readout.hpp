// The readout unit of the push protocol: holds multi-fragment packets (MFPs) of several streams,
// announces their sizes, and writes each MFP to its granted place in the turn of its builder unit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/data/byte_ring.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/machines/push_builder.hpp"

namespace daqloom::protocol {

struct PushReadoutConfig {
    std::uint32_t streams = 1;
    std::uint32_t builders = 1;
    /// Limit on MFPs in the buffer of one stream.
    std::uint32_t buffered_mfps = 1;
    base::Bytes stream_buffer = base::Bytes{1} << 30;
    base::Bytes largest_mfp = base::Bytes{1} << 24;
    /// Limit on MEPs announced to a builder and not yet answered.
    std::uint32_t announced_meps = 1;
    /// Expected rate of successive writes, which determines how many writes fit into a time window.
    /// Unused for turns without a deadline.
    base::BitRate write_rate = base::gigabits_per_second(100);
};

struct PushWrite {
    MepId mep;
    StreamIndex stream;
    BuilderIndex builder{};
    base::Bytes from;  ///< offset in the stream's buffer
    base::Bytes to;    ///< offset in the builder's output buffer
    base::Bytes bytes;

    friend constexpr bool operator==(const PushWrite&, const PushWrite&) = default;
};

/// The outputs of a readout unit, implemented by its driver. They must not call the unit back.
template <class Out>
concept PushReadoutOut =
    requires(Out& out, StreamIndex stream, BuilderIndex builder, MepId mep, base::Bytes bytes,
             std::span<const base::Bytes> sizes, const PushWrite& write, std::uint64_t turn) {
        /// The stream's MFP of this MEP has a place in the buffer, at offset `bytes`, so the source
        /// may generate the next MFP.
        out.admitted(stream, mep, bytes);
        /// Send the builder the sizes of a MEP's MFPs, one per stream. Valid during the call only.
        out.announce(builder, mep, sizes);
        /// Write the MFP, notify the builder unit of its arrival, and call on_write_done.
        out.write(write);
        /// The buffer's oldest MFP is no longer needed: return its space to the source, then call
        /// on_acknowledged.
        out.acknowledge(stream, mep);
        /// The turn is over: at most `left_over` writes (see on_turn) are still under way.
        out.turn_done();
        /// At the end of an epoch: notify the builder unit that no MEP from `turn` on is announced.
        out.last_announcement(builder, turn);
    };

/// The readout unit of the push protocol. MFP m of each stream belongs to MEP m, which builder unit
/// m mod builders builds. A builder unit's MEPs are announced in order, each when all streams have
/// its MFP, and written in order, in the turns of the builder unit. The schedule (see ShiftUnit)
/// calls the turns.
///
/// Invariants: every MFP is written once, at the offset that the builder unit granted, or dropped
/// if the builder unit discards the MEP; a stream's buffer never overflows: an MFP for which there
/// is no space waits at the source (back-pressure, counted); a write begins only if it can end
/// before the turn's deadline. Messages may be reordered. Invalid input is counted and otherwise
/// ignored.
///
/// on_close ends an epoch at the first MEP that no live builder unit had answered by then. Once
/// is_drained, all earlier MEPs of live builder units are written or discarded. on_end leaves later
/// MEPs to the next epoch.
class PushReadout {
  public:
    struct Counters {
        std::uint64_t mfps = 0;  ///< admitted
        base::Bytes mfp_bytes = 0;
        std::uint64_t blocked = 0;    ///< MFPs that waited for room
        std::uint64_t announced = 0;  ///< MEPs
        std::uint64_t granted = 0;    ///< MEPs
        std::uint64_t discarded = 0;  ///< MEPs
        base::Bytes discarded_bytes = 0;
        std::uint64_t writes = 0;
        base::Bytes written_bytes = 0;  ///< bytes of completed writes
        std::uint64_t overran = 0;      ///< writes under way at the begin of the next turn
        std::uint64_t lost_mfps = 0;    ///< dropped because their builder was lost
        base::Bytes lost_bytes = 0;
        std::uint64_t unanswered_mfps = 0;  ///< dropped because others had answered later MEPs
        base::Bytes unanswered_bytes = 0;
        std::uint64_t from_lost = 0;  ///< answers ignored because their builder was lost
        std::uint64_t unexpected_mfps = 0;
        std::uint64_t unexpected_answers = 0;  ///< grants, discards and last answers
        std::uint64_t unexpected_completions = 0;
        std::uint64_t unexpected_acknowledgements = 0;
    };

    static constexpr std::uint64_t without_end = std::numeric_limits<std::uint64_t>::max();

    static base::expected<PushReadout> make(PushReadoutConfig config);

    /// The source offers the stream's next MFP, which is admitted as soon as the buffer has space.
    /// Until then the source keeps the MFP and must not offer another one.
    template <PushReadoutOut Out>
    void on_generated(StreamIndex stream, base::Bytes bytes, Out& out) {
        if (!streams_.contains(stream) || streams_[stream].waiting != nothing || bytes < 0 ||
            bytes > config_.largest_mfp) {
            ++counters_.unexpected_mfps;
            return;
        }
        streams_[stream].waiting = bytes;
        admit_what_has_room(stream, out);
        counters_.blocked += streams_[stream].waiting == nothing ? 0 : 1;
    }

    /// Whether the source may offer the next MFP.
    [[nodiscard]] bool takes_more(StreamIndex stream) const {
        return streams_[stream].waiting == nothing && !is_closing_;
    }

    /// The space of the stream's oldest acknowledged MFP is free.
    template <PushReadoutOut Out>
    void on_acknowledged(StreamIndex stream, Out& out) {
        if (!streams_.contains(stream) || streams_[stream].freed == streams_[stream].acknowledged) {
            ++counters_.unexpected_acknowledgements;
            return;
        }
        streams_[stream].buffer.free(streams_[stream].freed++);
        admit_what_has_room(stream, out);
    }

    /// A grant: the offsets of the MFPs of a MEP in the builder unit's output buffer, one per
    /// stream.
    template <PushReadoutOut Out>
    void on_grant(MepId mep, std::span<const base::Bytes> offsets, base::Time now, Out& out) {
        if (!is_unanswered(mep) || offsets.size() != config_.streams ||
            std::ranges::any_of(offsets, [](base::Bytes offset) { return offset < 0; })) {
            ignore_answer(builder_of(mep, config_.builders));
            return;
        }
        ++counters_.granted;
        const std::size_t slot = slot_of(number(mep));
        answers_[slot] = Answer::granted;
        for (const StreamIndex stream : streams_.indices()) {
            mfps_[slot * config_.streams + stream.value()].to = offsets[stream.value()];
        }
        go_on_after_answer(builder_of(mep, config_.builders), now, out);
    }

    /// The builder unit discards the MEP.
    template <PushReadoutOut Out>
    void on_discard(MepId mep, base::Time now, Out& out) {
        if (!is_unanswered(mep)) {
            ignore_answer(builder_of(mep, config_.builders));
            return;
        }
        ++counters_.discarded;
        answers_[slot_of(number(mep))] = Answer::discarded;
        go_on_after_answer(builder_of(mep, config_.builders), now, out);
    }

    /// Begins a turn: MEPs of this builder unit before number `until` (counted per builder unit)
    /// are written as far as the deadline permits. The turn ends with turn_done, when all these
    /// writes have begun and at most `left_over` writes of any turn are under way, or with the next
    /// turn. Precondition: the builder unit exists.
    template <PushReadoutOut Out>
    void on_turn(BuilderIndex builder, std::uint64_t until, std::uint64_t left_over,
                 base::Time deadline, base::Time now, Out& out) {
        on_turn_over();
        turn_ = {.builder = builder,
                 .until = until,
                 .left_over = left_over,
                 .deadline = deadline,
                 .is_on = !is_closing_};
        write_what_is_permitted(now, out);
    }

    /// Ends a turn: no writes begin any more.
    void on_turn_over() {
        counters_.overran += turn_.is_on ? under_way_ : 0;
        turn_.is_on = false;
    }

    template <PushReadoutOut Out>
    void on_write_done(MepId mep, StreamIndex stream, base::Time now, Out& out) {
        if (!is_being_written(mep, stream)) {
            ++counters_.unexpected_completions;
            return;
        }
        Builder& builder = builders_[builder_of(mep, config_.builders)];
        if (!builder.is_lost) {
            --under_way_;
            --builder.under_way;
        }
        counters_.written_bytes += mfp(number(mep), stream).bytes;
        complete(number(mep), stream, out);
        write_what_is_permitted(now, out);
    }

    // ---- the end of an epoch ------------------------------------------------------------------

    /// The builder unit is closing the epoch, and has answered its turns before `answered`. May
    /// come before on_close.
    template <PushReadoutOut Out>
    void on_closing(BuilderIndex builder, std::uint64_t answered, Out& out) {
        if (!builders_.contains(builder)) {
            ++counters_.unexpected_answers;
            return;
        }
        Builder& closing = builders_[builder];
        if (closing.is_lost || closing.answered_at_close != without_end ||
            answered > closing.announced) {
            ignore_answer(builder);
            return;
        }
        closing.answered_at_close = answered;
        announce_the_last(out);
    }

    /// The builder unit answers no MEPs from number `turn_end` (counted per builder unit) on. May
    /// come before on_close, and before the last answers.
    void on_last_answer(BuilderIndex builder, std::uint64_t turn_end);

    /// Begins the end of the epoch: MEPs are announced up to the last one that any builder unit has
    /// answered, and all grants of live builder units are written, independent of turns. Called
    /// again if more are lost. Writes to a lost builder unit are not awaited, but their MFPs keep
    /// their space. Precondition: the units in `lost` exist.
    template <PushReadoutOut Out>
    void on_close(std::span<const BuilderIndex> lost, base::Time now, Out& out) {
        is_closing_ = true;
        turn_.is_on = false;
        for (const BuilderIndex builder : lost) {
            lose(builders_[builder]);
        }
        announce_the_last(out);
        write_what_is_permitted(now, out);
    }

    /// After on_close: whether all grants of live builder units have been written.
    [[nodiscard]] bool is_drained() const;

    /// The first MEP that the next epoch may take, as far as this unit knows: no live builder unit
    /// has answered this or a later MEP, and no lost builder unit can have built one. Precondition:
    /// is_drained.
    [[nodiscard]] std::uint64_t next_mep() const;

    /// Ends the epoch: MFPs before `next_mep`, the largest value of all live units, are
    /// acknowledged. Of these, MFPs neither written nor discarded are dropped. MFPs from `next_mep`
    /// on belong to the next epoch. Precondition: is_drained, and nothing reads the streams'
    /// buffers for a lost builder unit.
    template <PushReadoutOut Out>
    void on_end(std::uint64_t next_mep, Out& out) {
        for (const StreamIndex stream : streams_.indices()) {
            const std::uint64_t end = std::min(next_mep, streams_[stream].admitted);
            for (std::uint64_t mep = streams_[stream].acknowledged; mep < end; ++mep) {
                if (mfp(mep, stream).state != State::complete) {
                    count_dropped(mep, stream);
                    complete(mep, stream, out);
                }
            }
        }
    }

    /// Number of MFPs of the stream admitted until now, in order.
    [[nodiscard]] std::uint64_t admitted(StreamIndex stream) const {
        return streams_[stream].admitted;
    }
    [[nodiscard]] std::uint64_t acknowledged(StreamIndex stream) const {
        return streams_[stream].acknowledged;
    }

    /// Grants of this builder unit that are not yet written, among its MEPs before number `until`
    /// (counted per builder).
    struct Grants {
        std::uint64_t turn = 0;  ///< turn of its next MFP, discarded or not
        StreamIndex stream;
        std::uint64_t writes = 0;
        base::Bytes bytes = 0;
    };
    [[nodiscard]] Grants granted(BuilderIndex builder, std::uint64_t until) const;
    /// Number of the builder unit's first MEP that is neither granted nor discarded.
    [[nodiscard]] std::uint64_t answered(BuilderIndex builder) const {
        return builders_[builder].answered;
    }
    [[nodiscard]] const Counters& counters() const { return counters_; }
    /// Writes under way to builders that are not lost.
    [[nodiscard]] std::uint64_t writes_under_way() const { return under_way_; }
    /// Bytes that the stream's buffer holds.
    [[nodiscard]] base::Bytes buffered(StreamIndex stream) const {
        return streams_[stream].buffer.held();
    }

  private:
    static constexpr base::Bytes nothing = -1;

    enum class Answer : std::uint8_t { pending, granted, discarded };
    enum class State : std::uint8_t { held, being_written, complete };

    /// Progress of a stream's MFPs: how many were admitted, acknowledged and freed, in order.
    struct Stream {
        ByteRing buffer;
        std::uint64_t admitted = 0;
        std::uint64_t acknowledged = 0;
        std::uint64_t freed = 0;
        base::Bytes waiting = nothing;  ///< size of the MFP that waits at the source
    };
    struct Mfp {
        base::Bytes bytes = 0;
        base::Bytes from = 0;
        base::Bytes to = 0;
        State state = State::held;
    };
    /// Progress of a builder unit's MEPs: how many were announced, answered and written, in order.
    struct Builder {
        std::uint64_t announced = 0;
        std::uint64_t answered = 0;  ///< end of the answers without a gap
        std::uint64_t written = 0;   ///< or discarded; stream `next_stream` of the next MEP follows
        StreamIndex next_stream;
        std::uint64_t under_way = 0;                    ///< writes
        std::uint64_t answered_at_close = without_end;  ///< as in on_closing
        std::uint64_t turn_end = without_end;           ///< as in on_last_answer
        bool is_lost = false;
    };
    struct Turn {
        BuilderIndex builder{};
        std::uint64_t until = 0;
        std::uint64_t left_over = 0;
        base::Time deadline = base::Time::never();
        bool is_on = false;
    };

    explicit PushReadout(PushReadoutConfig config);

    template <PushReadoutOut Out>
    void admit_what_has_room(StreamIndex index, Out& out) {
        Stream& stream = streams_[index];
        if (stream.waiting == nothing || stream.admitted - stream.freed == config_.buffered_mfps) {
            return;
        }
        const auto place =
            stream.buffer.push(stream.admitted, std::max<base::Bytes>(stream.waiting, 1));
        if (!place) {
            return;
        }
        const std::uint64_t number = stream.admitted++;
        mfp(number, index) = {.bytes = stream.waiting, .from = *place};
        ++counters_.mfps;
        counters_.mfp_bytes += stream.waiting;
        stream.waiting = nothing;
        out.admitted(index, MepId{number}, *place);
        announce_what_is_complete(builder_of(MepId{number}, config_.builders), out);
    }

    template <PushReadoutOut Out>
    void announce_what_is_complete(BuilderIndex index, Out& out) {
        Builder& builder = builders_[index];
        while (builder.announced - builder.answered < config_.announced_meps) {
            const MepId mep = mep_of(index, builder.announced, config_.builders);
            if (is_closing_ && number(mep) >= end_) {
                return;
            }
            const auto has_it = [&](const Stream& s) { return number(mep) < s.admitted; };
            if (!std::ranges::all_of(streams_, has_it)) {
                return;
            }
            const std::size_t slot = slot_of(number(mep));
            answers_[slot] = Answer::pending;
            for (const StreamIndex stream : streams_.indices()) {
                sizes_[stream.value()] = mfps_[slot * config_.streams + stream.value()].bytes;
            }
            ++builder.announced;
            ++counters_.announced;
            out.announce(index, mep, std::span<const base::Bytes>(sizes_));
        }
    }

    /// Announces MEPs up to the end of the epoch, so that no builder unit lacks a MEP before one
    /// that another builder unit has answered.
    template <PushReadoutOut Out>
    void announce_the_last(Out& out) {
        const auto has_closed = [](const Builder& builder) {
            return builder.is_lost || builder.answered_at_close != without_end;
        };
        if (!is_closing_ || has_end_ || !std::ranges::all_of(builders_, has_closed)) {
            return;
        }
        has_end_ = true;
        for (const BuilderIndex index : builders_.indices()) {
            if (const Builder& builder = builders_[index]; !builder.is_lost) {
                end_ =
                    std::max(end_, meps_before(index, builder.answered_at_close, config_.builders));
            }
        }
        for (const BuilderIndex index : builders_.indices()) {
            if (!builders_[index].is_lost) {
                out.last_announcement(index, turns_before(index, end_, config_.builders));
                announce_what_is_complete(index, out);
            }
        }
    }

    template <PushReadoutOut Out>
    void go_on_after_answer(BuilderIndex index, base::Time now, Out& out) {
        Builder& builder = builders_[index];
        while (builder.answered < builder.announced &&
               answer(index, builder.answered) != Answer::pending) {
            ++builder.answered;
        }
        drop_what_is_discarded(index, out);
        announce_what_is_complete(index, out);
        write_what_is_permitted(now, out);
    }

    /// Drops the builder unit's next MEPs, as long as they are discarded.
    template <PushReadoutOut Out>
    void drop_what_is_discarded(BuilderIndex index, Out& out) {
        Builder& builder = builders_[index];
        while (builder.written < builder.answered && builder.next_stream == StreamIndex() &&
               answer(index, builder.written) == Answer::discarded) {
            const std::uint64_t mep = number(mep_of(index, builder.written++, config_.builders));
            for (const StreamIndex stream : streams_.indices()) {
                counters_.discarded_bytes += mfp(mep, stream).bytes;
                complete(mep, stream, out);
            }
        }
    }

    template <PushReadoutOut Out>
    void write_what_is_permitted(base::Time now, Out& out) {
        if (turn_.is_on) {
            write_what_the_turn_permits(now, out);
        } else if (is_closing_) {
            write_what_is_granted(out);
        }
    }

    /// Begins with the builder unit of the last turn, which differs among readout units.
    template <PushReadoutOut Out>
    void write_what_is_granted(Out& out) {
        for (std::uint32_t i = 0; i < config_.builders; ++i) {
            const BuilderIndex index((std::uint64_t{turn_.builder.value()} + i) % config_.builders);
            const Builder& builder = builders_[index];
            while (!builder.is_lost && builder.written < builder.answered) {
                write_next(index, out);
                drop_what_is_discarded(index, out);
            }
        }
    }

    template <PushReadoutOut Out>
    void write_what_the_turn_permits(base::Time now, Out& out) {
        const Builder& builder = builders_[turn_.builder];
        while (builder.written < turn_.until && builder.written < builder.answered &&
               ends_in_time(next_mfp(builder).bytes, now)) {
            write_next(turn_.builder, out);
            drop_what_is_discarded(turn_.builder, out);
        }
        if (builder.written >= turn_.until && under_way_ <= turn_.left_over) {
            turn_.is_on = false;
            out.turn_done();
        }
    }

    template <PushReadoutOut Out>
    void write_next(BuilderIndex index, Out& out) {
        Builder& builder = builders_[index];
        const MepId mep = mep_of(index, builder.written, config_.builders);
        const StreamIndex stream = builder.next_stream++;
        if (!streams_.contains(builder.next_stream)) {
            builder.next_stream = StreamIndex();
            ++builder.written;
        }
        Mfp& next = mfp(number(mep), stream);
        next.state = State::being_written;
        ++under_way_;
        ++builder.under_way;
        ++counters_.writes;
        out.write(PushWrite{mep, stream, index, next.from, next.to, next.bytes});
    }

    /// Whether a write ends before the deadline; if it does, reserves the time of the write.
    bool ends_in_time(base::Bytes bytes, base::Time now) {
        if (turn_.deadline == base::Time::never()) {
            return true;
        }
        const base::Time begin = std::max(now, busy_until_);
        const base::Time end = begin + write_time_(bytes);
        if (begin >= turn_.deadline || end > turn_.deadline) {  // an empty MFP takes no time
            return false;
        }
        busy_until_ = end;
        return true;
    }

    template <PushReadoutOut Out>
    void complete(std::uint64_t mep, StreamIndex index, Out& out) {
        mfp(mep, index).state = State::complete;
        Stream& stream = streams_[index];
        while (stream.acknowledged < stream.admitted &&
               mfp(stream.acknowledged, index).state == State::complete) {
            out.acknowledge(index, MepId{stream.acknowledged++});
        }
    }

    [[nodiscard]] bool is_unanswered(MepId mep) const {
        const BuilderIndex index = builder_of(mep, config_.builders);
        const Builder& builder = builders_[index];
        const std::uint64_t turn = turn_of(mep, config_.builders);
        return !builder.is_lost && turn >= builder.answered &&
               turn < std::min(builder.announced, builder.turn_end) &&
               answer(index, turn) == Answer::pending;
    }
    void ignore_answer(BuilderIndex builder) {
        ++(builders_[builder].is_lost ? counters_.from_lost : counters_.unexpected_answers);
    }
    void lose(Builder& builder);
    void count_dropped(std::uint64_t mep, StreamIndex stream);
    [[nodiscard]] bool is_being_written(MepId mep, StreamIndex stream) const {
        return streams_.contains(stream) && number(mep) >= streams_[stream].acknowledged &&
               number(mep) < streams_[stream].admitted &&
               mfps_[slot_of(number(mep)) * config_.streams + stream.value()].state ==
                   State::being_written;
    }

    [[nodiscard]] static std::uint64_t number(MepId mep) { return static_cast<std::uint64_t>(mep); }
    [[nodiscard]] std::size_t slot_of(std::uint64_t mep) const {
        return static_cast<std::size_t>(mep % config_.buffered_mfps);
    }
    [[nodiscard]] Mfp& mfp(std::uint64_t mep, StreamIndex stream) {
        return mfps_[slot_of(mep) * config_.streams + stream.value()];
    }
    [[nodiscard]] Mfp& next_mfp(const Builder& builder) {
        return mfp(number(mep_of(turn_.builder, builder.written, config_.builders)),
                   builder.next_stream);
    }
    [[nodiscard]] Answer answer(BuilderIndex builder, std::uint64_t turn) const {
        return answers_[slot_of(number(mep_of(builder, turn, config_.builders)))];
    }

    PushReadoutConfig config_;
    base::WireClock write_time_;
    base::Table<StreamIndex, Stream> streams_;
    base::Table<BuilderIndex, Builder> builders_;
    std::vector<Mfp> mfps_;           ///< per MEP in the buffers and stream
    std::vector<Answer> answers_;     ///< per MEP in the buffers, from its announcement on
    std::vector<base::Bytes> sizes_;  ///< per stream, of the MEP being announced
    Turn turn_;
    std::uint64_t under_way_ = 0;  ///< to builders that are not lost
    bool is_closing_ = false;
    bool has_end_ = false;   ///< all live builders have reported their last answer
    std::uint64_t end_ = 0;  ///< if has_end_: the first MEP of the next epoch
    base::Time busy_until_ = base::Time::zero();
    Counters counters_;
};

}  // namespace daqloom::protocol
