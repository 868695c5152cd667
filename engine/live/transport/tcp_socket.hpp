// Sockets of TCP, with the options that a description of the network asks for.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/units.hpp"
#include "live/memory/shared_memory.hpp"
#include "live/transport/transport.hpp"

namespace daqloom::live {

struct TcpConfig {
    DAQLOOM_FIELDS(
        TcpConfig,
        (std::string, congestion_control,
         "Congestion control; empty: that of the route or the system."),
        (base::BitRate, pacing, "Most that a connection sends; 0: as fast as it goes."),
        (base::Bytes, send_buffer, "Send buffer of a connection (B); 0: as the system tunes it."),
        (base::Bytes, receive_buffer, "Receive buffer of a connection (B); 0: likewise."),
        (base::Bytes, window,
         "Most that the other side may have in flight to this unit (B), in effect a static window, "
         "as far as `net.core.rmem_max` or privileges allow; 0: no clamp."),
        (std::uint8_t, dscp, "Differentiated services code point of packets, 0 to 63."),
        (std::uint16_t, first_source_port,
         "First source port of the connections of all pairs of units, each of which has a port of "
         "its own (see `source_port`); 0: the system chooses."),
        (bool, checksums, "Checksums of the bytes of writes, besides headers and messages."))
    /// Address, host name or interface that the unit listens on and connects from.
    std::string node = "127.0.0.1";
};

/// What no run of so many units could have.
base::expected<void> check(const TcpConfig& config, std::size_t units);
/// Of the connection that unit `from` makes to one with a lower number: no other pair of the run
/// has it, so that units may share a machine. 0: the system chooses.
std::uint16_t source_port(const TcpConfig& config, UnitIndex from, UnitIndex to);

/// An address of IPv4 or IPv6 with a port.
struct SocketAddress {
    sockaddr_storage address{};
    socklen_t length = 0;

    [[nodiscard]] const sockaddr* get() const {
        return reinterpret_cast<const sockaddr*>(&address);
    }
    [[nodiscard]] bool is_internet() const {
        return address.ss_family == AF_INET || address.ss_family == AF_INET6;
    }
    void set_port(std::uint16_t port);
};

/// The first address of an interface, of this family; port 0. None: there is no such interface.
std::optional<SocketAddress> address_of_interface(const std::string& name, int family);
/// The first address of an interface, else that of a host's name or address; port 0.
base::expected<SocketAddress> address_of_node(const std::string& node);

/// Listens at a port that the system chooses; `address` becomes the one that it has.
base::expected<OwnedFd> listen_at(SocketAddress& address, const TcpConfig& config);
/// Begins to connect, from the port of `from`, without waiting for it; none if that fails at once.
OwnedFd begin_to_connect(const SocketAddress& from, const SocketAddress& to,
                         const TcpConfig& config);
/// A connection that somebody has made; none: nobody has.
OwnedFd accept_one(int listener);

/// The other side may have so much in flight to us. The kernel sets the clamp anew, to more, when
/// it learns from packets how much of its memory they use: it has to be said before each time that
/// something is received.
bool clamp_window(int socket, base::Bytes window);
/// Of a connection: the most that a packet to us holds.
base::Bytes segment_bytes(int socket);

/// What the kernel has counted of a connection; of which unit it is, it does not know.
ConnectionCounts counts_of(int socket);

}  // namespace daqloom::live
