// For tests and fuzzing: invariants of DAQPIPE's units, for any order of messages and with lost
// nodes.
#pragma once

#include "protocol/units/daqpipe_unit.hpp"
#include "protocol/units/requested_check_test.hpp"

namespace daqloom::protocol {

class CheckedDaqpipe : public CheckedProtocol<DaqpipeUnit> {
  public:
    static constexpr std::uint64_t events = 40;
    static constexpr bool has_slots = true;
    static constexpr bool gives_out_at_the_end = true;

    explicit CheckedDaqpipe(base::ByteSource& input) {
        rules_.credits = 1U + input.byte() % 3;
        rules_.parallel_sends = 1U + input.byte() % 3;
    }
    void choose(std::uint8_t choice) {
        rules_.is_push = (choice & 1) != 0;
        rules_.slot = (choice & 6) == 6 ? base::nanoseconds(200) : base::Time::zero();
    }

    [[nodiscard]] base::Time slot() const { return rules_.slot; }
    [[nodiscard]] bool is_push() const { return rules_.is_push; }
    /// Whether the two units are partners in the slot; each unit of one side then has one partner.
    [[nodiscard]] bool is_turn(ReadoutIndex readout, BuilderIndex builder, std::uint64_t slot,
                               std::uint32_t units) const {
        return rules_.slot == base::Time::zero() ||
               (builder.value() + slot) % units == readout.value() % units;
    }
    [[nodiscard]] std::uint64_t limit_per_event() const {
        return rules_.is_push ? 0 : rules_.parallel_sends;
    }
    [[nodiscard]] std::uint64_t limit_per_readout() const {
        return rules_.is_push ? std::uint64_t{rules_.credits} * rules_.parallel_sends : 0;
    }

    static bool is_empty(const Unit& unit) {
        return unit.readout() == nullptr ||
               (unit.unanswered() == 0 && unit.readout()->requests_waiting() == 0);
    }
};

using DaqpipeCheck = RequestedCheck<CheckedDaqpipe>;

}  // namespace daqloom::protocol
