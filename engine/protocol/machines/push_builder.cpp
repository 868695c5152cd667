#include "protocol/machines/push_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace daqloom::protocol {

namespace {

using base::Bytes;

constexpr std::uint32_t most_units = 65'536;
constexpr std::uint32_t most_streams = 1'024;
constexpr std::uint32_t most_meps = 1'000'000;
/// Limit on MFPs under construction: their sizes take 512 MiB.
constexpr std::uint64_t most_mfps = std::uint64_t{1} << 26;
constexpr Bytes largest_output = Bytes{1} << 50;

base::expected<void> check_units(const PushBuilderConfig& config) {
    DAQLOOM_REFUSE_IF(config.builders < 1 || config.builders > most_units ||
                          config.self.value() >= config.builders,
                      "builder unit {} of {}; give 1 to {} units, counted from 0",
                      config.self.value(), config.builders, most_units);
    DAQLOOM_REFUSE_IF(config.streams.empty() || config.streams.size() > most_units,
                      "{} readout units; give 1 to {}", config.streams.size(), most_units);
    for (const ReadoutIndex unit : config.streams.indices()) {
        DAQLOOM_REFUSE_IF(config.streams[unit] < 1 || config.streams[unit] > most_streams,
                          "readout unit {} with {} streams; give 1 to {}", unit.value(),
                          config.streams[unit], most_streams);
    }
    return {};
}

base::expected<void> check(const PushBuilderConfig& config) {
    DAQLOOM_CHECK(check_units(config));
    DAQLOOM_REFUSE_IF(config.concurrent_meps < 1 || config.concurrent_meps > most_meps ||
                          config.announced_meps < 1 || config.announced_meps > most_meps,
                      "{} concurrent and {} announced MEPs; give 1 to {} of each",
                      config.concurrent_meps, config.announced_meps, most_meps);
    std::uint64_t streams = 0;
    for (const std::uint32_t of_unit : config.streams) {
        streams += of_unit;
    }
    const std::uint64_t meps = std::uint64_t{config.concurrent_meps} + config.announced_meps;
    DAQLOOM_REFUSE_IF(streams * meps > most_mfps,
                      "{} MEPs of {} streams at a time; give at most {} in all", meps, streams,
                      most_mfps);
    DAQLOOM_REFUSE_IF(config.output_buffer < 1 || config.output_buffer > largest_output,
                      "output buffer of {} bytes; give 1 to {}", config.output_buffer,
                      largest_output);
    DAQLOOM_CHECK(check_output(config.output_buffer, config.usual_mep));
    DAQLOOM_REFUSE_IF(config.output_meps < 1, "output buffer for no MEP; give 1 or more");
    const auto [header, alignment] = config.layout;
    DAQLOOM_REFUSE_IF(
        header < 0 || header > largest_mep_header || alignment < 1 ||
            alignment > largest_mfp_alignment ||
            !std::has_single_bit(static_cast<std::uint64_t>(alignment)),
        "MEP header of {} and alignment of {} bytes; give 0 to {} and a power of two up to {}",
        header, alignment, largest_mep_header, largest_mfp_alignment);
    DAQLOOM_REFUSE_IF(config.output_alignment < 1 || config.output_alignment > Bytes{1} << 30 ||
                          !std::has_single_bit(static_cast<std::uint64_t>(config.output_alignment)),
                      "output alignment of {} bytes; give a power of two up to 2^30",
                      config.output_alignment);
    return {};
}

/// Partial sums, beginning with 0.
base::Table<ReadoutIndex, std::uint32_t> sums_of(
    const base::Table<ReadoutIndex, std::uint32_t>& numbers) {
    base::Table<ReadoutIndex, std::uint32_t> sums = {0};
    for (const std::uint32_t number : numbers) {
        sums.push_back(sums.back() + number);
    }
    return sums;
}

}  // namespace

base::expected<void> check_output(Bytes output_buffer, Bytes usual_mep) {
    if (usual_mep <= output_buffer) {
        return {};
    }
    return base::failure(fmt::format(
        "output_buffer of {} bytes; a multi-event packet takes about {}: give several times as "
        "much, or pack fewer fragments",
        output_buffer, usual_mep));
}

base::expected<PushBuilder> PushBuilder::make(PushBuilderConfig config) {
    DAQLOOM_CHECK(base::about("push builder: ", check(config)));
    return PushBuilder(std::move(config));
}

PushBuilder::PushBuilder(PushBuilderConfig config)
    : config_(std::move(config)),
      first_stream_(sums_of(config_.streams)),
      meps_(std::size_t{config_.concurrent_meps} + config_.announced_meps),
      sizes_(meps_.size() * streams()),
      offsets_(streams()),
      announced_(meps_.size() * config_.streams.size()),
      written_(meps_.size() * streams()),
      output_(config_.output_buffer),
      lost_(config_.streams.size()),
      turn_ends_(config_.streams.size(), no_end) {}

bool PushBuilder::fits(ReadoutIndex readout, MepId mep, std::span<const Bytes> sizes) const {
    if (!is_ours(mep) || !lost_.contains(readout) || lost_[readout] ||
        sizes.size() != config_.streams[readout]) {
        return false;
    }
    // A readout unit announces at most `announced_meps` beyond the answered MEPs, and these are at
    // most `concurrent_meps` beyond the oldest one, so the slot is free.
    const std::uint64_t turn = turn_of(mep, config_.builders);
    if (turn < next_to_answer_ || turn - next_to_answer_ >= config_.announced_meps ||
        announced_[slot_of(turn) * readouts() + readout.value()]) {
        return false;
    }
    return std::ranges::all_of(sizes,
                               [](Bytes size) { return size >= 0 && size <= largest_mfp_size; });
}

bool PushBuilder::is_awaited(ReadoutIndex readout, StreamIndex stream, MepId mep) const {
    const std::uint64_t turn = turn_of(mep, config_.builders);
    if (!is_ours(mep) || !lost_.contains(readout) || lost_[readout] ||
        stream.value() >= config_.streams[readout] || turn < oldest_ || turn >= next_to_answer_) {
        return false;
    }
    return meps_[slot_of(turn)].state == State::granted &&
           !is_written(mep, number_of({readout, stream}));
}

std::uint64_t PushBuilder::count_awaited() const {
    std::uint64_t awaited = 0;
    for (std::uint64_t turn = oldest_; turn < next_to_answer_; ++turn) {
        const MepId mep = mep_of(config_.self, turn, config_.builders);
        for (const ReadoutIndex readout : lost_.indices()) {
            for (const StreamIndex stream :
                 base::IndexRange<StreamIndex>(config_.streams[readout])) {
                awaited += is_awaited(readout, stream, mep) ? 1 : 0;
            }
        }
    }
    return awaited;
}

Bytes PushBuilder::written_bytes(std::uint64_t turn) const {
    const MepId mep = mep_of(config_.self, turn, config_.builders);
    const auto sizes = sizes_of(mep);
    Bytes bytes = 0;
    for (std::uint32_t stream = 0; stream < streams(); ++stream) {
        bytes += is_written(mep, stream) ? sizes[stream] : 0;
    }
    return bytes;
}

bool PushBuilder::has_any(std::uint64_t turn) const {
    const auto written = written_.begin() + static_cast<std::ptrdiff_t>(slot_of(turn) * streams());
    return std::find(written, written + streams(), true) != written + streams();
}

std::uint64_t PushBuilder::next_mep() const {
    return meps_before(config_.self, next_to_answer_ + unanswered_, config_.builders);
}

PushBuilder::Stream PushBuilder::stream_of(std::uint32_t number) const {
    const auto next = std::ranges::upper_bound(first_stream_, number);
    const ReadoutIndex readout(next - first_stream_.begin() - 1);
    return {readout, StreamIndex(number - first_stream_[readout])};
}

void PushBuilder::forget_what_is_done() {
    for (; oldest_ < next_to_answer_ && meps_[slot_of(oldest_)].state == State::done; ++oldest_) {
        const std::size_t slot = slot_of(oldest_);
        meps_[slot] = {};
        std::fill_n(announced_.begin() + static_cast<std::ptrdiff_t>(slot * readouts()), readouts(),
                    false);
        std::fill_n(written_.begin() + at(slot, 0), streams(), false);
    }
}

}  // namespace daqloom::protocol
