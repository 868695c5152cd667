// No congestion control: a window of constant size.
#pragma once

#include "transport/tcp/congestion/control.hpp"

namespace daqloom::transport {

class StaticWindow : public CongestionControlOps {
  public:
    static constexpr bool is_fixed = true;

    static base::Bytes init(const CongestionConfig& config) { return config.static_window; }
    /// Restores the constant window after a timeout, which reduces it to one segment.
    void pkts_acked(const AckSample&, CongestionWindow& window, const CongestionConfig& config) {
        window.cwnd = config.static_window;
    }
    void cong_avoid(const AckSample&, CongestionWindow&, const CongestionConfig&) {}
    base::Bytes ssthresh(base::Bytes cwnd, const CongestionConfig&) { return cwnd; }
};

}  // namespace daqloom::transport
