// For tests and fuzzing: what pull building's units promise, in any order of messages, with lost
// nodes and with messages that nobody has sent.
#pragma once

#include "protocol/units/pull_unit.hpp"
#include "protocol/units/requested_check_test.hpp"

namespace daqloom::protocol {

class CheckedPull {
  public:
    using Unit = PullUnit;
    static constexpr std::uint64_t events = 60;
    static constexpr bool has_slots = false;
    static constexpr bool requests_in_order = true;
    static constexpr bool takes_empty_fragments = false;
    static constexpr bool gives_out_at_the_end = false;

    explicit CheckedPull(base::ByteSource& input) {
        rules_.concurrent_events = 1U + input.byte() % 4;
        rules_.outstanding_fragments = input.byte() % 8U;
        rules_.assignment = static_cast<Assignment>(input.byte() % 3);
        rules_.arrivals.kind = ArrivalsConfig::Kind::trace;
        const std::int64_t interval_ns = input.byte();
        for (std::int64_t event = 1; event <= std::int64_t{events}; ++event) {
            rules_.arrivals.trace_times.push_back(base::nanoseconds(interval_ns * event));
        }
        rules_.response = {.kind = base::DelayDistribution::Kind::exponential,
                           .mean = base::nanoseconds(input.byte())};
        rules_.processing = {{.mean = base::nanoseconds(input.byte())}};
        strange_inputs_ = input.byte() % 16U;
    }
    void choose(std::uint8_t /*choice*/) {}

    [[nodiscard]] base::expected<Unit> make(const CheckedNode& node) const {
        return Unit::make({.rules = rules_,
                           .readout = node.readout,
                           .builder = node.builder,
                           .readouts = node.readouts,
                           .builders = node.builders,
                           .when_incomplete = node.when_incomplete});
    }
    [[nodiscard]] base::Time slot() const { return base::Time::zero(); }
    [[nodiscard]] Assignment assignment() const { return rules_.assignment; }
    [[nodiscard]] std::uint32_t concurrent_events() const { return rules_.concurrent_events; }
    [[nodiscard]] std::uint64_t limit_per_event() const { return 0; }
    [[nodiscard]] std::uint64_t limit_per_builder() const { return rules_.outstanding_fragments; }
    [[nodiscard]] std::uint64_t limit_per_readout() const { return 0; }
    [[nodiscard]] std::uint32_t strange_inputs() const { return strange_inputs_; }

    /// Always true: requests of lost builder units may stay.
    static bool is_empty(const Unit& /*unit*/) { return true; }
    static std::uint64_t unexpected(const PullBuilder::Counters& counters) {
        return counters.unexpected_fragments + counters.unexpected_processed;
    }

  private:
    PullRules rules_;
    std::uint32_t strange_inputs_ = 0;
};

using PullCheck = RequestedCheck<CheckedPull>;

}  // namespace daqloom::protocol
