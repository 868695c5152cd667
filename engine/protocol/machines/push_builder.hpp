// The builder unit of the push protocol: collects the sizes of a multi-event packet (MEP), grants a
// place to each of its multi-fragment packets (MFPs), and reports the MEP when all are written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/data/byte_ring.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/data/mep.hpp"
#include "protocol/data/mep_layout.hpp"

namespace daqloom::protocol {

/// Builder unit of a MEP, given by the MEP number alone, without a central scheduler.
constexpr BuilderIndex builder_of(MepId mep, std::uint32_t builders) {
    return BuilderIndex(static_cast<std::uint64_t>(mep) % builders);
}
/// Position of a MEP among its builder's MEPs, 0, 1, …
constexpr std::uint64_t turn_of(MepId mep, std::uint32_t builders) {
    return static_cast<std::uint64_t>(mep) / builders;
}
constexpr MepId mep_of(BuilderIndex builder, std::uint64_t turn, std::uint32_t builders) {
    return MepId{turn * builders + builder.value()};
}
/// One more than the builder unit's last MEP number before turn `turn`; 0 if there is none.
constexpr std::uint64_t meps_before(BuilderIndex builder, std::uint64_t turn,
                                    std::uint32_t builders) {
    return turn == 0 ? 0 : static_cast<std::uint64_t>(mep_of(builder, turn - 1, builders)) + 1;
}
/// Number of the builder's MEPs before number `end`.
constexpr std::uint64_t turns_before(BuilderIndex builder, std::uint64_t end,
                                     std::uint32_t builders) {
    return end <= builder.value() ? 0 : (end - builder.value() - 1) / builders + 1;
}

/// The handling of a MEP for which the output buffer has no space.
enum class WhenFull {
    discard,  ///< all units discard it, and the run goes on
    wait,     ///< the MEP waits, and with it all units (back-pressure)
};

struct PushBuilderConfig {
    BuilderIndex self{};
    std::uint32_t builders = 1;
    base::Table<ReadoutIndex, std::uint32_t> streams = {1};
    /// Limit on answered MEPs, counted from the oldest one that is not yet built. At least the
    /// number of MEPs that a readout unit sends per phase.
    std::uint32_t concurrent_meps = 2;
    /// Limit on MEPs announced and not yet answered, as in PushReadoutConfig.
    std::uint32_t announced_meps = 1;
    base::Bytes output_buffer = base::Bytes{1} << 30;
    /// Bytes of a usual MEP in the output buffer, padding included; 0: unknown.
    base::Bytes usual_mep = 0;
    /// Limit on MEPs in the output buffer, independent of their sizes.
    std::uint64_t output_meps = std::numeric_limits<std::uint64_t>::max();
    WhenFull when_full = WhenFull::discard;
    WhenIncomplete when_incomplete = WhenIncomplete::deliver;
    MepLayout layout = {};
    /// Every MEP starts at a multiple of it in the output buffer; a power of two up to 2^30.
    base::Bytes output_alignment = 1;
};

/// Fails if the output buffer is smaller than one MEP of `usual_mep` bytes, because all MEPs would
/// be discarded.
base::expected<void> check_output(base::Bytes output_buffer, base::Bytes usual_mep);

/// The outputs of a builder unit, implemented by its driver. They must not call the unit back.
template <class Out>
concept PushBuilderOut = requires(Out& out, ReadoutIndex readout, MepId mep, base::Bytes bytes,
                                  std::span<const base::Bytes> offsets, std::uint64_t turn) {
    /// Send the readout unit the offsets of its MFPs in the output buffer, one per stream. The span
    /// is valid during the call only.
    out.grant(readout, mep, offsets);
    /// Order the readout unit to drop its MFPs.
    out.discard(readout, mep);
    /// The MEP lies at this offset of the output buffer: process it, then call on_processed.
    out.built(mep, bytes, bytes);
    // ---- when an epoch ends
    /// Notify the readout unit that the epoch is closing and all turns before `turn` are answered.
    out.closing(readout, turn);
    /// Notify the readout unit that no MEP of this or a later turn will be answered.
    out.last_answer(readout, turn);
    /// Like `built`, but without the MFPs of streams for which is_written is false.
    out.incomplete(mep, bytes, bytes);
};

/// The builder unit of the push protocol. It answers MEPs in order, each when all readout units
/// have announced its sizes: it grants the MEP if the output buffer has space. The MEP keeps the
/// space until it has been processed.
///
/// Invariants: a MEP is answered once, with the same answer to all readout units; no two MEPs
/// overlap in the output buffer; a granted MEP is built once, when its last MFP has arrived; at
/// most `concurrent_meps` are granted and not yet built. Messages may be reordered. Invalid input
/// (duplicate sizes, an MFP that was not granted, …) is counted and otherwise ignored.
///
/// on_close ends an epoch: builder units send the number of their last answered MEP to all readout
/// units. Readout units announce all MEPs up to the largest of these numbers to the other builder
/// units, so that no number is left out. Once is_drained, every granted MEP has the MFPs of all
/// live readout units. on_end delivers or drops the MEPs that lack MFPs of lost units.
///
/// In a MEP, streams are numbered consecutively over all readout units.
class PushBuilder {
  public:
    struct Counters {
        std::uint64_t granted = 0;    ///< MEPs
        std::uint64_t discarded = 0;  ///< MEPs
        base::Bytes discarded_bytes = 0;
        std::uint64_t mfps = 0;
        std::uint64_t built = 0;
        base::Bytes built_bytes = 0;       ///< of MFPs, without header and padding
        std::uint64_t incomplete = 0;      ///< MEPs delivered without some MFPs
        base::Bytes incomplete_bytes = 0;  ///< bytes of the MFPs that they have
        std::uint64_t dropped = 0;         ///< MEPs that lacked some MFPs
        base::Bytes dropped_bytes = 0;     ///< bytes of the MFPs that they had
        std::uint64_t processed = 0;
        std::uint64_t from_lost = 0;         ///< inputs ignored because their readout unit was lost
        std::uint64_t unexpected_sizes = 0;  ///< announced before, too early, of another builder, …
        std::uint64_t unexpected_mfps = 0;       ///< a duplicate, or never granted
        std::uint64_t unexpected_processed = 0;  ///< the MEP is not held, or not built
    };

    static base::expected<PushBuilder> make(PushBuilderConfig config);

    /// A readout unit announces the sizes of its MFPs of a MEP, in bytes, one per stream.
    template <PushBuilderOut Out>
    void on_sizes(ReadoutIndex readout, MepId mep, std::span<const base::Bytes> sizes, Out& out) {
        if (!fits(readout, mep, sizes)) {
            ++(is_lost(readout) ? counters_.from_lost : counters_.unexpected_sizes);
            return;
        }
        const std::size_t slot = slot_of(turn_of(mep, config_.builders));
        announced_[slot * readouts() + readout.value()] = true;
        std::ranges::copy(sizes, sizes_.begin() + at(slot, first_stream_[readout]));
        ++meps_[slot].announced;
        go_on(out);
    }

    /// The MFP of one stream has arrived at its place.
    template <PushBuilderOut Out>
    void on_written(ReadoutIndex readout, StreamIndex stream, MepId mep, Out& out) {
        if (!is_awaited(readout, stream, mep)) {
            ++(is_lost(readout) ? counters_.from_lost : counters_.unexpected_mfps);
            return;
        }
        const std::size_t slot = slot_of(turn_of(mep, config_.builders));
        const auto place = at(slot, number_of({readout, stream}));
        Mep& here = meps_[slot];
        written_[static_cast<std::size_t>(place)] = true;
        ++counters_.mfps;
        awaited_ -= is_closing_ ? 1 : 0;
        if (++here.written < streams()) {
            return;
        }
        here.state = State::done;
        ++counters_.built;
        counters_.built_bytes += here.payload;
        out.built(mep, here.place, here.bytes);
        forget_what_is_done();
        go_on(out);
    }

    /// The MEP has left the output buffer.
    template <PushBuilderOut Out>
    void on_processed(MepId mep, Out& out) {
        const std::uint64_t turn = turn_of(mep, config_.builders);
        const bool is_built =
            is_ours(mep) && (turn < oldest_ || meps_[slot_of(turn)].state == State::done);
        if (!is_built || !output_.free(turn)) {
            ++counters_.unexpected_processed;
            return;
        }
        ++counters_.processed;
        go_on(out);
    }

    /// Forbids answers to MEPs from turn `turn_end` on, until the next call. Their announcements
    /// are kept. Before the first call there is no limit.
    template <PushBuilderOut Out>
    void on_lease(std::uint64_t turn_end, Out& out) {
        leased_until_ = turn_end;
        go_on(out);
    }

    // ---- the end of an epoch ------------------------------------------------------------------

    /// Begins the end of the epoch: MEPs are answered up to the last one that any builder unit has
    /// answered. Called again if more readout units are lost or the end takes too long: MEPs
    /// without space are then discarded. Precondition: the units in `lost` exist.
    template <PushBuilderOut Out>
    void on_close(std::span<const ReadoutIndex> lost, Out& out) {
        for (const ReadoutIndex readout : lost) {
            lost_[readout] = true;
        }
        if (is_closing_) {
            config_.when_full = WhenFull::discard;
        } else {
            is_closing_ = true;
            answer_until_ = next_to_answer_;
            for_each_live_readout(
                [&](ReadoutIndex readout) { out.closing(readout, next_to_answer_); });
        }
        awaited_ = count_awaited();
        go_on(out);
    }

    /// The readout unit announces all MEPs before turn `turn_end`, and needs no later answers.
    template <PushBuilderOut Out>
    void on_last_announcement(ReadoutIndex readout, std::uint64_t turn_end, Out& out) {
        if (!lost_.contains(readout) || !is_closing_ || lost_[readout] ||
            turn_ends_[readout] != no_end) {
            ++(is_lost(readout) ? counters_.from_lost : counters_.unexpected_sizes);
            return;
        }
        turn_ends_[readout] = turn_end;
        go_on(out);
    }

    /// After on_close: whether all turns are answered and all granted MFPs of live units arrived.
    [[nodiscard]] bool is_drained() const { return has_answered_last_ && awaited_ == 0; }

    /// Ends the epoch: MEPs that lack MFPs are delivered or dropped, in order. Delivered MEPs keep
    /// their place in the output buffer until on_processed. Precondition: is_drained.
    template <PushBuilderOut Out>
    void on_end(Out& out) {
        for (std::uint64_t turn = oldest_; turn < next_to_answer_; ++turn) {
            Mep& here = meps_[slot_of(turn)];
            if (here.state != State::granted) {
                continue;
            }
            const base::Bytes bytes = written_bytes(turn);
            if (config_.when_incomplete == WhenIncomplete::deliver && has_any(turn)) {
                ++counters_.incomplete;
                counters_.incomplete_bytes += bytes;
                out.incomplete(mep_of(config_.self, turn, config_.builders), here.place,
                               here.bytes);
            } else {
                ++counters_.dropped;
                counters_.dropped_bytes += bytes;
                output_.free(turn);
            }
            here.state = State::done;
        }
        forget_what_is_done();
    }

    /// One more than the last MEP number that this builder has answered, or counted as discarded
    /// because a lost readout unit never announced it.
    [[nodiscard]] std::uint64_t next_mep() const;

    // ---- contents of a MEP: during `built` and `incomplete` ------------------------------------

    /// Sizes of the MEP's MFPs, one per stream, 0 for an empty MFP.
    [[nodiscard]] std::span<const base::Bytes> sizes_of(MepId mep) const {
        return std::span(sizes_).subspan(slot_of(turn_of(mep, config_.builders)) * streams(),
                                         streams());
    }
    /// Whether the stream's MFP has been written.
    [[nodiscard]] bool is_written(MepId mep, std::uint32_t stream) const {
        return written_[slot_of(turn_of(mep, config_.builders)) * streams() + stream];
    }

    // ---- numbers ------------------------------------------------------------------------------

    struct Stream {
        ReadoutIndex readout{};
        StreamIndex stream;
        friend constexpr bool operator==(Stream, Stream) = default;
    };

    [[nodiscard]] std::uint32_t streams() const { return first_stream_.back(); }
    /// Number of a stream in a MEP.
    [[nodiscard]] std::uint32_t number_of(Stream stream) const {
        return first_stream_[stream.readout] + stream.stream.value();
    }
    /// Stream with this number. Precondition: the number exists.
    [[nodiscard]] Stream stream_of(std::uint32_t number) const;
    /// Oldest turn that is not done. No MFP is being written `concurrent_meps` or more turns later.
    [[nodiscard]] std::uint64_t oldest_turn() const { return oldest_; }

    [[nodiscard]] const Counters& counters() const { return counters_; }
    /// MEPs granted and not yet built, delivered incomplete or dropped.
    [[nodiscard]] std::uint64_t under_construction() const {
        return counters_.granted - counters_.built - counters_.incomplete - counters_.dropped;
    }
    /// MEPs with a place in the output buffer.
    [[nodiscard]] std::uint64_t meps_held() const {
        return counters_.granted - counters_.dropped - counters_.processed;
    }
    /// Bytes in use in the output buffer.
    [[nodiscard]] base::Bytes output_held() const { return output_.held(); }

  private:
    static constexpr std::uint64_t no_end = std::numeric_limits<std::uint64_t>::max();

    enum class State : std::uint8_t { announced, granted, done };

    struct Mep {
        std::uint32_t announced = 0;  ///< readout units that have announced
        std::uint32_t written = 0;    ///< MFPs
        State state = State::announced;
        base::Bytes place = 0;
        base::Bytes bytes = 0;
        base::Bytes payload = 0;
    };

    explicit PushBuilder(PushBuilderConfig config);

    [[nodiscard]] bool fits(ReadoutIndex readout, MepId mep,
                            std::span<const base::Bytes> sizes) const;
    [[nodiscard]] bool is_awaited(ReadoutIndex readout, StreamIndex stream, MepId mep) const;
    /// MFPs granted to live readout units and not yet written.
    [[nodiscard]] std::uint64_t count_awaited() const;
    /// Bytes of a MEP's MFPs that have been written.
    [[nodiscard]] base::Bytes written_bytes(std::uint64_t turn) const;
    /// Whether any of the MEP's MFPs has been written.
    [[nodiscard]] bool has_any(std::uint64_t turn) const;
    [[nodiscard]] bool is_lost(ReadoutIndex readout) const {
        return lost_.contains(readout) && lost_[readout];
    }

    template <PushBuilderOut Out>
    void go_on(Out& out) {
        answer_what_is_complete(out);
        if (is_closing_ && !has_answered_last_) {
            answer_the_last(out);
        }
    }

    template <PushBuilderOut Out>
    void answer_what_is_complete(Out& out) {
        while (next_to_answer_ < std::min(answer_until_, leased_until_) &&
               next_to_answer_ < oldest_ + config_.concurrent_meps &&
               meps_[slot_of(next_to_answer_)].announced == readouts()) {
            if (!answer_next(out)) {
                return;
            }
        }
    }

    /// Sends the last answer once all live readout units have made their last announcement. If a
    /// readout unit is lost, unanswered MEPs are counted as discarded.
    template <PushBuilderOut Out>
    void answer_the_last(Out& out) {
        std::uint64_t first_end = no_end;
        std::uint64_t last_end = next_to_answer_;
        for (const ReadoutIndex readout : lost_.indices()) {
            if (!lost_[readout] && turn_ends_[readout] == no_end) {
                return;
            }
            if (turn_ends_[readout] != no_end) {
                first_end = std::min(first_end, turn_ends_[readout]);
                last_end = std::max(last_end, turn_ends_[readout]);
            }
        }
        if (std::ranges::find(lost_, true) == lost_.end()) {
            answer_until_ = std::max(first_end, next_to_answer_);
            answer_what_is_complete(out);
            if (next_to_answer_ < answer_until_) {
                return;
            }
        }
        has_answered_last_ = true;
        unanswered_ = last_end - next_to_answer_;
        counters_.discarded += unanswered_;
        for_each_live_readout(
            [&](ReadoutIndex readout) { out.last_answer(readout, next_to_answer_); });
    }

    /// Answers the next MEP. False: the MEP waits for space in the output buffer.
    template <PushBuilderOut Out>
    bool answer_next(Out& out) {
        const std::size_t slot = slot_of(next_to_answer_);
        const MepId mep = mep_of(config_.self, next_to_answer_, config_.builders);
        Mep& here = meps_[slot];
        const auto sizes = std::span(sizes_).subspan(slot * streams(), streams());
        const auto offsets = std::span(offsets_);
        here.payload = 0;
        for (const base::Bytes size : sizes) {
            here.payload += size;
        }
        here.bytes = std::max(lay_out(config_.layout, sizes, offsets), config_.layout.alignment);
        const base::Bytes room = aligned(here.bytes, config_.output_alignment);
        const auto place =
            meps_held() < config_.output_meps ? output_.push(next_to_answer_, room) : std::nullopt;
        if (!place) {
            if (config_.when_full == WhenFull::wait && room <= output_.capacity()) {
                return false;
            }
            here.state = State::done;
            ++next_to_answer_;
            ++counters_.discarded;
            counters_.discarded_bytes += here.payload;
            forget_what_is_done();
            for_each_readout([&](ReadoutIndex readout) { out.discard(readout, mep); });
            return true;
        }
        here.state = State::granted;
        here.place = *place;
        ++next_to_answer_;
        ++counters_.granted;
        awaited_ += is_closing_ ? streams() : 0;
        for (base::Bytes& offset : offsets) {
            offset += *place;
        }
        for_each_readout([&](ReadoutIndex readout) {
            out.grant(readout, mep,
                      offsets.subspan(first_stream_[readout], config_.streams[readout]));
        });
        return true;
    }

    /// Visits readout units in the order in which the linear shift lets them send to this builder
    /// unit, so that not all builder units begin with the same readout unit.
    template <class Action>
    void for_each_readout(Action action) const {
        for (std::uint32_t i = 0; i < readouts(); ++i) {
            action(ReadoutIndex((config_.self.value() % readouts() + readouts() - i) % readouts()));
        }
    }

    template <class Action>
    void for_each_live_readout(Action action) const {
        for_each_readout([&](ReadoutIndex readout) {
            if (!lost_[readout]) {
                action(readout);
            }
        });
    }

    void forget_what_is_done();

    [[nodiscard]] bool is_ours(MepId mep) const {
        return builder_of(mep, config_.builders) == config_.self;
    }
    [[nodiscard]] std::uint32_t readouts() const {
        return static_cast<std::uint32_t>(config_.streams.size());
    }
    /// Index of a turn in `meps_`: each turn from `oldest_` on that can be granted or announced has
    /// its own slot.
    [[nodiscard]] std::size_t slot_of(std::uint64_t turn) const {
        return static_cast<std::size_t>(turn % meps_.size());
    }
    [[nodiscard]] std::ptrdiff_t at(std::size_t slot, std::uint32_t stream) const {
        return static_cast<std::ptrdiff_t>(slot * streams() + stream);
    }

    PushBuilderConfig config_;
    base::Table<ReadoutIndex, std::uint32_t> first_stream_;  ///< and the total number
    std::vector<Mep> meps_;                                  ///< per slot
    std::vector<base::Bytes> sizes_;                         ///< per slot and stream
    std::vector<base::Bytes> offsets_;     ///< per stream, of the MEP being answered
    std::vector<bool> announced_;          ///< per slot and readout unit
    std::vector<bool> written_;            ///< per slot and stream
    ByteRing output_;                      ///< MEPs granted and not yet processed, by turn
    std::uint64_t oldest_ = 0;             ///< turn of the first MEP that is not done
    std::uint64_t next_to_answer_ = 0;     ///< turn
    std::uint64_t answer_until_ = no_end;  ///< turn, when the epoch ends
    std::uint64_t leased_until_ = no_end;  ///< turn, see on_lease
    base::Table<ReadoutIndex, bool> lost_;
    base::Table<ReadoutIndex, std::uint64_t> turn_ends_;  ///< turns of on_last_announcement
    bool is_closing_ = false;
    bool has_answered_last_ = false;
    std::uint64_t unanswered_ = 0;  ///< MEPs that a lost readout unit has not announced
    std::uint64_t awaited_ = 0;     ///< MFPs awaited while closing
    Counters counters_;
};

}  // namespace daqloom::protocol
