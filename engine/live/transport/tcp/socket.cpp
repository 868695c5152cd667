#include "live/transport/tcp/socket.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/tcp.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <limits>
#include <memory>

namespace daqloom::live {

namespace {

constexpr int kBacklog = 1024;

template <class Value>
bool set(int socket, int level, int option, const Value& value) {
    return ::setsockopt(socket, level, option, &value, sizeof value) == 0;
}

int as_int(base::Bytes bytes) { return static_cast<int>(std::min<base::Bytes>(bytes, INT_MAX)); }

/// Clamps the receive window. The kernel lifts a clamp if it tunes the receive buffer itself, so a
/// lasting window needs a fixed buffer of twice its size (the kernel doubles the number set here).
bool hold_window(int socket, const TcpConfig& config) {
    if (config.window == 0) {
        return true;
    }
    const int window = as_int(config.window);
    const bool has_buffer = config.receive_buffer != 0 ||
                            set(socket, SOL_SOCKET, SO_RCVBUFFORCE, window) ||
                            set(socket, SOL_SOCKET, SO_RCVBUF, window);
    return has_buffer && clamp_window(socket, config.window);
}

/// Sets options that windows and buffers require before a connection exists. False: see errno.
bool set_options(int socket, int family, const TcpConfig& config) {
    const int on = 1;
    const int tos = config.dscp << 2;
    const auto pacing = static_cast<std::uint64_t>(config.pacing.bps / 8);
    const std::string& control = config.congestion_control;
    return set(socket, IPPROTO_TCP, TCP_NODELAY, on) &&
           (control.empty() || ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, control.data(),
                                            static_cast<socklen_t>(control.size())) == 0) &&
           (pacing == 0 || set(socket, SOL_SOCKET, SO_MAX_PACING_RATE, pacing)) &&
           (config.send_buffer == 0 ||
            set(socket, SOL_SOCKET, SO_SNDBUF, as_int(config.send_buffer))) &&
           (config.receive_buffer == 0 ||
            set(socket, SOL_SOCKET, SO_RCVBUF, as_int(config.receive_buffer))) &&
           hold_window(socket, config) &&
           (tos == 0 || (family == AF_INET ? set(socket, IPPROTO_IP, IP_TOS, tos)
                                           : set(socket, IPPROTO_IPV6, IPV6_TCLASS, tos)));
}

/// A copy with port 0.
SocketAddress copy_of(const sockaddr& address) {
    SocketAddress copy;
    copy.length = address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&copy.address, &address, copy.length);
    copy.set_port(0);
    return copy;
}

/// Number of source ports of all connections between `units` units.
std::uint64_t source_ports(std::uint64_t units) { return units * (units - 1) / 2; }

OwnedFd make_socket(int family) {
    return OwnedFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

base::expected<void> check(const TcpConfig& config, std::size_t units) {
    const std::uint64_t needed = source_ports(units);
    DAQLOOM_REFUSE_IF(config.first_source_port != 0 && config.first_source_port + needed > 1U << 16,
                      "source ports from {} on; {} units need {} ports, so give one up to {}",
                      config.first_source_port, units, needed,
                      needed < 1U << 16 ? (1U << 16) - needed : 0);
    return {};
}

std::uint16_t source_port(const TcpConfig& config, UnitIndex from, UnitIndex to) {
    return config.first_source_port == 0
               ? std::uint16_t{0}
               : static_cast<std::uint16_t>(config.first_source_port + source_ports(from.value()) +
                                            to.value());
}

void SocketAddress::set_port(std::uint16_t port) {
    if (address.ss_family == AF_INET) {
        reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
    } else {
        reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
    }
}

std::optional<SocketAddress> address_of_interface(const std::string& name, int family) {
    ifaddrs* interfaces = nullptr;
    if (::getifaddrs(&interfaces) != 0) {
        return std::nullopt;
    }
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(interfaces, &::freeifaddrs);
    for (const ifaddrs* one = all.get(); one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr != nullptr && one->ifa_addr->sa_family == family &&
            name == one->ifa_name) {
            return copy_of(*one->ifa_addr);
        }
    }
    return std::nullopt;
}

base::expected<SocketAddress> address_of_node(const std::string& node) {
    for (const int family : {AF_INET, AF_INET6}) {
        if (const auto found = address_of_interface(node, family)) {
            return *found;
        }
    }
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* answers = nullptr;
    if (const int error = ::getaddrinfo(node.c_str(), nullptr, &hints, &answers); error != 0) {
        return base::system_failure(
            fmt::format("'{}' is no interface or address of this machine: {}; see `ip address`",
                        node, ::gai_strerror(error)));
    }
    const SocketAddress found = copy_of(*answers->ai_addr);
    ::freeaddrinfo(answers);
    return found;
}

base::expected<OwnedFd> listen_at(SocketAddress& address, const TcpConfig& config) {
    const auto failed = [&](const char* what) {
        return base::system_failure(
            fmt::format("a unit cannot {} at {}: {}", what, config.node, std::strerror(errno)));
    };
    OwnedFd socket = make_socket(address.address.ss_family);
    if (!socket) {
        return failed("have a socket");
    }
    if (!set_options(socket.get(), address.address.ss_family, config)) {
        return failed("set the options of TCP that measure asks for");
    }
    if (::bind(socket.get(), address.get(), address.length) != 0 ||
        ::listen(socket.get(), kBacklog) != 0) {
        return failed("listen");
    }
    address.length = sizeof address.address;
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address.address), &address.length);
    return socket;
}

OwnedFd begin_to_connect(const SocketAddress& from, const SocketAddress& to,
                         const TcpConfig& config) {
    OwnedFd socket = make_socket(to.address.ss_family);
    const int on = 1;  // a connection of the previous epoch may still be closing
    const bool is_begun =
        socket && set_options(socket.get(), to.address.ss_family, config) &&
        set(socket.get(), SOL_SOCKET, SO_REUSEADDR, on) &&
        (from.address.ss_family != to.address.ss_family ||
         ::bind(socket.get(), from.get(), from.length) == 0) &&
        (::connect(socket.get(), to.get(), to.length) == 0 || errno == EINPROGRESS);
    return is_begun ? std::move(socket) : OwnedFd();
}

OwnedFd accept_one(int listener) {
    return OwnedFd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

bool clamp_window(int socket, base::Bytes window) {
    return set(socket, IPPROTO_TCP, TCP_WINDOW_CLAMP, as_int(window));
}

base::Bytes segment_bytes(int socket) {
    tcp_info info{};
    socklen_t length = sizeof info;
    ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length);
    return info.tcpi_advmss;
}

ConnectionCounts counts_of(int socket) {
    // The kernel's structure grows at its end. Debian's header lacks the timeouts (Linux 6.7):
    // tcpi_total_rto, 16 bits, behind tcpi_rehash.
    constexpr std::size_t timeouts_at = 240;
    std::array<std::byte, 512> all{};
    socklen_t length = all.size();
    ConnectionCounts counts;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, all.data(), &length) != 0) {
        return counts;
    }
    tcp_info info{};
    std::memcpy(&info, all.data(), sizeof info);
    counts.sent_bytes = info.tcpi_bytes_acked;
    counts.segments_retransmitted = info.tcpi_total_retrans;
    counts.round_trip_us = info.tcpi_rtt;
    const bool is_measured = info.tcpi_min_rtt != std::numeric_limits<std::uint32_t>::max();
    counts.least_round_trip_us = is_measured ? info.tcpi_min_rtt : 0;
    counts.delivery_rate_bytes_per_s = info.tcpi_delivery_rate;
    std::uint16_t timeouts = 0;  // fields that the kernel has not filled in are zero
    std::memcpy(&timeouts, all.data() + timeouts_at, sizeof timeouts);
    counts.retransmission_timeouts = timeouts;
    return counts;
}

}  // namespace daqloom::live
