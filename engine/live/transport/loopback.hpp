// A unit's messages and writes to itself, for transports over networks: a folded unit sends to
// itself, because its readout unit and builder unit share a process.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "live/memory/copy.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

/// Copies data immediately and delivers them at the next `poll`. Allocates only at construction.
class Loopback {
  public:
    static constexpr std::size_t messages = 16;  ///< limit on queued messages
    static constexpr std::size_t writes = 256;   ///< limit on queued writes

    Loopback(UnitIndex self, const SharedMemory* arena)
        : self_(self),
          arena_(arena != nullptr ? arena->bytes() : std::span<std::byte>()),
          rooms_(messages * Transport::most_message),
          lengths_(messages),
          writes_(writes) {}

    /// Sends and counts a message; returns as `Transport::send`.
    [[nodiscard]] bool send(std::span<const std::byte> bytes, TransportCounters& counters) {
        if (sent_ - delivered_messages_ == messages) {
            return false;
        }
        const std::size_t slot = sent_ % messages;
        lengths_[slot] = bytes.size();
        if (!bytes.empty()) {
            std::memcpy(room(slot), bytes.data(), bytes.size());
        }
        ++sent_;
        ++counters.messages_sent;
        return true;
    }
    /// Writes and counts, or refuses a write outside of the arena; returns as `Transport::write`.
    [[nodiscard]] bool write(const Write& write, TransportCounters& counters) {
        if (!write.is_inside(arena_.size())) {
            ++counters.refused_malformed;
            return true;
        }
        if (written_ - delivered_writes_ == writes_.size()) {
            return false;
        }
        copy(arena_.data() + write.offset, write.bytes.data(), write.bytes.size());
        writes_[written_ % writes_.size()] = {write.immediate, write.context};
        ++written_;
        ++counters.writes;
        counters.written_bytes += write.bytes.size();
        return true;
    }

    [[nodiscard]] bool empty() const {
        return sent_ == delivered_messages_ && written_ == delivered_writes_;
    }

    /// Delivers all that was sent and written before the call.
    bool poll(TransportEvents& events, TransportCounters& counters) {
        const std::size_t sent = sent_;
        const std::size_t written = written_;
        const bool happened = !empty();
        while (delivered_messages_ != sent) {
            const std::size_t slot = delivered_messages_ % messages;
            ++counters.messages_received;
            events.on_message(self_, {room(slot), lengths_[slot]});
            ++delivered_messages_;
        }
        while (delivered_writes_ != written) {
            const LocalWrite write = writes_[delivered_writes_ % writes_.size()];
            ++delivered_writes_;
            ++counters.writes_received;
            events.on_written(self_, write.immediate);
            events.on_write_done(write.context);
        }
        return happened;
    }

  private:
    struct LocalWrite {
        std::uint32_t immediate = 0;
        std::uint64_t context = 0;
    };
    [[nodiscard]] std::byte* room(std::size_t slot) {
        return rooms_.data() + slot * Transport::most_message;
    }

    UnitIndex self_;
    std::span<std::byte> arena_;
    std::vector<std::byte> rooms_;
    std::vector<std::size_t> lengths_;
    std::vector<LocalWrite> writes_;
    std::size_t sent_ = 0;
    std::size_t delivered_messages_ = 0;
    std::size_t written_ = 0;
    std::size_t delivered_writes_ = 0;
};

}  // namespace daqloom::live
