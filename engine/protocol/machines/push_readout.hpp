// The readout unit of the push protocol: holds multi-fragment packets (MFPs) of several streams,
// announces their sizes, and writes each to its place when it is its builder's turn.
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
    /// MFPs of a stream in its buffer at once.
    std::uint32_t buffered_mfps = 1;
    base::Bytes stream_buffer = base::Bytes{1} << 30;
    base::Bytes largest_mfp = base::Bytes{1} << 24;
    /// Announced to a builder and not yet answered.
    std::uint32_t announced_meps = 1;
    /// Under way at once; 0: no limit.
    std::uint32_t parallel_writes = 0;
    /// At which writes are expected to proceed, one after the other: what fits into a time window
    /// is reckoned with it. Without meaning for turns without a deadline.
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

/// The outputs of a readout unit, which the driver implements. None may call the unit back.
template <class Out>
concept PushReadoutOut =
    requires(Out& out, StreamIndex stream, BuilderIndex builder, MepId mep, base::Bytes bytes,
             std::span<const base::Bytes> sizes, const PushWrite& write, std::uint64_t turn) {
        /// The stream's MFP with the number of this MEP has its place in the buffer, at this
        /// offset: the next may be generated.
        out.admitted(stream, mep, bytes);
        /// Tell the builder the sizes of a MEP's MFPs, one per stream. Valid during the call only.
        out.announce(builder, mep, sizes);
        /// Write, tell the builder when all is there, and call on_write_done.
        out.write(write);
        /// The buffer's oldest MFP is not needed any more: give its space back to whoever fills the
        /// buffer, and call on_acknowledged when that has come through.
        out.acknowledge(stream, mep);
        /// All that was to be written in this turn is, but for what may be left over.
        out.turn_done();
        /// The epoch ends: tell the builder to answer the turns before this one, and no others.
        out.last_announcement(builder, turn);
    };

/// MFP m of each stream belongs to MEP m, which builder unit m mod builders builds. A builder
/// unit's MEPs are announced in order, each when all streams have their MFP, and written in order,
/// when it is the builder unit's turn. The schedule (see ShiftUnit) calls the turns.
///
/// Invariants: every MFP is written once, at the offset that the builder unit granted, or dropped
/// if the builder unit discards the MEP; a stream's buffer never overflows: an MFP for which there
/// is no space waits at the source (back-pressure, counted); no write begins that could not end
/// before the turn's deadline. Messages may be reordered. Invalid input is counted and otherwise
/// ignored.
///
/// An epoch ends with on_close, before the MEP that comes after the last that a live builder had
/// answered by then: all have answered that one's predecessors when is_drained, all these are
/// written or discarded, and on_end leaves the others to the next epoch.
class PushReadout {
  public:
    struct Counters {
        std::uint64_t mfps = 0;  ///< admitted
        base::Bytes mfp_bytes = 0;
        std::uint64_t blocked = 0;    ///< MFPs that had to wait for room
        std::uint64_t announced = 0;  ///< MEPs
        std::uint64_t granted = 0;    ///< MEPs
        std::uint64_t discarded = 0;  ///< MEPs
        base::Bytes discarded_bytes = 0;
        std::uint64_t writes = 0;
        base::Bytes written_bytes = 0;  ///< of completed writes
        std::uint64_t overran = 0;      ///< writes under way when the next turn took over
        base::Bytes buffer_peak = 0;    ///< of the fullest stream
        std::uint64_t lost_mfps = 0;    ///< dropped: of a builder that was lost
        base::Bytes lost_bytes = 0;
        std::uint64_t unanswered_mfps = 0;  ///< dropped: others had answered later MEPs
        base::Bytes unanswered_bytes = 0;
        std::uint64_t from_lost = 0;  ///< answers ignored, as their builder was lost
        std::uint64_t unexpected_mfps = 0;
        std::uint64_t unexpected_answers = 0;  ///< grants, discards and last answers
        std::uint64_t unexpected_completions = 0;
        std::uint64_t unexpected_acknowledgements = 0;
    };

    static constexpr std::uint64_t without_end = std::numeric_limits<std::uint64_t>::max();

    static base::expected<PushReadout> make(PushReadoutConfig config);

    /// The source has the stream's next MFP. It is admitted at once, or when there is space; until
    /// then the source keeps it and must not offer another one.
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

    /// Whether the source may offer another one.
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

    /// From now on, write to this builder: its MEPs up to but without number `until` (counted per
    /// builder), as far as each write can end by the deadline. A turn ends with turn_done, when all
    /// of these have begun and no more than `left_over` writes, of this turn or earlier ones, are
    /// under way; or with the next turn. Precondition: there is such a builder.
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

    /// From now on, write to no builder unit.
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

    /// This builder is being closed, and has answered its turns before this one. May come before
    /// on_close.
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

    /// This builder answers its MEPs up to but without number `turn_end` (counted per builder), and
    /// no more. May come before on_close, and before those answers.
    void on_last_answer(BuilderIndex builder, std::uint64_t turn_end);

    /// The epoch is being closed: MEPs are announced only up to the furthest that some builder unit
    /// has answered, and everything that the live builder units have granted is written,
    /// independent of turns. Called again if more are lost. Writes to a lost builder unit are not
    /// awaited, but their MFPs keep their space. Precondition: there are such builder units.
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

    /// After on_close: all that was granted by the live builders has been written.
    [[nodiscard]] bool is_drained() const;

    /// From which MEP on the next epoch may take them all, as far as this unit knows: no live
    /// builder has answered that one or later ones, and no lost one can have built them.
    /// Precondition: is_drained.
    [[nodiscard]] std::uint64_t next_mep() const;

    /// The epoch is over: MFPs before `next_mep`, the largest of all live units, are acknowledged.
    /// Those that were not written or discarded are dropped; those from `next_mep` on are the next
    /// epoch's. Precondition: is_drained, and nobody reads the streams' buffers any more on behalf
    /// of a lost builder.
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

    /// How many MFPs of the stream have been: the first so many, in order.
    [[nodiscard]] std::uint64_t admitted(StreamIndex stream) const {
        return streams_[stream].admitted;
    }
    [[nodiscard]] std::uint64_t acknowledged(StreamIndex stream) const {
        return streams_[stream].acknowledged;
    }

    /// What this builder unit has granted of its MEPs up to but without number `until` (counted per
    /// builder), and is not written.
    struct Granted {
        std::uint64_t turn = 0;  ///< its next MFP, discarded or not
        StreamIndex stream;
        std::uint64_t writes = 0;
        base::Bytes bytes = 0;
    };
    [[nodiscard]] Granted granted(BuilderIndex builder, std::uint64_t until) const;
    /// Its MEPs before this number have been granted or discarded.
    [[nodiscard]] std::uint64_t answered(BuilderIndex builder) const {
        return builders_[builder].answered;
    }
    [[nodiscard]] const Counters& counters() const { return counters_; }
    /// To builders that are not lost.
    [[nodiscard]] std::uint64_t writes_under_way() const { return under_way_; }
    /// Bytes that the stream's buffer holds.
    [[nodiscard]] base::Bytes buffered(StreamIndex stream) const {
        return streams_[stream].buffer.held();
    }

  private:
    static constexpr base::Bytes nothing = -1;

    enum class Answer : std::uint8_t { pending, granted, discarded };
    enum class State : std::uint8_t { held, being_written, complete };

    /// The life of MFPs in a buffer; numbers of MFPs, each up to but without.
    struct Stream {
        ByteRing buffer;
        std::uint64_t admitted = 0;
        std::uint64_t acknowledged = 0;
        std::uint64_t freed = 0;
        base::Bytes waiting = nothing;  ///< at the source
    };
    struct Mfp {
        base::Bytes bytes = 0;
        base::Bytes from = 0;
        base::Bytes to = 0;
        State state = State::held;
    };
    /// The life of a builder's MEPs, counted per builder, each up to but without.
    struct Builder {
        std::uint64_t announced = 0;
        std::uint64_t answered = 0;  ///< without gap
        std::uint64_t written = 0;   ///< or discarded: then comes stream `next_stream` of the next
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
        counters_.buffer_peak = std::max(counters_.buffer_peak, stream.buffer.held());
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

    /// What other builders have answered beyond a builder's own last MEP has been announced to
    /// them, so that the streams have it.
    template <PushReadoutOut Out>
    void announce_the_last(Out& out) {
        const auto has_said = [](const Builder& builder) {
            return builder.is_lost || builder.answered_at_close != without_end;
        };
        if (!is_closing_ || has_end_ || !std::ranges::all_of(builders_, has_said)) {
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

    /// Of the MEPs that come next.
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

    /// Beginning with the builder whose turn it was: readout units do not all have the same one.
    template <PushReadoutOut Out>
    void write_what_is_granted(Out& out) {
        for (std::uint32_t i = 0; i < config_.builders; ++i) {
            const BuilderIndex index((std::uint64_t{turn_.builder.value()} + i) % config_.builders);
            const Builder& builder = builders_[index];
            while (!builder.is_lost && builder.written < builder.answered &&
                   under_way_ < most_writes_) {
                write_next(index, out);
                drop_what_is_discarded(index, out);
            }
        }
    }

    template <PushReadoutOut Out>
    void write_what_the_turn_permits(base::Time now, Out& out) {
        const Builder& builder = builders_[turn_.builder];
        while (builder.written < turn_.until && builder.written < builder.answered &&
               under_way_ < most_writes_ && ends_in_time(next_mfp(builder).bytes, now)) {
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

    /// If so, takes the time for it.
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
    std::uint64_t most_writes_;
    base::WireClock write_time_;
    base::Table<StreamIndex, Stream> streams_;
    base::Table<BuilderIndex, Builder> builders_;
    std::vector<Mfp> mfps_;           ///< per MEP in the buffers and stream
    std::vector<Answer> answers_;     ///< per MEP in the buffers, from its announcement on
    std::vector<base::Bytes> sizes_;  ///< per stream, of the MEP being announced
    Turn turn_;
    std::uint64_t under_way_ = 0;  ///< to builders that are not lost
    bool is_closing_ = false;
    bool has_end_ = false;   ///< all live builders have said how far they are
    std::uint64_t end_ = 0;  ///< of the epoch, if so: the first MEP that is left to the next
    base::Time busy_until_ = base::Time::zero();
    Counters counters_;
};

}  // namespace daqloom::protocol
