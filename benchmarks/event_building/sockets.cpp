// All-to-all through raw TCP sockets over loopback: the limit for whoever builds events over TCP.
// Each process sends a message to each, in turn, and receives straight into its area; what it has
// for itself is copied.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "live/memory/copy.hpp"
#include "window.hpp"

namespace {

using namespace daqloom;

using Mesh = std::vector<std::vector<int>>;  ///< socket of a process to another

std::pair<int, int> connection() {
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
        bench::give_up("a connection over loopback");
    }
    const int other = ::accept(listener, nullptr, nullptr);
    ::close(listener);
    for (const int end : {one, other}) {
        const int yes = 1;
        ::setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }
    return {one, other};
}

Mesh connect_all(std::size_t processes) {
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
            std::size_t read_area, std::size_t write_area, bench::Shared& all)
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

    /// As much as is there. False: nothing.
    bool receive(std::size_t peer) {
        std::size_t& got = within[peer];
        const auto more =
            ::recv(sockets[peer], to.data() + place[peer] + got, block - got, MSG_DONTWAIT);
        if (more <= 0) {
            return false;
        }
        got += static_cast<std::size_t>(more);
        shared.add(self, static_cast<std::uint64_t>(more));
        if (got == block) {
            got = 0;
            take_place(peer);
        }
        return true;
    }

    /// A message, or as much of one as there is room for. False: nothing.
    bool send(std::size_t peer, int flags) {
        const std::size_t message = sent[peer] / block * sockets.size() + peer;
        const std::size_t messages = from.size() / block;
        const std::size_t done = sent[peer] % block;
        const std::byte* begin = from.data() + message % messages * block + done;
        if (peer == self) {
            std::size_t& target = place[self];
            live::copy(to.data() + target, begin, block);
            live::fence_copies();
            take_place(self);
            sent[self] += block;
            shared.add(self, block);
            return true;
        }
        const auto more = ::send(sockets[peer], begin, block - done, MSG_NOSIGNAL | flags);
        if (more <= 0) {
            return false;
        }
        sent[peer] += static_cast<std::uint64_t>(more);
        return true;
    }

    /// Nobody is given a message more than the one who has least.
    [[nodiscard]] bool may_send(std::size_t peer) const {
        return sent[peer] / block <= *std::ranges::min_element(sent) / block;
    }

    /// One thread that never blocks while there is anything to do, or that never blocks at all.
    void run_in_one_thread(bool spins) {
        std::vector<pollfd> watched(sockets.size());
        while (true) {
            bool did = false;
            for (std::size_t i = 0; i < sockets.size(); ++i) {
                const std::size_t peer = (self + i) % sockets.size();
                did |= may_send(peer) && send(peer, MSG_DONTWAIT);
                did |= peer != self && receive(peer);
            }
            if (!did && !spins) {
                for (std::size_t i = 0; i < sockets.size(); ++i) {
                    watched[i] = {
                        .fd = sockets[i],
                        .events = static_cast<short>(may_send(i) ? POLLIN | POLLOUT : POLLIN),
                        .revents = 0};
                }
                ::poll(watched.data(), watched.size(), -1);
            }
        }
    }

    /// One thread that sends in turn and blocks, one that receives what is there.
    void run_in_two_threads() {
        std::thread([this] {
            while (true) {
                for (std::size_t i = 0; i < sockets.size(); ++i) {
                    const std::size_t peer = (self + i) % sockets.size();
                    do {
                        send(peer, 0);
                    } while (sent[peer] % block != 0);
                }
            }
        }).detach();
        std::vector<pollfd> watched(sockets.size());
        while (true) {
            bool did = false;
            for (std::size_t i = 0; i < sockets.size(); ++i) {
                did |= i != self && receive(i);
                watched[i] = {.fd = sockets[i], .events = POLLIN, .revents = 0};
            }
            if (!did) {
                ::poll(watched.data(), watched.size(), -1);
            }
        }
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
    bench::Shared& shared;
};

}  // namespace

int main(int argc, char** argv) {
    const bench::Options options(argc, argv,
                                 {{"processes", 2},
                                  {"threads", 1},
                                  {"spins", 0},
                                  {"block", 1 << 20},
                                  {"read_area", 64 << 20},
                                  {"write_area", 256 << 20},
                                  {"warmup", 0.3},
                                  {"seconds", 1}});
    const std::size_t processes = options.whole("processes");
    const Mesh mesh = connect_all(processes);
    const bench::Rate received = bench::rate(
        processes, options.number("warmup"), options.number("seconds"),
        [&](std::size_t self, bench::Shared& shared) {
            Process process(self, mesh[self], options.whole("block"), options.whole("read_area"),
                            options.whole("write_area"), shared);
            shared.wait_for_go();
            if (options.whole("threads") == 2) {
                process.run_in_two_threads();
            }
            process.run_in_one_thread(options.whole("spins") != 0);
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
