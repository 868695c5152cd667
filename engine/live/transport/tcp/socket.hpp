// TCP sockets, with options from the network's description.
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
        (base::BitRate, pacing, "Limit on the rate of a connection; 0: none."),
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
    /// Device for libfabric, unused by sockets; empty: the device of the address.
    std::string domain = {};
};

/// Fails for a configuration that is impossible for this number of units.
base::expected<void> check(const TcpConfig& config, std::size_t units);
/// Source port of the connection from unit `from` to unit `to`, which has a lower number. No other
/// pair of the run uses this port, so that units may share a machine. 0: the system chooses.
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

/// The first address of an interface in this family, with port 0; none: no such interface.
std::optional<SocketAddress> address_of_interface(const std::string& name, int family);
/// The first address of `node`: an interface, or else a host's name or address. Port 0.
base::expected<SocketAddress> address_of_node(const std::string& node);

/// Listens at a port that the system chooses; `address` is set to address and port.
base::expected<OwnedFd> listen_at(SocketAddress& address, const TcpConfig& config);
/// Begins to connect from the port of `from` without waiting; none if the call fails.
OwnedFd begin_to_connect(const SocketAddress& from, const SocketAddress& to,
                         const TcpConfig& config);
/// A pending connection; none: nothing is pending.
OwnedFd accept_one(int listener);

/// Limits the bytes in flight from the other side. The kernel raises this clamp as it learns how
/// much of its memory packets use, so clamp again before each receive.
bool clamp_window(int socket, base::Bytes window);
/// Largest segment that a connection receives.
base::Bytes segment_bytes(int socket);

/// The kernel's counts of a connection, without its unit.
ConnectionCounts counts_of(int socket);

}  // namespace daqloom::live
