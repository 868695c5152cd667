// Checks a TCP sender and receiver against a peer that sends anything at any time, as encoded by a
// string of bytes; used by random tests and by the fuzzer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/byte_source_test.hpp"
#include "ethernet/frame.hpp"
#include "transport/tcp/config.hpp"
#include "transport/tcp/receiver.hpp"
#include "transport/tcp/sender.hpp"
#include "transport/tcp/stream_offset.hpp"

namespace daqloom::transport {

class TcpCheck {
  public:
    /// The first rule that TCP breaks under these inputs; empty if it breaks none.
    static std::string broken_promise(std::span<const std::uint8_t> input) {
        TcpCheck check(input);
        while (!check.input_.empty() && check.broken_.empty()) {
            check.step();
        }
        return check.broken_;
    }

    /// The sender's outlet.
    void segment(std::uint64_t begin, base::Bytes length, bool again) {
        const std::uint64_t end = begin + static_cast<std::uint64_t>(length);
        claim(length > 0 && length <= config_.mss, "a segment has one to MSS bytes");
        claim(begin >= sender_.una(), "nothing acknowledged is sent");
        claim(end <= sender_.end(), "nothing is sent that was not written");
        claim(!again || end <= sender_.nxt(), "what is sent again was sent before");
    }

  private:
    explicit TcpCheck(std::span<const std::uint8_t> input)
        : input_(input), config_(configure()), sender_(config_) {}

    std::uint32_t word() {
        std::uint32_t value = 0;
        for (int i = 0; i < 4; ++i) {
            value = value << 8 | input_.byte();
        }
        return value;
    }

    TcpConfig configure() {
        const std::uint8_t flags = input_.byte();
        const std::uint8_t sizes = input_.byte();
        TcpConfig config;
        config.congestion = static_cast<CongestionControl>(flags & 3);
        config.rack = (flags & 4) != 0;
        config.tail_loss_probe = (flags & 8) != 0;
        config.timestamps = (flags & 16) != 0;
        config.restart_after_idle = (flags & 32) != 0;
        config.tso_burst = (flags & 64) != 0 ? 1000 : 0;
        config.handshake_rtt = (flags & 128) != 0 ? base::microseconds(50) : base::Time::zero();
        config.mss = 100;
        config.static_window = config.mss * (1 + (sizes & 15));
        config.initial_window = 1U + (sizes & 15U);
        config.receive_window = config.mss * (1 + (sizes >> 4) * 4);
        config.rto_min = base::milliseconds(1);
        return config;
    }

    void step() {
        const std::uint8_t what = input_.byte();
        switch (what & 3) {
            case 0:
                if (sender_.end() < kMostBytes) {
                    sender_.write(1 + input_.byte() * 8);
                    sender_.transmit(now_, config_, *this);
                }
                break;
            case 1:
                acknowledge(what);
                break;
            case 2:
                wait(base::microseconds(std::int64_t{1} << (what >> 4)) * (1 + input_.byte()));
                break;
            case 3:
                receive(what);
                break;
        }
        check_sender();
        check_receiver();
    }

    /// An offset near `reference`; if `wild`, any offset.
    std::uint64_t offset(std::uint64_t reference, bool wild) {
        return wild ? unwrap(word(), reference)
                    : reference + static_cast<std::uint64_t>(input_.byte()) * 10 - 500;
    }

    void acknowledge(std::uint8_t what) {
        const std::uint64_t ack = offset(sender_.una(), (what & 4) != 0) + 500 * (what >> 7);
        SackBlocks sack;
        sack.count = (what >> 3) & 3U;
        for (std::uint32_t i = 0; i < sack.count; ++i) {
            const std::uint64_t begin = offset(sender_.una() + 600, input_.byte() == 0);
            sack.blocks[i] = {begin, begin + static_cast<std::uint64_t>(input_.byte()) * 10};
        }
        const std::uint64_t una = sender_.una();
        const std::uint64_t nxt = sender_.nxt();
        sender_.on_ack(ack, sack.count == 0 ? nullptr : &sack, {(what & 32) != 0, (what & 64) != 0},
                       now_, config_);
        claim(sender_.una() == (ack > una && ack <= nxt ? ack : una),
              "only what was sent is acknowledged, and for ever");
        check_sender();
        sender_.transmit(now_, config_, *this);
    }

    void wait(base::Time duration) {
        const base::Time until = now_ + duration;
        for (int strikes = 0; strikes < 100 && sender_.timer() <= until; ++strikes) {
            now_ = std::max(now_, sender_.timer());
            sender_.on_timer(now_, config_, *this);
            check_sender();
        }
        now_ = until;
        if (receiver_.ack_due() <= now_) {
            receiver_.on_acknowledged();
        }
    }

    void receive(std::uint8_t what) {
        const std::uint64_t begin = offset(receiver_.next() + 500 * (what >> 7), (what & 4) != 0);
        const base::Bytes length = 1 + input_.byte();
        const std::uint64_t end = begin + static_cast<std::uint64_t>(length);
        const std::uint64_t next = receiver_.next();
        const bool in_order = begin == next && !receiver_.has_gap();
        const bool inside =
            begin <= end && end <= next + static_cast<std::uint64_t>(config_.receive_window);
        if ((in_order || inside) && end <= kMostBytes) {
            std::fill(arrived_.begin() + static_cast<std::ptrdiff_t>(begin),
                      arrived_.begin() + static_cast<std::ptrdiff_t>(end), true);
        } else if (in_order || inside) {
            return;  // beyond what this check keeps in mind
        }
        const auto reaction = receiver_.on_segment(begin, length, (what & 8) != 0, now_, config_);
        if (reaction == TcpReceiver::Reaction::acknowledge) {
            receiver_.on_acknowledged();
        }
        claim(reaction == TcpReceiver::Reaction::acknowledge ||
                  receiver_.ack_due() <= now_ + config_.delayed_ack,
              "every segment is acknowledged in time");
    }

    void check_sender() {
        claim(sender_.books_hold(), "the sums over what is in flight are right");
        claim(sender_.una() <= sender_.nxt() && sender_.nxt() <= sender_.end(),
              "acknowledged, sent, written: in this order");
        claim(sender_.in_flight() >= 0, "no less than nothing is in flight");
        claim(sender_.congestion().window() >= config_.mss, "a window has a segment at least");
        claim(sender_.nxt() - sender_.una() <= static_cast<std::uint64_t>(config_.receive_window),
              "no more is sent than the receiver takes");
        claim((sender_.una() == sender_.nxt()) == (sender_.timer() == base::Time::never()),
              "a timer runs while something is outstanding");
    }

    void check_receiver() {
        while (expected_ < kMostBytes && arrived_[expected_]) {
            ++expected_;
        }
        claim(receiver_.next() == expected_, "the receiver expects the first byte that is missing");
        const SackBlocks sack = receiver_.sack_blocks(config_.sack_blocks());
        for (std::uint32_t i = 0; i < sack.count; ++i) {
            const StreamRange& block = sack.blocks[i];
            claim(block.begin > expected_ && block.begin < block.end, "a SACK block is not empty");
            claim(block.end <= kMostBytes &&
                      std::all_of(arrived_.begin() + static_cast<std::ptrdiff_t>(block.begin),
                                  arrived_.begin() + static_cast<std::ptrdiff_t>(block.end),
                                  [](bool byte) { return byte; }),
                  "a SACK block holds what arrived");
        }
    }

    void claim(bool holds, const char* promise) {
        if (!holds && broken_.empty()) {
            broken_ = promise;
        }
    }

    static constexpr std::uint64_t kMostBytes = 1U << 16;

    base::ByteSource input_;
    TcpConfig config_;
    TcpSender sender_;
    TcpReceiver receiver_;
    base::Time now_;
    std::vector<bool> arrived_ = std::vector<bool>(kMostBytes);
    std::uint64_t expected_ = 0;
    std::string broken_;
};

}  // namespace daqloom::transport
