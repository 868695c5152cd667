// The timeline of pull building over Ethernet for Perfetto: events, drops, timeouts, and the
// occupancy of the top of rack.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "network/graph.hpp"
#include "sim/trace.hpp"
#include "systems/requested/pull_system.hpp"
#include "transport/tcp_over_ethernet.hpp"

namespace daqloom::systems {

class Timeline final : public transport::TimeoutObserver, public EventObserver {
  public:
    static base::expected<Timeline> open(const PullSystem& system,
                                         const transport::TcpOverEthernet& stack, std::string path);

    /// Adds a slice from assignment to completion to a row of the builder unit. Slices of a row
    /// must not overlap: a builder unit has as many rows as events that it collected at a time.
    void on_built(protocol::EventId event, protocol::BuilderIndex builder, base::Time assigned,
                  base::Time now) override;
    /// Adds an instant to the row of the link.
    void on_drop(ethernet::LinkIndex link, const ethernet::Frame& frame, base::Time now);
    /// Adds an instant to the row of the builder unit's timeouts.
    void on_timeout(ethernet::EndpointIndex endpoint, base::Time now) override;
    /// Samples the bytes buffered in the top-of-rack switch, some ten thousand times in a run; to
    /// be called with every frame. The switch updates its counters late: frames on the wire count.
    void on_frame(base::Time now) {
        const base::Bytes held = stack_->network().buffer(shown_).held();
        if (now >= next_sample_ || (held == 0 && last_held_ != 0)) {
            sample(held, now);
        }
    }

    [[nodiscard]] base::expected<void> close();

  private:
    struct Row {
        sim::TraceWriter::Track track;
        base::Time free_from;
    };

    Timeline(const PullSystem& system, const transport::TcpOverEthernet& stack,
             sim::TraceWriter writer);

    Row& free_row(protocol::BuilderIndex builder, base::Time from);
    void sample(base::Bytes held, base::Time now);

    const PullSystem* system_;
    const transport::TcpOverEthernet* stack_;
    network::SwitchIndex
        shown_;  ///< the switch whose occupancy is shown: the last, of a rack its top
    sim::TraceWriter writer_;
    sim::TraceWriter::Track tor_;
    base::Time sample_every_;
    base::Time next_sample_;
    base::Bytes last_held_ = 0;
    base::Table<protocol::BuilderIndex, std::vector<Row>> rows_;
};

}  // namespace daqloom::systems
