// Barriers: no participant continues before all have entered, or before the next one has.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "base/expected.hpp"

namespace daqloom::protocol {

/// 0 … participants − 1.
using Participant = std::uint32_t;

enum class BarrierKind {
    centralised,  ///< all report to a master, which releases them one after the other: O(N)
    tournament,   ///< the losers of a binary bracket report to the winners; the champion's release
                  ///< travels back down: O(log N)
    dissemination,  ///< ⌈log2 N⌉ rounds: in round k each sends to the one 2^k places further on
    neighbour,      ///< each waits for the next one only, and the last for the first: O(1)
};

struct BarrierConfig {
    BarrierKind kind = BarrierKind::tournament;
    std::uint32_t participants = 1;
    Participant self = 0;
    Participant master = 0;  ///< centralised only
    /// Neighbour only: what keeps the others behind the next one is something else, and only the
    /// last waits, for the first.
    bool closes_only = false;
};

/// A barrier is entered again and again: generation 0, 1, …
struct BarrierMessage {
    std::uint64_t generation = 0;
    /// Dissemination: 0 … ⌈log2 N⌉ − 1. The others: 0 to arrive, 1 to release.
    std::uint32_t round = 0;

    friend constexpr bool operator==(BarrierMessage, BarrierMessage) = default;
};

/// The outputs of a participant, which the driver implements. Neither may call the participant
/// back.
template <class Out>
concept BarrierOut =
    requires(Out& out, Participant to, BarrierMessage message, std::uint64_t generation) {
        out.send_barrier(to, message);
        out.released(generation);
    };

struct BarrierCounters {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint64_t released = 0;
    std::uint64_t unexpected = 0;  ///< entries and messages ignored: of the wrong generation, …
};

/// Each participant reports to its parent when it has entered and all its children have reported;
/// the release travels down the same tree. Centralised is the tree in which all are children of the
/// master. The bracket of a tournament, in which the even one of each pair wins, is the binomial
/// tree: the parent of i is i without its lowest one-bit, the champion is 0.
class TreeBarrier {
  public:
    static constexpr std::uint32_t arrive = 0;
    static constexpr std::uint32_t release = 1;

    /// Precondition: what Barrier::make checks.
    explicit TreeBarrier(BarrierConfig config);

    template <BarrierOut Out>
    void enter(std::uint64_t generation, Out& out) {
        if (entered_ || generation != generation_) {
            ++counters_.unexpected;
            return;
        }
        entered_ = true;
        go_up_when_complete(out);
    }

    template <BarrierOut Out>
    void on_message(Participant from, BarrierMessage message, Out& out) {
        // A child is released before it can be in the next generation, and only by its parent: no
        // message of another generation can be on its way.
        if (message.generation != generation_) {
            ++counters_.unexpected;
        } else if (message.round == release && from == parent_ && reported_) {
            ++counters_.received;
            go_down(out);
        } else if (const auto child = place_of(from);
                   message.round == arrive && child != none && !has_arrived_[child]) {
            ++counters_.received;
            has_arrived_[child] = true;
            ++arrived_;
            go_up_when_complete(out);
        } else {
            ++counters_.unexpected;
        }
    }

    [[nodiscard]] const BarrierCounters& counters() const { return counters_; }
    /// Of the next release.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }

  private:
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

    template <BarrierOut Out>
    void go_up_when_complete(Out& out) {
        if (!entered_ || arrived_ < children_.size()) {
            return;
        }
        if (parent_ == none) {
            go_down(out);
            return;
        }
        reported_ = true;
        ++counters_.sent;
        out.send_barrier(parent_, {generation_, arrive});
    }

    template <BarrierOut Out>
    void go_down(Out& out) {
        for (const Participant child : children_) {
            ++counters_.sent;
            out.send_barrier(child, {generation_, release});
        }
        entered_ = reported_ = false;
        has_arrived_.assign(children_.size(), false);
        arrived_ = 0;
        ++counters_.released;
        out.released(generation_++);
    }

    /// Of a child in `children_`, or `none`.
    [[nodiscard]] std::uint32_t place_of(Participant from) const;

    BarrierConfig config_;
    Participant parent_ = none;
    std::vector<Participant> children_;  ///< in the order of their release: largest subtree first
    std::vector<bool> has_arrived_;      ///< per child
    std::uint32_t arrived_ = 0;
    bool entered_ = false;
    bool reported_ = false;
    std::uint64_t generation_ = 0;
    BarrierCounters counters_;
};

/// In round k participant i sends a message to (i + 2^k) mod N, and continues when it has the
/// message of (i − 2^k) mod N. After the last round i knows, directly or indirectly, that all have
/// entered (Hensgen, Finkel and Manber 1988).
class DisseminationBarrier {
  public:
    /// Precondition: what Barrier::make checks.
    explicit DisseminationBarrier(BarrierConfig config);

    template <BarrierOut Out>
    void enter(std::uint64_t generation, Out& out) {
        if (entered_ || generation != generation_) {
            ++counters_.unexpected;
            return;
        }
        entered_ = true;
        round_ = 0;
        if (rounds_ > 0) {
            tell(out);
        }
        advance(out);
    }

    template <BarrierOut Out>
    void on_message(Participant from, BarrierMessage message, Out& out) {
        // A participant that has left this generation may be in the next one, but no further: that
        // one ends for no participant before we have entered it. And no participant leaves before
        // we have entered.
        const std::uint64_t latest = generation_ + (entered_ ? 1 : 0);
        if (message.generation < generation_ || message.generation > latest ||
            message.round >= rounds_ || from != teller(message.round)) {
            ++counters_.unexpected;
            return;
        }
        std::uint32_t& told = told_[message.generation % 2];
        const std::uint32_t bit = std::uint32_t{1} << message.round;
        if ((told & bit) != 0) {
            ++counters_.unexpected;
            return;
        }
        ++counters_.received;
        told |= bit;
        if (entered_) {
            advance(out);
        }
    }

    [[nodiscard]] const BarrierCounters& counters() const { return counters_; }
    /// Of the next release.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }

  private:
    template <BarrierOut Out>
    void tell(Out& out) {
        ++counters_.sent;
        out.send_barrier(static_cast<Participant>((config_.self + (std::uint64_t{1} << round_)) %
                                                  config_.participants),
                         {generation_, round_});
    }

    template <BarrierOut Out>
    void advance(Out& out) {
        std::uint32_t& told = told_[generation_ % 2];
        while (round_ < rounds_ && (told >> round_ & 1) != 0) {
            if (++round_ < rounds_) {
                tell(out);
            }
        }
        if (round_ == rounds_) {
            told = 0;
            entered_ = false;
            ++counters_.released;
            out.released(generation_++);
        }
    }

    /// Who tells us in a round; 2^round is below N.
    [[nodiscard]] Participant teller(std::uint32_t round) const {
        const Participant distance = Participant{1} << round;
        return config_.self >= distance ? config_.self - distance
                                        : config_.self + (config_.participants - distance);
    }

    BarrierConfig config_;
    std::uint32_t rounds_;
    std::uint32_t round_ = 0;         ///< the one we are in
    std::uint32_t told_[2] = {0, 0};  ///< a bit per round, by the parity of the generation
    bool entered_ = false;
    std::uint64_t generation_ = 0;
    BarrierCounters counters_;
};

/// Participant i tells participant i − 1 that it has entered (all mod N), and goes on when i + 1
/// has. That is no barrier of all: a participant may be some generations behind the one that it
/// waits for. In linear shifting, i + 1 is who has what i needs next.
class NeighbourBarrier {
  public:
    /// Precondition: what Barrier::make checks.
    explicit NeighbourBarrier(BarrierConfig config)
        : config_(config),
          waits_(config.participants > 1 &&
                 (!config.closes_only || config.self + 1 == config.participants)),
          tells_(config.participants > 1 && (!config.closes_only || config.self == 0)) {
        early_.reserve(16);
    }

    template <BarrierOut Out>
    void enter(std::uint64_t generation, Out& out) {
        if (entered_ || generation != generation_) {
            ++counters_.unexpected;
            return;
        }
        entered_ = true;
        if (tells_) {
            ++counters_.sent;
            out.send_barrier(previous(), {generation_, 0});
        }
        advance(out);
    }

    template <BarrierOut Out>
    void on_message(Participant from, BarrierMessage message, Out& out) {
        const std::uint64_t generation = message.generation;
        if (!waits_ || from != next() || message.round != 0 || generation < heard_ ||
            generation >= heard_ + most_early ||
            std::ranges::find(early_, generation) != early_.end()) {
            ++counters_.unexpected;
            return;
        }
        ++counters_.received;
        early_.push_back(generation);
        while (std::erase(early_, heard_) > 0) {
            ++heard_;
        }
        advance(out);
    }

    [[nodiscard]] const BarrierCounters& counters() const { return counters_; }
    /// Of the next release.
    [[nodiscard]] std::uint64_t generation() const { return generation_; }

  private:
    /// Messages that have overtaken one that is still on its way.
    static constexpr std::uint64_t most_early = 1024;

    template <BarrierOut Out>
    void advance(Out& out) {
        if (entered_ && (heard_ > generation_ || !waits_)) {
            entered_ = false;
            ++counters_.released;
            out.released(generation_++);
        }
    }
    [[nodiscard]] Participant next() const {
        return config_.self + 1 == config_.participants ? 0 : config_.self + 1;
    }
    [[nodiscard]] Participant previous() const {
        return (config_.self == 0 ? config_.participants : config_.self) - 1;
    }

    BarrierConfig config_;
    bool waits_;
    bool tells_;
    std::uint64_t heard_ = 0;           ///< the next one has entered those before this generation
    std::vector<std::uint64_t> early_;  ///< that it has entered besides
    bool entered_ = false;
    std::uint64_t generation_ = 0;
    BarrierCounters counters_;
};

/// One participant's end of a barrier of any kind.
///
/// Invariants, for any delays and any order of messages (neighbour: in which fewer than 1024
/// overtake another one): no participant is released from a generation before all (neighbour: it
/// and the next one) have entered it; when all have entered, all are released. Invalid input (an
/// entry out of turn, a duplicate message, a message of a wrong sender, …) is counted and otherwise
/// ignored.
class Barrier {
  public:
    static base::expected<Barrier> make(BarrierConfig config);

    /// Generations follow each other; enter the next when released from the one before.
    template <BarrierOut Out>
    void enter(std::uint64_t generation, Out& out) {
        std::visit([&](auto& barrier) { barrier.enter(generation, out); }, kind_);
    }

    template <BarrierOut Out>
    void on_message(Participant from, BarrierMessage message, Out& out) {
        std::visit([&](auto& barrier) { barrier.on_message(from, message, out); }, kind_);
    }

    [[nodiscard]] const BarrierCounters& counters() const {
        return std::visit([](const auto& barrier) -> const auto& { return barrier.counters(); },
                          kind_);
    }
    /// Of the next release.
    [[nodiscard]] std::uint64_t generation() const {
        return std::visit([](const auto& barrier) { return barrier.generation(); }, kind_);
    }

    /// That all participants together send in one generation.
    [[nodiscard]] static constexpr std::uint64_t messages(BarrierKind kind,
                                                          std::uint32_t participants) {
        const std::uint64_t n = participants;
        switch (kind) {
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

  private:
    using Kind = std::variant<TreeBarrier, DisseminationBarrier, NeighbourBarrier>;

    explicit Barrier(Kind kind) : kind_(std::move(kind)) {}

    Kind kind_;
};

}  // namespace daqloom::protocol
