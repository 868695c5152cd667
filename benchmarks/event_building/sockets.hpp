// All-to-all through raw TCP sockets over loopback: the limit for whoever builds events over TCP.
// Each process sends a message to each, in turn, and receives straight into its area; what it has
// for itself is copied. How a process waits for its sockets is up to each program.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <tuple>
#include <utility>

#include "live/memory/copy.hpp"
#include "window.hpp"

namespace daqloom::bench {

using Mesh = std::vector<std::vector<int>>;  ///< socket of a process to another

inline std::pair<int, int> connection() {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    const int one = ::socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || one < 0 || ::bind(listener, generic, length) != 0 ||
        ::listen(listener, 1) != 0 || ::getsockname(listener, generic, &length) != 0 ||
        ::connect(one, generic, length) != 0) {
        give_up("a connection over loopback");
    }
    const int other = ::accept(listener, nullptr, nullptr);
    ::close(listener);
    for (const int end : {one, other}) {
        const int yes = 1;
        ::setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }
    return {one, other};
}

inline Mesh connect_all(std::size_t processes) {
    Mesh mesh(processes, std::vector<int>(processes, -1));
    for (std::size_t i = 0; i < processes; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            std::tie(mesh[i][j], mesh[j][i]) = connection();
        }
    }
    return mesh;
}

struct Process {
    Process(std::size_t number, const std::vector<int>& to_others, std::size_t message,
            std::size_t read_area, std::size_t write_area, Shared& all)
        : self(number),
          sockets(to_others),
          block(message),
          from(read_area, std::byte{1}),
          to(write_area, std::byte{2}),
          sent(to_others.size(), 0),
          within(to_others.size(), 0),
          place(to_others.size(), 0),
          shared(all) {
        for (std::size_t i = 0; i < place.size(); ++i) {
            take_place(i);
        }
    }

    /// The next message from there is received here.
    void take_place(std::size_t peer) {
        place[peer] = next_place;
        next_place = next_place + 2 * block <= to.size() ? next_place + block : 0;
    }

    /// Where the rest of the message from there goes.
    [[nodiscard]] std::span<std::byte> rest_of_place(std::size_t peer) {
        return std::span(to).subspan(place[peer] + within[peer], block - within[peer]);
    }
    void on_received(std::size_t peer, std::size_t bytes) {
        within[peer] += bytes;
        shared.add(self, bytes);
        if (within[peer] == block) {
            within[peer] = 0;
            take_place(peer);
        }
    }
    /// Receives the bytes that have arrived. Returns false if there are none.
    bool receive(std::size_t peer) {
        const std::span<std::byte> rest = rest_of_place(peer);
        const auto more = ::recv(sockets[peer], rest.data(), rest.size(), MSG_DONTWAIT);
        if (more <= 0) {
            return false;
        }
        on_received(peer, static_cast<std::size_t>(more));
        return true;
    }

    /// Rest of the message to a peer, still to be sent.
    [[nodiscard]] std::span<const std::byte> rest_of_message(std::size_t peer) const {
        const std::size_t message = sent[peer] / block * sockets.size() + peer;
        const std::size_t done = sent[peer] % block;
        return std::span(from).subspan(message % (from.size() / block) * block + done,
                                       block - done);
    }
    void copy_to_self() {
        live::copy(to.data() + place[self], rest_of_message(self).data(), block);
        live::fence_copies();
        take_place(self);
        sent[self] += block;
        shared.add(self, block);
    }
    /// A message, or as much of one as there is room for. False: nothing.
    bool send(std::size_t peer, int flags) {
        if (peer == self) {
            copy_to_self();
            return true;
        }
        const std::span<const std::byte> rest = rest_of_message(peer);
        const auto more = ::send(sockets[peer], rest.data(), rest.size(), MSG_NOSIGNAL | flags);
        if (more <= 0) {
            return false;
        }
        sent[peer] += static_cast<std::uint64_t>(more);
        return true;
    }

    /// Whether the peer is not ahead of the peer with the fewest messages.
    [[nodiscard]] bool may_send(std::size_t peer) const {
        return sent[peer] / block <= *std::ranges::min_element(sent) / block;
    }

    std::size_t self;
    std::vector<int> sockets;
    std::size_t block;
    std::vector<std::byte> from;
    std::vector<std::byte> to;
    std::vector<std::uint64_t> sent;  ///< bytes
    std::vector<std::size_t> within;  ///< bytes of the message that is being received
    std::vector<std::size_t> place;   ///< of that message
    std::size_t next_place = 0;
    Shared& shared;
};

/// A program: what its processes receive together goes to standard output. `way`, which has one
/// option of its own, is what each of them does as long as it lives.
inline void all_to_all(int argc, char** argv, const char* option,
                       const std::function<void(Process&, std::size_t)>& way) {
    const Options options(argc, argv,
                          {{"processes", 2},
                           {option, 0},
                           {"block", 1 << 20},
                           {"read_area", 64 << 20},
                           {"write_area", 256 << 20},
                           {"warmup", 0.3},
                           {"seconds", 1}});
    const std::size_t processes = options.whole("processes");
    const Mesh mesh = connect_all(processes);
    const Rate received =
        rate(processes, options.number("warmup"), options.number("seconds"),
             [&](std::size_t self, Shared& shared) {
                 Process process(self, mesh[self], options.whole("block"),
                                 options.whole("read_area"), options.whole("write_area"), shared);
                 shared.wait_for_go();
                 way(process, options.whole(option));
             });
    char control[64] = "?";
    socklen_t length = sizeof control - 1;
    if (processes > 1) {
        ::getsockopt(mesh[1][0], IPPROTO_TCP, TCP_CONGESTION, control, &length);
    }
    std::printf(
        "{\"bytes_per_s\": %.6g, \"bytes_per_cpu_s\": %.6g, \"congestion_control\": \"%s\"}\n",
        received.per_s, received.per_cpu_s, control);
}

}  // namespace daqloom::bench
