// The outgoing messages and writes of a unit, queued while the transport has no space.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ring.hpp"
#include "live/transport/transport.hpp"
#include "protocol/units/unit_message.hpp"

namespace daqloom::live {

/// Limit on streams of a readout unit, because a message has a value for each stream.
inline constexpr std::uint32_t most_streams = 32;

/// Queued messages and writes may be sent out of order: the protocol does not depend on the order.
class SendQueue {
  public:
    explicit SendQueue(Transport& transport) : transport_(transport) {}

    void send(UnitIndex to, const protocol::UnitMessage& message) {
        if (is_forgotten(to)) {
            return;
        }
        QueuedMessage queued{.to = to, .length = protocol::encoded_bytes(message), .bytes = {}};
        protocol::encode_message(message, queued.bytes);
        if (!transport_.send(to, queued.content())) {
            messages_.push(queued);
        }
    }

    void write(const Write& write) {
        if (!is_forgotten(write.to) && !transport_.write(write)) {
            writes_.push(write);
        }
    }

    /// Sends waiting messages and writes while there is room. False: none was sent.
    bool retry() {
        const std::uint32_t before = messages_.size() + writes_.size();
        keep(messages_, [this](const QueuedMessage& queued) {
            return !transport_.send(queued.to, queued.content());
        });
        keep(writes_, [this](const Write& write) { return !transport_.write(write); });
        return messages_.size() + writes_.size() < before;
    }

    /// Drops all data for these units, queued or later: the units may never accept them.
    void forget(std::span<const UnitIndex> units) {
        forgotten_.insert(forgotten_.end(), units.begin(), units.end());
        const auto may_go = [this](const auto& queued) { return !is_forgotten(queued.to); };
        keep(messages_, may_go);
        keep(writes_, may_go);
    }

    [[nodiscard]] bool is_empty() const { return messages_.empty() && writes_.empty(); }

    [[nodiscard]] bool is_forgotten(UnitIndex unit) const {
        return !forgotten_.empty() && std::ranges::find(forgotten_, unit) != forgotten_.end();
    }

  private:
    struct QueuedMessage {
        UnitIndex to{};
        std::size_t length = 0;
        std::array<std::byte, 16 + 8 * most_streams> bytes;

        [[nodiscard]] std::span<const std::byte> content() const {
            return std::span(bytes).first(length);
        }
    };

    /// Retries waiting messages or writes in order; keeps the rest.
    template <class Queued, class Waits>
    static void keep(base::Ring<Queued>& queue, Waits still_waits) {
        for (std::uint32_t left = queue.size(); left > 0; --left) {
            const Queued queued = queue.front();
            queue.pop();
            if (still_waits(queued)) {
                queue.push(queued);
            }
        }
    }

    Transport& transport_;
    std::vector<UnitIndex> forgotten_;
    base::Ring<QueuedMessage> messages_;
    base::Ring<Write> writes_;
};

}  // namespace daqloom::live
