// For tests: connections to a unit's port from outside of its run.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstring>
#include <span>

#include "live/memory/shared_memory.hpp"

namespace daqloom::live {

/// The socket address at the beginning of `address`, a part of a unit's address.
inline sockaddr_in socket_address(std::span<const std::byte> address) {
    sockaddr_in internet{};
    std::memcpy(&internet, address.data(), sizeof internet);
    return internet;
}

inline OwnedFd connect_to(const sockaddr_in& port) {
    OwnedFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&port), sizeof port), 0);
    return socket;
}

}  // namespace daqloom::live
