#include "systems/flow_system.hpp"

namespace daqloom::systems {

using base::Time;

base::expected<std::unique_ptr<FlowSystem>> FlowSystem::make(const FlowSystemConfig& config) {
    std::unique_ptr<FlowSystem> system(new FlowSystem(config));
    DAQLOOM_CHECK(system->place(config, {}, kFlowDue));
    system->nodes().events().push({config.warmup, kWarm, 0});
    system->start_flows();
    return system;
}

void FlowSystem::on_event(const sim::Event& event) {
    if (event.kind == kFlowDue) {
        on_flow_due(event);
    } else {
        begin_counting(config_, event.at);
        before_ = sums();
        warm_ = true;
    }
}

bool FlowSystem::stalled() const {
    return nodes().messages_under_way() > 0 &&
           nodes().events().size() ==
               flows().awaited() + (warm_ ? 0U : 1U) + transport().idle_events();
}

}  // namespace daqloom::systems
