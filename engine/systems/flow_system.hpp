// Flows alone: a simulated system without event building.
#pragma once

#include <memory>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/units.hpp"
#include "systems/system.hpp"

namespace daqloom::systems {

/// Configuration of flows alone: one node for each of `flow_hosts`, in order.
using FlowSystemConfig = SystemConfig;

/// Counts after the warm-up.
struct FlowReport {
    DAQLOOM_FIELDS(FlowReport, (base::Time, window, "From the end of the warm-up to the end."),
                   (base::Time, processor,
                    "Time of processors spent on messages, a sum over the nodes."))
};

/// Content of messages without units: empty.
struct NoContent {};

class FlowSystem final : public SystemOf<NoContent> {
  public:
    static base::expected<std::unique_ptr<FlowSystem>> make(const FlowSystemConfig& config);

    [[nodiscard]] const FlowSystemConfig& config() const { return config_; }
    [[nodiscard]] FlowReport report() const { return base::since(sums(), before_); }
    /// Latency of flows' messages.
    [[nodiscard]] const sim::Histogram& write_latency() const override {
        return nodes().flow_write_latency();
    }
    /// Whether the run is deadlocked: messages are incomplete, and only clock events are left.
    [[nodiscard]] bool stalled() const override;
    /// Checks the conservation of packets, credits and messages.
    [[nodiscard]] base::expected<void> check_conservation() const { return check_books(); }

  private:
    enum EventKind : std::uint32_t {
        kFlowDue = SystemNodes::kFirstOtherEvent,  ///< index: sender of a flow
        kWarm,
    };

    explicit FlowSystem(const FlowSystemConfig& config) : config_(config) {}

    void on_message(const Message& /*message*/, base::Time /*now*/) override {}
    void on_written(const Message& /*message*/, base::Time /*now*/) override {}
    void on_event(const sim::Event& event) override;
    [[nodiscard]] FlowReport sums() const { return {now(), nodes().processor_used()}; }

    FlowSystemConfig config_;
    FlowReport before_;  ///< counts at the end of the warm-up
    bool warm_ = false;
};

}  // namespace daqloom::systems
