// A port that sends its frames in the order in which they come: a queue, and the wire behind it.
//
//    append ──> [ waiting ... ][ in transmission ][ propagating ... ] ──> deliver
//               ^ still in the sender's buffer    ^ departed
//
// A frame's departure is known the moment it is queued, because the queue is first-in first-out and
// the rate does not change; so a hop costs one event, the delivery at the far end, and the event
// queue holds at most one per link. Buffer space is freed by a call of `release_departed`, or at
// the latest on delivery.
//
// A ScheduledPort hands over one frame at a time, as the frame begins to leave: behind a
// ScheduledPort, this port is only the transmitter and the wire.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/ring.hpp"
#include "base/units.hpp"
#include "ethernet/frame.hpp"
#include "ethernet/link.hpp"

namespace daqloom::ethernet {

class alignas(64) FifoPort {
  public:
    explicit FifoPort(const LinkConfig& config, const Wiring& wiring = {})
        : from_port_(wiring.from_port),
          to_port_(wiring.to_port),
          from_switch_(wiring.from_switch),
          to_switch_(wiring.to_switch),
          delay_(config.delay),
          wire_(config.rate),
          bucket_(wire_(config.bucket)),
          rate_(config.rate) {}

    /// Queues a frame of `bytes` and returns it with only `at` set; the caller fills in the other
    /// fields. (Copying a frame assembled elsewhere would stall in every hop, as the copy reads
    /// narrow stores that have not reached the cache.)
    Frame& append(base::Bytes bytes, base::Time now) {
        free_at_ = std::max(now, free_at_) + wire_(bytes + kWireOverhead);
        Frame& frame = frames_.append();
        // Token bucket: the frame leaves once it has tokens, earlier by `bucket_` than from a wire.
        frame.at = std::max(now, free_at_ - bucket_) + delay_;
        return frame;
    }

    [[nodiscard]] std::uint32_t size() const { return frames_.size(); }
    [[nodiscard]] bool empty() const { return frames_.empty(); }
    [[nodiscard]] base::Time next_delivery() const { return frames_.front().at; }
    [[nodiscard]] const Frame& head() const { return frames_.front(); }
    [[nodiscard]] std::size_t memory() const { return frames_.memory(); }
    /// Time at which the last queued frame has left, and the wire is free.
    [[nodiscard]] base::Time free_at() const { return free_at_ - bucket_; }

    /// Delivers the first frame; returns whether it still counted as buffered at the near end.
    bool deliver() {
        const Frame& frame = frames_.front();
        counters_.frames += 1;
        counters_.ack_frames += frame.payload == 0 ? 1 : 0;
        counters_.frame_bytes += frame.bytes;
        frames_.pop();
        frames_.prefetch();
        if (departed_ == 0) {
            return true;
        }
        --departed_;
        return false;
    }

    /// Calls `release(frame)` for every frame that has left the near end's buffer by `now` and was
    /// not released before.
    template <class Release>
    void release_departed(base::Time now, Release&& release) {
        const base::Time latest = now + delay_;
        while (departed_ < frames_.size() && frames_[departed_].at <= latest) {
            release(frames_[departed_]);
            ++departed_;
        }
    }

    /// Sets the rate for frames queued from now on; frames already on the wire keep their rate.
    void set_rate(base::BitRate rate) {
        rate_ = rate;
        wire_ = base::WireClock(rate);
    }
    /// Frames that had not left by the last call of `release_departed`.
    [[nodiscard]] std::uint32_t waiting() const { return frames_.size() - departed_; }
    /// Time at which the first waiting frame has left.
    [[nodiscard]] base::Time next_departure() const { return frames_[departed_].at - delay_; }
    /// Whether a ScheduledPort hands over the frames.
    [[nodiscard]] bool is_scheduled() const { return scheduled_; }
    void set_scheduled() { scheduled_ = true; }

    [[nodiscard]] Wiring wiring() const { return {from_switch_, from_port_, to_switch_, to_port_}; }
    [[nodiscard]] const LinkCounters& counters() const { return counters_; }
    [[nodiscard]] base::BitRate rate() const { return rate_; }
    [[nodiscard]] base::Time delay() const { return delay_; }
    /// Time of a frame of `bytes` on a wire of this rate.
    [[nodiscard]] base::Time on_wire(base::Bytes bytes) const {
        return wire_(bytes + kWireOverhead);
    }
    /// Time of a frame of `bytes` on an idle link, without the propagation delay.
    [[nodiscard]] base::Time alone(base::Bytes bytes) const {
        return std::max(base::Time::zero(), on_wire(bytes) - bucket_);
    }

    /// Bytes queued or on the wire, counted frame by frame: an independent check of the counters.
    [[nodiscard]] std::int64_t bytes_inside() const {
        std::int64_t sum = 0;
        for (std::uint32_t i = 0; i < frames_.size(); ++i) {
            sum += frames_[i].bytes;
        }
        return sum;
    }

  private:
    // ---- first cache line: members for a delivery; second cache line: more members for append
    base::Ring<Frame> frames_;
    std::uint32_t departed_ = 0;  ///< frames at the head that are on the wire and released
    std::uint16_t from_port_;     ///< the wiring, in less room than its own type takes
    std::uint16_t to_port_;
    SwitchIndex from_switch_;
    SwitchIndex to_switch_;
    LinkCounters counters_;
    base::Time free_at_;  ///< a shaper's bucket is full again then
    base::Time delay_;
    base::WireClock wire_;
    base::Time bucket_;  ///< time of the bucket's bytes on the wire; zero: no shaper
    base::BitRate rate_;
    bool scheduled_ = false;
};

}  // namespace daqloom::ethernet
