// Sender and receiver over pipes that lose, delay, reorder and mark at random: in every case, each
// byte written arrives once and in order, the counters are consistent, and the transfer ends.
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "transport/tcp/check_test.hpp"
#include "transport/tcp/pipe_test.hpp"

namespace daqloom::transport {
namespace {

using base::Bytes;
using base::Time;

/// The receiver's expected state, kept byte by byte.
class ByteMap {
  public:
    void arrive(std::uint64_t begin, Bytes length) {
        const auto end = begin + static_cast<std::uint64_t>(length);
        if (got_.size() < end) {
            got_.resize(end);
        }
        std::fill(got_.begin() + static_cast<std::ptrdiff_t>(begin),
                  got_.begin() + static_cast<std::ptrdiff_t>(end), true);
        while (next_ < got_.size() && got_[next_]) {
            ++next_;
        }
    }
    [[nodiscard]] std::uint64_t next() const { return next_; }
    [[nodiscard]] bool has(const StreamRange& range) const {
        for (std::uint64_t i = range.begin; i < range.end; ++i) {
            if (i >= got_.size() || !got_[i]) {
                return false;
            }
        }
        return range.begin < range.end;
    }

  private:
    std::vector<bool> got_;
    std::uint64_t next_ = 0;
};

struct Conditions {
    TcpConfig tcp;
    Time one_way;
    double loss;
    double ack_loss;
    double marks;
    double jitter_share;  ///< of segments that come late
    Time jitter;
    Bytes total;
    Bytes largest_write;
};

Conditions draw(std::uint64_t seed, base::RandomStream& random) {
    const auto one_of = [&](auto... values) {
        const std::array choices{values...};
        return choices[random.uniform_int(choices.size())];
    };
    Conditions c{};
    // The low bits of the seed select all settings in turn, so that coverage is not random.
    c.tcp.congestion =
        std::array{CongestionControl::newreno, CongestionControl::cubic, CongestionControl::dctcp,
                   CongestionControl::static_window}[seed % 4];
    c.tcp.rack = (seed & 4) == 0;
    c.tcp.tail_loss_probe = (seed & 8) == 0;
    c.tcp.timestamps = (seed & 16) == 0;
    c.tcp.quick_acks = (seed & 32) == 0;
    c.tcp.mss = one_of(Bytes{1}, Bytes{100}, Bytes{1448}, Bytes{8948});
    c.tcp.initial_window = one_of(1U, 2U, 10U);
    c.tcp.static_window = c.tcp.mss * one_of(1, 2, 3, 16);
    c.tcp.receive_window = c.tcp.mss * one_of(1, 2, 5, 64, 2000);
    c.tcp.ack_every = one_of(1U, 2U, 8U);
    c.tcp.tso_burst = one_of(Bytes{0}, Bytes{0}, Bytes{65536});
    c.tcp.rto_min = one_of(base::milliseconds(200), base::milliseconds(1));
    c.tcp.handshake_rtt = one_of(Time::zero(), base::microseconds(20));
    c.one_way = one_of(base::microseconds(10), base::milliseconds(1), base::milliseconds(150));
    c.loss = one_of(0.0, 0.001, 0.01, 0.1, 0.3, 0.6);
    c.ack_loss = one_of(0.0, 0.0, 0.01, 0.3);
    c.marks = one_of(0.0, 0.1, 1.0);
    c.jitter_share = one_of(0.0, 0.0, 0.05, 1.0);
    c.jitter = one_of(base::microseconds(5), base::milliseconds(10), base::milliseconds(400));
    c.total = c.tcp.mss * static_cast<Bytes>(1 + random.uniform_int(150));
    c.largest_write = one_of(Bytes{100}, Bytes{3000}, Bytes{1'000'000});
    c.largest_write = std::max(c.largest_write, c.total / 200);
    return c;
}

std::string run_and_find_fault(std::uint64_t seed) {
    base::RandomStream random(seed, "tcp");
    const Conditions c = draw(seed, random);
    TcpPipe pipe(c.tcp, c.one_way);
    ByteMap expected;
    std::string fault;
    const auto claim = [&](bool holds, const char* what) {
        if (!holds && fault.empty()) {
            fault = "seed " + std::to_string(seed) + " at " + std::to_string(pipe.now().ps) +
                    " ps: " + what;
        }
    };
    pipe.loses = [&](const TcpPipe::Segment& s) {
        claim(s.length > 0 && s.length <= c.tcp.mss, "a segment is longer than the MSS or empty");
        claim(s.begin + static_cast<std::uint64_t>(s.length) <= pipe.sender().end(),
              "bytes leave that nobody wrote");
        return random.uniform() < c.loss;
    };
    pipe.loses_ack = [&](const TcpPipe::Ack& ack) {
        for (std::uint32_t i = 0; i < ack.sack.count; ++i) {
            claim(ack.sack.blocks[i].begin > ack.ack && expected.has(ack.sack.blocks[i]),
                  "a SACK block holds what did not arrive");
        }
        return random.uniform() < c.ack_loss;
    };
    pipe.marks = [&](const TcpPipe::Segment&) { return random.uniform() < c.marks; };
    pipe.jitter = [&] {
        return random.uniform() < c.jitter_share
                   ? Time::from_seconds(random.uniform() * c.jitter.seconds())
                   : Time::zero();
    };
    pipe.arrives = [&](const TcpPipe::Segment& s) { expected.arrive(s.begin, s.length); };
    pipe.check = [&] {
        const TcpSender& sender = pipe.sender();
        claim(pipe.receiver().next() == expected.next(), "the receiver is not where it should be");
        claim(sender.una() <= pipe.receiver().next(), "acknowledged before it was received");
        claim(expected.next() <= sender.nxt() && sender.nxt() <= sender.end(),
              "received before it was sent");
        claim(sender.in_flight() >= 0, "less than nothing is in flight");
        claim(sender.nxt() - sender.una() <= static_cast<std::uint64_t>(c.tcp.receive_window),
              "more was sent than the receiver takes");
        claim(sender.congestion().window() >= c.tcp.mss, "the window is below one segment");
        claim(sender.una() == sender.nxt() || sender.timer() != Time::never(),
              "something is in flight and no timer runs");
        claim(sender.una() != sender.nxt() || sender.timer() == Time::never(),
              "nothing is in flight and a timer runs");
        claim(sender.books_hold(), "the sums over what is in flight are wrong");
    };
    Time at = Time::zero();
    for (Bytes left = c.total; left > 0;) {
        const Bytes bytes = std::min<Bytes>(
            left, 1 + static_cast<Bytes>(
                          random.uniform_int(static_cast<std::uint64_t>(c.largest_write))));
        pipe.at(at, [&pipe, bytes] { pipe.write(bytes); });
        left -= bytes;
        at += Time::from_seconds(random.exponential(random.uniform() < 0.05 ? 1.0 : 1e-3));
    }
    claim(pipe.run_dry(2'000'000), "it does not end");
    claim(pipe.receiver().next() == static_cast<std::uint64_t>(c.total), "not all arrived");
    claim(pipe.sender().una() == static_cast<std::uint64_t>(c.total), "not all is acknowledged");
    claim(pipe.sender().in_flight() == 0, "something is left in flight");
    const TcpSenderCounters& counters = pipe.sender().counters();
    std::uint64_t again = 0;
    for (const TcpPipe::Segment& s : pipe.sent()) {
        again += s.again ? 1 : 0;
    }
    claim(again == counters.fast_retransmissions + counters.probe_retransmissions +
                       counters.timeout_retransmissions,
          "segments sent again are not counted by cause");
    return fault;
}

TEST(TcpProperties, EveryByteArrivesOnceAndInOrderWhateverThePipeDoes) {
    for (std::uint64_t seed = 0; seed < 2000; ++seed) {
        const std::string fault = run_and_find_fault(seed);
        ASSERT_EQ(fault, "");
    }
}

TEST(TcpProperties, APeerThatSendsAnythingBreaksNoPromise) {
    base::RandomStream random(1, "peer");
    std::vector<std::uint8_t> input(300);
    for (int run = 0; run < 20'000; ++run) {
        std::generate(input.begin(), input.end(),
                      [&] { return static_cast<std::uint8_t>(random()); });
        ASSERT_EQ(TcpCheck::broken_promise(input), "") << "run " << run;
    }
}

}  // namespace
}  // namespace daqloom::transport
