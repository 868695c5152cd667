// Flows alone on a simulated network, for Python. Plain attributes; times in seconds (`_s`).
#include <cstdint>
#include <vector>

#include "bindings/casters.hpp"
#include "bindings/simulation.hpp"
#include "bindings/subjects.hpp"
#include "systems/flow_system.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace systems;

namespace {

void bind_flows(nb::module_& module) {
    using Arrival = FlowTraffic::Arrival;
    bind_columns<Arrival>(module, "MessagesArrived",
                          "Messages that have arrived, in the order of time.");
    bind_system<FlowSystem>(module, "FlowSystem", "FlowsReport")
        .def(
            "record_messages", [](FlowSystem& self) { self.flows().record_messages(); },
            "Records the messages that arrive from now on.")
        .def(
            "arrivals",
            [](const FlowSystem& self) { return Columns<Arrival>{self.flows().arrivals()}; },
            "All messages that have arrived since `record_messages`.");
}

const Subject flows(bind_flows);

}  // namespace

}  // namespace daqloom::bindings
