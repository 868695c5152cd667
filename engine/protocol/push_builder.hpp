// The builder unit of the push protocol: collects the sizes of a multi-event packet (MEP), says
// where each of its multi-fragment packets (MFPs) has its place, and reports the MEP when all are
// written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/byte_ring.hpp"
#include "protocol/identifiers.hpp"
#include "protocol/mep_layout.hpp"

namespace daqloom::protocol {

/// No central scheduler: the number of a MEP says who builds it.
constexpr BuilderIndex builder_of(MepId mep, std::uint32_t builders) {
    return static_cast<BuilderIndex>(static_cast<std::uint64_t>(mep) % builders);
}
/// The how manyeth of its builder's MEPs, 0, 1, …
constexpr std::uint64_t turn_of(MepId mep, std::uint32_t builders) {
    return static_cast<std::uint64_t>(mep) / builders;
}
constexpr MepId mep_of(BuilderIndex builder, std::uint64_t turn, std::uint32_t builders) {
    return MepId{turn * builders + builder};
}

/// What a builder does with a MEP for which its output buffer has no room.
enum class WhenFull {
    discard,  ///< drops it, everywhere, and goes on
    wait,     ///< holds it, and with it sooner or later the whole event builder
};

struct PushBuilderConfig {
    BuilderIndex self = 0;
    std::uint32_t builders = 1;
    std::vector<std::uint32_t> streams = {1};  ///< of each readout unit
    /// Answered at most so far beyond the oldest that is not built. At least as many as a readout
    /// unit sends per phase.
    std::uint32_t concurrent_meps = 2;
    /// As the readout units have it.
    std::uint32_t announced_meps = 1;
    base::Bytes output_buffer = base::Bytes{1} << 30;
    WhenFull when_full = WhenFull::discard;
    MepLayout layout = {};
};

/// What a builder asks of its driver. None of these may call the builder back.
template <class Out>
concept PushBuilderOut = requires(Out& out, ReadoutIndex readout, MepId mep, base::Bytes bytes,
                                  std::span<const base::Bytes> offsets) {
    /// Tell the readout unit where in the output buffer its MFPs belong, one offset per stream. The
    /// span is valid during the call only.
    out.grant(readout, mep, offsets);
    /// Tell the readout unit to drop its MFPs.
    out.discard(readout, mep);
    /// The MEP lies at this offset of the output buffer: process it, then call on_processed.
    out.built(mep, bytes, bytes);
};

/// MEPs are answered in order, each when all readout units have announced it: granted if it has its
/// place in the output buffer, which it keeps until it has been processed.
///
/// Invariants: a MEP is answered once, to all readout units alike; no two places overlap; a granted
/// MEP is built once, when the last MFP is there; granted and not yet built are at most
/// `concurrent_meps`. Messages may overtake each other. Whatever does not fit (sizes that come
/// twice, an MFP that was not granted, …) is counted and otherwise ignored.
class PushBuilder {
  public:
    struct Counters {
        std::uint64_t announcements = 0;
        std::uint64_t granted = 0;    ///< MEPs
        std::uint64_t discarded = 0;  ///< MEPs
        base::Bytes discarded_bytes = 0;
        std::uint64_t mfps = 0;
        std::uint64_t built = 0;
        base::Bytes built_bytes = 0;  ///< of MFPs, without header and padding
        std::uint64_t processed = 0;
        base::Bytes output_peak = 0;
        std::uint64_t unexpected_sizes = 0;      ///< announced before, too early, not ours, …
        std::uint64_t unexpected_mfps = 0;       ///< a duplicate, or never granted
        std::uint64_t unexpected_processed = 0;  ///< the MEP is not here, or not built
    };

    static base::expected<PushBuilder> make(PushBuilderConfig config);

    /// What a readout unit holds of a MEP, in bytes, one size per stream.
    template <PushBuilderOut Out>
    void on_sizes(ReadoutIndex readout, MepId mep, std::span<const base::Bytes> sizes, Out& out) {
        if (!fits(readout, mep, sizes)) {
            ++counters_.unexpected_sizes;
            return;
        }
        const std::size_t slot = slot_of(turn_of(mep, config_.builders));
        ++counters_.announcements;
        announced_[slot * readouts() + readout] = true;
        std::ranges::copy(sizes, sizes_.begin() + at(slot, first_source_[readout]));
        ++meps_[slot].announced;
        answer_what_is_complete(out);
    }

    /// The MFP of one stream is at its place.
    template <PushBuilderOut Out>
    void on_written(ReadoutIndex readout, StreamIndex stream, MepId mep, Out& out) {
        const std::uint64_t turn = turn_of(mep, config_.builders);
        if (!is_ours(mep) || readout >= readouts() || stream >= config_.streams[readout] ||
            turn < oldest_ || turn >= next_to_answer_) {
            ++counters_.unexpected_mfps;
            return;
        }
        const std::size_t slot = slot_of(turn);
        const auto source = at(slot, first_source_[readout] + stream);
        Mep& here = meps_[slot];
        if (here.state != State::granted || written_[static_cast<std::size_t>(source)]) {
            ++counters_.unexpected_mfps;
            return;
        }
        written_[static_cast<std::size_t>(source)] = true;
        ++counters_.mfps;
        if (++here.written < sources()) {
            return;
        }
        here.state = State::done;
        ++counters_.built;
        counters_.built_bytes += here.payload;
        const base::Bytes place = here.place;
        const base::Bytes bytes = here.bytes;
        forget_what_is_done();
        out.built(mep, place, bytes);
        answer_what_is_complete(out);
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
        answer_what_is_complete(out);
    }

    [[nodiscard]] const Counters& counters() const { return counters_; }
    /// MEPs granted and not yet built.
    [[nodiscard]] std::uint64_t under_construction() const {
        return counters_.granted - counters_.built;
    }
    /// Bytes of the output buffer that are taken.
    [[nodiscard]] base::Bytes output_held() const { return output_.held(); }

  private:
    enum class State : std::uint8_t { announced, granted, done };

    struct Mep {
        std::uint32_t announced = 0;  ///< by so many readout units
        std::uint32_t written = 0;    ///< MFPs
        State state = State::announced;
        base::Bytes place = 0;
        base::Bytes bytes = 0;
        base::Bytes payload = 0;
    };

    explicit PushBuilder(PushBuilderConfig config);

    [[nodiscard]] bool fits(ReadoutIndex readout, MepId mep,
                            std::span<const base::Bytes> sizes) const;

    template <PushBuilderOut Out>
    void answer_what_is_complete(Out& out) {
        while (next_to_answer_ < oldest_ + config_.concurrent_meps &&
               meps_[slot_of(next_to_answer_)].announced == readouts()) {
            if (!answer_next(out)) {
                return;
            }
        }
    }

    /// False: it has to wait for room.
    template <PushBuilderOut Out>
    bool answer_next(Out& out) {
        const std::size_t slot = slot_of(next_to_answer_);
        const MepId mep = mep_of(config_.self, next_to_answer_, config_.builders);
        Mep& here = meps_[slot];
        const auto sizes = std::span(sizes_).subspan(slot * sources(), sources());
        const auto offsets = std::span(offsets_);
        here.payload = 0;
        for (const base::Bytes size : sizes) {
            here.payload += size;
        }
        here.bytes = std::max(lay_out(config_.layout, sizes, offsets), config_.layout.alignment);
        const auto place = output_.push(next_to_answer_, here.bytes);
        if (!place) {
            if (config_.when_full == WhenFull::wait && here.bytes <= output_.capacity()) {
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
        counters_.output_peak = std::max(counters_.output_peak, output_.held());
        for (base::Bytes& offset : offsets) {
            offset += *place;
        }
        for_each_readout([&](ReadoutIndex readout) {
            out.grant(readout, mep,
                      offsets.subspan(first_source_[readout], config_.streams[readout]));
        });
        return true;
    }

    /// In the order in which linear shifting lets them send here, so that builders do not all begin
    /// with the same one.
    template <class Action>
    void for_each_readout(Action action) const {
        for (std::uint32_t i = 0; i < readouts(); ++i) {
            action((config_.self % readouts() + readouts() - i) % readouts());
        }
    }

    void forget_what_is_done();

    [[nodiscard]] bool is_ours(MepId mep) const {
        return builder_of(mep, config_.builders) == config_.self;
    }
    [[nodiscard]] std::uint32_t readouts() const {
        return static_cast<std::uint32_t>(config_.streams.size());
    }
    [[nodiscard]] std::uint32_t sources() const { return first_source_.back(); }
    /// Turns from `oldest_` on have a slot each, as many as can be granted or announced.
    [[nodiscard]] std::size_t slot_of(std::uint64_t turn) const {
        return static_cast<std::size_t>(turn % meps_.size());
    }
    [[nodiscard]] std::ptrdiff_t at(std::size_t slot, std::uint32_t source) const {
        return static_cast<std::ptrdiff_t>(slot * sources() + source);
    }

    PushBuilderConfig config_;
    std::vector<std::uint32_t> first_source_;  ///< of each readout unit, and their number
    std::vector<Mep> meps_;                    ///< per slot
    std::vector<base::Bytes> sizes_;           ///< per slot and source
    std::vector<base::Bytes> offsets_;         ///< per source, of the MEP being answered
    std::vector<bool> announced_;              ///< per slot and readout unit
    std::vector<bool> written_;                ///< per slot and source
    ByteRing output_;                          ///< MEPs granted and not yet processed, by turn
    std::uint64_t oldest_ = 0;                 ///< turn of the first that is not done
    std::uint64_t next_to_answer_ = 0;         ///< turn
    Counters counters_;
};

}  // namespace daqloom::protocol
