#include "protocol/machines/push_readout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace daqloom::protocol {

namespace {

using base::Bytes;

constexpr std::uint32_t most_push_builders = 65'536;
constexpr std::uint32_t most_streams_of_readout = 1'024;
constexpr std::uint32_t most_announced = 1'000'000;
/// Limit on buffered MFPs, whose records then take 2 GiB.
constexpr std::uint64_t most_buffered_mfps = std::uint64_t{1} << 26;
constexpr Bytes largest_buffer = Bytes{1} << 50;
constexpr std::int64_t slowest_rate_bps = 1'000'000;

base::expected<void> check(const PushReadoutConfig& config) {
    DAQLOOM_REFUSE_IF(config.streams < 1 || config.streams > most_streams_of_readout,
                      "{} streams; give 1 to {}", config.streams, most_streams_of_readout);
    DAQLOOM_REFUSE_IF(config.builders < 1 || config.builders > most_push_builders,
                      "{} builder units; give 1 to {}", config.builders, most_push_builders);
    DAQLOOM_REFUSE_IF(config.buffered_mfps < 1 ||
                          std::uint64_t{config.buffered_mfps} * config.streams > most_buffered_mfps,
                      "{} MFPs in each of {} buffers; give at least 1, and {} in all",
                      config.buffered_mfps, config.streams, most_buffered_mfps);
    DAQLOOM_REFUSE_IF(config.largest_mfp < 1 || config.largest_mfp > largest_mfp_size,
                      "largest MFP of {} bytes; give 1 to {}", config.largest_mfp,
                      largest_mfp_size);
    DAQLOOM_REFUSE_IF(
        config.stream_buffer < config.largest_mfp || config.stream_buffer > largest_buffer,
        "stream buffer of {} bytes; give {} (the largest MFP) to {}", config.stream_buffer,
        config.largest_mfp, largest_buffer);
    DAQLOOM_REFUSE_IF(config.announced_meps < 1 || config.announced_meps > most_announced,
                      "{} announced MEPs; give 1 to {}", config.announced_meps, most_announced);
    DAQLOOM_REFUSE_IF(config.write_rate.bps < slowest_rate_bps,
                      "write rate of {} b/s; give at least {}", config.write_rate.bps,
                      slowest_rate_bps);
    return {};
}

}  // namespace

base::expected<PushReadout> PushReadout::make(PushReadoutConfig config) {
    DAQLOOM_CHECK(base::about("push readout: ", check(config)));
    return PushReadout(config);
}

PushReadout::PushReadout(PushReadoutConfig config)
    : config_(config),
      write_time_(config.write_rate),
      builders_(config.builders),
      mfps_(std::size_t{config.buffered_mfps} * config.streams),
      answers_(config.buffered_mfps, Answer::pending),
      sizes_(config.streams) {
    streams_.reserve(config.streams);
    for (std::uint32_t stream = 0; stream < config.streams; ++stream) {
        streams_.push_back({.buffer = ByteRing(config.stream_buffer)});
    }
}

PushReadout::Grants PushReadout::granted(BuilderIndex index, std::uint64_t until) const {
    const Builder& builder = builders_[index];
    Grants sum{.turn = builder.written, .stream = builder.next_stream};
    StreamIndex stream = builder.next_stream;
    for (std::uint64_t turn = builder.written; turn < std::min(until, builder.answered); ++turn) {
        const std::size_t slot = slot_of(number(mep_of(index, turn, config_.builders)));
        for (; answers_[slot] == Answer::granted && streams_.contains(stream); ++stream) {
            ++sum.writes;
            sum.bytes += mfps_[slot * config_.streams + stream.value()].bytes;
        }
        stream = StreamIndex();
    }
    return sum;
}

void PushReadout::on_last_answer(BuilderIndex index, std::uint64_t turn_end) {
    if (!builders_.contains(index)) {
        ++counters_.unexpected_answers;
        return;
    }
    Builder& builder = builders_[index];
    if (builder.is_lost || builder.turn_end != without_end || turn_end < builder.answered ||
        turn_end > builder.announced) {
        ignore_answer(index);
        return;
    }
    builder.turn_end = turn_end;
}

void PushReadout::lose(Builder& builder) {
    under_way_ -= std::exchange(builder.under_way, 0);
    builder.is_lost = true;
}

bool PushReadout::is_drained() const {
    return is_closing_ && std::ranges::all_of(builders_, [](const Builder& builder) {
               return builder.is_lost ||
                      (builder.written == builder.turn_end && builder.under_way == 0);
           });
}

std::uint64_t PushReadout::next_mep() const {
    std::uint64_t next = end_;
    for (const BuilderIndex index : builders_.indices()) {
        const Builder& builder = builders_[index];
        const std::uint64_t begun =
            builder.written + (builder.next_stream == StreamIndex() ? 0 : 1);
        next = std::max(next, meps_before(index, begun, config_.builders));
    }
    return next;
}

void PushReadout::count_dropped(std::uint64_t mep, StreamIndex stream) {
    const bool is_lost = builders_[builder_of(MepId{mep}, config_.builders)].is_lost;
    ++(is_lost ? counters_.lost_mfps : counters_.unanswered_mfps);
    (is_lost ? counters_.lost_bytes : counters_.unanswered_bytes) += mfp(mep, stream).bytes;
}

}  // namespace daqloom::protocol
