// For tests: transports in processes of their own, because a rank of MPI is one unit. The suite has
// each unit's memory and doorbell, and calls the unit's transport in a worker:
//
//   suite ── call, resume ──> worker
//         <── event, reply ──
//
// A worker is this test program, started by mpirun.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "live/transport/transport.hpp"

namespace daqloom::live {

class Workers {
  public:
    /// `launcher`: a command that starts this program `count` times.
    Workers(std::vector<std::string> launcher, std::size_t count);
    /// Ends the workers, and waits for their launcher.
    ~Workers();
    Workers(const Workers&) = delete;

    /// The transport `name` in a free worker.
    base::expected<std::unique_ptr<Transport>> make(const std::string& name,
                                                    const TransportConfig& config);
    /// Sends bytes from a free worker to a unit's address, outside of its run.
    void disturb(std::span<const std::byte> address, std::span<const std::byte> bytes);
    /// C++ allocations of all workers.
    [[nodiscard]] std::uint64_t allocations() const;
    /// Ends the workers. Returns the exit status of the launcher.
    int end();

  private:
    struct Worker;
    class Remote;

    Worker& take();

    std::vector<std::unique_ptr<Worker>> workers_;
    pid_t launcher_ = 0;
};

}  // namespace daqloom::live
