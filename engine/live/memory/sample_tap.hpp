// Copies of some multi-event packets (MEPs) for processes that observe a unit's output.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/memory/buffer.hpp"
#include "live/memory/buffer_server.hpp"
#include "live/memory/counter.hpp"

namespace daqloom::live {

/// Written by the thread that offers pieces, by slot; counters of a slot include its earlier
/// processes.
struct SampleCounters {
    static constexpr std::size_t slots = 4;  ///< limit on samplers of an output

    std::array<Counter, slots> copied;
    std::array<Counter, slots> skipped;  ///< pieces not copied while a process had the slot
};

/// Each sampler has a buffer of its own, into which the writing thread copies a piece if there is
/// room, and if copies have taken less than a hundredth of the time. A sampler that reads nothing
/// gets nothing, and delays no consumer.
class SampleTap final : public Attendant {
  public:
    static constexpr int time_per_copy = 100;  ///< time from copy to copy, in times of the copy

    /// `bytes`: size of a sampler's buffer; larger pieces are skipped. `counters` must outlive this
    /// object.
    SampleTap(base::Bytes bytes, SampleCounters& counters) : bytes_(bytes), counters_(counters) {}
    SampleTap(const SampleTap&) = delete;
    SampleTap& operator=(const SampleTap&) = delete;

    /// Closes the samplers' buffers. Precondition: no server calls this object any more.
    ~SampleTap() override;

    base::expected<const Buffer*> admit(std::size_t slot, pid_t peer) override;
    void leave(std::size_t slot) override;

    /// Writing thread: copies the piece for samplers. Never waits.
    void offer(std::uint64_t tag, std::span<const std::byte> bytes) {
        if (attached_.load(std::memory_order_relaxed) > 0) [[unlikely]] {
            copy(tag, bytes);
        }
    }

  private:
    struct Sampler {
        explicit Sampler(Buffer its) : buffer(std::move(its)) {}
        Buffer buffer;
        BufferWriter writer{buffer};
    };

    void copy(std::uint64_t tag, std::span<const std::byte> bytes);

    base::Bytes bytes_;
    SampleCounters& counters_;
    std::atomic<std::size_t> attached_ = 0;
    std::mutex mutex_;  ///< guards the members below
    std::array<std::optional<Sampler>, SampleCounters::slots> samplers_;
    base::Time next_copy_ = base::Time::zero();
};

}  // namespace daqloom::live
