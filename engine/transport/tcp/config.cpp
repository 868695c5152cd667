#include "transport/tcp/config.hpp"

#include <fmt/format.h>

#include "ethernet/frame.hpp"

namespace daqloom::transport {

base::expected<void> validate(const TcpConfig& config) {
    DAQLOOM_REFUSE_IF(
        config.mss < 1 || config.mss + config.header_bytes() + ethernet::kFrameOverhead > 0xffff,
        "a frame has at least one byte of payload and at most 65535 in all");
    const bool fixed = config.congestion == CongestionControl::static_window;
    DAQLOOM_REFUSE_IF(
        config.receive_window < config.mss || (fixed && config.static_window < config.mss) ||
            config.initial_window < 1 || config.ack_every < 1,
        "a window of TCP holds at least one full segment, and ack_every is at least 1");
    return {};
}

}  // namespace daqloom::transport
