// TCP connections between units at the beginning of an epoch: one for each pair.
//
//   the unit with the higher number          the other one
//     connects, hello  ───────────────────────> compares the address with the run control's
//                      <─────────────────────── answer
//
// Hello and answer are sealed (see Envelope), and contain the size of their sender's arena.
// Connections without a seal, or from another address than the run control's, are refused and
// counted. A unit of another epoch is sent this unit's epoch, so that it counts the refusal, too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/memory/shared_memory.hpp"
#include "live/transport/envelope.hpp"
#include "live/transport/tcp/socket.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

/// A connected unit.
struct ConnectedUnit {
    UnitIndex unit{};
    OwnedFd socket;
    std::uint64_t arena = 0;  ///< size of its arena
};

/// Listener and connections of a unit. The listener is open from its creation on, because the other
/// units receive the address before they connect.
class TcpConnector {
  public:
    static base::expected<TcpConnector> open(const TransportConfig& config, const TcpConfig& tcp);

    /// The address for `connect` of others.
    [[nodiscard]] std::vector<std::byte> address() const;
    /// Connects to all peers; returns those that answered before `until`.
    base::expected<std::vector<ConnectedUnit>> connect(std::span<const Transport::Peer> peers,
                                                       base::Time until,
                                                       TransportCounters& counters);

    /// After `connect`: readable when a connection or data arrive at the listener.
    [[nodiscard]] int fd() const { return epoll_.get(); }
    /// Refuses late connections, and those of strangers.
    void refuse_late_connections(TransportCounters& counters) { wait_and_handle(0, counters); }

  private:
    /// Limit on connections without identification.
    static constexpr std::size_t kMostPending = 64;

    /// A connection whose other end has not identified itself.
    struct PendingConnection {
        OwnedFd socket;
        std::optional<UnitIndex> peer;  ///< unit to which this unit connects; empty: accepted
        bool has_sent_hello = false;    ///< whether the hello to `peer` is sent
        std::array<std::byte, sizeof(Envelope) + sizeof(std::uint64_t)> received{};
        std::size_t bytes = 0;
    };
    /// A unit to connect to.
    struct ExpectedPeer {
        UnitIndex unit{};
        SocketAddress where;
        std::uint64_t incarnation = 0;
        bool is_connected = false;
        bool is_unreachable = false;
    };

    TcpConnector(const TransportConfig& config, const TcpConfig& tcp, SocketAddress where,
                 OwnedFd listener, OwnedFd epoll, std::uint64_t incarnation);

    [[nodiscard]] std::optional<ExpectedPeer> read_address(const Transport::Peer& peer) const;
    int wait_and_handle(int timeout_ms, TransportCounters& counters);
    void begin_connecting(ExpectedPeer& peer);
    void accept_connection(TransportCounters& counters);
    void watch_listener(bool is_watched);
    PendingConnection* add_pending(OwnedFd socket, std::optional<UnitIndex> peer,
                                   std::uint32_t events);
    void on_event(PendingConnection& connection, TransportCounters& counters);
    void on_identification(PendingConnection& connection, TransportCounters& counters);
    [[nodiscard]] bool identify(const PendingConnection& connection, Envelope::Kind kind,
                                UnitIndex to) const;
    void close(PendingConnection& connection);
    [[nodiscard]] ExpectedPeer* expected_peer(UnitIndex unit);

    TcpConfig tcp_;
    SocketAddress where_;
    OwnedFd listener_;
    OwnedFd epoll_;                    ///< epoll(7) on the listener and all pending connections
    bool is_listener_paused_ = false;  ///< the listener is not watched
    std::uint64_t incarnation_;
    Sealer sealer_;
    UnitIndex self_;
    std::uint64_t arena_;
    std::vector<PendingConnection> pending_;
    std::size_t last_evicted_ = 0;  ///< the last connection closed for lack of room
    std::vector<ExpectedPeer> expected_;
    std::vector<ConnectedUnit> connected_;
};

}  // namespace daqloom::live
