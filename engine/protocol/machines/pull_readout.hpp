// The readout unit of the pull protocol: answers every request with a fragment, after a while.
#pragma once

#include <cstdint>
#include <utility>

#include "base/distribution.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::protocol {

/// What a readout unit asks of its driver. Neither may call the unit back.
template <class Out>
concept PullReadoutOut =
    requires(Out& out, base::Time delay, EventId event, BuilderIndex builder, base::Bytes bytes) {
        /// Call on_response_due(event, builder, bytes) after `delay`.
        out.respond_after(delay, event, builder, bytes);
        out.send_fragment(event, builder, bytes);
    };

/// Requests are answered independently of each other: a short delay overtakes a long one. The
/// driver's timer carries what the answer needs, so that the unit itself keeps only counters.
class PullReadout {
  public:
    struct Counters {
        std::uint64_t requests = 0;
        std::uint64_t fragments = 0;
        std::uint64_t fragment_bytes = 0;
        std::uint64_t unexpected_requests = 0;   ///< for a negative number of bytes; ignored
        std::uint64_t unexpected_responses = 0;  ///< more than there were requests; ignored
    };

    PullReadout(base::DelayDistribution response_time, base::RandomStream random)
        : response_time_(response_time), random_(std::move(random)) {}

    /// `fragment_bytes`: what this readout unit holds of the event.
    template <PullReadoutOut Out>
    void on_request(EventId event, BuilderIndex builder, base::Bytes fragment_bytes, Out& out) {
        if (fragment_bytes < 0) {
            ++counters_.unexpected_requests;
            return;
        }
        ++counters_.requests;
        out.respond_after(response_time_.draw(random_), event, builder, fragment_bytes);
    }

    template <PullReadoutOut Out>
    void on_response_due(EventId event, BuilderIndex builder, base::Bytes fragment_bytes,
                         Out& out) {
        if (pending() == 0 || fragment_bytes < 0) {
            ++counters_.unexpected_responses;
            return;
        }
        ++counters_.fragments;
        counters_.fragment_bytes += static_cast<std::uint64_t>(fragment_bytes);
        out.send_fragment(event, builder, fragment_bytes);
    }

    [[nodiscard]] const Counters& counters() const { return counters_; }
    /// Requests not yet answered.
    [[nodiscard]] std::uint64_t pending() const { return counters_.requests - counters_.fragments; }

  private:
    /// A random stream takes kilobytes: what every request needs lies before it.
    Counters counters_;
    base::DelayDistribution response_time_;
    base::RandomStream random_;
};

}  // namespace daqloom::protocol
