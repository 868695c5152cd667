// A doorbell: a thread sleeps until another thread, in any process, wakes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/memory/shared_memory.hpp"

namespace daqloom::live {

/// One thread sleeps on the doorbell, any number of threads and processes ring it. A ring costs a
/// system call only while the owner sleeps.
///
/// The owner sleeps on a futex; or, if it has descriptors of its own to watch (a network's), in
/// poll(2) with the bell's event descriptor among them.
class Doorbell {
  public:
    /// Creates the owner's end.
    static base::expected<Doorbell> create();
    /// A doorbell that another process owns: `page` and `event` are its `page_fd` and `event_fd`.
    static base::expected<Doorbell> attach(OwnedFd page, OwnedFd event);

    /// Callable from any thread. The owner sees earlier writes to memory after it woke.
    void ring() const;

    /// Owner: sleeps until the bell rings, or `until`; not at all if `is_quiet` returns that there
    /// is work, or if the bell has rung since the end of the last sleep. The owner therefore misses
    /// nothing that it checks between two sleeps.
    void sleep(base::Time until, const std::function<bool()>& is_quiet) const;
    /// Owner: as `sleep`, and until `fd` can be read. `fd` below 0: none. False: it slept until
    /// `until`.
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
