// The TCP settings on which congestion controls depend.
#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace daqloom::transport {

struct CongestionConfig {
    base::Bytes mss = 1448;
    std::uint32_t initial_window = 10;  ///< segments (RFC 6928)
    base::Bytes static_window = 0;      ///< congestion control `static_window`: cwnd, always
    base::Time timer_tick;  ///< of the kernel's clock, on which timers strike; zero: they are exact
    bool hystart = true;    ///< CUBIC leaves slow start before it loses, as Linux
    double dctcp_gain = 1.0 / 16.0;  ///< g of RFC 8257
};

}  // namespace daqloom::transport
