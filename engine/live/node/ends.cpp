#include "live/node/ends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "live/ends/check_sink.hpp"
#include "live/ends/file_sink.hpp"
#include "live/ends/generator_source.hpp"
#include "live/ends/replay_source.hpp"
#include "live/ends/sink.hpp"
#include "live/ends/source.hpp"
#include "live/memory/buffer_server.hpp"
#include "live/memory/counter_names.hpp"
#include "protocol/data/mfp_generator.hpp"

namespace daqloom::live {

namespace {

constexpr std::uint32_t kStreamPieces = 1U << 14;
constexpr std::uint32_t kOutputPieces = 1U << 14;

/// Errors of a full disk or file; counted by name even while they are zero.
constexpr std::array kUsualErrors = {ENOSPC, EDQUOT, EFBIG, EIO};

std::string served_name(const NodeConfig& config, const std::string& what) {
    return fmt::format("daqloom/{}/{}/{}", config.run, config.self.value(), what);
}

base::expected<protocol::PatternSizes> sizes_of(const NodeConfig& config, std::uint32_t stream) {
    if (config.protocol != Protocol::pull) {
        return protocol::PatternSizes(config.sizes, config.fragment_bytes[stream], config.seed);
    }
    return protocol::PatternSizes::of_events(
        config.event_size, protocol::FragmentShares(readouts_in_run(config), config.share),
        protocol::ReadoutIndex(stream), config.packing, config.seed);
}

base::expected<protocol::MfpGenerator> generator(const NodeConfig& config, std::uint32_t stream) {
    auto sizes = sizes_of(config, stream);
    if (!sizes) {
        return tl::unexpected(sizes.error());
    }
    return protocol::MfpGenerator::make(
        {.source_id = static_cast<std::uint16_t>(stream),
         .packing = config.packing,
         .align = config.align,
         .sizes = std::make_shared<protocol::PatternSizes>(std::move(*sizes))});
}

base::expected<std::unique_ptr<MfpFeed>> feed_of(const NodeConfig& config, std::uint32_t stream,
                                                 Buffer& buffer) {
    if (config.source == SourceKind::replay) {
        const auto recording = Recording::open(config.replay, config.packing);
        if (!recording) {
            return tl::unexpected(recording.error());
        }
        return replay_mfps(*recording,
                           {.source_id = static_cast<std::uint16_t>(stream),
                            .packing = static_cast<std::uint16_t>(config.packing),
                            .loop = config.replay_loops},
                           buffer);
    }
    auto mfps = generator(config, stream);
    if (!mfps) {
        return tl::unexpected(mfps.error());
    }
    const auto content =
        config.content == Content::once ? GeneratorContent::once : GeneratorContent::every;
    return generate_mfps(std::move(*mfps), content, buffer);
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
}

}  // namespace

struct Ends::Parts {
    explicit Parts(NodeCounters& unit) : counters(unit) {}

    base::expected<std::unique_ptr<MepConsumer>> consumer(const NodeConfig& config);
    void end_output();

    NodeCounters& counters;
    std::vector<Buffer> streams;
    std::vector<std::unique_ptr<Source>> sources;
    std::unique_ptr<BufferServer> stream_server;

    std::optional<Buffer> output;
    std::unique_ptr<Sink> sink;
    std::unique_ptr<BufferServer> output_server;
    std::atomic<SinkKind> kind = SinkKind::user;
    CheckCounters checked;
    FileCounters written;
    SeenMeps seen;
};

Ends::Ends(NodeCounters& counters) : parts_(std::make_unique<Parts>(counters)) {}
Ends::~Ends() { shut(); }

base::expected<void> Ends::make_sources(const NodeConfig& config, std::uint32_t readout,
                                        const Doorbell& unit) {
    for (std::uint32_t stream = 0; stream < config.streams; ++stream) {
        auto buffer = Buffer::create({.name = fmt::format("daqloom-stream-{}", stream),
                                      .bytes = config.stream_buffer,
                                      .pieces = kStreamPieces},
                                     &unit);
        if (!buffer) {
            return tl::unexpected(buffer.error());
        }
        buffer->area().populate();
        parts_->streams.push_back(std::move(*buffer));
    }
    if (config.source == SourceKind::user) {
        std::vector<BufferOffer> offers;
        for (std::uint32_t stream = 0; stream < config.streams; ++stream) {
            offers.push_back({served_name(config, fmt::format("stream-{}", stream)),
                              &parts_->streams[stream], BufferSide::writer});
        }
        auto server = BufferServer::serve(std::move(offers));
        if (!server) {
            return tl::unexpected(server.error());
        }
        parts_->stream_server = std::move(*server);
        return {};
    }
    for (std::uint32_t stream = 0; stream < config.streams; ++stream) {
        Buffer& buffer = parts_->streams[stream];
        auto feed = feed_of(config, readout * config.streams + stream, buffer);
        if (!feed) {
            return tl::unexpected(feed.error());
        }
        parts_->sources.push_back(std::make_unique<Source>(
            buffer, std::move(*feed),
            SourceConfig{.mfps_per_second = config.event_rate_hz / config.packing}));
    }
    return {};
}

base::expected<std::unique_ptr<MepConsumer>> Ends::Parts::consumer(const NodeConfig& config) {
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
        return write_meps({.prefix = fmt::format("{}/unit-{}", config.output, config.self.value()),
                           .format = FileFormat::mfp,
                           .bytes_per_file = config.output_file},
                          written, counters);
    }
    std::vector<protocol::MfpGenerator> expected;
    for (std::uint32_t stream = 0; stream < config.fragment_bytes.size(); ++stream) {
        auto mfps = generator(config, stream);
        if (!mfps) {
            return tl::unexpected(mfps.error());
        }
        expected.push_back(std::move(*mfps));
    }
    return check_meps(std::move(expected), checked);
}

base::expected<void> Ends::renew_output(const NodeConfig& config, const Doorbell& unit) {
    Parts& parts = *parts_;
    parts.end_output();
    auto buffer = Buffer::create(
        {.name = "daqloom-output", .bytes = config.output_buffer, .pieces = kOutputPieces}, nullptr,
        &unit);
    if (!buffer) {
        return tl::unexpected(buffer.error());
    }
    buffer->area().populate();
    parts.output.emplace(std::move(*buffer));
    parts.kind = config.sink;
    if (config.sink == SinkKind::user) {
        auto server = BufferServer::serve(
            {{served_name(config, "output"), &*parts.output, BufferSide::reader}});
        if (!server) {
            return tl::unexpected(server.error());
        }
        parts.output_server = std::move(*server);
        return {};
    }
    auto consumer = parts.consumer(config);
    if (!consumer) {
        return tl::unexpected(consumer.error());
    }
    parts.sink =
        std::make_unique<Sink>(*parts.output, std::move(*consumer), parts.seen, parts.counters);
    parts.sink->start();
    return {};
}

/// The unit's own sink has processed everything when this returns; a user's consumer keeps the
/// memory mapped for as long as it likes.
void Ends::Parts::end_output() {
    if (output) {
        BufferWriter(*output).close();
    }
    if (sink) {
        sink->stop();
        sink.reset();
    }
    output_server.reset();
    output.reset();
}

void Ends::start_sources(std::uint64_t first_mfp) {
    for (auto& source : parts_->sources) {
        source->start(std::max(first_mfp, source->next_mfp()));
    }
}
void Ends::stop_sources() {
    for (auto& source : parts_->sources) {
        source->stop();
    }
}
void Ends::shut() {
    stop_sources();  // their counters can still be read
    parts_->stream_server.reset();
    parts_->end_output();
}

std::span<Buffer> Ends::streams() { return parts_->streams; }
Buffer* Ends::output() { return parts_->output ? &*parts_->output : nullptr; }

void Ends::each_count(const SeeCount& see) const {
    const Parts& parts = *parts_;
    std::uint64_t blocked = 0;
    std::uint64_t late = 0;
    for (const auto& source : parts.sources) {
        blocked += source->counters().blocked;
        late += source->counters().late;
    }
    see(counter_names::kMfpsBlocked.name, blocked);
    see(counter_names::kMfpsLate.name, late);
    if (parts.kind == SinkKind::check) {
        see_checked(parts.checked, see);
    } else if (parts.kind == SinkKind::file) {
        see_written(parts.written, see);
    }
}

}  // namespace daqloom::live
