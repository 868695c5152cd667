#include "live/transport/libfabric/connections.hpp"

#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "live/memory/clock.hpp"
#include "live/memory/shared_memory.hpp"

namespace daqloom::live::ofi {

namespace {

constexpr base::Time kPatience = base::milliseconds(1'000);
/// Limit on nesting: providers wait on an epoll descriptor of epoll descriptors of sockets.
constexpr int kDeepest = 4;

/// Whether a descriptor is a TCP connection (even shut down with unread data), not a listener.
bool is_connection(int fd) {
    sockaddr_storage address;
    socklen_t length = sizeof address;
    int listens = 0;
    socklen_t size = sizeof listens;
    return ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
           (address.ss_family == AF_INET || address.ss_family == AF_INET6) &&
           ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens == 0;
}

/// Descriptors that `epoll` watches, from the kernel's lines "tfd: NUMBER events: …" in /proc.
std::vector<int> watched_by(int epoll) {
    std::vector<int> watched;
    std::ifstream lines(fmt::format("/proc/self/fdinfo/{}", epoll));
    for (std::string word; lines >> word;) {
        int fd = -1;
        if (word == "tfd:" && lines >> fd) {
            watched.push_back(fd);
        }
    }
    return watched;
}

void collect(int epoll, int depth, std::vector<int>& found) {
    for (const int fd : watched_by(epoll)) {
        if (is_connection(fd)) {
            found.push_back(fd);
        } else if (depth < kDeepest) {
            collect(fd, depth + 1, found);
        }
    }
}

/// Sockets that the queue's endpoints have connected and not closed; empty if the provider has no
/// sockets, or no descriptor to wait on.
std::vector<int> connections(const Queue& queue) {
    std::vector<int> found;
    if (queue.fd >= 0) {
        collect(queue.fd, 0, found);
    }
    return found;
}

bool set(int socket, const std::string& name) {
    return ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                        static_cast<socklen_t>(name.size())) == 0;
}

void drop_completions(fid_cq* cq) {
    fi_cq_data_entry done;
    fi_cq_err_entry error{};
    for (std::int64_t count = 1; count > 0;) {
        count = ::fi_cq_read(cq, &done, 1);
        if (count == -FI_EAVAIL) {
            count = ::fi_cq_readerr(cq, &error, 0);
        }
    }
}

}  // namespace

base::expected<void> check_congestion_control(const std::string& name) {
    const OwnedFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    DAQLOOM_REFUSE_IF(
        !set(socket.get(), name),
        "TCP's congestion control '{}' is not available here: {}; use one that `sysctl "
        "net.ipv4.tcp_allowed_congestion_control` lists",
        name, std::strerror(errno));
    return {};
}

void set_congestion_control(const Queue& queue, const std::string& name) {
    for (const int socket : connections(queue)) {
        set(socket, name);
    }
}

bool hang_up(const Queue& queue) {
    const auto deadline = now() + kPatience;
    for (auto open = connections(queue); !open.empty(); open = connections(queue)) {
        if (now() > deadline) {
            return false;
        }
        for (const int socket : open) {
            ::shutdown(socket, SHUT_RDWR);
        }
        drop_completions(queue.cq.get());
        ::poll(nullptr, 0, 1);
    }
    return true;
}

}  // namespace daqloom::live::ofi
