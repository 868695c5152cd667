// The pending events of a simulation, earliest first.
//
// A calendar queue of days for near events, and a radix wheel for far events:
//
//        today                              horizon
//          v                                   v
//     . .  o  .  oo  .  .  o  .  .  ... .  o   |   wheel: o   o         o
//
// A day is a short span of time with a sorted list of events, mostly one or none; a bitmap marks
// the days with events. The days from today to the horizon lie in a ring. Events beyond the horizon
// wait in the wheel and move to their day when the horizon reaches it. The number and the length of
// the days are adapted to the measured cost of the lists and of the search for the next day, so
// that the cost does not depend on the mean spacing of events.
//
// Events at equal times leave in order of insertion: a list keeps their order, and events that
// waited in the wheel have moved to their day before any event can be pushed to this day directly.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/huge_pages.hpp"
#include "base/units.hpp"
#include "sim/event.hpp"
#include "sim/radix_wheel.hpp"

namespace daqloom::sim {

/// Priority queue of events. Time never runs backwards: no event is pushed for a time before the
/// last pop.
///
/// Push and pop are O(1) at any number of pending events. Memory: about 40 bytes per event at the
/// greatest number ever pending, allocated as this number grows.
class EventQueue {
  public:
    EventQueue() { clear(); }

    /// Requires now() <= event.at and 0 <= event.at.
    void push(Event event) {
        assert(event.at >= now_);
        ++size_;
        const std::uint64_t day = day_of(event.at);
        if (day - today_ < days_) [[likely]] {
            insert(event, day);
        } else {
            push_beyond(event, day);
        }
    }

    /// Removes and returns the earliest event; among events at equal times, the one pushed first.
    /// Requires !empty().
    Event pop() {
        assert(!empty());
        if (size_ > peak_size_) [[unlikely]] {
            peak_size_ = size_;
        }
        --size_;
        while (next_day_ == kNever) [[unlikely]] {
            today_ = far_next_;
            bring_near();
        }
        today_ = next_day_;
        Node* const nodes = nodes_.data();
        const std::uint32_t first = next_;
        Node& front = nodes[first];
        const Event event = front.event;
        now_ = event.at;
        std::uint32_t& last = last_[today_ & mask_];
        nodes[last].next = next_ = front.next;
        front.next = free_;
        free_ = first;
        if (last == first) [[likely]] {
            last = kNone;
            find_next_day();
        }
        if (far_next_ - today_ < days_) [[unlikely]] {
            bring_near();
        }
        if (--until_review_ == 0) [[unlikely]] {
            review();
        }
        return event;
    }

    /// The event that will be popped next, unless an earlier one is pushed; for prefetching its
    /// data into the cache. Null if this event is still in the wheel.
    [[nodiscard]] const Event* upcoming() const {
        return next_day_ == kNever ? nullptr : &nodes_[next_].event;
    }

    /// Time of the earliest event. Requires !empty(). To end a run at a given time, push an event
    /// for that time, which needs no call of this function.
    [[nodiscard]] base::Time next_time() const {
        assert(!empty());
        return next_day_ == kNever ? far_.next_time() : upcoming()->at;
    }

    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] std::size_t size() const { return size_; }
    /// Size of the nodes and days (B).
    [[nodiscard]] std::size_t memory() const {
        return nodes_.capacity() * sizeof(Node) + days_ * sizeof(std::uint32_t) + far_.memory();
    }
    /// The greatest size() since construction or clear().
    [[nodiscard]] std::size_t peak_size() const { return std::max(peak_size_, size_); }
    /// Time of the event popped last; zero before the first pop.
    [[nodiscard]] base::Time now() const { return now_; }

    /// Removes all events and sets the clock back to zero.
    void clear() {
        nodes_.clear();
        free_ = kNone;
        far_.clear();
        far_next_ = kNever;
        today_ = 0;
        next_day_ = kNever;
        now_ = base::Time::zero();
        size_ = peak_size_ = 0;
        begin_calendar(kFewestDays, kFirstDayBits);
    }

  private:
    static constexpr std::uint32_t kNone = ~0U;
    static constexpr std::uint64_t kNever = ~std::uint64_t{0} >> 1;
    static constexpr std::uint64_t kFewestDays = 4096;
    static constexpr std::uint64_t kMostDays = std::uint64_t{1} << 22;
    /// Limit of the horizon: a longer one keeps more events out of the wheel, but pays only while
    /// all its days fit into the cache.
    static constexpr std::uint64_t kMostDaysAhead = std::uint64_t{1} << 17;
    static constexpr unsigned kFirstDayBits = 10;  ///< 1 ns
    static constexpr unsigned kLongestDayBits = 50;
    static constexpr std::uint32_t kReviewPeriod = 16384;  ///< pops

    struct Node {
        Event event;
        std::uint32_t next;
    };

    [[nodiscard]] std::uint64_t day_of(base::Time at) const {
        return static_cast<std::uint64_t>(at.ps) >> day_bits_;
    }

    /// Inserts an event in its day's list, a ring referenced by its last node: an event not earlier
    /// than the others of its day, as in a burst at one time, is appended without a search.
    void insert(const Event& event, std::uint64_t day) {
        if (free_ == kNone) [[unlikely]] {
            grow();
        }
        Node* const nodes = nodes_.data();
        const std::uint32_t fresh = free_;
        Node& node = nodes[fresh];
        free_ = node.next;
        // Fields are set one by one: copying a whole event put together in memory would read it
        // before its narrow stores have reached the cache.
        node.event.at = event.at;
        node.event.kind = event.kind;
        node.event.index = event.index;
        std::uint32_t& last = last_[day & mask_];
        if (last == kNone) [[likely]] {
            busy_[(day & mask_) / 64] |= std::uint64_t{1} << (day % 64);
            node.next = fresh;
            last = fresh;
            if (day < next_day_) {
                next_day_ = day;
                next_ = fresh;
            }
            return;
        }
        Node* before = &nodes[last];
        walked_ += event.at == before->event.at ? 0 : 1;
        if (event.at < before->event.at) {
            while (nodes[before->next].event.at <= event.at) {
                before = &nodes[before->next];
                ++walked_;
            }
        } else {
            last = fresh;
        }
        node.next = before->next;
        before->next = fresh;
        if (day == next_day_) {
            next_ = nodes[last].next;
        }
    }

    /// Out of line, so that a push needs few registers.
    [[gnu::noinline]] void grow() {
        free_ = static_cast<std::uint32_t>(nodes_.size());
        nodes_.push_back({{}, kNone});
    }
    [[gnu::noinline]] void push_beyond(const Event& event, std::uint64_t day) {
        ++beyond_;
        far_next_ = std::min(far_next_, day);
        far_.push(event);
    }

    /// Sets next_day_ and next_ to the next event.
    void find_next_day() {
        std::uint64_t& busy = busy_[(next_day_ & mask_) / 64];
        busy ^= std::uint64_t{1} << (next_day_ % 64);
        const std::uint64_t ahead = busy >> (next_day_ % 64);
        if (ahead != 0) [[likely]] {
            next_day_ += static_cast<unsigned>(std::countr_zero(ahead));
        } else {
            leap();
        }
        if (next_day_ != kNever) [[likely]] {
            next_ = nodes_[last_[next_day_ & mask_]].next;
        }
    }

    /// Does the work of find_next_day() if the bitmap's current word has no day with events.
    [[gnu::noinline]] void leap() {
        if (size_ == far_.size()) {
            next_day_ = kNever;
            return;
        }
        std::uint64_t busy = 0;
        while (busy == 0) {
            next_day_ = (next_day_ | 63) + 1;
            busy = busy_[(next_day_ & mask_) / 64];
            ++scanned_;
        }
        next_day_ += static_cast<unsigned>(std::countr_zero(busy));
    }

    /// Moves events from the wheel to their days once the horizon has reached these days.
    [[gnu::noinline]] void bring_near() {
        while (!far_.empty()) {
            // The exact time may need a search of a list: it is computed only if necessary.
            far_next_ = std::max(today_, day_of(far_.earliest_possible()));
            if (far_next_ - today_ < days_) {
                far_next_ = day_of(far_.next_time());
            }
            if (far_next_ - today_ >= days_) {
                return;
            }
            insert(far_.pop(), far_next_);
        }
        far_next_ = kNever;
    }

    /// Adapts the calendar to its recent cost. The horizon may move further away but never nearer,
    /// so that no event moves back into the wheel.
    [[gnu::noinline]] void review() {
        const bool crowded = walked_ > kReviewPeriod / 2;
        const bool sparse = walked_ < kReviewPeriod / 8;
        if (crowded && day_bits_ > 0 && days_ < kMostDays) {
            rebuild(days_ * 2, day_bits_ - 1);
        } else if (sparse && day_bits_ < kLongestDayBits && scanned_ > kReviewPeriod) {
            // Merging days in pairs from an odd day on would end the horizon one day earlier.
            rebuild(today_ % 2 == 0 ? std::max(days_ / 2, kFewestDays) : days_, day_bits_ + 1);
        } else if (beyond_ > kReviewPeriod / 16 && days_ < kMostDaysAhead) {
            sparse&& day_bits_ < kLongestDayBits ? rebuild(days_, day_bits_ + 1)
                                                 : rebuild(days_ * 2, day_bits_);
        }
        walked_ = scanned_ = beyond_ = 0;
        until_review_ = kReviewPeriod;
    }

    void rebuild(std::uint64_t days, unsigned day_bits) {
        std::vector<Event> events;
        events.reserve(size_ - far_.size());
        for (std::uint64_t day = today_; events.size() < size_ - far_.size(); ++day) {
            const std::uint32_t last = last_[day & mask_];
            for (std::uint32_t node = last; last != kNone;) {
                node = nodes_[node].next;
                events.push_back(nodes_[node].event);
                if (node == last) {
                    break;
                }
            }
        }
        nodes_.clear();
        free_ = kNone;
        next_day_ = kNever;
        begin_calendar(days, day_bits);
        today_ = day_of(now_);
        for (const Event& event : events) {
            insert(event, day_of(event.at));
        }
        bring_near();
    }

    void begin_calendar(std::uint64_t days, unsigned day_bits) {
        days_ = days;
        mask_ = days - 1;
        day_bits_ = day_bits;
        last_.assign(days, kNone);
        busy_.assign(days / 64, 0);
        walked_ = scanned_ = beyond_ = 0;
        until_review_ = kReviewPeriod;
    }

    std::uint64_t today_ = 0;          ///< day of now(), counted from time zero; or soon to be
    std::uint64_t next_day_ = kNever;  ///< day of the next event; kNever if that waits in the wheel
    std::uint32_t next_ = kNone;       ///< node of the next event
    std::uint64_t days_ = 0;
    std::uint64_t mask_ = 0;
    std::uint64_t far_next_ = kNever;  ///< lower bound of the days of events in the wheel
    unsigned day_bits_ = 0;            ///< a day has 2^day_bits_ ps
    std::uint32_t free_ = kNone;
    std::uint32_t until_review_ = 0;
    std::vector<std::uint64_t> busy_;
    /// Last node of each day's list: up to 16 MB, accessed at random.
    std::vector<std::uint32_t, base::HugePages<std::uint32_t>> last_;
    std::vector<Node> nodes_;
    base::Time now_;
    std::size_t size_ = 0;
    std::size_t peak_size_ = 0;
    RadixWheel far_;

    // ---- since the last review
    /// Events inserted on a day that had events at other times, plus the events that they passed.
    std::uint64_t walked_ = 0;
    std::uint64_t scanned_ = 0;  ///< empty words of days passed
    std::uint64_t beyond_ = 0;   ///< pushes to the wheel
};

}  // namespace daqloom::sim
