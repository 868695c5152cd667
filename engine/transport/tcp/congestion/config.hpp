// The TCP settings on which congestion controls depend.
#pragma once

#include <cstdint>

#include "base/fields.hpp"
#include "base/units.hpp"

namespace daqloom::transport {

struct CongestionConfig {
    DAQLOOM_FIELDS(CongestionConfig, (base::Bytes, mss, "Payload of a full segment (B).", 1448),
                   (std::uint32_t, initial_window,
                    "Window of a new or restarted connection (segments, RFC 6928).", 10),
                   (base::Bytes, static_window,
                    "Constant window of congestion control `static` (B)."),
                   (base::Time, timer_tick, "Tick of the hosts' timers; 0: they are exact."),
                   (bool, hystart, "CUBIC leaves slow start before it loses, as in Linux.", true),
                   (double, dctcp_g, "Weight of a new sample in DCTCP's estimate (RFC 8257).",
                    1.0 / 16.0))
};

}  // namespace daqloom::transport
