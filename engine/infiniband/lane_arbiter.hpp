// The arbitration of virtual lanes at an output.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "infiniband/fabric_config.hpp"

namespace daqloom::infiniband {

/// A set of virtual lanes, one bit each.
using LaneSet = std::uint32_t;

constexpr LaneSet only(VirtualLane lane) { return LaneSet{1} << lane.value(); }
constexpr bool holds(LaneSet set, VirtualLane lane) { return (set & only(lane)) != 0; }
/// Lowest lane in a set, which must not be empty.
constexpr VirtualLane first_of(LaneSet set) { return VirtualLane(std::countr_zero(set)); }

/// Weighted round robin over a table; the last packet of a turn may exceed the entry's weight.
class LaneTable {
  public:
    explicit LaneTable(const std::vector<LaneWeight>& entries) : entries_(entries) {
        for (const LaneWeight& entry : entries_) {
            lanes_ |= entry.weight > 0 ? only(entry.lane) : 0;
        }
        current_ = entries_.empty() ? 0 : entries_.size() - 1;
    }

    [[nodiscard]] LaneSet lanes() const { return lanes_; }

    /// The lane that sends next, among `candidates`; one of them must have an entry with a weight.
    [[nodiscard]] VirtualLane next(LaneSet candidates) const {
        return entries_[stays(candidates) ? current_ : entry_behind(candidates)].lane;
    }
    /// Selects the lane that sends next, among `candidates`, and gives this lane the turn.
    VirtualLane pick(LaneSet candidates) {
        if (!stays(candidates)) {
            current_ = entry_behind(candidates);
            rest_ = entries_[current_].weight;
        }
        return entries_[current_].lane;
    }

    void sent(std::int64_t blocks) { rest_ -= blocks; }

  private:
    /// Whether the lane that has the turn keeps it.
    [[nodiscard]] bool stays(LaneSet candidates) const {
        return rest_ > 0 && holds(candidates, entries_[current_].lane);
    }
    [[nodiscard]] std::size_t entry_behind(LaneSet candidates) const {
        std::size_t entry = current_;
        do {
            entry = entry + 1 == entries_.size() ? 0 : entry + 1;
        } while (entries_[entry].weight == 0 || !holds(candidates, entries_[entry].lane));
        return entry;
    }

    std::vector<LaneWeight> entries_;
    LaneSet lanes_ = 0;
    std::size_t current_ = 0;
    std::int64_t rest_ = 0;  ///< blocks left in this turn
};

/// Virtual lane arbitration of an output (InfiniBand Architecture Specification, volume 1, 7.6.9).
class LaneArbiter {
  public:
    explicit LaneArbiter(const LaneArbitration& tables)
        : high_(tables.high),
          low_(tables.low),
          limited_(tables.high_limit != 255),
          limit_(std::max<base::Bytes>(1, base::Bytes{4096} * tables.high_limit)) {}

    /// Lanes with a weight in a table; other lanes are never served.
    [[nodiscard]] LaneSet lanes() const { return high_.lanes() | low_.lanes(); }

    /// Selects the lane that sends a packet now, among `candidates`, which must be in lanes() and
    /// have packets. The caller then calls sent().
    VirtualLane pick(LaneSet candidates) {
        from_high_ = high_first(candidates);
        return (from_high_ ? high_ : low_).pick(candidates);
    }
    /// The lane that pick() would return.
    [[nodiscard]] VirtualLane next(LaneSet candidates) const {
        return (high_first(candidates) ? high_ : low_).next(candidates);
    }

    void sent(base::Bytes bytes, std::int64_t blocks) {
        (from_high_ ? high_ : low_).sent(blocks);
        sent_high_ = from_high_ ? sent_high_ + bytes : 0;
    }

  private:
    [[nodiscard]] bool high_first(LaneSet candidates) const {
        const bool high = (candidates & high_.lanes()) != 0;
        const bool low = (candidates & low_.lanes()) != 0;
        return high && (!low || !limited_ || sent_high_ < limit_);
    }

    LaneTable high_;
    LaneTable low_;
    bool limited_;
    bool from_high_ = false;
    base::Bytes limit_;
    base::Bytes sent_high_ = 0;
};

}  // namespace daqloom::infiniband
