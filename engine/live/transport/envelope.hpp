// The header of every message over a network: sender, receiver, epoch, and a seal (a message
// authentication code) that only holders of the run's token can make.
#pragma once

#include <sys/random.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/expected.hpp"
#include "live/transport/siphash.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

/// The header, little-endian on the network. The seal covers the fields before it, not the message:
/// it keeps foreign senders out, but does not protect the message against changes on the network.
struct Envelope {
    enum class Kind : std::uint32_t { hello = 1, answer = 2, message = 3 };
    static constexpr std::uint32_t our_magic = 0x31'66'6c'64;  ///< "dlf1"

    std::uint32_t magic = our_magic;
    Kind kind = Kind::message;
    std::uint32_t epoch = 0;
    UnitIndex from{};
    UnitIndex to{};
    std::uint32_t length = 0;       ///< bytes of the message
    std::uint64_t incarnation = 0;  ///< random number of the sender, part of its address
    std::uint64_t seal = 0;
};
static_assert(sizeof(Envelope) == 40);

/// An unpredictable number, such as an incarnation.
inline base::expected<std::uint64_t> random_bits() {
    std::uint64_t bits = 0;
    if (::getrandom(&bits, sizeof bits, 0) != sizeof bits) {
        return base::system_failure("the system gives no random numbers");
    }
    return bits;
}

/// Seals the messages of one unit in one epoch, and checks whether received messages are for this
/// unit and epoch.
class Sealer {
  public:
    enum class Verdict { ours, stranger, other_epoch, malformed };
    struct Contents {
        Verdict verdict = Verdict::malformed;
        Envelope::Kind kind = Envelope::Kind::message;
        UnitIndex from{};
        std::uint64_t incarnation = 0;
        std::span<const std::byte> message;
    };

    /// The counter of messages that are refused by this verdict.
    static Counter& counter_of(Verdict why, TransportCounters& counters) {
        return why == Verdict::stranger      ? counters.refused_strangers
               : why == Verdict::other_epoch ? counters.refused_epoch
                                             : counters.refused_malformed;
    }

    Sealer(const Token& token, UnitIndex self, std::uint32_t units, std::uint32_t epoch,
           std::uint64_t incarnation)
        : digest_(token), self_(self), units_(units), epoch_(epoch), incarnation_(incarnation) {}

    /// `message`: number of its bytes, up to Transport::most_message.
    [[nodiscard]] Envelope seal(Envelope::Kind kind, UnitIndex to, std::size_t message) const {
        Envelope envelope{.kind = kind,
                          .epoch = epoch_,
                          .from = self_,
                          .to = to,
                          .length = static_cast<std::uint32_t>(message),
                          .incarnation = incarnation_};
        envelope.seal = digest(envelope);
        return envelope;
    }

    /// `received`: arbitrary bytes, expected to be an envelope and its message.
    [[nodiscard]] Contents open(std::span<const std::byte> received) const {
        Envelope envelope;
        if (received.size() < sizeof envelope) {
            return refused(Verdict::malformed);
        }
        std::memcpy(&envelope, received.data(), sizeof envelope);
        if (envelope.magic != Envelope::our_magic || envelope.seal != digest(envelope)) {
            return refused(Verdict::stranger);
        }
        const auto message = received.subspan(sizeof envelope);
        if (envelope.epoch != epoch_) {
            return refused(Verdict::other_epoch);
        }
        if (envelope.length != message.size() || message.size() > Transport::most_message ||
            envelope.from.value() >= units_ || envelope.from == self_ || envelope.to != self_) {
            return refused(Verdict::malformed);
        }
        return {Verdict::ours, envelope.kind, envelope.from, envelope.incarnation, message};
    }

  private:
    static Contents refused(Verdict why) {
        Contents opened;
        opened.verdict = why;
        return opened;
    }
    [[nodiscard]] std::uint64_t digest(const Envelope& envelope) const {
        return digest_(std::as_bytes(std::span(&envelope, 1)).first(offsetof(Envelope, seal)));
    }

    SipHash digest_;
    UnitIndex self_;
    std::uint32_t units_;
    std::uint32_t epoch_;
    std::uint64_t incarnation_;
};

}  // namespace daqloom::live
