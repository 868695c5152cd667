// A doorbell: a thread sleeps until another thread, in any process, wakes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/memory/shared_memory.hpp"

namespace daqloom::live {

/// One thread, the owner, sleeps on the doorbell; any number of threads and processes ring it. A
/// ring costs a system call only while the owner sleeps.
///
/// The owner sleeps on a futex. If it also watches descriptors (of a network), it sleeps in
/// poll(2), on these and on the bell's event descriptor.
class Doorbell {
  public:
    /// Creates the owner's end.
    static base::expected<Doorbell> create();
    /// A doorbell that another process owns: `page` and `event` are its `page_fd` and `event_fd`.
    static base::expected<Doorbell> attach(OwnedFd page, OwnedFd event);

    /// Callable from any thread. A woken owner sees all memory writes that precede the ring.
    void ring() const;

    /// Owner: sleeps until the bell rings, or `until`. Returns immediately if `is_quiet` returns
    /// false (there is work), or if the bell has rung since the last sleep. So the owner misses no
    /// input that it checks between two sleeps.
    void sleep(base::Time until, const std::function<bool()>& is_quiet) const;
    /// Owner: like `sleep`, but also wakes when `fd` can be read (below 0: none). False: it slept
    /// until `until`.
    bool sleep_with(int fd, base::Time until, const std::function<bool()>& is_quiet) const;

    /// Owner: whether the bell has rung since the end of the last sleep.
    [[nodiscard]] bool was_rung() const;

    [[nodiscard]] int page_fd() const { return page_.fd(); }
    [[nodiscard]] int event_fd() const { return event_.get(); }

  private:
    struct Page {
        std::atomic<std::uint32_t> rings;
        std::atomic<std::uint32_t> sleeper;
        std::atomic<std::uint32_t> observed;  ///< rings observed by the owner
    };

    Doorbell(SharedMemory page, OwnedFd event) : page_(std::move(page)), event_(std::move(event)) {}
    [[nodiscard]] Page& page() const { return *reinterpret_cast<Page*>(page_.bytes().data()); }

    SharedMemory page_;
    OwnedFd event_;
};

}  // namespace daqloom::live
