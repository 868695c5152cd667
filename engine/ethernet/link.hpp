// One direction of a cable together with the queue in front of it.
//
//    append ──> [ waiting ... ][ in transmission ][ propagating ... ] ──> deliver
//               ^ still in the sender's buffer    ^ departed
//
// A frame's departure is known the moment it is queued, because the queue is first-in first-out and
// the rate never changes; so a hop costs one event, the delivery at the far end, and only the head
// of a link is ever in the event queue. Buffer space is freed by a call of `release_departed`, or
// at the latest on delivery.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/ring.hpp"
#include "base/units.hpp"
#include "ethernet/frame.hpp"

namespace daqloom::ethernet {

struct LinkConfig {
    base::BitRate rate;
    base::Time delay;
    base::BitRate rate_limit{0};  ///< pacing below the line rate, in wire bits; 0: none
};

struct LinkCounters {
    std::uint64_t frames = 0;      ///< delivered at the far end
    std::uint64_t ack_frames = 0;  ///< of those, without payload
    std::int64_t frame_bytes = 0;  ///< delivered, as buffered

    /// Bytes of wire occupied by the frames delivered, preambles and gaps counted.
    [[nodiscard]] std::int64_t wire_bytes() const {
        return frame_bytes + static_cast<std::int64_t>(frames) * kWireOverhead;
    }
};

/// Where a link begins and ends: at a port of a switch, or at a host.
struct Wiring {
    SwitchIndex from_switch = SwitchIndex::none();  ///< none: a host
    std::uint16_t from_port = 0;
    SwitchIndex to_switch = SwitchIndex::none();
    std::uint16_t to_port = 0;

    [[nodiscard]] bool from_host() const { return from_switch == SwitchIndex::none(); }
    [[nodiscard]] bool to_host() const { return to_switch == SwitchIndex::none(); }
};

class alignas(64) Link {
  public:
    explicit Link(const LinkConfig& config, const Wiring& wiring = {})
        : from_port_(wiring.from_port),
          to_port_(wiring.to_port),
          from_switch_(wiring.from_switch),
          to_switch_(wiring.to_switch),
          delay_(config.delay),
          wire_(config.rate),
          pace_(config.rate_limit.bps > 0 ? std::min(config.rate, config.rate_limit) : config.rate),
          rate_(config.rate) {}

    /// Queues a frame of `bytes` and returns it with only `at` set; the caller fills in the other
    /// fields. (A frame that is assembled elsewhere and copied would be read back before its narrow
    /// stores have reached the cache, a stall in every hop.)
    Frame& append(base::Bytes bytes, base::Time now) {
        const base::Time start = std::max(now, free_at_);
        const base::Bytes on_wire = bytes + kWireOverhead;
        free_at_ = start + pace_(on_wire);
        Frame& frame = frames_.append();
        frame.at = start + wire_(on_wire) + delay_;
        return frame;
    }

    [[nodiscard]] std::uint32_t size() const { return frames_.size(); }
    [[nodiscard]] bool empty() const { return frames_.empty(); }
    [[nodiscard]] base::Time next_delivery() const { return frames_.front().at; }
    [[nodiscard]] const Frame& head() const { return frames_.front(); }
    /// When the last queued frame has left and the next could start.
    [[nodiscard]] base::Time free_at() const { return free_at_; }

    /// Takes the head off. True when it still counted as buffered at the near end.
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
    /// not reported before.
    template <class Release>
    void release_departed(base::Time now, Release&& release) {
        const base::Time latest = now + delay_;
        while (departed_ < frames_.size() && frames_[departed_].at <= latest) {
            release(frames_[departed_]);
            ++departed_;
        }
    }

    [[nodiscard]] Wiring wiring() const { return {from_switch_, from_port_, to_switch_, to_port_}; }
    [[nodiscard]] const LinkCounters& counters() const { return counters_; }
    [[nodiscard]] base::BitRate rate() const { return rate_; }
    [[nodiscard]] base::Time delay() const { return delay_; }

    /// Bytes queued or on the wire, counted frame by frame: an independent check of the counters.
    [[nodiscard]] std::int64_t bytes_inside() const {
        std::int64_t sum = 0;
        for (std::uint32_t i = 0; i < frames_.size(); ++i) {
            sum += frames_[i].bytes;
        }
        return sum;
    }

  private:
    // ---- one cache line for what a delivery needs, the next for what else an append needs
    base::Ring<Frame> frames_;
    std::uint32_t departed_ = 0;  ///< frames at the head that are on the wire and released
    std::uint16_t from_port_;     ///< the wiring, in less room than its own type takes
    std::uint16_t to_port_;
    SwitchIndex from_switch_;
    SwitchIndex to_switch_;
    LinkCounters counters_;
    base::Time free_at_;
    base::Time delay_;
    base::WireClock wire_;
    base::WireClock pace_;
    base::BitRate rate_;
};

}  // namespace daqloom::ethernet
