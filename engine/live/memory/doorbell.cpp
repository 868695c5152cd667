#include "live/memory/doorbell.hpp"

#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include "live/memory/clock.hpp"

namespace daqloom::live {

namespace {

enum Sleeper : std::uint32_t { kAwake, kOnFutex, kInPoll };

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

timespec as_timespec(base::Time time) {
    const std::int64_t ns = std::max<std::int64_t>(time.ps, 0) / 1'000;
    return {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
}

}  // namespace

base::expected<Doorbell> Doorbell::create() {
    DAQLOOM_TRY(page, SharedMemory::create("daqloom-doorbell", sizeof(Page)));
    OwnedFd event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!event) {
        return base::system_failure(std::string("cannot make an event descriptor: ") +
                                    std::strerror(errno));
    }
    return Doorbell(std::move(page), std::move(event));
}

base::expected<Doorbell> Doorbell::attach(OwnedFd page, OwnedFd event) {
    DAQLOOM_TRY(memory,
                SharedMemory::attach(std::move(page), SharedMemory::Access::read_write, 4096));
    if (memory.bytes().size() < sizeof(Page)) {
        return base::system_failure("a doorbell that is too small; expected one of daqloom's");
    }
    return Doorbell(std::move(memory), std::move(event));
}

void Doorbell::ring() const {
    // Pairs with the owner, which stores `sleeper` and then loads `rings`: at least one side sees
    // the other's store.
    page().rings.fetch_add(1, std::memory_order_seq_cst);
    if (page().sleeper.load(std::memory_order_seq_cst) == kAwake) {
        return;
    }
    // A woken thread takes a while to mark itself awake. The exchange lets only the first of many
    // rings make a system call.
    const std::uint32_t sleeper = page().sleeper.exchange(kAwake, std::memory_order_seq_cst);
    if (sleeper == kOnFutex) {
        ::syscall(SYS_futex, &page().rings, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    } else if (sleeper == kInPoll) {
        const std::uint64_t one = 1;
        [[maybe_unused]] const auto written = ::write(event_.get(), &one, sizeof one);
    }
}

bool Doorbell::was_rung() const {
    return page().rings.load(std::memory_order_seq_cst) !=
           page().observed.load(std::memory_order_relaxed);
}

void Doorbell::sleep(base::Time until, const std::function<bool()>& is_quiet) const {
    page().sleeper.store(kOnFutex, std::memory_order_seq_cst);
    const std::uint32_t rings = page().rings.load(std::memory_order_seq_cst);
    if (!was_rung() && is_quiet()) {
        // FUTEX_WAIT_BITSET takes an absolute time of CLOCK_MONOTONIC, FUTEX_WAIT a duration.
        const timespec deadline = as_timespec(until);
        ::syscall(SYS_futex, &page().rings, FUTEX_WAIT_BITSET, rings,
                  until == base::Time::never() ? nullptr : &deadline, nullptr,
                  FUTEX_BITSET_MATCH_ANY);
    }
    page().sleeper.store(kAwake, std::memory_order_relaxed);
    page().observed.store(page().rings.load(std::memory_order_acquire), std::memory_order_relaxed);
}

bool Doorbell::sleep_with(int fd, base::Time until, const std::function<bool()>& is_quiet) const {
    bool is_woken = true;
    page().sleeper.store(kInPoll, std::memory_order_seq_cst);
    // A ring before the store of `sleeper` has written no event, but was_rung detects it.
    if (!was_rung() && is_quiet()) {
        pollfd watched[] = {{event_.get(), POLLIN, 0}, {fd, POLLIN, 0}};
        const timespec left = as_timespec(until == base::Time::never() ? until : until - now());
        is_woken = ::ppoll(watched, fd < 0 ? 1 : 2, until == base::Time::never() ? nullptr : &left,
                           nullptr) != 0;
    }
    page().sleeper.store(kAwake, std::memory_order_relaxed);
    std::uint64_t rings = 0;
    [[maybe_unused]] const auto read = ::read(event_.get(), &rings, sizeof rings);
    page().observed.store(page().rings.load(std::memory_order_acquire), std::memory_order_relaxed);
    return is_woken;
}

}  // namespace daqloom::live
