#include "live/transport/libfabric_hang_up.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <fstream>
#include <string>
#include <vector>

#include "live/clock.hpp"

namespace daqloom::live::ofi {

namespace {

constexpr base::Time kPatience = base::milliseconds(1'000);
/// Providers wait for an epoll of epolls of sockets.
constexpr int kDeepest = 4;

bool is_connection(int fd) {
    sockaddr_storage address;
    socklen_t length = sizeof address;
    return ::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
           (address.ss_family == AF_INET || address.ss_family == AF_INET6);
}

/// What `epoll` waits for, as the kernel tells: lines "tfd: NUMBER events: …".
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

/// Shuts them; how many there are.
int shut_connections(int epoll, int depth = 0) {
    int found = 0;
    for (const int fd : watched_by(epoll)) {
        if (is_connection(fd)) {
            ::shutdown(fd, SHUT_RDWR);
            ++found;
        } else if (depth < kDeepest) {
            found += shut_connections(fd, depth + 1);
        }
    }
    return found;
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

bool hang_up(const Queue& queue) {
    if (queue.fd < 0) {
        return true;
    }
    for (const auto deadline = now() + kPatience; shut_connections(queue.fd) > 0;) {
        if (now() > deadline) {
            return false;
        }
        drop_completions(queue.cq.get());
        ::poll(nullptr, 0, 1);
    }
    return true;
}

}  // namespace daqloom::live::ofi
