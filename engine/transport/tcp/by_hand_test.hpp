// For tests: a sender whose acknowledgements are given by hand, and a list of what it sent.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>

#include "transport/tcp/pipe_test.hpp"

namespace daqloom::transport {

inline constexpr base::Bytes kMss = 1000;

/// NewReno without probes; an RTT of 10 ms is known, so that the RTO is 10 ms + 200 ms.
inline TcpConfig plain_config() {
    TcpConfig config;
    config.congestion = CongestionControl::newreno;
    config.mss = kMss;
    config.tail_loss_probe = false;
    config.ack_every = 1;
    config.handshake_rtt = base::milliseconds(10);
    return config;
}

/// A sender, a list of what left, and acknowledgements by hand.
struct TcpByHand {
    explicit TcpByHand(const TcpConfig& c) : config(c), sender(c) {}

    void segment(std::uint64_t begin, base::Bytes length, bool again) {
        sent.push_back({now, begin, length, again});
    }
    void write(base::Bytes bytes) {
        sender.write(bytes);
        sender.transmit(now, config, *this);
    }
    void ack(std::uint64_t next, std::initializer_list<StreamRange> blocks = {},
             bool echo = false) {
        SackBlocks sack;
        for (const StreamRange& block : blocks) {
            sack.blocks[sack.count++] = block;
        }
        sender.on_ack(next, sack.count == 0 ? nullptr : &sack, echo, false, now, config);
        sender.transmit(now, config, *this);
        EXPECT_TRUE(sender.books_hold());
    }
    void timer() {
        now = sender.timer();
        sender.on_timer(now, config, *this);
    }
    [[nodiscard]] base::Bytes window() const { return sender.congestion().window(); }

    TcpConfig config;
    TcpSender sender;
    base::Time now;
    std::vector<TcpPipe::Segment> sent;
};

}  // namespace daqloom::transport
