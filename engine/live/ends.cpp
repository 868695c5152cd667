#include "live/ends.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "live/clock.hpp"
#include "live/counters.hpp"
#include "protocol/mep.hpp"
#include "protocol/mep_check.hpp"
#include "protocol/mfp_generator.hpp"

namespace daqloom::live {

namespace {

constexpr base::Time kPatience = base::milliseconds(100);

std::span<std::uint8_t> as_u8(std::span<std::byte> bytes) {
    return {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()};
}

base::expected<protocol::MfpGenerator> generator(const NodeConfig& config, std::uint32_t source) {
    auto sizes = std::make_shared<protocol::PatternSizes>(
        config.sizes, config.fragment_bytes[source], config.seed);
    return protocol::MfpGenerator::make({.source_id = static_cast<std::uint16_t>(source),
                                         .packing = config.packing,
                                         .align = config.align,
                                         .sizes = std::move(sizes)});
}

class Generating {
  public:
    Generating(protocol::MfpGenerator mfps, Buffer& buffer, double rate_hz)
        : mfps_(std::move(mfps)), buffer_(buffer), rate_hz_(rate_hz) {}
    ~Generating() { stop(); }

    void start(std::uint64_t first) {
        next_ = std::max(next_, first);
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
    void stop() { thread_ = {}; }

  private:
    void run(const std::stop_token& stop) {
        BufferWriter writer(buffer_);
        while (!stop.stop_requested()) {
            const std::uint64_t event = next_ * mfps_.packing();
            const std::uint64_t seen = writer.acknowledged();
            const auto room = writer.reserve(mfps_.bytes_of(event));
            if (!room) {
                writer.wait(seen, now() + kPatience);
                continue;
            }
            const auto made = mfps_.generate(event, as_u8(*room));
            writer.commit(next_++, made.value_or(0));
        }
    }

    protocol::MfpGenerator mfps_;
    Buffer& buffer_;
    double rate_hz_;
    std::uint64_t next_ = 0;
    std::jthread thread_;
};

class Checking {
  public:
    Checking(std::vector<protocol::MfpGenerator> sources, Buffer& buffer)
        : sources_(std::move(sources)), buffer_(buffer) {
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
    Counter meps, wrong, fragments, fragment_bytes;

  private:
    void run(const std::stop_token& stop) {
        BufferReader reader(buffer_);
        while (!stop.stop_requested()) {
            const auto piece = reader.next();
            if (!piece) {
                reader.wait(now() + kPatience);
                continue;
            }
            const auto check = protocol::check_mep(sources_, as_u8(piece->bytes));
            meps.add(1);
            wrong.add(check.fault == protocol::DataFault::none ? 0U : 1U);
            fragments.add(check.fragments);
            fragment_bytes.add(static_cast<std::uint64_t>(check.fragment_bytes));
            reader.acknowledge();
        }
    }

    std::vector<protocol::MfpGenerator> sources_;
    Buffer& buffer_;
    std::jthread thread_;
};

}  // namespace

struct Ends::Parts {
    std::vector<Buffer> streams;
    std::vector<std::unique_ptr<Generating>> sources;
    std::unique_ptr<Buffer> output;
    std::unique_ptr<Checking> sink;
};

Ends::Ends() : parts_(std::make_unique<Parts>()) {}
Ends::~Ends() = default;

base::expected<void> Ends::make_sources(const NodeConfig& config, std::uint32_t readout,
                                        const Doorbell& unit) {
    for (std::uint32_t stream = 0; stream < config.streams; ++stream) {
        auto buffer = Buffer::create({.name = fmt::format("daqloom-stream-{}", stream),
                                      .bytes = config.stream_buffer,
                                      .pieces = 1024},
                                     &unit);
        if (!buffer) {
            return tl::unexpected(buffer.error());
        }
        parts_->streams.push_back(std::move(*buffer));
    }
    for (std::uint32_t stream = 0; stream < config.streams; ++stream) {
        auto mfps = generator(config, readout * config.streams + stream);
        if (!mfps) {
            return tl::unexpected(mfps.error());
        }
        parts_->sources.push_back(std::make_unique<Generating>(
            std::move(*mfps), parts_->streams[stream], config.event_rate_hz));
    }
    return {};
}

base::expected<void> Ends::renew_output(const NodeConfig& config, const Doorbell& unit) {
    auto buffer = Buffer::create(
        {.name = "daqloom-output", .bytes = config.output_buffer, .pieces = 4096}, nullptr, &unit);
    if (!buffer) {
        return tl::unexpected(buffer.error());
    }
    std::vector<protocol::MfpGenerator> sources;
    for (std::uint32_t source = 0; source < config.fragment_bytes.size(); ++source) {
        auto mfps = generator(config, source);
        if (!mfps) {
            return tl::unexpected(mfps.error());
        }
        sources.push_back(std::move(*mfps));
    }
    parts_->sink.reset();
    parts_->output = std::make_unique<Buffer>(std::move(*buffer));
    parts_->sink = std::make_unique<Checking>(std::move(sources), *parts_->output);
    return {};
}

void Ends::start_sources(std::uint64_t first_mfp) {
    for (auto& source : parts_->sources) {
        source->start(first_mfp);
    }
}
void Ends::stop_sources() {
    for (auto& source : parts_->sources) {
        source->stop();
    }
}
void Ends::shut() {
    parts_->sources.clear();
    parts_->sink.reset();
}

std::span<Buffer> Ends::streams() { return parts_->streams; }
Buffer* Ends::output() { return parts_->output.get(); }

void Ends::each_count(const SeeCount& see) const {
    if (parts_->sink) {
        see("meps_checked", parts_->sink->meps.get());
        see("meps_wrong", parts_->sink->wrong.get());
        see("fragments_checked", parts_->sink->fragments.get());
        see("fragment_bytes_checked", parts_->sink->fragment_bytes.get());
    }
}

}  // namespace daqloom::live
