// The other ends of a unit's buffers: the sources of its streams and the consumer of its MEPs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "live/ends/card_source.hpp"
#include "live/ends/check_sink.hpp"
#include "live/ends/file_sink.hpp"
#include "live/ends/recording.hpp"
#include "live/ends/sink.hpp"
#include "live/ends/source.hpp"
#include "live/memory/buffer.hpp"
#include "live/memory/buffer_server.hpp"
#include "live/memory/counters.hpp"
#include "live/memory/doorbell.hpp"
#include "live/memory/fan_out.hpp"
#include "live/memory/sample_tap.hpp"
#include "live/node/counters_page.hpp"
#include "live/node/node_config.hpp"

namespace daqloom::live {

class Ends {
  public:
    /// `counters` receive the consumer's counts, and must outlive this object.
    explicit Ends(NodeCounters& counters) : counters_(counters) {}
    ~Ends() { shut(); }
    Ends(const Ends&) = delete;
    Ends& operator=(const Ends&) = delete;

    /// A buffer for each stream of a readout unit.
    base::expected<void> make_streams(const NodeConfig& config, const Doorbell& unit);
    /// Replaces the sources by sources for this readout unit of the run, without starting them.
    /// Streams that have been used are also replaced.
    base::expected<void> make_sources(const NodeConfig& config, protocol::ReadoutIndex readout,
                                      const Doorbell& unit);
    /// The readout unit of the sources, or none.
    [[nodiscard]] protocol::ReadoutIndex reads_out() const { return reads_out_; }
    /// Makes a new output buffer and its consumer. The old buffer's consumer continues until it has
    /// read everything.
    base::expected<void> renew_output(const NodeConfig& config, const Doorbell& unit);

    void start_sources(std::uint64_t first_mfp);
    void stop_sources();
    /// Ends sources, output and buffers.
    void shut();

    [[nodiscard]] std::span<Buffer> streams() { return streams_; }
    [[nodiscard]] Buffer* output() { return output_ ? &*output_ : nullptr; }
    [[nodiscard]] SampleTap* tap() { return tap_ ? &*tap_ : nullptr; }
    void each_count(const SeeCount& see) const;

  private:
    /// Opens the recording, unless it is open.
    base::expected<void> open_recording(const NodeConfig& config);
    base::expected<std::unique_ptr<MepConsumer>> make_consumer(const NodeConfig& config);
    void end_sources();
    void end_output();

    NodeCounters& counters_;
    std::optional<Doorbell> card_bell_;  ///< writers' doorbell of the streams from cards
    std::vector<Buffer> streams_;
    protocol::ReadoutIndex reads_out_ = protocol::ReadoutIndex::none();
    std::optional<Recording> recording_;  ///< to be replayed
    std::shared_ptr<const RecordedChecksums> checksums_;
    mutable std::mutex mutex_;  ///< guards the buffers and the next four, which other threads read
    std::vector<std::unique_ptr<Source>> sources_;
    std::uint64_t blocked_before_ = 0;  ///< MFPs counted by earlier sources
    std::uint64_t late_before_ = 0;
    std::uint64_t skipped_before_ = 0;
    std::atomic<bool> has_cards_ = false;
    CardCounters carded_;
    std::optional<CardSource> cards_;  ///< in place of `sources_`
    std::unique_ptr<BufferServer> stream_server_;

    std::optional<Doorbell> fan_bell_;  ///< reader's doorbell of the output, of a fan-out
    std::optional<Buffer> output_;
    std::optional<SampleTap> tap_;
    std::optional<FanOut> fan_out_;
    std::optional<Sink> sink_;
    std::unique_ptr<BufferServer> output_server_;
    std::atomic<SinkKind> kind_ = SinkKind::user;
    CheckCounters checked_;
    FileCounters written_;
    FanOutCounters consumed_;
    SampleCounters sampled_;
    DuplicateFilter duplicates_;
};

}  // namespace daqloom::live
