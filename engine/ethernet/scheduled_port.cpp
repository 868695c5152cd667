#include "ethernet/scheduled_port.hpp"

#include <algorithm>

namespace daqloom::ethernet {

using base::Bytes;
using base::Time;

ScheduledPort::ScheduledPort(const ScheduledPortConfig& config)
    : classes_(config.schedule.scheduling == Scheduling::fifo ? 1 : kTrafficClasses),
      inputs_(config.inputs),
      queue_limit_(config.queue_limit) {
    if (config.schedule.scheduling != Scheduling::weighted) {
        return;
    }
    std::uint32_t least = kMostWeight;
    for (const std::uint32_t weight : config.schedule.weights) {
        least = weight > 0 ? std::min(least, weight) : least;
    }
    for (std::size_t i = 0; i < classes_.size(); ++i) {
        classes_[i].quantum = config.quantum * config.schedule.weights[i] / least;
    }
}

Frame& ScheduledPort::append(TrafficClass traffic_class, std::uint32_t input, Bytes bytes) {
    Class& its = class_of(traffic_class);
    if (its.queues.empty()) {
        its.queues.resize(inputs_);
    }
    ++its.waiting;
    Queue& queue = its.queues[queue_of(input)];
    queue.held += bytes;
    return queue.frames.append();
}

std::optional<Time> ScheduledPort::wake(Time now) {
    if (!is_up_ || is_next_due_ || std::none_of(classes_.begin(), classes_.end(), may_send)) {
        return std::nullopt;
    }
    is_next_due_ = true;
    return std::max(now, free_at_);
}

std::optional<Frame> ScheduledPort::next() {
    is_next_due_ = false;
    Class* const its = is_up_ ? choose() : nullptr;
    if (its == nullptr) {
        return std::nullopt;
    }
    const std::uint32_t place = its->next_queue();
    its->turn = place + 1 == inputs_ ? 0 : place + 1;
    Queue& queue = its->queues[place];
    const Frame frame = queue.frames.front();
    queue.frames.pop();
    queue.held -= frame.bytes;
    --its->waiting;
    return frame;
}

ScheduledPort::Class* ScheduledPort::choose() {
    end_turn_if_empty();
    bool shares = false;
    for (auto its = classes_.rbegin(); its != classes_.rend(); ++its) {
        if (may_send(*its)) {
            if (its->quantum == 0) {
                return &*its;
            }
            shares = true;
        }
    }
    return shares ? &choose_by_deficit() : nullptr;
}

/// Removes the rest of a turn's deficit if the class has no more frames. Called at the next choice,
/// not at the departure of the last frame, because an adapter hands over the next frame of a class
/// only when the previous one begins to leave.
void ScheduledPort::end_turn_if_empty() {
    Class& its = classes_[round_turn_];
    its.deficit = its.waiting > 0 ? its.deficit : 0;
}

/// Selects a class by deficit: the last one sends on while its deficit covers its next frame.
ScheduledPort::Class& ScheduledPort::choose_by_deficit() {
    for (;;) {
        Class& its = classes_[round_turn_];
        if (its.quantum > 0 && may_send(its)) {
            const Frame& frame = its.queues[its.next_queue()].frames.front();
            if (frame.bytes + kWireOverhead <= its.deficit) {
                its.deficit -= frame.bytes + kWireOverhead;
                return its;
            }
        }
        round_turn_ = (round_turn_ + 1) % classes_.size();
        Class& following = classes_[round_turn_];
        following.deficit += may_send(following) ? following.quantum : 0;
    }
}

std::uint32_t ScheduledPort::Class::next_queue() const {
    std::uint32_t place = turn;
    while (queues[place].frames.empty()) {
        place = place + 1 == queues.size() ? 0 : place + 1;
    }
    return place;
}

Bytes ScheduledPort::bytes_waiting() const {
    Bytes sum = 0;
    for (const Class& its : classes_) {
        for (const Queue& queue : its.queues) {
            for (std::uint32_t place = 0; place < queue.frames.size(); ++place) {
                sum += queue.frames[place].bytes;
            }
        }
    }
    return sum;
}

std::size_t ScheduledPort::memory() const {
    std::size_t all = 0;
    for (const Class& its : classes_) {
        for (const Queue& queue : its.queues) {
            all += sizeof(Queue) + queue.frames.memory();
        }
    }
    return all;
}

}  // namespace daqloom::ethernet
