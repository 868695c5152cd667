// For tests: a sender whose acknowledgements the test gives, a list of the segments that it sent,
// and connections that lose segments selected by number.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <utility>
#include <vector>

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

/// A sender, a list of the segments that left, and acknowledgements that the test gives.
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
        sender.on_ack(next, sack.count == 0 ? nullptr : &sack, {.echo = echo}, now, config);
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

/// The plain configuration with a window of 20 segments.
inline TcpConfig lossy_config(bool rack, bool probe) {
    TcpConfig config = plain_config();
    config.initial_window = 20;
    config.rack = rack;
    config.tail_loss_probe = probe;
    return config;
}

using Numbers = std::vector<std::uint64_t>;

inline std::uint64_t number_of(const TcpPipe::Segment& segment) {
    return segment.begin / static_cast<std::uint64_t>(kMss);
}

/// Times at which the segment with this number left.
inline std::vector<base::Time> times_of_segment(const TcpPipe& pipe, std::uint64_t number) {
    return pipe.times_of(number * static_cast<std::uint64_t>(kMss));
}

/// Loses the first copy of the segments with these numbers.
inline std::function<bool(const TcpPipe::Segment&)> first_copies(const Numbers& numbers) {
    return [numbers](const TcpPipe::Segment& s) {
        return !s.again && std::ranges::count(numbers, number_of(s)) > 0;
    };
}

inline base::Time last_ack_arrives(const TcpPipe& pipe) {
    return pipe.acks().back().at + base::milliseconds(5);
}

/// A connection with a delay of 5 ms each way that has sent `segments` segments, and lost some.
struct LossyRun : TcpPipe {
    LossyRun(const TcpConfig& config, int segments, std::function<bool(const Segment&)> lost)
        : TcpPipe(config, base::milliseconds(5)) {
        loses = std::move(lost);
        write(segments * kMss);
        EXPECT_TRUE(run_dry(1000));
    }
};

/// A sender with 20 segments in flight since time 0, whose SACKs the test gives.
struct SacksByHand : TcpByHand {
    explicit SacksByHand(const TcpConfig& c, int segments = 20) : TcpByHand(c) {
        write(segments * kMss);
        now = base::milliseconds(10);
    }
    /// Segments [begin, end) have arrived and `next` is expected.
    void sack(std::uint64_t next, std::uint64_t begin, std::uint64_t end) {
        TcpByHand::ack(next * kMss, {{begin * kMss, end * kMss}});
    }
    void ack(std::uint64_t next) { TcpByHand::ack(next * kMss); }
    [[nodiscard]] Numbers sent_new() const { return numbers(false); }
    [[nodiscard]] Numbers sent_again() const { return numbers(true); }
    [[nodiscard]] base::Bytes in_flight() const { return sender.in_flight() / kMss; }

  private:
    [[nodiscard]] Numbers numbers(bool again) const {
        Numbers all;
        for (const TcpPipe::Segment& segment : sent) {
            if (segment.again == again) {
                all.push_back(number_of(segment));
            }
        }
        return all;
    }
};

}  // namespace daqloom::transport
