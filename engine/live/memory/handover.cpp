#include "live/memory/handover.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "live/memory/clock.hpp"

namespace daqloom::live {

namespace {

constexpr base::Time kAcceptPause = base::milliseconds(10);

struct Address {
    sockaddr_un address{};
    socklen_t length = 0;
};

base::expected<Address> abstract(const std::string& name) {
    Address made;
    DAQLOOM_REFUSE_IF(name.empty() || name.size() > 100,
                      "'{}' as the name of a socket; give 1 to 100 characters", name);
    made.address.sun_family = AF_UNIX;
    std::ranges::copy(name, made.address.sun_path + 1);  // the leading zero makes it abstract
    made.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    return made;
}

OwnedFd socket_of_packets() { return OwnedFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

bool wait_for(int fd, base::Time until) {
    while (true) {
        pollfd watched{fd, POLLIN, 0};
        const int ready = ::poll(&watched, 1, poll_timeout(until));
        if (ready > 0) {
            return true;
        }
        if ((ready < 0 && errno != EINTR) || now() >= until) {
            return false;
        }
    }
}

ucred credentials_of(int fd) {
    ucred who{.pid = 0, .uid = static_cast<uid_t>(-1), .gid = static_cast<gid_t>(-1)};
    socklen_t length = sizeof who;
    ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length);
    return who;
}

}  // namespace

base::expected<Handover> Handover::connect(const std::string& name) {
    DAQLOOM_TRY(to, abstract(name));
    OwnedFd socket = socket_of_packets();
    if (!socket ||
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to.address), to.length) != 0) {
        return base::system_failure(
            fmt::format("cannot connect to {}: {}", name, std::strerror(errno)));
    }
    const ucred who = credentials_of(socket.get());
    if (who.uid != ::geteuid()) {
        return base::system_failure(fmt::format("{} belongs to another user", name));
    }
    return Handover(std::move(socket), who.pid);
}

base::expected<void> Handover::send(std::span<const std::byte> bytes,
                                    std::span<const int> fds) const {
    iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int) * most_fds)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty() && fds.size() <= most_fds) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(fds.size_bytes());
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fds.size_bytes());
        std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
    }
    if (bytes.empty() || bytes.size() > most_bytes || fds.size() > most_fds ||
        ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL) < 0) {
        return base::system_failure(
            fmt::format("cannot hand {} bytes and {} descriptors to process {}", bytes.size(),
                        fds.size(), peer_));
    }
    return {};
}

base::expected<Parcel> Handover::receive(base::Time until) const {
    if (!wait_for(socket_.get(), until)) {
        return base::system_failure(fmt::format("no message came from process {} in time", peer_));
    }
    Parcel parcel;
    parcel.bytes.resize(most_bytes);
    iovec part{.iov_base = parcel.bytes.data(), .iov_len = parcel.bytes.size()};
    alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(int) * most_fds)] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t received = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    for (cmsghdr* header = received > 0 ? CMSG_FIRSTHDR(&message) : nullptr; header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
            const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (std::size_t i = 0; i < count; ++i) {
                int fd = -1;
                std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
                parcel.fds.emplace_back(fd);
            }
        }
    }
    if (received <= 0 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        return base::system_failure(fmt::format("process {} has ended, or sent too much", peer_));
    }
    parcel.bytes.resize(static_cast<std::size_t>(received));
    return parcel;
}

bool Handover::is_closed() const {
    pollfd watched{socket_.get(), POLLIN | POLLRDHUP, 0};
    return ::poll(&watched, 1, 0) != 0 && (watched.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

base::expected<HandoverListener> HandoverListener::listen(const std::string& name) {
    DAQLOOM_TRY(here, abstract(name));
    OwnedFd socket = socket_of_packets();
    if (!socket ||
        ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&here.address), here.length) != 0 ||
        ::listen(socket.get(), SOMAXCONN) != 0) {
        return base::system_failure(
            fmt::format("cannot listen on {}: {}", name, std::strerror(errno)));
    }
    return HandoverListener(std::move(socket));
}

base::expected<Handover> HandoverListener::accept(base::Time until) {
    while (wait_for(socket_.get(), until)) {
        OwnedFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!socket && errno != ECONNABORTED) {
            const int error = errno;
            pause_end_ = now() + kAcceptPause;
            return base::system_failure(
                fmt::format("cannot accept a connection: {}", std::strerror(error)));
        }
        const ucred who = credentials_of(socket.get());
        if (who.uid == ::geteuid()) {
            return Handover(std::move(socket), who.pid);
        }
        ++refused_;
    }
    return base::system_failure("no process has connected in time");
}

bool HandoverListener::is_paused() const {
    return pause_end_ != base::Time::zero() && now() < pause_end_;
}

base::Time HandoverListener::wake() const { return is_paused() ? pause_end_ : base::Time::never(); }

}  // namespace daqloom::live
