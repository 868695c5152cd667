#include "live/node/ends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "live/ends/generator_source.hpp"
#include "live/ends/replay_source.hpp"
#include "protocol/data/mfp_generator.hpp"

namespace daqloom::live {

namespace {

constexpr std::uint32_t kStreamPieces = 1U << 14;
constexpr std::uint32_t kOutputPieces = 1U << 14;
constexpr base::Bytes kMostSampled = base::Bytes{64} << 20;  ///< buffer of a sampler

/// Errors of a full disk or file, whose counters are listed even while they are zero.
constexpr std::array kUsualErrors = {ENOSPC, EDQUOT, EFBIG, EIO};

base::expected<protocol::PatternSizes> sizes_of(const NodeConfig& config, std::uint32_t stream) {
    if (config.protocol != Protocol::pull) {
        return protocol::PatternSizes(config.fragment_sizes, config.fragment_bytes[stream],
                                      config.seed);
    }
    return protocol::PatternSizes::of_events(
        config.event_size, protocol::FragmentShares(units_in(config.slots.readouts), config.share),
        protocol::ReadoutIndex(stream), config.packing, config.seed);
}

base::expected<protocol::MfpGenerator> generator(const NodeConfig& config, std::uint32_t stream) {
    DAQLOOM_TRY(sizes, sizes_of(config, stream));
    return protocol::MfpGenerator::make(
        {.source_id = static_cast<std::uint16_t>(stream),
         .packing = config.packing,
         .sizes = std::make_shared<protocol::PatternSizes>(std::move(sizes))});
}

base::expected<std::unique_ptr<MfpFeed>> feed_of(const NodeConfig& config, std::uint32_t stream,
                                                 const std::optional<Recording>& recording,
                                                 Buffer& buffer) {
    if (recording) {
        return replay_mfps(*recording,
                           {.source_id = static_cast<std::uint16_t>(stream),
                            .packing = static_cast<std::uint16_t>(config.packing)},
                           buffer);
    }
    DAQLOOM_TRY(mfps, generator(config, stream));
    return generate_mfps(std::move(mfps), config.content, buffer);
}

CardSourceConfig card_config(const NodeConfig& config, protocol::ReadoutIndex readout) {
    CardSourceConfig made{
        .interval = base::Time::from_seconds(config.packing / config.event_rate_hz),
        .card_buffer = config.card_buffer,
        .mfps = {},
        .acknowledge = config.card_acknowledge,
        .seed = config.seed,
        .first_stream = std::size_t{readout.value()} * config.streams};
    for (const base::Bytes fragment : config.fragment_bytes) {
        made.mfps.push_back(fragment * config.packing);
    }
    return made;
}

void see_checked(const CheckCounters& checked, const SeeCount& see) {
    see(counter_names::kMepsChecked.name, checked.right);
    std::uint64_t wrong = checked.wrong_number;
    for (std::size_t fault = 1; fault < data_faults; ++fault) {
        wrong += checked.wrong[fault];
        see(fmt::format("{}{}", counter_names::kWrong.name,
                        protocol::name_of(static_cast<protocol::DataFault>(fault))),
            checked.wrong[fault]);
    }
    see(fmt::format("{}MEP number", counter_names::kWrong.name), checked.wrong_number);
    see(counter_names::kMepsWrong.name, wrong);
    see(counter_names::kMepsUnchecked.name, checked.unchecked);
    see(counter_names::kFragmentsChecked.name, checked.fragments);
    see(counter_names::kFragmentBytesChecked.name, checked.fragment_bytes);
}

void see_written(const FileCounters& written, const SeeCount& see) {
    see(counter_names::kFilesWritten.name, written.files);
    std::uint64_t lost = 0;
    for (std::size_t error = 0; error < FileCounters::errors; ++error) {
        const std::uint64_t packets = written.lost[error];
        if (packets > 0 || std::ranges::count(kUsualErrors, static_cast<int>(error)) > 0) {
            const char* name = ::strerrorname_np(static_cast<int>(error));
            see(fmt::format("{}{}", counter_names::kNotWritten.name, name != nullptr ? name : "0"),
                packets);
            lost += packets;
        }
    }
    see(counter_names::kPacketsNotWritten.name, lost);
    see(counter_names::kDiskFree.name, written.free_bytes);
}

void see_buffer(const CounterName& name, base::Bytes size, const CounterName& name_used,
                base::Bytes used, const SeeCount& see) {
    see(name.name, static_cast<std::uint64_t>(size));
    see(name_used.name, static_cast<std::uint64_t>(used));
}

/// Shows the counters above zero of the slots of an output.
void see_slots(const CounterName& prefix, std::span<const Counter> slots, const SeeCount& see) {
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        if (slots[slot] > 0) {
            see(fmt::format("{}{}", prefix.name, slot), slots[slot]);
        }
    }
}

}  // namespace

base::expected<void> Ends::make_streams(const NodeConfig& config, const Doorbell& unit) {
    if (has_cards(config)) {
        DAQLOOM_TRY(bell, Doorbell::create());
        card_bell_.emplace(std::move(bell));
        has_cards_ = true;
    }
    for (std::uint32_t stream = 0; stream < config.streams; ++stream) {
        DAQLOOM_TRY(buffer, Buffer::create({.name = fmt::format("daqloom-stream-{}", stream),
                                            .bytes = config.stream_buffer,
                                            .pieces = kStreamPieces},
                                           &unit, card_bell_ ? &*card_bell_ : nullptr));
        buffer.area().populate();
        const std::lock_guard lock(mutex_);
        streams_.push_back(std::move(buffer));
    }
    if (config.source != SourceKind::user) {
        return {};
    }
    std::vector<BufferOffer> offers;
    for (std::uint32_t stream = 0; stream < config.streams; ++stream) {
        offers.push_back(
            {buffer_name(config.run, config.self.value(), fmt::format("stream-{}", stream)),
             &streams_[stream], BufferSide::writer});
    }
    DAQLOOM_TRY(server, BufferServer::serve(std::move(offers)));
    stream_server_ = std::move(server);
    return {};
}

base::expected<void> Ends::make_sources(const NodeConfig& config, protocol::ReadoutIndex readout,
                                        const Doorbell& unit) {
    if (reads_out_ != protocol::ReadoutIndex::none()) {
        end_sources();
    }
    if (streams_.empty()) {
        DAQLOOM_CHECK(make_streams(config, unit));
    }
    reads_out_ = readout;
    if (config.source == SourceKind::user) {
        return {};
    }
    if (config.source == SourceKind::replay) {
        DAQLOOM_CHECK(open_recording(config));
    }
    std::vector<CardSource::Stream> cards;
    for (std::uint32_t stream = 0; stream < config.streams; ++stream) {
        Buffer& buffer = streams_[stream];
        DAQLOOM_TRY(feed,
                    feed_of(config, readout.value() * config.streams + stream, recording_, buffer));
        if (card_bell_) {
            cards.push_back({&buffer, std::move(feed)});
            continue;
        }
        auto source = std::make_unique<Source>(
            buffer, std::move(feed),
            SourceConfig{.mfps_per_second = config.event_rate_hz / config.packing});
        const std::lock_guard lock(mutex_);
        sources_.push_back(std::move(source));
    }
    if (card_bell_) {
        cards_.emplace(card_config(config, readout), std::move(cards), *card_bell_, carded_);
    }
    return {};
}

base::expected<void> Ends::open_recording(const NodeConfig& config) {
    if (!recording_) {
        DAQLOOM_TRY(recording, Recording::open(config.replay, config.packing));
        recording_.emplace(std::move(recording));
    }
    return {};
}

/// Ends the sources, and keeps their counts.
void Ends::end_sources() {
    stop_sources();
    const std::lock_guard lock(mutex_);
    for (const auto& source : sources_) {
        blocked_before_ += source->counters().blocked;
        late_before_ += source->counters().late;
        skipped_before_ += source->counters().skipped;
    }
    cards_.reset();
    sources_.clear();
    stream_server_.reset();
    streams_.clear();
}

base::expected<std::unique_ptr<MepConsumer>> Ends::make_consumer(const NodeConfig& config) {
    if (config.sink == SinkKind::discard) {
        return discard_meps();
    }
    if (config.sink == SinkKind::file) {
        std::error_code error;
        std::filesystem::create_directories(config.output, error);
        if (error) {
            return base::system_failure(
                fmt::format("cannot make the folder {}: {}", config.output, error.message()));
        }
        return write_meps({.prefix = fmt::format("{}/unit-{}", config.output, config.self.value())},
                          written_, counters_);
    }
    if (config.source == SourceKind::replay) {
        if (!checksums_) {  // the recording may be missing on a builder's machine
            const auto packing = static_cast<std::uint16_t>(config.packing);
            checksums_ = std::make_shared<const RecordedChecksums>(
                open_recording(config) ? RecordedChecksums(*recording_, packing)
                                       : RecordedChecksums(packing));
        }
        return check_replayed_meps(
            checksums_, static_cast<std::uint32_t>(config.fragment_bytes.size()), checked_);
    }
    std::vector<protocol::MfpGenerator> expected;
    for (std::uint32_t stream = 0; stream < config.fragment_bytes.size(); ++stream) {
        DAQLOOM_TRY(mfps, generator(config, stream));
        expected.push_back(std::move(mfps));
    }
    return check_meps(std::move(expected), checked_);
}

base::expected<void> Ends::renew_output(const NodeConfig& config, const Doorbell& unit) {
    end_output();
    const bool is_users = config.sink == SinkKind::user;
    const bool fans_out = is_users && config.consumers != Consumers::one;
    if (fans_out) {
        DAQLOOM_TRY(bell, Doorbell::create());
        fan_bell_.emplace(std::move(bell));
    }
    DAQLOOM_TRY(buffer, Buffer::create({.name = "daqloom-output",
                                        .bytes = config.output_buffer,
                                        .pieces = kOutputPieces},
                                       fans_out ? &*fan_bell_ : nullptr, &unit));
    buffer.area().populate();
    {
        const std::lock_guard lock(mutex_);
        output_.emplace(std::move(buffer));
    }
    kind_ = config.sink;
    tap_.emplace(std::min(config.output_buffer, kMostSampled), sampled_);
    const std::string name = buffer_name(config.run, config.self.value(), "output");
    std::vector<BufferOffer> offers = {
        {name, &*output_, BufferSide::sampler, &*tap_, SampleCounters::slots}};
    if (fans_out) {
        fan_out_.emplace(*output_, *fan_bell_,
                         FanOutConfig{.is_shared = config.consumers == Consumers::shared,
                                      .patience = config.consumer_timeout},
                         consumed_);
        offers.push_back({name, &*output_, BufferSide::reader, &*fan_out_, FanOutCounters::slots});
    } else if (is_users) {
        offers.push_back({name, &*output_, BufferSide::reader});
    }
    DAQLOOM_TRY(server, BufferServer::serve(std::move(offers)));
    output_server_ = std::move(server);
    if (is_users) {
        return {};
    }
    DAQLOOM_TRY(consumer, make_consumer(config));
    sink_.emplace(*output_, std::move(consumer), duplicates_, counters_);
    sink_->start();
    return {};
}

/// Ends the output. When this returns, the unit's own sink has processed everything; users'
/// consumers may still have the memory mapped.
void Ends::end_output() {
    if (output_) {
        BufferWriter(*output_).close();
    }
    sink_.reset();
    if (fan_out_) {
        fan_out_->finish();
    }
    output_server_.reset();  // before the rings are closed, as a consumer then attaches again
    fan_out_.reset();
    tap_.reset();
    const std::lock_guard lock(mutex_);
    output_.reset();
}

void Ends::start_sources(std::uint64_t first_mfp) {
    for (auto& source : sources_) {
        source->start(std::max(first_mfp, source->next_mfp()));
    }
    if (cards_) {
        cards_->start(first_mfp);
    }
}
void Ends::stop_sources() {
    for (auto& source : sources_) {
        source->stop();
    }
    if (cards_) {
        cards_->stop();
    }
}

void Ends::shut() {
    stop_sources();  // the counters of sources can still be read
    stream_server_.reset();
    end_output();
}

void Ends::each_count(const SeeCount& see) const {
    std::unique_lock lock(mutex_);
    std::uint64_t blocked = blocked_before_ + carded_.source.blocked;
    std::uint64_t late = late_before_ + carded_.source.late;
    std::uint64_t skipped = skipped_before_ + carded_.source.skipped;
    for (const auto& source : sources_) {
        blocked += source->counters().blocked;
        late += source->counters().late;
        skipped += source->counters().skipped;
    }
    base::Bytes size = 0;
    base::Bytes used = 0;
    for (const Buffer& stream : streams_) {
        size += static_cast<base::Bytes>(stream.area().bytes().size());
        used += stream.held_bytes();
    }
    see_buffer(counter_names::kStreamBytes, size, counter_names::kStreamBytesUsed, used, see);
    if (output_) {
        see_buffer(counter_names::kOutputBytes,
                   static_cast<base::Bytes>(output_->area().bytes().size()),
                   counter_names::kOutputBytesUsed, output_->held_bytes(), see);
    }
    lock.unlock();
    if (has_cards_) {
        see(counter_names::kStoppedForAcknowledge.name, carded_.stopped_for_acknowledge_ps);
        see(counter_names::kStoppedForMemory.name, carded_.stopped_for_memory_ps);
    }
    see(counter_names::kMfpsBlocked.name, blocked);
    see(counter_names::kMfpsLate.name, late);
    see(counter_names::kPlacesSkipped.name, skipped);
    see_slots(counter_names::kConsumerMeps, consumed_.acknowledged, see);
    see_slots(counter_names::kConsumerReturned, consumed_.returned, see);
    see_slots(counter_names::kSamplerMeps, sampled_.copied, see);
    see_slots(counter_names::kSamplerSkipped, sampled_.skipped, see);
    if (kind_ == SinkKind::user) {
        see(counter_names::kConsumersAttached.name, consumed_.attached);
        see(counter_names::kConsumersRevoked.name, consumed_.revoked);
    } else if (kind_ == SinkKind::check) {
        see_checked(checked_, see);
    } else if (kind_ == SinkKind::file) {
        see_written(written_, see);
    }
}

}  // namespace daqloom::live
