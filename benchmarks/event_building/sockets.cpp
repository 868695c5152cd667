// The limit of TCP with system calls for each send and each receive. SO_BUSY_POLL is no way of its
// own: loopback has no queue of a network card to poll, and a process that spins does the same.
#include "sockets.hpp"

#include <poll.h>
#include <sys/epoll.h>

#include <thread>

namespace {

using daqloom::bench::Process;

/// --way=: which of these.
enum class Way { poll, spin, block, epoll };

/// One thread that never blocks while there is anything to do, or that never blocks at all.
void poll_or_spin(Process& process, bool spins) {
    const std::size_t peers = process.sockets.size();
    std::vector<pollfd> watched(peers);
    while (true) {
        bool did = false;
        for (std::size_t i = 0; i < peers; ++i) {
            const std::size_t peer = (process.self + i) % peers;
            did |= process.may_send(peer) && process.send(peer, MSG_DONTWAIT);
            did |= peer != process.self && process.receive(peer);
        }
        if (!did && !spins) {
            for (std::size_t i = 0; i < peers; ++i) {
                watched[i] = {
                    .fd = process.sockets[i],
                    .events = static_cast<short>(process.may_send(i) ? POLLIN | POLLOUT : POLLIN),
                    .revents = 0};
            }
            ::poll(watched.data(), watched.size(), -1);
        }
    }
}

/// One thread that sends in turn and blocks, one that receives what is there.
void block_in_two_threads(Process& process) {
    const std::size_t peers = process.sockets.size();
    std::thread([&process, peers] {
        while (true) {
            for (std::size_t i = 0; i < peers; ++i) {
                const std::size_t peer = (process.self + i) % peers;
                do {
                    process.send(peer, 0);
                } while (process.sent[peer] % process.block != 0);
            }
        }
    }).detach();
    std::vector<pollfd> watched(peers);
    while (true) {
        bool did = false;
        for (std::size_t i = 0; i < peers; ++i) {
            did |= i != process.self && process.receive(i);
            watched[i] = {.fd = process.sockets[i], .events = POLLIN, .revents = 0};
        }
        if (!did) {
            ::poll(watched.data(), watched.size(), -1);
        }
    }
}

/// One thread that tries only sockets of which the kernel said, at edges, that they have something
/// or room.
void wait_for_edges(Process& process) {
    const std::size_t peers = process.sockets.size();
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    std::vector<char> readable(peers, 1);
    std::vector<char> writable(peers, 1);
    readable[process.self] = 0;
    for (std::size_t peer = 0; peer < peers; ++peer) {
        epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.u64 = peer}};
        if (peer != process.self &&
            ::epoll_ctl(epoll, EPOLL_CTL_ADD, process.sockets[peer], &event) != 0) {
            daqloom::bench::give_up("epoll_ctl");
        }
    }
    std::vector<epoll_event> came(peers);
    while (true) {
        bool did = false;
        for (std::size_t i = 0; i < peers; ++i) {
            const std::size_t peer = (process.self + i) % peers;
            if (writable[peer] && process.may_send(peer)) {
                writable[peer] = process.send(peer, MSG_DONTWAIT);
                did |= writable[peer] != 0;
            }
            if (readable[peer]) {
                readable[peer] = process.receive(peer);
                did |= readable[peer] != 0;
            }
        }
        const int count =
            ::epoll_wait(epoll, came.data(), static_cast<int>(came.size()), did ? 0 : -1);
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = came[static_cast<std::size_t>(i)];
            readable[event.data.u64] |= (event.events & EPOLLIN) != 0;
            writable[event.data.u64] |= (event.events & EPOLLOUT) != 0;
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    daqloom::bench::all_to_all(argc, argv, "way", [](Process& process, std::size_t way) {
        switch (static_cast<Way>(way)) {
            case Way::poll:
                return poll_or_spin(process, false);
            case Way::spin:
                return poll_or_spin(process, true);
            case Way::block:
                return block_in_two_threads(process);
            case Way::epoll:
                return wait_for_edges(process);
        }
    });
}
