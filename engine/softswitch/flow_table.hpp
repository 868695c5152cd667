// The flow table of OpenFlow, filled by a controller: entries with a match, an action, counters and
// a meter. The flow table takes precedence over the rules of the switch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "softswitch/action.hpp"
#include "softswitch/headers.hpp"
#include "softswitch/match_table.hpp"
#include "softswitch/meters.hpp"

namespace daqloom::softswitch {

using FlowIndex = base::Index<struct SwitchFlowTag>;

struct FlowEntry {
    Match match;
    std::uint16_t priority = 0;
    Action action;  ///< `forward`: as without this entry
    MeterIndex meter = MeterIndex::none();
};

/// The controller chooses the indices of entries.
class FlowTable {
  public:
    struct Counters {
        std::uint64_t packets = 0;
        std::uint64_t bytes = 0;
    };

    FlowTable(std::uint32_t most_entries, std::uint32_t most_meters)
        : matches_(most_entries), entries_(most_entries), meters_(most_meters) {}

    /// Sets an entry. An entry of unchanged match and priority keeps its counters. Returns false,
    /// without a change, for too many kinds of matches (see MatchTable) or an index out of range.
    bool set(FlowIndex index, const FlowEntry& entry);
    void remove(FlowIndex index);

    /// Entry that matches; none() if no entry matches.
    [[nodiscard]] FlowIndex find(const Headers& headers, std::uint16_t ingress) const {
        const auto found = matches_.find(headers, ingress);
        return found ? FlowIndex(*found) : FlowIndex::none();
    }
    [[nodiscard]] const Action& action(FlowIndex index) const {
        return entries_[index.value()].entry->action;
    }
    /// Counts a frame for its entry. Returns false if the meter drops the frame.
    bool passes(FlowIndex index, std::uint32_t bytes, base::Time now) {
        Place& place = entries_[index.value()];
        ++place.counted.packets;
        place.counted.bytes += bytes;
        return place.entry->meter == MeterIndex::none() ||
               meters_.passes(place.entry->meter, bytes, now);
    }

    [[nodiscard]] Meters& meters() { return meters_; }
    [[nodiscard]] const Meters& meters() const { return meters_; }
    [[nodiscard]] std::size_t most() const { return entries_.size(); }
    [[nodiscard]] const Counters& counters(FlowIndex index) const {
        return entries_[index.value()].counted;
    }

  private:
    struct Place {
        Counters counted;
        std::optional<FlowEntry> entry;
    };

    MatchTable matches_;
    std::vector<Place> entries_;
    Meters meters_;
};

}  // namespace daqloom::softswitch
