// For tests and fuzzing: a push event builder of linear-shift units on nodes, configured by
// arbitrary bytes, which also select the lost units.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/byte_source_test.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/machines/push_builder.hpp"
#include "protocol/machines/unit_fates_test.hpp"
#include "protocol/schedule/linear_shift.hpp"
#include "protocol/units/shift_unit.hpp"

namespace daqloom::protocol {

class PushBuildingSystem {
  protected:
    using Bytes = base::Bytes;
    using Time = base::Time;

    static constexpr Bytes largest_mfp = 64;
    static constexpr base::BitRate write_rate = base::gigabits_per_second(8);

    explicit PushBuildingSystem(std::span<const std::uint8_t> input)
        : input_(input), shift_(choose_shift()) {
        choose_units();
        // Units that may leave step do so in the fourth round at the earliest.
        unit_config_.rounds = 1 + input_.byte() % (unit_config_.leaves_step ? 12 : 4);
        builder_config_.builders = shift_.builders();
        for (const ReadoutIndex r : base::IndexRange<ReadoutIndex>(shift_.readouts())) {
            builder_config_.streams[r] = 1U + input_.byte() % 3;
        }
        const std::uint32_t round = meps_per_phase() * shift_.builders();
        auto& readout = unit_config_.readout;
        readout.builders = shift_.builders();
        readout.largest_mfp = largest_mfp;
        readout.write_rate = write_rate;
        readout.buffered_mfps = round + input_.byte() % 5;
        readout.stream_buffer = (round + 1) * largest_mfp + input_.byte();
        place_units();
        base::ByteSource nobody_is_lost({});
        base::ByteSource& choice = closes_ ? input_ : nobody_is_lost;
        readout_fates_ =
            choose_fates<ReadoutIndex, BuilderIndex>(shift_.readouts(), shift_.builders(), choice);
        builder_fates_ =
            choose_fates<BuilderIndex, ReadoutIndex>(shift_.builders(), shift_.readouts(), choice);
        for (const Node& node : nodes_) {
            if (node.readout != ReadoutIndex::none() && node.builder != BuilderIndex::none()) {
                builder_fates_[node.builder].wave = readout_fates_[node.readout].wave;
                builder_fates_[node.builder].dies = readout_fates_[node.readout].dies;
            }
        }
    }

    /// none: the node has no such unit
    struct Node {
        ShiftUnit unit;
        ReadoutIndex readout;
        BuilderIndex builder;
    };

    [[nodiscard]] Node& node_of(ReadoutIndex r) { return nodes_[readout_nodes_[r]]; }
    [[nodiscard]] Node& node_of(BuilderIndex b) { return nodes_[builder_nodes_[b]]; }
    [[nodiscard]] const ShiftUnit& unit_of(ReadoutIndex r) const {
        return nodes_[readout_nodes_[r]].unit;
    }
    [[nodiscard]] const ShiftUnit& unit_of(BuilderIndex b) const {
        return nodes_[builder_nodes_[b]].unit;
    }
    [[nodiscard]] const PushReadout& readout(ReadoutIndex r) const { return *unit_of(r).readout(); }
    [[nodiscard]] const PushBuilder& builder(BuilderIndex b) const { return *unit_of(b).builder(); }
    [[nodiscard]] base::IndexRange<ReadoutIndex> readouts() const {
        return readout_nodes_.indices();
    }
    [[nodiscard]] base::IndexRange<BuilderIndex> builders() const {
        return builder_nodes_.indices();
    }
    [[nodiscard]] bool is_lost(const Node& node) const {
        return node.readout != ReadoutIndex::none() ? readout_fates_[node.readout].is_lost
                                                    : builder_fates_[node.builder].is_lost;
    }
    [[nodiscard]] bool is_dead(const Node& node) const {
        return node.readout != ReadoutIndex::none() ? readout_fates_[node.readout].is_dead()
                                                    : builder_fates_[node.builder].is_dead();
    }

    [[nodiscard]] bool waits_for(ReadoutIndex r, ReadoutIndex other) const {
        const auto& groups = unit_config_.barrier_groups;
        const auto in_group = [&](std::uint32_t unit) {
            return groups.empty() || groups[r.value()] == groups[unit];
        };
        if (unit_config_.barrier != ShiftBarrier::neighbour) {
            return in_group(other.value());
        }
        std::uint32_t next = r.value();
        do {
            next = (next + 1) % shift_.readouts();
        } while (!in_group(next));
        const bool is_ordered = is_paced() && unit_config_.writers == 1;
        return next == other.value() && (!is_ordered || next <= r.value());
    }
    [[nodiscard]] bool is_paced() const { return unit_config_.pace == Pace::builder; }
    [[nodiscard]] bool by_time() const { return unit_config_.change == PhaseChange::by_time; }
    [[nodiscard]] std::uint32_t phase_of(ReadoutIndex r) const {
        return static_cast<std::uint32_t>(unit_of(r).step() % shift_.phases());
    }
    [[nodiscard]] std::uint32_t meps_per_phase() const {
        return by_time() ? 1 : unit_config_.meps_per_phase;
    }
    /// Number of MEPs of the whole run.
    [[nodiscard]] std::size_t meps() const {
        return static_cast<std::size_t>(unit_config_.rounds * meps_per_phase() * shift_.builders());
    }
    /// Number of streams of all readout units.
    [[nodiscard]] std::uint32_t streams() const {
        std::uint32_t sum = 0;
        for (const std::uint32_t of_unit : builder_config_.streams) {
            sum += of_unit;
        }
        return sum;
    }
    base::ByteSource input_;
    bool is_folded_ = false;  ///< `shift_` says
    LinearShift shift_;
    ShiftUnitConfig unit_config_;
    PushBuilderConfig builder_config_;
    bool closes_ = false;  ///< the epoch ends before the run does
    std::vector<Node> nodes_;
    base::Table<ReadoutIndex, std::size_t> readout_nodes_;
    base::Table<BuilderIndex, std::size_t> builder_nodes_;
    Fates<ReadoutIndex, BuilderIndex> readout_fates_;
    Fates<BuilderIndex, ReadoutIndex> builder_fates_;

  private:
    LinearShift choose_shift() {
        const std::uint32_t slots = 1U + input_.byte() % 6;
        const std::uint8_t choice = input_.byte();
        if (choice % 3 == 0) {
            return *LinearShift::unfolded(slots, 1U + input_.byte() % 6);
        }
        std::vector<SlotIndex> dummies;
        for (std::uint32_t slot = 1; slot < slots; ++slot) {
            if (choice % 3 == 1 && (choice >> slot & 1) != 0) {
                dummies.emplace_back(slot);
            }
        }
        is_folded_ = choice < 128;
        return *LinearShift::folded(slots, dummies);
    }

    /// Places units on nodes; in folded systems, builder units are on the nodes of readout units.
    void place_units() {
        const auto put = [this](ReadoutIndex r, BuilderIndex b) {
            ShiftUnitConfig config = unit_config_;
            config.self = r;
            config.builder = builder_config_;
            config.builder.self = b;
            config.readout.streams = r == ReadoutIndex::none() ? 1 : builder_config_.streams[r];
            nodes_.push_back({*ShiftUnit::make(config, shift_), r, b});
            return nodes_.size() - 1;
        };
        for (const ReadoutIndex r : base::IndexRange<ReadoutIndex>(shift_.readouts())) {
            readout_nodes_.push_back(
                put(r, is_folded_ ? BuilderIndex(r.value()) : BuilderIndex::none()));
        }
        for (const BuilderIndex b : base::IndexRange<BuilderIndex>(shift_.builders())) {
            builder_nodes_.push_back(is_folded_ ? readout_nodes_[ReadoutIndex(b.value())]
                                                : put(ReadoutIndex::none(), b));
        }
    }

    void choose_units() {
        const std::uint8_t change = input_.byte();
        unit_config_.change = change % 4 == 0 ? PhaseChange::by_time : PhaseChange::by_count;
        unit_config_.pace = static_cast<Pace>(change >> 2 & 1);
        unit_config_.writers = 1U + (change >> 3 & 3) / 2;
        unit_config_.write_order = static_cast<WriteOrder>(change >> 5 & 1);
        if ((change >> 6 & 1) != 0) {
            for (std::uint32_t r = 0; r < shift_.readouts(); ++r) {
                unit_config_.barrier_groups.push_back(r % 2);
            }
        }
        unit_config_.barrier = static_cast<ShiftBarrier>(input_.byte() % 6);
        unit_config_.meps_per_phase = 1U + input_.byte() % 3;
        const std::uint8_t barriers = input_.byte();
        unit_config_.phases_per_barrier = 1U + barriers % 4;
        unit_config_.barrier_slack = (barriers >> 2 & 3) % 3;
        unit_config_.leaves_step = (barriers >> 4 & 1) != 0;
        unit_config_.phases_under_way = 1U + input_.byte() % 3;
        unit_config_.keeps_dummies = input_.byte() % 2 == 0;
        // A write of 64 B takes 64 ns: a window has time for one to three of the largest MFPs.
        unit_config_.grace = base::nanoseconds(input_.byte() % 20);
        unit_config_.window = unit_config_.grace + base::nanoseconds(64 + input_.byte() % 128);
        unit_config_.readout.announced_meps = 1U + input_.byte() % 3;
        builder_config_.announced_meps = unit_config_.readout.announced_meps;
        builder_config_.concurrent_meps = unit_config_.meps_per_phase + input_.byte() % 3;
        builder_config_.streams.resize(shift_.readouts());
        builder_config_.layout = {.header = input_.byte() % 30,
                                  .alignment = Bytes{1} << input_.byte() % 4};
        builder_config_.when_full = static_cast<WhenFull>(input_.byte() % 2);
        closes_ = input_.byte() % 2 == 1;
        builder_config_.when_incomplete = static_cast<WhenIncomplete>(input_.byte() % 2);
        // Buffers from too small for most MEPs to never full.
        builder_config_.output_buffer = builder_config_.when_full == WhenFull::wait
                                            ? Bytes{3'000}
                                            : 1 + Bytes{input_.byte()} * input_.byte() / 8;
    }
};

}  // namespace daqloom::protocol
