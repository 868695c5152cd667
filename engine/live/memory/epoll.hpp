// Watching descriptors with epoll(7).
#pragma once

#include <sys/epoll.h>

#include <cstdint>

namespace daqloom::live {

/// Makes `epoll` report `events` of `fd` as `who`. False: the call failed, see errno.
inline bool watch(int epoll, int fd, std::uint32_t events, std::uint64_t who) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = who;
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace daqloom::live
