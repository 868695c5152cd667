// For tests and fuzzing: a plain model of a push event builder, with invariants of each MEP and of
// a whole run.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "protocol/units/push_building_system_test.hpp"

namespace daqloom::protocol {

class PushBuildingModel : protected PushBuildingSystem {
  public:
    /// Kind of a run, for tests that expect a certain kind.
    struct Summary {
        std::string broken_promise;  ///< the first; or nothing
        PhaseChange change = PhaseChange::by_count;
        ShiftBarrier barrier = ShiftBarrier::none;
        Pace pace = Pace::schedule;
        std::uint64_t withdrawn = 0;  ///< requests to write
        bool is_folded = false;       ///< nodes have units of both kinds
        std::uint64_t built = 0;
        std::uint64_t discarded = 0;
        std::uint64_t blocked = 0;
        std::uint64_t idle_steps = 0;
        std::uint64_t passed = 0;  ///< barriers at which units out of step did not wait
        bool was_closed = false;
        std::uint64_t lost_units = 0;
        std::uint64_t incomplete = 0;  ///< MEPs given out
        std::uint64_t dropped = 0;     ///< incomplete MEPs
        std::uint64_t unanswered = 0;  ///< MFPs
        std::uint64_t lost = 0;        ///< MFPs, of lost builders
    };

  protected:
    /// A half-open range of bytes in a buffer.
    struct Region {
        Bytes from = 0;
        Bytes to = 0;
    };
    /// A MEP as the model knows it.
    struct Mep {
        base::Table<ReadoutIndex, base::Table<StreamIndex, Bytes>> sizes;
        base::Table<ReadoutIndex, base::Table<StreamIndex, bool>> written;  ///< asked for
        std::uint32_t announced = 0;
        std::uint32_t answered = 0;
        std::uint32_t landed = 0;  ///< MFPs reported to the builder
        Bytes place = -1;
        bool is_discarded = false;
        bool is_built = false;
        bool is_incomplete = false;
    };
    struct Unit {
        base::Table<StreamIndex, std::uint64_t> generated;  ///< per stream
        base::Table<StreamIndex, std::map<std::uint64_t, Region>>
            in_buffer;                                         ///< per stream, by MFP
        base::Table<StreamIndex, std::uint64_t> acknowledged;  ///< per stream
        std::set<std::pair<MepId, StreamIndex>> under_way;
        std::set<std::pair<MepId, StreamIndex>> dispensable;  ///< written or discarded
        std::uint64_t steps_done = 0;
        Time busy_until = Time::zero();
    };

    explicit PushBuildingModel(std::span<const std::uint8_t> input)
        : PushBuildingSystem(input), meps_(meps()), model_(shift_.readouts()) {
        summary_.change = unit_config_.change;
        summary_.barrier = unit_config_.barrier;
        summary_.pace = unit_config_.pace;
        summary_.is_folded = is_folded_;
        summary_.was_closed = closes_;
        for (const ReadoutIndex r : readouts()) {
            const std::uint32_t streams = builder_config_.streams[r];
            model_[r].generated.resize(streams);
            model_[r].in_buffer.resize(streams);
            model_[r].acknowledged.resize(streams);
        }
        for (Mep& mep : meps_) {
            for (const std::uint32_t streams : builder_config_.streams) {
                mep.sizes.push_back(base::Table<StreamIndex, Bytes>(streams, -1));
                mep.written.push_back(base::Table<StreamIndex, bool>(streams, false));
            }
        }
    }

    void promise(bool kept, const char* text) {
        if (!kept && summary_.broken_promise.empty()) {
            summary_.broken_promise = text;
        }
    }

    // ---- a MEP --------------------------------------------------------------------------------

    Mep& mep(MepId id) { return meps_.at(static_cast<std::size_t>(id)); }
    /// Offset of an MFP from the start of the MEP, as a sum of sizes.
    [[nodiscard]] Bytes offset(MepId id, ReadoutIndex r, StreamIndex s) {
        const auto [header, alignment] = builder_config_.layout;
        Bytes sum = rounded(header, alignment);
        for (const ReadoutIndex unit : base::IndexRange(ReadoutIndex(), r + 1)) {
            const auto& sizes = mep(id).sizes[unit];
            for (const StreamIndex i :
                 base::IndexRange(StreamIndex(), unit == r ? s : StreamIndex(sizes.size()))) {
                sum += rounded(sizes[i], alignment);
            }
        }
        return sum;
    }
    [[nodiscard]] Bytes bytes_of(MepId id) {
        const ReadoutIndex last(model_.size() - 1);
        const StreamIndex streams(mep(id).sizes[last].size());
        return std::max(offset(id, last, streams), builder_config_.layout.alignment);
    }
    [[nodiscard]] static Bytes rounded(Bytes bytes, Bytes alignment) {
        return (bytes + alignment - 1) / alignment * alignment;
    }
    [[nodiscard]] static bool overlap(Region a, Region b) { return a.from < b.to && b.from < a.to; }

    /// Compares the contents of a MEP during its delivery, when the driver may read them.
    void compare_contents(BuilderIndex b, MepId id) {
        const PushBuilder& builder = this->builder(b);
        promise(builder.streams() == streams(), "it has the streams of all readout units");
        std::uint32_t number = 0;
        for (const ReadoutIndex r : readouts()) {
            for (const StreamIndex s : mep(id).sizes[r].indices()) {
                promise(builder.number_of({r, s}) == number &&
                            builder.stream_of(number) == PushBuilder::Stream{r, s},
                        "streams are numbered through");
                promise(builder.sizes_of(id)[number] == mep(id).sizes[r][s] &&
                            builder.is_written(id, number) == landed_.contains({id, r, s}),
                        "a MEP has what was written");
                ++number;
            }
        }
    }

    // ---- the end of the epoch -----------------------------------------------------------------

    /// Whether the MEP may be answered. After on_close: only if every readout unit requires an
    /// answer, as none is lost.
    [[nodiscard]] bool may_answer(BuilderIndex b, MepId id) const {
        const Fate<ReadoutIndex>& fate = builder_fates_[b];
        if (!fate.is_closed) {
            return true;
        }
        for (const ReadoutIndex r : readouts()) {
            const auto end = last_announced_.find({r, b});
            if (fate.sees_lost[r] || end == last_announced_.end() ||
                turn_of(id, shift_.builders()) >= end->second) {
                return false;
            }
        }
        return true;
    }

    [[nodiscard]] bool is_drained() const {
        return std::ranges::all_of(
            nodes_, [this](const Node& node) { return is_lost(node) || node.unit.is_drained(); });
    }

    [[nodiscard]] bool has_written_everything(ReadoutIndex r) {
        return std::ranges::all_of(granted_by_live_builders(), [=, this](MepId id) {
            for (const StreamIndex s : mep(id).sizes[r].indices()) {
                if (!landed_.contains({id, r, s}) || model_[r].under_way.contains({id, s})) {
                    return false;
                }
            }
            return true;
        });
    }
    [[nodiscard]] std::vector<MepId> granted_by_live_builders() {
        std::vector<MepId> granted;
        for (std::uint64_t id = 0; id < meps_.size(); ++id) {
            if (meps_[id].place >= 0 &&
                !builder_fates_[builder_of(MepId{id}, shift_.builders())].is_lost) {
                granted.push_back(MepId{id});
            }
        }
        return granted;
    }

    void forget_what_was_dropped(BuilderIndex b) {
        std::uint64_t dropped = 0;
        for (auto mep_of_b = std::uint64_t{b.value()}; mep_of_b < meps_.size();
             mep_of_b += shift_.builders()) {
            const Mep& here = mep(MepId{mep_of_b});
            if (here.place >= 0 && !here.is_built && !here.is_incomplete) {
                ++dropped;
                promise(builder_config_.when_incomplete == WhenIncomplete::drop || here.landed == 0,
                        "a MEP of which anything came is dropped only where it is to be");
                output_[b].erase(MepId{mep_of_b});
            }
        }
        promise(dropped == builder(b).counters().dropped,
                "every granted MEP is built, given out incomplete, or dropped");
        summary_.dropped += dropped;
    }

    // ---- the end of the run -------------------------------------------------------------------

    void compare_at_the_end() {
        std::uint64_t granted = 0;
        std::uint64_t dropped = 0;
        Bytes built_bytes = 0;
        for (const BuilderIndex b : builders()) {
            const PushBuilder& builder = this->builder(b);
            granted += builder.counters().granted;
            dropped += builder.counters().discarded;
            built_bytes += builder.counters().built_bytes;
            if (const WritePacer* pacer = unit_of(b).pacer()) {
                promise(pacer->waiting() == 0 && pacer->writing() == 0,
                        "each request to write is granted or withdrawn");
                summary_.withdrawn += pacer->counters().withdrawn;
            }
            promise(builder.under_construction() == 0 && builder.output_held() == 0,
                    "nothing is left in the builder units");
        }
        Bytes written_bytes = 0;
        Bytes generated_bytes = 0;
        Bytes dropped_bytes = 0;
        for (const ReadoutIndex r : readouts()) {
            const auto& counters = readout(r).counters();
            written_bytes += counters.written_bytes;
            generated_bytes += counters.mfp_bytes;
            dropped_bytes += counters.discarded_bytes;
            summary_.blocked += counters.blocked;
            summary_.passed += unit_of(r).counters().passed;
            promise(by_time() || unit_of(r).is_finished(), "every unit finishes its rounds");
            for (const StreamIndex s : model_[r].generated.indices()) {
                promise(readout(r).buffered(s) == 0 && model_[r].acknowledged[s] == meps_.size(),
                        "nothing is left in the readout units");
            }
        }
        for (const Mep& mep : meps_) {
            summary_.built += mep.is_built ? 1 : 0;
            summary_.discarded += mep.is_discarded ? 1 : 0;
            promise(mep.is_built != mep.is_discarded, "every MEP is built or discarded");
        }
        promise(granted == summary_.built && dropped == summary_.discarded &&
                    built_bytes == written_bytes &&
                    generated_bytes == written_bytes + dropped_bytes,
                "nothing is lost or counted twice");
    }

    void compare_what_was_closed() {
        promise(next_mep_.has_value(), "all live units drain");
        if (!summary_.broken_promise.empty()) {
            return;
        }
        const bool anybody_reads_out =
            std::ranges::any_of(readout_fates_, [](const auto& fate) { return !fate.is_lost; });
        for (std::uint64_t id = 0; id < meps_.size(); ++id) {
            const Mep& here = mep(MepId{id});
            const BuilderIndex b = builder_of(MepId{id}, shift_.builders());
            summary_.built += here.is_built ? 1 : 0;
            summary_.discarded += here.is_discarded ? 1 : 0;
            promise(!here.is_built || id < *next_mep_ || !anybody_reads_out,
                    "what was built anywhere does not come again in the next epoch");
            promise(builder_fates_[b].is_lost || here.answered == 0 || id < *next_mep_,
                    "what was answered does not come again in the next epoch");
        }
        const bool all_build =
            std::ranges::none_of(builder_fates_, [](const auto& fate) { return fate.is_lost; });
        for (const BuilderIndex b : builders()) {
            promise(builder_fates_[b].is_lost ||
                        (builder(b).under_construction() == 0 && builder(b).output_held() == 0),
                    "nothing is left in the live builder units");
            const auto& c = builder(b).counters();
            promise(!all_build || !anybody_reads_out ||
                        c.granted + c.discarded == turns_before(b, *next_mep_, shift_.builders()),
                    "every MEP before the next epoch is granted or discarded");
        }
        for (const ReadoutIndex r : readouts()) {
            if (!readout_fates_[r].is_lost) {
                compare_what_was_closed(r);
            }
        }
    }

    void compare_what_was_closed(ReadoutIndex r) {
        const PushReadout& readout = this->readout(r);
        Bytes bytes = 0;
        for (const StreamIndex s : model_[r].generated.indices()) {
            promise(readout.acknowledged(s) == *next_mep_ &&
                        model_[r].acknowledged[s] == *next_mep_ &&
                        model_[r].in_buffer[s].size() == readout.admitted(s) - *next_mep_,
                    "the next epoch has all MFPs from its first MEP on, and no others");
            for (std::uint64_t id = 0; id < std::min<std::uint64_t>(*next_mep_, meps_.size());
                 ++id) {
                bytes += mep(MepId{id}).sizes[r][s];
            }
        }
        const auto& c = readout.counters();
        promise(bytes == c.written_bytes + c.discarded_bytes + c.lost_bytes + c.unanswered_bytes,
                "every MFP before the next epoch is written, or dropped for a reason");
        summary_.lost += c.lost_mfps;
        summary_.unanswered += c.unanswered_mfps;
        summary_.blocked += c.blocked;
    }

    [[nodiscard]] std::uint64_t unexpected() const {
        std::uint64_t sum = 0;
        for (const Node& node : nodes_) {
            const auto ignored = node.unit.ignored();
            sum += ignored.messages + ignored.writes + ignored.others;
            sum += node.unit.counters().late + node.unit.counters().unneeded;
            sum += node.unit.pacer() != nullptr ? node.unit.pacer()->counters().late : 0;
        }
        return sum - from_lost_or_late();
    }

    [[nodiscard]] std::uint64_t from_lost_or_late() const {
        std::uint64_t sum = 0;
        for (const Node& node : nodes_) {
            const ShiftUnit& unit = node.unit;
            sum += unit.counters().late + unit.counters().unneeded;
            sum += unit.pacer() != nullptr ? unit.pacer()->counters().late : 0;
            sum += unit.readout() != nullptr ? unit.readout()->counters().from_lost : 0;
            sum += unit.builder() != nullptr ? unit.builder()->counters().from_lost : 0;
        }
        return sum;
    }

    std::vector<Mep> meps_;
    base::Table<ReadoutIndex, Unit> model_;
    std::map<BuilderIndex, std::map<MepId, Region>> output_;
    std::set<std::tuple<MepId, ReadoutIndex, StreamIndex>> landed_;
    std::map<std::pair<ReadoutIndex, BuilderIndex>, std::uint64_t> last_announced_;  ///< turns
    std::optional<std::uint64_t> next_mep_;  ///< of the next epoch, when this one is over
    Summary summary_;
};

}  // namespace daqloom::protocol
