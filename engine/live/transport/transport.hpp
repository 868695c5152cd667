// The transport between units: messages, and writes into each other's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/units.hpp"
#include "live/memory/counter.hpp"
#include "live/memory/doorbell.hpp"
#include "live/memory/handover.hpp"
#include "live/memory/shared_memory.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/orders.hpp"

namespace daqloom::live {

using protocol::UnitIndex;

/// How a thread waits; the best choice depends on the machine's processor and network.
enum class Waiting {
    adaptive,  ///< polls a little, then sleeps
    blocking,  ///< sleeps without polling
    spinning,  ///< never sleeps: for a core of its own
};

struct TransportConfig {
    UnitIndex self{};
    std::uint32_t units = 1;  ///< units of the run, including unconnected ones
    Token token = {};         ///< secret of the run; peers without it are refused
    /// Number that grows with every new set of members; messages of other epochs are refused.
    std::uint32_t epoch = 0;
    /// Memory to which other units write; none: no writes to this unit. Outlives the transport.
    const SharedMemory* arena = nullptr;
    /// Memory from which writes are made. Outlives the transport.
    std::vector<std::span<const std::byte>> sources = {};
    /// Rung when there is an input for this unit. Outlives the transport.
    const Doorbell* doorbell = nullptr;
    Waiting waiting = Waiting::adaptive;
    /// Units whose barriers the network combines, this one included, in the same order at all of
    /// them; none: no such barrier.
    std::vector<UnitIndex> barrier = {};
};

struct Write {
    UnitIndex to{};
    std::span<const std::byte> bytes;  ///< in one of the sources; untouched until it is done
    base::Bytes offset = 0;            ///< in the receiver's arena
    std::uint32_t immediate = 0;       ///< reported to the receiver when all bytes have arrived
    std::uint64_t context = 0;         ///< reported to the sender when the write is done

    /// Whether the write is inside an arena of this size.
    [[nodiscard]] bool is_inside(std::uint64_t arena) const {
        return bytes.size() <= arena && offset >= 0 &&
               static_cast<std::uint64_t>(offset) <= arena - bytes.size();
    }
};

/// The notifications of a transport to its unit, from within `poll` only. They may call `send` and
/// `write`.
class TransportEvents {
  public:
    virtual ~TransportEvents() = default;
    /// A message, valid during the call only. Its content has to be validated.
    virtual void on_message(UnitIndex from, std::span<const std::byte> bytes) = 0;
    /// All bytes of a write have arrived. `from` may be none, because networks do not report the
    /// sender; the immediate bits must then identify the write.
    virtual void on_written(UnitIndex from, std::uint32_t immediate) = 0;
    /// A write of this unit is complete: it is in the other unit's memory (libfabric: if the
    /// provider reports that), its source may be reused, and the other unit is or will be notified.
    virtual void on_write_done(std::uint64_t context) = 0;
    /// This unit is unreachable (notified once). Writes to it will not complete.
    virtual void on_unreachable(UnitIndex unit) = 0;
    /// All units of TransportConfig::barrier have entered the barrier.
    virtual void on_released() {}
};

/// Reports units as unreachable, and removes them from `lost`. False: there was none.
inline bool report_lost(std::vector<UnitIndex>& lost, TransportEvents& events) {
    const bool something = !lost.empty();
    while (!lost.empty()) {
        const UnitIndex unit = lost.back();
        lost.pop_back();
        events.on_unreachable(unit);
    }
    return something;
}

/// Counters that the polling thread writes and any thread reads.
struct TransportCounters {
    DAQLOOM_FIELDS(
        TransportCounters, (Counter, messages_sent, "Messages sent by the transport."),
        (Counter, messages_received, "Messages received by the transport."),
        (Counter, writes, "Writes into remote memory or that of the own builder."),
        (Counter, written_bytes, "Bytes of writes into remote memory or that of the own builder."),
        (Counter, writes_received, "Writes received, announced by immediate data."),
        (Counter, refused_strangers, "Messages or connections without the token."),
        (Counter, refused_epoch, "Messages of another epoch."),
        (Counter, refused_malformed, "Messages with an invalid length, sender or kind."),
        (Counter, damaged_records,
         "Records or messages with a wrong checksum or number, each of which ended its "
         "connection."),
        (Counter, damaged_writes,
         "Writes received with a wrong checksum, which were not used (`measure.checksums`)."),
        (Counter, writes_repeated,
         "Writes sent again as they had come damaged (`measure.checksums`)."),
        (Counter, sleeps, "Sleeps until something was received."),
        (Counter, segments_retransmitted,
         "Segments that the kernel's TCP retransmitted (`tcp` only)."),
        (Counter, retransmission_timeouts,
         "Timeouts of the retransmission timer (`tcp` only, Linux 6.7 or later)."))
};

/// Kernel counters of a connection to another unit (tcp_info), since it was made.
struct ConnectionCounts {
    DAQLOOM_FIELDS(ConnectionCounts, (UnitIndex, to, "Unit at the other end of the connection."),
                   (std::uint64_t, sent_bytes, "Bytes sent and acknowledged."),
                   (std::uint64_t, segments_retransmitted, "Segments retransmitted."),
                   (std::uint64_t, retransmission_timeouts,
                    "Timeouts of the retransmission timer (Linux 6.7 or later)."),
                   (std::uint64_t, round_trip_us, "Round trip, smoothed (us)."),
                   (std::uint64_t, least_round_trip_us, "Shortest round trip (us)."),
                   (std::uint64_t, delivery_rate_bytes_per_s,
                    "Rate at which it received most recently, as acknowledgements show (B/s)."))
};

/// A transport is used only by the thread that calls `poll`. Every epoch has a new transport, so
/// that late writes and messages of a lost unit go to a transport that no longer exists.
///
/// Between two units messages arrive in order, and each once. Writes and messages may be reordered.
/// Nothing is lost silently: an unreachable unit is reported.
class Transport {
  public:
    static constexpr std::size_t most_message = 16'384;  ///< bytes

    virtual ~Transport() = default;

    /// The address with which another unit connects to this one, up to 1 KiB.
    [[nodiscard]] virtual std::vector<std::byte> address() const = 0;

    using Peer = protocol::orders::Member;
    /// Connects to all other units of the epoch (`peers` may contain this unit), which connect at
    /// the same time; first sends and writes are then as fast as later ones. Called once. Returns
    /// the units that did not answer by `until`. Fails if this unit itself cannot take part.
    [[nodiscard]] virtual base::expected<std::vector<UnitIndex>> connect(
        std::span<const Peer> peers, base::Time until) = 0;

    /// Sends a message. False: no space now (retry after a poll), or longer than `most_message`
    /// bytes. True for an unreachable unit: the message is dropped.
    [[nodiscard]] virtual bool send(UnitIndex to, std::span<const std::byte> bytes) = 0;
    /// Writes to the other unit's arena; returns as `send`. Outside of it: the unit is unreachable.
    [[nodiscard]] virtual bool write(const Write& write) = 0;

    /// Enters the next barrier of TransportConfig::barrier, after the release from the last one.
    virtual void enter_barrier() {}

    /// Reports events and advances pending operations, by a bounded amount of work. False: no event
    /// and no work.
    virtual bool poll(TransportEvents& events) = 0;
    /// Waits (see `Waiting`) until a poll may have an event, the doorbell is rung, or `until`. May
    /// return spuriously.
    virtual void wait(base::Time until) = 0;

    [[nodiscard]] virtual const TransportCounters& counters() const = 0;
    /// The kernel's counts of each TCP connection at the last reading; empty for transports without
    /// sockets. Callable from any thread.
    [[nodiscard]] virtual std::vector<ConnectionCounts> connections() const { return {}; }
};

}  // namespace daqloom::live
