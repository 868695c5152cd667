// The pending events of a simulation, earliest first.
//
// A calendar of days for what happens soon, a radix wheel for what happens later:
//
//        today                              horizon
//          v                                   v
//     . .  o  .  oo  .  .  o  .  .  ... .  o   |   wheel: o   o         o
//
// A day is a short span of time and holds a list of events, sorted, of one event or none most of
// the time; a bit for every day says whether it has any. The days from today to the horizon lie in
// a ring. Events beyond the horizon wait in the wheel and move to their day when the horizon
// reaches it. How many days there are and how long they are follows from counting what the lists
// and the search for the next day cost, so that any mean spacing of events is served alike.
//
// Equal times leave in order of insertion: a list keeps equals in that order, and whatever waited
// in the wheel has moved to its day before anything can be pushed there directly.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/units.hpp"
#include "sim/event.hpp"
#include "sim/radix_wheel.hpp"

namespace daqloom::sim {

/// Priority queue of events; time never runs backwards: pushes lie at or after the last pop.
///
/// Push and pop are O(1) at any number of pending events. Memory: about 40 bytes for each event of
/// the greatest number ever pending; none is allocated below that number.
class EventQueue {
  public:
    EventQueue() { clear(); }

    /// Requires now() <= event.at and 0 <= event.at.
    void push(Event event) {
        assert(event.at >= now_);
        ++size_;
        peak_size_ = std::max(peak_size_, size_);
        const std::uint64_t day = day_of(event.at);
        if (day - today_ < days_) [[likely]] {
            insert(event, day);
        } else {
            ++beyond_;
            far_next_ = std::min(far_next_, day);
            far_.push(event);
        }
    }

    /// Removes and returns the earliest event, of equal ones the first pushed. Requires !empty().
    Event pop() {
        assert(!empty());
        std::uint64_t& busy = busy_[(today_ & mask_) / 64];
        const std::uint64_t ahead = busy >> (today_ % 64);
        if (ahead == 0) [[unlikely]] {
            leap();
            return pop();
        }
        const auto distance = static_cast<unsigned>(std::countr_zero(ahead));
        if (distance != 0) {
            today_ += distance;
            if (far_next_ - today_ < days_) [[unlikely]] {
                bring_near();
            }
        }
        const std::uint32_t last = last_[today_ & mask_];
        const std::uint32_t node = nodes_[last].next;
        nodes_[last].next = nodes_[node].next;
        if (node == last) {
            last_[today_ & mask_] = kNone;
            busy ^= std::uint64_t{1} << (today_ % 64);
        }
        nodes_[node].next = free_;
        free_ = node;
        --size_;
        now_ = nodes_[node].event.at;
        const Event event = nodes_[node].event;
        if (--until_review_ == 0) [[unlikely]] {
            review();
        }
        return event;
    }

    /// Time of the earliest event. Requires !empty(). To stop a run at a given time, rather push an
    /// event that says so.
    [[nodiscard]] base::Time next_time() const {
        assert(!empty());
        for (std::uint64_t day = today_; size_ > far_.size(); ++day) {
            if (last_[day & mask_] != kNone) {
                return nodes_[nodes_[last_[day & mask_]].next].event.at;
            }
        }
        return far_.next_time();
    }

    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] std::size_t size() const { return size_; }
    /// The greatest size() since construction or clear().
    [[nodiscard]] std::size_t peak_size() const { return peak_size_; }
    /// Time of the event popped last; zero before the first.
    [[nodiscard]] base::Time now() const { return now_; }

    /// Forgets all events and turns the clock back to zero.
    void clear() {
        nodes_.clear();
        free_ = kNone;
        far_.clear();
        far_next_ = kNever;
        today_ = 0;
        now_ = base::Time::zero();
        size_ = peak_size_ = 0;
        begin_calendar(kFewestDays, kFirstDayBits);
    }

  private:
    static constexpr std::uint32_t kNone = ~0U;
    static constexpr std::uint64_t kNever = ~std::uint64_t{0} >> 1;
    static constexpr std::uint64_t kFewestDays = 4096;
    static constexpr std::uint64_t kMostDays = std::uint64_t{1} << 22;
    static constexpr unsigned kFirstDayBits = 10;  // 1 ns
    static constexpr unsigned kLongestDayBits = 50;
    static constexpr std::uint32_t kReviewPeriod = 16384;  // pops

    struct Node {
        Event event;
        std::uint32_t next;
    };

    [[nodiscard]] std::uint64_t day_of(base::Time at) const {
        return static_cast<std::uint64_t>(at.ps) >> day_bits_;
    }

    /// A day's list is a ring, known by its last node: an event that is not earlier than all of its
    /// day, as among many at one time, finds its place at once.
    void insert(const Event& event, std::uint64_t day) {
        const std::uint32_t node = take_node(event);
        std::uint32_t& last = last_[day & mask_];
        if (last == kNone) [[likely]] {
            busy_[(day & mask_) / 64] |= std::uint64_t{1} << (day % 64);
            nodes_[node].next = node;
            last = node;
            return;
        }
        std::uint32_t before = last;
        if (event.at < nodes_[last].event.at) {
            while (nodes_[nodes_[before].next].event.at <= event.at) {
                before = nodes_[before].next;
                ++walked_;
            }
        } else {
            last = node;
        }
        ++walked_;
        nodes_[node].next = nodes_[before].next;
        nodes_[before].next = node;
    }

    std::uint32_t take_node(const Event& event) {
        if (free_ == kNone) [[unlikely]] {
            nodes_.push_back({event, kNone});
            return static_cast<std::uint32_t>(nodes_.size() - 1);
        }
        const std::uint32_t node = free_;
        free_ = nodes_[node].next;
        nodes_[node].event = event;
        return node;
    }

    /// Moves today to the next word of days that has events.
    void leap() {
        if (size_ == far_.size()) {
            today_ = far_next_;
            bring_near();
            return;
        }
        do {
            today_ = (today_ | 63) + 1;
            ++scanned_;
        } while (busy_[(today_ & mask_) / 64] == 0);
        // The horizon has moved along; what it passed may lie before the day found.
        if (far_next_ - today_ < days_) {
            bring_near();
        }
    }

    /// Moves what the horizon has reached from the wheel to its day.
    void bring_near() {
        while (!far_.empty()) {
            const std::uint64_t day = day_of(far_.next_time());
            if (day - today_ >= days_) {
                far_next_ = day;
                return;
            }
            insert(far_.pop(), day);
        }
        far_next_ = kNever;
    }

    /// Adjusts the calendar to what it has cost lately. The horizon may recede but never comes
    /// nearer: the wheel takes nothing back.
    void review() {
        const bool crowded = walked_ > kReviewPeriod / 2;
        const bool sparse = walked_ < kReviewPeriod / 8;
        if (crowded && day_bits_ > 0 && days_ < kMostDays) {
            rebuild(days_ * 2, day_bits_ - 1);
        } else if (sparse && day_bits_ < kLongestDayBits && scanned_ > kReviewPeriod) {
            // From an odd day, half as many days of twice the length would end a day earlier.
            rebuild(today_ % 2 == 0 ? std::max(days_ / 2, kFewestDays) : days_, day_bits_ + 1);
        } else if (beyond_ > kReviewPeriod / 16 && days_ < kMostDays) {
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

    std::uint64_t today_ = 0;  // no event is earlier; counted from time zero
    std::uint64_t days_ = 0;
    std::uint64_t mask_ = 0;
    std::uint64_t far_next_ = kNever;  // no event of the wheel is on an earlier day
    unsigned day_bits_ = 0;            // a day has 2^day_bits_ ps
    std::uint32_t free_ = kNone;
    std::uint32_t until_review_ = 0;
    std::vector<std::uint64_t> busy_;
    std::vector<std::uint32_t> last_;
    std::vector<Node> nodes_;
    base::Time now_;
    std::size_t size_ = 0;
    std::size_t peak_size_ = 0;
    RadixWheel far_;

    // Since the last review: events that found others on their day and those they passed, empty
    // words of days passed, pushes to the wheel.
    std::uint64_t walked_ = 0;
    std::uint64_t scanned_ = 0;
    std::uint64_t beyond_ = 0;
};

}  // namespace daqloom::sim
