// A port that decides which frame leaves next whenever its wire becomes free.
//
//             ┌ class 7 [ input 0 ][ input 1 ] ... ┐
//    append ──┤   ...                              ├── next ──> FifoPort: transmitter and wire
//             └ class 0 [ input 0 ][ input 1 ] ... ┘
//
// Among the classes that have frames and are not paused, the highest class of strict priority goes
// first. The weighted classes share the rest by deficit round robin (M. Shreedhar and G. Varghese,
// "Efficient Fair Queuing Using Deficit Round-Robin", IEEE/ACM Transactions on Networking 4(3),
// 1996), in bytes of wire. Within a class there is one queue, or one per input (virtual output
// queues), served in turn, frame by frame. A frame that has begun to leave is never interrupted.
//
// Each frame that waits costs an event, at which the port selects the next frame. The port does no
// I/O: `wake` returns the time of this event, and the owner of the port schedules it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ring.hpp"
#include "base/units.hpp"
#include "ethernet/frame.hpp"
#include "ethernet/schedule.hpp"

namespace daqloom::ethernet {

struct ScheduledPortConfig {
    Schedule schedule;
    std::uint32_t inputs = 1;     ///< queues of a class; 1: one for all inputs
    base::Bytes queue_limit = 0;  ///< per queue; 0: none
    /// Bytes of wire per round for the class of least weight: a full frame, so that each class with
    /// frames sends in every round.
    base::Bytes quantum = 1518 + kWireOverhead;

    /// Whether the port differs from a FifoPort.
    [[nodiscard]] bool needed() const {
        return schedule.scheduling != Scheduling::fifo || inputs > 1 || queue_limit > 0;
    }
};

/// Counters of a class.
struct ClassCounters {
    std::uint64_t frames = 0;  ///< frames that have begun to leave
    base::Bytes wire_bytes = 0;
    std::uint64_t drops = 0;  ///< in front of the port
};

class ScheduledPort {
  public:
    explicit ScheduledPort(const ScheduledPortConfig& config);

    /// Whether the link accepts frames and the frame's queue has space.
    [[nodiscard]] bool accepts(TrafficClass traffic_class, std::uint32_t input,
                               base::Bytes bytes) const {
        const Class& its = class_of(traffic_class);
        const base::Bytes held = its.queues.empty() ? 0 : its.queues[queue_of(input)].held;
        return !drops_ && (queue_limit_ == 0 || held + bytes <= queue_limit_);
    }
    void count_drop(TrafficClass traffic_class) { class_of(traffic_class).counters.drops += 1; }

    /// Whether a frame that arrives now leaves without waiting.
    [[nodiscard]] bool is_free(TrafficClass traffic_class, base::Time now) const {
        return is_up_ && !is_next_due_ && free_at_ <= now && !class_of(traffic_class).is_held;
    }
    /// Queues a frame of `bytes` and returns it; the caller fills in the fields.
    Frame& append(TrafficClass traffic_class, std::uint32_t input, base::Bytes bytes);
    /// Returns the frame that leaves now, if any may leave; called at the time returned by `wake`.
    std::optional<Frame> next();
    /// Begins sending a frame, whose last byte will have left at `sent`.
    void begin(TrafficClass traffic_class, base::Bytes bytes, base::Time now, base::Time sent) {
        const base::Bytes on_wire = bytes + kWireOverhead;
        if (free_at_ < now) {  // the wire has been idle, without a choice
            end_turn_if_empty();
        }
        free_at_ = paced_ ? std::max(sent, now + pace_(on_wire)) : sent;
        ClassCounters& counters = class_of(traffic_class).counters;
        counters.frames += 1;
        counters.wire_bytes += on_wire;
    }
    /// Time at which to call `next`, if a frame may be sent and no call is pending. Must be called
    /// after each change of the port that may affect this time.
    [[nodiscard]] std::optional<base::Time> wake(base::Time now);

    // ---- during a run
    void set_pace(base::BitRate pace) {
        paced_ = pace.bps > 0;
        pace_ = base::WireClock(paced_ ? pace : base::gigabits_per_second(1));
    }
    /// Pauses a class, or the whole port if it does not distinguish classes.
    void hold(TrafficClass traffic_class) { class_of(traffic_class).is_held = true; }
    void resume(TrafficClass traffic_class) { class_of(traffic_class).is_held = false; }
    /// The link goes down; the `on_wire` frames on the wire will be lost.
    void go_down(std::uint32_t on_wire, bool drops) {
        is_up_ = false;
        drops_ = drops;
        lost_ = on_wire;
    }
    void go_up() {
        is_up_ = true;
        drops_ = false;
    }
    /// Takes the first frame off the wire; returns whether the frame was lost.
    bool has_lost_head() {
        const bool lost = lost_ > 0;
        lost_ -= lost ? 1 : 0;
        return lost;
    }
    /// Calls see(frame) for each waiting frame, and removes the frame.
    template <class See>
    void clear(See&& see) {
        for (Class& its : classes_) {
            for (Queue& queue : its.queues) {
                for (; !queue.frames.empty(); queue.frames.pop()) {
                    see(queue.frames.front());
                }
                queue.held = 0;
            }
            its.waiting = 0;
            its.deficit = 0;
        }
    }

    /// Whether classes make a difference.
    [[nodiscard]] bool has_classes() const { return classes_.size() > 1; }
    [[nodiscard]] const ClassCounters& counters(TrafficClass traffic_class) const {
        return class_of(traffic_class).counters;
    }
    /// Frames waiting.
    [[nodiscard]] std::uint32_t waiting() const {
        std::uint32_t all = 0;
        for (const Class& its : classes_) {
            all += its.waiting;
        }
        return all;
    }
    /// Bytes waiting, counted frame by frame.
    [[nodiscard]] base::Bytes bytes_waiting() const;
    /// Memory of the queues (B).
    [[nodiscard]] std::size_t memory() const;

  private:
    struct Queue {
        base::Ring<Frame> frames;
        base::Bytes held = 0;
    };

    struct Class {
        bool is_held = false;
        std::vector<Queue> queues;  ///< empty before the first frame
        std::uint32_t turn = 0;     ///< queue whose turn is next
        std::uint32_t waiting = 0;  ///< frames in all of them
        base::Bytes quantum = 0;    ///< bytes of wire in a round; 0: strict priority
        base::Bytes deficit = 0;    ///< bytes left in this round
        ClassCounters counters;

        /// Queue with the class's next frame; requires a waiting frame.
        [[nodiscard]] std::uint32_t next_queue() const;
    };

    [[nodiscard]] std::size_t place_of(TrafficClass traffic_class) const {
        return has_classes() ? traffic_class.value() : 0;
    }
    [[nodiscard]] Class& class_of(TrafficClass traffic_class) {
        return classes_[place_of(traffic_class)];
    }
    [[nodiscard]] const Class& class_of(TrafficClass traffic_class) const {
        return classes_[place_of(traffic_class)];
    }
    [[nodiscard]] std::uint32_t queue_of(std::uint32_t input) const {
        return inputs_ == 1 ? 0 : input;
    }
    [[nodiscard]] static bool may_send(const Class& its) { return its.waiting > 0 && !its.is_held; }
    [[nodiscard]] Class* choose();
    [[nodiscard]] Class& choose_by_deficit();
    void end_turn_if_empty();

    std::vector<Class> classes_;  ///< one class if classes make no difference
    std::uint32_t inputs_;
    base::Bytes queue_limit_;
    base::WireClock pace_;
    bool paced_ = false;
    bool is_up_ = true;
    bool drops_ = false;          ///< while it is down
    std::uint32_t lost_ = 0;      ///< lost frames at the head of the wire
    bool is_next_due_ = false;    ///< a call of `next` is due
    base::Time free_at_;          ///< when the next frame may begin
    std::size_t round_turn_ = 0;  ///< the class whose turn it is in the round
};

}  // namespace daqloom::ethernet
