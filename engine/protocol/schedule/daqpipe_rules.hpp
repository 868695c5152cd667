// The rules of DAQPIPE, which all its units share.
#pragma once

#include <cstdint>

#include "base/fields.hpp"
#include "base/units.hpp"

namespace daqloom::protocol {

struct DaqpipeRules {
    static constexpr const char* name = "daqpipe_rules";  ///< as a part of a configuration
    DAQLOOM_FIELDS(DaqpipeRules,
                   (bool, is_push, "Readout units decide when to send, else builder units."),
                   (std::uint32_t, credits, "Events that a builder unit collects at a time.", 1),
                   (std::uint32_t, parallel_sends, "Fragments of an event in flight at a time.", 1),
                   (base::Time, slot, "Length of a time slot; 0: untimed."))
};

}  // namespace daqloom::protocol
