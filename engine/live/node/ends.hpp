// The other ends of a unit's buffers: the sources of its streams and the consumer of its MEPs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/expected.hpp"
#include "live/memory/buffer.hpp"
#include "live/memory/counters.hpp"
#include "live/node/node_config.hpp"

namespace daqloom::live {

/// By name and value.
using SeeCount = std::function<void(const std::string& name, std::uint64_t value)>;

class Ends {
  public:
    /// `counters`, in which the consumer counts, outlive it.
    explicit Ends(NodeCounters& counters);
    ~Ends();

    /// A buffer for each stream of the readout unit, and its source, which does not run yet.
    base::expected<void> make_sources(const NodeConfig& config, std::uint32_t readout,
                                      const Doorbell& unit);
    /// Makes a new output buffer and its consumer. The old buffer's consumer continues until it has
    /// read everything.
    base::expected<void> renew_output(const NodeConfig& config, const Doorbell& unit);

    void start_sources(std::uint64_t first_mfp);
    void stop_sources();
    /// Ends all of it.
    void shut();

    [[nodiscard]] std::span<Buffer> streams();
    [[nodiscard]] Buffer* output();
    void each_count(const SeeCount& see) const;

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace daqloom::live
