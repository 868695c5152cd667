// The connection of units over TCP at the beginning of an epoch: one for each pair.
//
//   the unit with the higher number          the other one
//     connects, hello  ───────────────────────> compares the address with the run control's
//                      <─────────────────────── answer
//
// Both are sealed (see Envelope), and contain the size of their sender's arena. Connections without
// a seal, or from another address than the run control's, are refused and counted; one of another
// epoch receives our epoch, so that its end counts it too.
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

/// A connection to a unit that has been met.
struct MetUnit {
    UnitIndex unit{};
    OwnedFd socket;
    std::uint64_t arena = 0;  ///< size of its arena
};

/// The listener for units and strangers. It listens from its creation on, as the address of a unit
/// is given to the others before they connect.
class TcpMeeting {
  public:
    static base::expected<TcpMeeting> open(const TransportConfig& config, const TcpConfig& tcp);

    /// The address for `meet` of others.
    [[nodiscard]] std::vector<std::byte> address() const;
    /// Connects to all peers; returns those that answered in time.
    base::expected<std::vector<MetUnit>> meet(std::span<const Transport::Peer> peers,
                                              base::Time until, TransportCounters& counters);

    /// After `meet`: readable when a connection or data arrive at the listener.
    [[nodiscard]] int fd() const { return epoll_.get(); }
    /// Refuses connections that come too late, or do not belong here.
    void refuse_guests(TransportCounters& counters) { look_at_all(0, counters); }

  private:
    static constexpr std::size_t kGuests = 64;  ///< limit on connections without identification

    /// The other end of a connection without identification.
    struct Guest {
        OwnedFd socket;
        std::optional<UnitIndex> called;  ///< the unit to which this connection was made
        bool has_greeted = false;         ///< our hello is sent
        std::array<std::byte, sizeof(Envelope) + sizeof(std::uint64_t)> received{};
        std::size_t bytes = 0;
    };
    /// A unit to be met.
    struct ExpectedPeer {
        UnitIndex unit{};
        SocketAddress where;
        std::uint64_t incarnation = 0;
        bool is_met = false;
        bool is_hopeless = false;
    };

    TcpMeeting(const TransportConfig& config, const TcpConfig& tcp, SocketAddress where,
               OwnedFd listener, OwnedFd epoll, std::uint64_t incarnation);

    [[nodiscard]] std::optional<ExpectedPeer> read_address(const Transport::Peer& peer) const;
    int look_at_all(int timeout_ms, TransportCounters& counters);
    void call(ExpectedPeer& peer);
    void accept_guests(TransportCounters& counters);
    void watch_listener(bool is_watched);
    Guest* admit(OwnedFd socket, std::optional<UnitIndex> called, std::uint32_t events);
    void look_at(Guest& guest, TransportCounters& counters);
    void on_greeting(Guest& guest, TransportCounters& counters);
    [[nodiscard]] bool greet(const Guest& guest, Envelope::Kind kind, UnitIndex to) const;
    void dismiss(Guest& guest);
    [[nodiscard]] ExpectedPeer* expected_peer(UnitIndex unit);

    TcpConfig tcp_;
    SocketAddress where_;
    OwnedFd listener_;
    OwnedFd epoll_;         ///< epoll(7) on the listener and all guests
    bool is_deaf_ = false;  ///< the listener is not watched
    std::uint64_t incarnation_;
    Sealer sealer_;
    UnitIndex self_;
    std::uint64_t arena_;
    std::vector<Guest> guests_;
    std::size_t longest_here_ = 0;  ///< the last guest dismissed for lack of room
    std::vector<ExpectedPeer> expected_;
    std::vector<MetUnit> met_;
};

}  // namespace daqloom::live
