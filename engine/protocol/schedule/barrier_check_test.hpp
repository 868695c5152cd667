// For tests and fuzzing: all participants of a barrier under any order of entries and deliveries.
// All invariants are checked against a plain model after each step.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/byte_source_test.hpp"
#include "protocol/schedule/barrier.hpp"

namespace daqloom::protocol {

/// Number of messages of all participants in one generation.
inline std::uint64_t messages_of(const BarrierConfig& config) {
    const std::uint64_t n = config.participants;
    switch (config.kind) {
        case BarrierKind::dissemination:
            return n * static_cast<std::uint64_t>(std::bit_width(n - 1));
        case BarrierKind::neighbour:
            return n == 1 ? 0 : n;
        case BarrierKind::centralised:
        case BarrierKind::tournament:
            break;
    }
    return 2 * (n - 1);
}

class BarrierCheck {
  public:
    /// Plays `input`. Then messages on their way arrive, and participants enter until all have
    /// passed the same number of generations. Returns the first broken invariant, or nothing. The
    /// first bytes select the configuration; each later step takes one or two bytes.
    static std::string broken_promise(std::span<const std::uint8_t> input) {
        BarrierCheck check(input);
        while (check.problem_.empty() && !check.input_.empty()) {
            check.step();
        }
        check.finish();
        return check.problem_;
    }

  private:
    struct Message {
        Participant from;
        Participant to;
        BarrierMessage message;
    };
    struct Member {
        std::uint64_t entered = 0;   ///< generations
        std::uint64_t released = 0;  ///< generations
    };
    struct Out {
        BarrierCheck& check;
        Participant self;
        void send_barrier(Participant to, BarrierMessage message) {
            check.sent({self, to, message});
        }
        void released(std::uint64_t generation) { check.released(self, generation); }
    };

    explicit BarrierCheck(std::span<const std::uint8_t> input)
        : input_(input),
          config_{.kind = static_cast<BarrierKind>(input_.byte() % 4),
                  .participants = 1U + input_.byte() % 19},
          members_(config_.participants) {
        const std::uint8_t choice = input_.byte();
        config_.closes_only = config_.kind == BarrierKind::neighbour && choice % 2 == 1;
        for (config_.self = 0; config_.self < config_.participants; ++config_.self) {
            barriers_.push_back(*Barrier::make(config_));
        }
    }

    void step() {
        const std::uint8_t choice = input_.byte();
        if (choice % 8 == 0) {
            disturb();
        } else if (choice % 2 == 0 || on_their_way_.empty()) {
            enter(input_.byte() % config_.participants);
        } else {
            deliver((std::size_t{input_.byte()} << 8 | input_.byte()) % on_their_way_.size());
        }
    }

    void enter(Participant who) {
        Member& member = members_[who];
        constexpr std::uint64_t most_ahead = 1'000;  // then so many may have overtaken one
        if (member.entered == member.released &&
            member.entered < members_.back().released + most_ahead) {
            const std::uint64_t generation = member.entered++;
            Out out{*this, who};
            barriers_[who].enter(generation, out);
        }
    }

    void deliver(std::size_t which) {
        const Message message = on_their_way_[which];
        on_their_way_[which] = on_their_way_.back();
        on_their_way_.pop_back();
        Out out{*this, message.to};
        const auto before = barriers_[message.to].counters().unexpected;
        barriers_[message.to].on_message(message.from, message.message, out);
        promise(barriers_[message.to].counters().unexpected == before,
                "no message of another participant is unexpected");
        delivered_.push_back(message);
    }

    [[nodiscard]] bool is_of_neighbours() const { return config_.kind == BarrierKind::neighbour; }
    [[nodiscard]] Participant next_to(Participant who) const {
        return (who + 1) % config_.participants;
    }
    [[nodiscard]] bool waits_for_next(Participant who) const {
        return config_.participants > 1 && (!config_.closes_only || next_to(who) == 0);
    }

    /// Makes an input that must be ignored: an entry out of turn, or a message of the past, of the
    /// far future, of a wrong sender, or received before.
    void disturb() {
        const Participant who = input_.byte() % config_.participants;
        const Member& member = members_[who];
        Barrier& barrier = barriers_[who];
        const auto before = barrier.counters().unexpected;
        const std::size_t outputs = outputs_;
        Out out{*this, who};
        barrier.enter(member.entered + (member.entered == member.released ? 1 : 0), out);
        const std::uint64_t far = is_of_neighbours() ? 2'000 : 2;
        barrier.on_message(input_.byte(), {barrier.generation() + far, input_.byte() % 6U}, out);
        barrier.on_message(input_.byte(), {barrier.generation() - 1, input_.byte() % 6U}, out);
        barrier.on_message(config_.participants, {barrier.generation(), input_.byte() % 6U}, out);
        barrier.on_message(who, {barrier.generation(), input_.byte() % 6U}, out);
        std::uint64_t expected = before + 5;
        if (!delivered_.empty()) {
            const Message& again = delivered_[input_.byte() % delivered_.size()];
            Out other{*this, again.to};
            const auto before_again = barriers_[again.to].counters().unexpected;
            barriers_[again.to].on_message(again.from, again.message, other);
            promise(barriers_[again.to].counters().unexpected == before_again + 1,
                    "a message that comes twice is counted");
            expected += again.to == who ? 1 : 0;
        }
        promise(barrier.counters().unexpected == expected && outputs_ == outputs,
                "what does not fit is counted and has no effect");
    }

    void finish() {
        std::uint64_t goal = 1;
        for (const Member& member : members_) {
            goal = std::max(goal, member.entered);
        }
        for (bool moved = true; moved && problem_.empty();) {
            moved = !on_their_way_.empty();
            while (!on_their_way_.empty()) {
                deliver(0);
            }
            for (Participant who = 0; who < config_.participants; ++who) {
                if (members_[who].entered == members_[who].released &&
                    members_[who].entered < goal) {
                    enter(who);
                    moved = true;
                }
            }
        }
        promise(std::ranges::all_of(members_, [=](Member m) { return m.released == goal; }),
                "when all have entered, all are released");
        const std::uint64_t messages = config_.closes_only
                                           ? std::min<std::uint64_t>(config_.participants - 1, 1)
                                           : messages_of(config_);
        promise(sent_ == goal * messages, "a generation takes as many messages as its kind says");
    }

    void sent(Message message) {
        ++outputs_;
        ++sent_;
        promise(message.to < config_.participants && message.to != message.from,
                "messages go to another participant");
        promise(message.message.generation + 1 == members_[message.from].entered,
                "messages are of the sender's generation");
        if (message.to < config_.participants) {
            on_their_way_.push_back(message);
        }
    }

    void released(Participant who, std::uint64_t generation) {
        ++outputs_;
        Member& member = members_[who];
        promise(generation == member.released && member.released + 1 == member.entered,
                "who entered is released, once");
        if (is_of_neighbours()) {
            promise(!waits_for_next(who) || members_[next_to(who)].entered > generation,
                    "nobody is released before the next one has entered");
        } else {
            promise(std::ranges::all_of(members_, [=](Member m) { return m.entered > generation; }),
                    "nobody is released before all have entered");
        }
        ++member.released;
    }

    void promise(bool kept, const char* text) {
        if (!kept && problem_.empty()) {
            problem_ = text;
        }
    }

    base::ByteSource input_;
    BarrierConfig config_;
    std::vector<Barrier> barriers_;
    std::vector<Member> members_;
    std::vector<Message> on_their_way_;
    std::vector<Message> delivered_;
    std::uint64_t sent_ = 0;
    std::size_t outputs_ = 0;
    std::string problem_;
};

}  // namespace daqloom::protocol
