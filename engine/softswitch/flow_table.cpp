#include "softswitch/flow_table.hpp"

namespace daqloom::softswitch {

bool FlowTable::set(FlowIndex index, const FlowEntry& entry) {
    const bool has_place =
        index.value() < entries_.size() &&
        (entry.meter == MeterIndex::none() || entry.meter.value() < meters_.size());
    if (!has_place) {
        return false;
    }
    Place& place = entries_[index.value()];
    const bool is_same =
        place.entry && place.entry->match == entry.match && place.entry->priority == entry.priority;
    if (!is_same) {
        const std::optional<FlowEntry> before = place.entry;
        remove(index);
        if (!matches_.set(entry.match, entry.priority, index.value())) {
            if (before) {  // it had room before
                matches_.set(before->match, before->priority, index.value());
                place.entry = before;
            }
            return false;
        }
        place.counted = {};
    }
    place.entry = entry;
    return true;
}

void FlowTable::remove(FlowIndex index) {
    if (index.value() >= entries_.size()) {
        return;
    }
    std::optional<FlowEntry>& entry = entries_[index.value()].entry;
    if (entry) {
        matches_.remove(entry->match, entry->priority);
        entry.reset();
    }
}

}  // namespace daqloom::softswitch
