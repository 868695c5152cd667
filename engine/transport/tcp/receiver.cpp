#include "transport/tcp/receiver.hpp"

namespace daqloom::transport {

void TcpReceiver::accept_out_of_order(std::uint64_t seq, std::uint64_t end, base::Time now,
                                      const TcpConfig& config) {
    const std::uint64_t window_end = next_ + static_cast<std::uint64_t>(config.receive_window);
    if (seq > end || end > window_end) {
        return;  // beyond the window that was offered
    }
    StreamRange fresh{std::max(seq, next_), end};
    duplicate_ = end <= next_;
    if (duplicate_) {
        // The peer repeats data, so it missed acknowledgements (Linux's tcp_enter_quickack_mode).
        quick_ = kQuickAcks;
        ping_pong_ = false;
        return;
    }
    for (const StreamRange& island : islands_) {
        duplicate_ = duplicate_ || (island.begin <= seq && end <= island.end);
    }
    // All islands (ranges received beyond a gap) that the segment touches are merged with it.
    std::erase_if(islands_, [&](const StreamRange& island) {
        const bool touches = island.begin <= fresh.end && fresh.begin <= island.end;
        if (touches) {
            fresh.begin = std::min(fresh.begin, island.begin);
            fresh.end = std::max(fresh.end, island.end);
        }
        return touches;
    });
    if (fresh.begin <= next_) {
        next_ = fresh.end;
        in_order_at_ = now;
    } else {
        islands_.insert(islands_.begin(), fresh);
    }
}

SackBlocks TcpReceiver::sack_blocks(std::uint32_t limit, StreamRange duplicate) const {
    SackBlocks sack;
    if (duplicate.begin != duplicate.end) {
        sack.blocks[sack.count++] = duplicate;
    }
    for (const StreamRange& island : islands_) {
        if (sack.count == limit) {
            break;
        }
        sack.blocks[sack.count++] = island;
    }
    return sack;
}

}  // namespace daqloom::transport
