// For tests: segments known by their numbers, of which some are lost.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "transport/tcp/by_hand_test.hpp"

namespace daqloom::transport {

/// NewReno over an RTT of 10 ms, known from the handshake: RTO 210 ms. A window of 20 segments.
inline TcpConfig lossy_config(bool rack, bool probe) {
    TcpConfig config;
    config.congestion = CongestionControl::newreno;
    config.mss = kMss;
    config.initial_window = 20;
    config.rack = rack;
    config.tail_loss_probe = probe;
    config.ack_every = 1;
    config.handshake_rtt = base::milliseconds(10);
    return config;
}

/// Times at which the segment with this number left.
inline std::vector<base::Time> times_of_segment(const TcpPipe& pipe, std::uint64_t number) {
    return pipe.times_of(number * static_cast<std::uint64_t>(kMss));
}

/// Loses the first copy of the segments with these numbers.
inline std::function<bool(const TcpPipe::Segment&)> first_copies(
    std::vector<std::uint64_t> numbers) {
    return [numbers](const TcpPipe::Segment& s) {
        return !s.again && std::find(numbers.begin(), numbers.end(),
                                     s.begin / static_cast<std::uint64_t>(kMss)) != numbers.end();
    };
}

inline base::Time last_ack_arrives(const TcpPipe& pipe) {
    return pipe.acks().back().at + base::milliseconds(5);
}

/// A connection of 5 ms each way over which `segments` have been sent, come what may.
struct LossyRun : TcpPipe {
    LossyRun(const TcpConfig& config, int segments, std::function<bool(const Segment&)> lost)
        : TcpPipe(config, base::milliseconds(5)) {
        loses = std::move(lost);
        write(segments * kMss);
        EXPECT_TRUE(run_dry(1000));
    }
};

/// A sender with 20 segments in flight since 0, and SACKs by hand.
struct SacksByHand {
    explicit SacksByHand(const TcpConfig& c, int segments = 20) : config(c), sender(c) {
        sender.write(segments * kMss);
        sender.transmit(now, config, *this);
        now = base::milliseconds(10);
    }
    void segment(std::uint64_t begin, base::Bytes /*length*/, bool again) {
        (again ? sent_again : sent_new).push_back(begin / static_cast<std::uint64_t>(kMss));
    }
    /// Segments [begin, end) have arrived and `next` is expected.
    void sack(std::uint64_t next, std::uint64_t begin, std::uint64_t end, bool duplicate = false) {
        SackBlocks blocks;
        blocks.blocks[blocks.count++] = {begin * kMss, end * kMss};
        sender.on_ack(next * kMss, &blocks, false, duplicate, now, config);
        sender.transmit(now, config, *this);
        EXPECT_TRUE(sender.books_hold());
    }
    void ack(std::uint64_t next, bool duplicate = false) {
        sender.on_ack(next * kMss, nullptr, false, duplicate, now, config);
        sender.transmit(now, config, *this);
        EXPECT_TRUE(sender.books_hold());
    }
    void timer() {
        now = sender.timer();
        sender.on_timer(now, config, *this);
    }
    [[nodiscard]] base::Bytes in_flight() const { return sender.in_flight() / kMss; }

    TcpConfig config;
    TcpSender sender;
    base::Time now;
    std::vector<std::uint64_t> sent_new;
    std::vector<std::uint64_t> sent_again;
};

using Numbers = std::vector<std::uint64_t>;

}  // namespace daqloom::transport
