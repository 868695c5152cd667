// Checksums from unit to unit, over a transport without checksums.
//
//   write ─────────────────────────> its bytes, as the transport carries them
//   message: place, CRC32C ────────> compared with the arrived bytes
//         <─────────────────────── message: done, or send it again
//
// Every message ends with a checksum. Damaged data are counted and not passed on: a damaged write
// is sent again; the sender of a damaged message is unreachable, as messages are sent only once.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "live/transport/transport.hpp"

namespace daqloom::live {

class CheckedTransport final : public Transport, private TransportEvents {
  public:
    /// `config`: configuration of the inner transport.
    CheckedTransport(const TransportConfig& config, std::unique_ptr<Transport> inner);

    [[nodiscard]] std::vector<std::byte> address() const override { return inner_->address(); }
    [[nodiscard]] base::expected<std::vector<UnitIndex>> connect(std::span<const Peer> peers,
                                                                 base::Time until) override {
        return inner_->connect(peers, until);
    }
    /// Limit on messages: 8 bytes below that of other transports, for the checksum.
    [[nodiscard]] bool send(UnitIndex to, std::span<const std::byte> bytes) override;
    [[nodiscard]] bool write(const Write& write) override;
    void enter_barrier() override { inner_->enter_barrier(); }
    bool poll(TransportEvents& events) override;
    void wait(base::Time until) override { inner_->wait(until); }
    [[nodiscard]] const TransportCounters& counters() const override { return counters_; }
    [[nodiscard]] std::vector<ConnectionCounts> connections() const override {
        return inner_->connections();
    }

  private:
    enum class Kind : std::uint32_t { message = 1, check = 2, verdict = 3 };
    struct Tail {
        Kind kind{};
        std::uint32_t checksum = 0;  ///< covers kind and message
    };
    /// Place and checksum of the bytes of a write.
    struct Check {
        std::uint64_t offset = 0;
        std::uint64_t length = 0;
        std::uint32_t immediate = 0;
        std::uint32_t checksum = 0;
        std::uint64_t slot = 0;  ///< slot of the write at its sender
    };
    struct Verdict {
        std::uint64_t slot = 0;
        std::uint64_t is_right = 0;
    };
    /// A write that is not yet confirmed.
    struct Slot {
        Write write;
        std::uint32_t under_way = 0;  ///< times that the transport has it without completion
        bool is_taken = false;
        bool is_confirmed = false;
    };
    struct Announcement {
        UnitIndex from{};
        Check check;
    };
    struct QueuedMessage {
        UnitIndex to{};
        std::vector<std::byte> bytes;
    };

    void on_message(UnitIndex from, std::span<const std::byte> bytes) override;
    void on_written(UnitIndex from, std::uint32_t immediate) override;
    void on_write_done(std::uint64_t context) override;
    void on_unreachable(UnitIndex unit) override;
    void on_released() override { events_->on_released(); }

    /// Message with its tail; valid until the next call.
    std::span<const std::byte> sealed(Kind kind, std::span<const std::byte> bytes);
    template <class Content>
    void post(UnitIndex to, Kind kind, const Content& content);
    bool post_all();
    [[nodiscard]] bool give(std::uint64_t slot);
    void judge(UnitIndex from, const Check& check);
    void on_verdict(UnitIndex from, const Verdict& verdict);
    void finish(std::uint64_t slot);
    void lose(UnitIndex unit);

    UnitIndex self_;
    std::span<const std::byte> arena_;
    std::unique_ptr<Transport> inner_;
    TransportEvents* events_ = nullptr;  ///< during a poll
    std::vector<Slot> slots_;
    std::vector<std::uint64_t> free_;
    std::vector<std::uint64_t> to_repeat_;  ///< slots of damaged writes that wait for room
    std::vector<std::byte> sealed_;
    std::vector<std::uint32_t> arrived_;   ///< immediate bits of writes without their checks
    std::vector<Announcement> announced_;  ///< checks without their writes
    std::deque<QueuedMessage> queued_;     ///< messages that wait for room
    std::vector<bool> is_lost_;
    std::vector<std::uint32_t> damaged_in_a_row_;  ///< writes from each unit
    std::uint64_t damaged_records_ = 0;
    std::uint64_t damaged_writes_ = 0;
    std::uint64_t writes_repeated_ = 0;
    TransportCounters counters_;
};

}  // namespace daqloom::live
