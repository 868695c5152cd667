// A unit's counters in shared memory: other processes can read them while the unit runs and after
// it has been killed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/expected.hpp"
#include "live/memory/counters.hpp"
#include "live/memory/shared_memory.hpp"
#include "live/node/node_config.hpp"

namespace daqloom::live {

/// Shared memory with one NodeCounters.
class CountersPage {
  public:
    /// Makes a page with every counter at zero: a memfd or, with a `folder`, the file UNIT.counters
    /// in it, which stays when the process has ended and which the unit's next node replaces.
    static base::expected<CountersPage> create(const std::string& run, UnitIndex unit,
                                               const std::string& folder = "");
    /// Opens the page of a unit in a `folder` for reading, also after the end of its process.
    static base::expected<CountersPage> open(const std::string& folder, UnitIndex unit);
    /// Opens the counters page of a unit for reading. The page is a memfd that is found by its name
    /// in /proc/PID/fd, so `process` may be in another network namespace. Fails if the process has
    /// no such page, or if the page belongs to another user or to another version of daqloom.
    static base::expected<CountersPage> attach(std::int64_t process, const std::string& run,
                                               UnitIndex unit);
    /// Prevents further processes from attaching.
    void withdraw() { memory_.close_descriptor(); }

    [[nodiscard]] NodeCounters& counters() { return *counters_; }
    [[nodiscard]] const NodeCounters& counters() const { return *counters_; }
    [[nodiscard]] int fd() const { return memory_.fd(); }

  private:
    explicit CountersPage(SharedMemory memory);
    static base::expected<CountersPage> checked(SharedMemory memory, const std::string& name);

    SharedMemory memory_;
    NodeCounters* counters_;
};

/// Called with name and value.
using SeeCount = std::function<void(const std::string& name, std::uint64_t value)>;

/// Visits all counters by name, and the filled buckets of histograms as NAME_bucket.NUMBER.
void see_counters(const NodeCounters& counted, const SeeCount& see);

}  // namespace daqloom::live
