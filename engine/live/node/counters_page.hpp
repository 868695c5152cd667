// A unit's counters in shared memory: other processes can read them while it runs and after it has
// been killed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "live/memory/counters.hpp"
#include "live/memory/handover.hpp"
#include "live/memory/shared_memory.hpp"
#include "live/node/node_config.hpp"

namespace daqloom::live {

/// Shared memory with one NodeCounters; it exists as long as a process maps it.
class CountersPage {
  public:
    /// Makes a page with every counter at zero.
    static base::expected<CountersPage> create();
    /// The page of a unit on this machine, to read. Fails if there is none, if it belongs to
    /// another user, or if it is of another version of daqloom.
    static base::expected<CountersPage> attach(const std::string& run, UnitIndex unit,
                                               base::Time until);

    [[nodiscard]] NodeCounters& counters() { return *counters_; }
    [[nodiscard]] const NodeCounters& counters() const { return *counters_; }
    [[nodiscard]] int fd() const { return memory_.fd(); }

  private:
    explicit CountersPage(SharedMemory memory);

    SharedMemory memory_;
    NodeCounters* counters_;
};

/// By name and value.
using SeeCount = std::function<void(const std::string& name, std::uint64_t value)>;

/// Each by its name; of histograms the buckets that hold something, as NAME_bucket.NUMBER.
void see_counters(const NodeCounters& counted, const SeeCount& see);

/// Hands a page to processes of the same user, to read. Runs a thread of its own, which sleeps
/// otherwise.
class CountersServer {
  public:
    /// The page outlives the server.
    static base::expected<std::unique_ptr<CountersServer>> serve(const std::string& run,
                                                                 UnitIndex unit,
                                                                 const CountersPage& page);
    ~CountersServer();
    CountersServer(const CountersServer&) = delete;
    CountersServer& operator=(const CountersServer&) = delete;

  private:
    CountersServer(HandoverListener listener, OwnedFd readable, OwnedFd stop);
    void run();

    HandoverListener listener_;
    OwnedFd readable_;
    OwnedFd stop_;
    std::thread thread_;
};

}  // namespace daqloom::live
