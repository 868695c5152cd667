// For tests and fuzzing: invariants of pull building's units, for any order of messages, with lost
// nodes and with messages that no unit sends.
#pragma once

#include "protocol/units/pull_unit.hpp"
#include "protocol/units/requested_check_test.hpp"

namespace daqloom::protocol {

class CheckedPull : public CheckedProtocol<PullUnit> {
  public:
    static constexpr std::uint64_t events = 60;
    static constexpr bool requests_in_order = true;

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

    [[nodiscard]] Assignment assignment() const { return rules_.assignment; }
    [[nodiscard]] std::uint64_t limit_per_builder() const { return rules_.outstanding_fragments; }
    [[nodiscard]] std::uint32_t strange_inputs() const { return strange_inputs_; }

  private:
    std::uint32_t strange_inputs_ = 0;
};

using PullCheck = RequestedCheck<CheckedPull>;

}  // namespace daqloom::protocol
