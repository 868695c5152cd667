// For tests: a builder unit that requests fragments, and its outputs since the last check, in
// words.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/transcript_test.hpp"
#include "protocol/machines/requesting_builder.hpp"

namespace daqloom::protocol {

template <class Builder>
class BuilderScene : public base::Transcript {
  public:
    using Outputs = base::Outputs;

    explicit BuilderScene(typename Builder::Config config) : builder(*Builder::make(config)) {}

    void request(EventId event, SlotTable::Slot slot, ReadoutIndex readout) {
        EXPECT_EQ(slot, builder.slot_of(event));
        say("request {} from {}", event, readout);
    }
    void built(EventId event, SlotTable::Slot slot) {
        EXPECT_EQ(slot, builder.slot_of(event));
        say("built {}", event);
    }
    void done(EventId event) { say("done {}", event); }
    void last_request(ReadoutIndex readout, std::uint64_t requests) {
        say("last {} to {}", requests, readout);
    }
    void incomplete(EventId event, SlotTable::Slot slot) {
        EXPECT_EQ(slot, builder.slot_of(event));
        std::string mask;
        if constexpr (requires { builder.is_here(event, ReadoutIndex()); }) {
            for (const ReadoutIndex readout : base::IndexRange<ReadoutIndex>(3)) {
                mask += builder.is_here(event, readout) ? '1' : '0';
            }
            mask = ": " + mask;
        }
        say("incomplete {}{}", event, mask);
    }

    Outputs assigned(std::uint64_t event) {
        return after([&] { builder.on_assigned(EventId{event}, *this); });
    }
    Outputs fragment(std::uint64_t event, std::uint32_t readout, base::Bytes bytes = 1) {
        return after(
            [&] { builder.on_fragment(EventId{event}, ReadoutIndex(readout), bytes, *this); });
    }
    Outputs missing(std::uint64_t event, std::uint32_t readout) {
        return after([&] { builder.on_missing(EventId{event}, ReadoutIndex(readout), *this); });
    }
    Outputs processed(std::uint64_t event) {
        return after([&] { builder.on_processed(EventId{event}, *this); });
    }
    Outputs slot(std::uint64_t slot) {
        return after([&] { builder.on_slot(slot, *this); });
    }
    Outputs last_assignment(std::uint64_t events) {
        return after([&] { builder.on_last_assignment(events, *this); });
    }
    Outputs close(const std::vector<std::uint32_t>& lost = {}) {
        return after(
            [&] { builder.on_close(std::vector<ReadoutIndex>(lost.begin(), lost.end()), *this); });
    }
    Outputs event_manager_lost() {
        return after([&] { builder.on_event_manager_lost(*this); });
    }
    Outputs end() {
        return after([&] { builder.on_end(*this); });
    }

    Builder builder;
};

}  // namespace daqloom::protocol
