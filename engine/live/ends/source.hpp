// Sources of a unit: threads that fill its buffers with multi-fragment packets (MFPs).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "base/units.hpp"
#include "live/memory/background.hpp"
#include "live/memory/buffer.hpp"
#include "live/memory/counter.hpp"

namespace daqloom::live {

/// Provides the MFPs of a source. MFP k holds `packing` events from event k × packing on, with tag
/// k.
class MfpFeed {
  public:
    enum class Fed {
        done,
        no_room,  ///< retry with the same MFP
        absent,   ///< this MFP does not exist, but later ones do
    };

    virtual ~MfpFeed() = default;
    /// Commits the MFP with this number. Called with successive numbers, starting at any number.
    virtual Fed feed(std::uint64_t mfp, BufferWriter& writer) = 0;
    /// Damaged places in its data that were skipped.
    [[nodiscard]] virtual std::uint64_t skipped() const { return 0; }
};

struct SourceConfig {
    double mfps_per_second = 0;  ///< 0: as fast as there is room
};

/// Written by the source's thread, read by any thread.
struct SourceCounters {
    Counter mfps;
    Counter skipped;  ///< damaged places of a recording
    Counter blocked;  ///< MFPs that waited for room
    Counter late;     ///< MFPs more than an interval behind their time
};

/// A thread that sleeps until an MFP is due and the buffer has space. MFP n after the start is due
/// n intervals after the start. After a late wake-up all due MFPs are committed together to keep
/// the average rate; time spent waiting for space is not made up for.
class Source {
  public:
    /// The source must be the only writer of the buffer, which must outlive it.
    Source(Buffer& buffer, std::unique_ptr<MfpFeed> feed, SourceConfig config)
        : buffer_(&buffer), feed_(std::move(feed)), config_(config) {}
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    /// Starts the source with this MFP. MFPs committed earlier stay in the buffer.
    void start(std::uint64_t first_mfp);
    /// Stops the source and waits for its thread. The buffer is not closed.
    void stop() { thread_.stop(); }

    /// The first MFP that has never been committed. Not callable while the source runs.
    [[nodiscard]] std::uint64_t next_mfp() const { return next_mfp_; }

    [[nodiscard]] const SourceCounters& counters() const { return counters_; }

  private:
    void run(const std::stop_token& stop, std::uint64_t first_mfp, BufferWriter& writer);
    /// Feeds one MFP, after waiting for room if necessary.
    MfpFeed::Fed feed(std::uint64_t mfp, BufferWriter& writer, const std::stop_token& stop);

    /// Waits until more than `acknowledged` pieces are acknowledged, or until the stop.
    void wait_for_room(const BufferWriter& writer, std::uint64_t acknowledged,
                       const std::stop_token& stop) const;
    /// Sleeps until this time, or the stop.
    void sleep(base::Time until, const std::stop_token& stop);

    Buffer* buffer_;
    std::unique_ptr<MfpFeed> feed_;
    SourceConfig config_;
    std::uint64_t next_mfp_ = 0;
    SourceCounters counters_;
    std::mutex mutex_;  ///< guards no data: required by the condition variable
    std::condition_variable_any wake_;
    Background thread_;
};

}  // namespace daqloom::live
