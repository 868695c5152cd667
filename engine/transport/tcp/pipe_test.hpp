// A connection for tests: one sender, one receiver, and a pipe that delays, loses and marks.
//
//   sender ── segments ──> lose? mark? ──( one way delay )──> receiver
//          <──( one way delay )── lose? ── acknowledgements ──
//
// The pipe has no rates, queues or hosts, so that all times follow from the delays.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "transport/tcp/config.hpp"
#include "transport/tcp/receiver.hpp"
#include "transport/tcp/sender.hpp"

namespace daqloom::transport {

class TcpPipe {
  public:
    struct Segment {
        base::Time at;  ///< when it left
        std::uint64_t begin;
        base::Bytes length;
        bool again;
    };
    struct Ack {
        base::Time at;
        std::uint64_t ack;
        SackBlocks sack;
        bool echo;
        bool duplicate;
    };

    TcpPipe(const TcpConfig& config, base::Time one_way)
        : config_(config), one_way_(one_way), sender_(config) {}

    // ---- behaviour of the pipe; replaced by tests
    std::function<bool(const Segment&)> loses = [](const Segment&) { return false; };
    std::function<bool(const Segment&)> marks = [](const Segment&) { return false; };
    std::function<bool(const Ack&)> loses_ack = [](const Ack&) { return false; };
    std::function<base::Time()> jitter = [] { return base::Time::zero(); };
    /// Called after every event.
    std::function<void()> check = [] {};
    /// Called with every segment that arrives, before the receiver sees it.
    std::function<void(const Segment&)> arrives = [](const Segment&) {};

    void write(base::Bytes bytes) {
        sender_.write(bytes);
        sender_.transmit(now_, config_, *this);
        settle();
    }

    void at(base::Time when, std::function<void()> action) {
        events_.emplace(when, std::move(action));
    }

    /// Processes all events due by `until`, and sets the clock to `until`.
    void run(base::Time until) {
        while (!events_.empty() && events_.begin()->first <= until) {
            auto first = events_.extract(events_.begin());
            now_ = first.key();
            first.mapped()();
            settle();
        }
        now_ = until;
    }
    /// Runs until nothing is pending; returns false if that takes more than `limit` steps.
    bool run_dry(std::uint64_t limit) {
        for (std::uint64_t step = 0; !events_.empty(); ++step) {
            if (step == limit) {
                return false;
            }
            run(events_.begin()->first);
        }
        return true;
    }

    [[nodiscard]] base::Time now() const { return now_; }
    [[nodiscard]] TcpSender& sender() { return sender_; }
    [[nodiscard]] TcpReceiver& receiver() { return receiver_; }
    [[nodiscard]] const std::vector<Segment>& sent() const { return sent_; }
    [[nodiscard]] const std::vector<Ack>& acks() const { return acks_; }
    /// Times at which the segment that begins there left.
    [[nodiscard]] std::vector<base::Time> times_of(std::uint64_t begin) const {
        std::vector<base::Time> times;
        for (const Segment& segment : sent_) {
            if (segment.begin == begin) {
                times.push_back(segment.at);
            }
        }
        return times;
    }

    /// The sender's outlet.
    void segment(std::uint64_t begin, base::Bytes length, bool again) {
        const Segment segment{now_, begin, length, again};
        sent_.push_back(segment);
        if (!loses(segment)) {
            const bool marked = marks(segment);
            events_.emplace(now_ + one_way_ + jitter(),
                            [this, segment, marked] { on_segment(segment, marked); });
        }
    }

  private:
    void on_segment(const Segment& segment, bool marked) {
        arrives(segment);
        const auto reaction =
            receiver_.on_segment(segment.begin, segment.length, marked, now_, config_);
        if (reaction == TcpReceiver::Reaction::acknowledge) {
            acknowledge(receiver_.next(), receiver_.marked());
            receiver_.on_acknowledged();
        } else if (reaction == TcpReceiver::Reaction::acknowledge_before_and_delay) {
            acknowledge(receiver_.previous(), !receiver_.marked());
        }
    }

    void acknowledge(std::uint64_t next, bool echo) {
        const Ack ack{now_, next, receiver_.sack_blocks(config_.sack_blocks()), echo,
                      receiver_.duplicate()};
        acks_.push_back(ack);
        if (!loses_ack(ack)) {
            events_.emplace(now_ + one_way_ + jitter(), [this, ack] { on_ack(ack); });
        }
    }

    void on_ack(const Ack& ack) {
        const SackBlocks* sack = ack.sack.count == 0 ? nullptr : &ack.sack;
        sender_.on_ack(ack.ack, sack, {ack.echo, ack.duplicate}, now_, config_);
        sender_.transmit(now_, config_, *this);
    }

    /// Schedules timers whose deadline has moved; an event whose deadline has moved does nothing.
    void settle() {
        if (sender_.timer() != base::Time::never() && sender_.timer() != sender_event_) {
            sender_event_ = sender_.timer();
            events_.emplace(sender_event_, [this, due = sender_event_] {
                if (sender_event_ == due) {
                    sender_event_ = base::Time::never();
                }
                if (sender_.timer() == due) {
                    sender_.on_timer(now_, config_, *this);
                }
            });
        }
        if (receiver_.ack_due() != base::Time::never() && receiver_.ack_due() != ack_event_) {
            ack_event_ = receiver_.ack_due();
            events_.emplace(ack_event_, [this, due = ack_event_] {
                if (ack_event_ == due) {
                    ack_event_ = base::Time::never();
                }
                if (receiver_.ack_due() == due) {
                    acknowledge(receiver_.next(), receiver_.marked());
                    receiver_.on_acknowledged();
                }
            });
        }
        check();
    }

    TcpConfig config_;
    base::Time one_way_;
    TcpSender sender_;
    TcpReceiver receiver_;
    base::Time now_;
    base::Time sender_event_ = base::Time::never();
    base::Time ack_event_ = base::Time::never();
    /// Equal times in order of insertion.
    std::multimap<base::Time, std::function<void()>> events_;
    std::vector<Segment> sent_;
    std::vector<Ack> acks_;
};

}  // namespace daqloom::transport
