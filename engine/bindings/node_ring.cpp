// Nodes on a ring, for Python.
#include "systems/node_ring.hpp"

#include "bindings/errors.hpp"
#include "bindings/report.hpp"
#include "bindings/settings.hpp"
#include "bindings/subjects.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace systems;

namespace {

void bind_node_ring(nb::module_& module) {
    using Config = NodeRingConfig;
    bind_config<Config>(module, "NodeRingConfig", "Nodes on a ring.");
    bind_report<NodeRingReport>(module, "NodeRingReport", "Report of nodes on a ring.");
    module.def(
        "play_node_ring",
        [](const Config& config) { return without_lock([&] { return play_node_ring(config); }); },
        nb::arg("config"), "Nodes on a ring; all begin step 0 at time zero.");
}

const Subject node_ring(bind_node_ring);

}  // namespace

}  // namespace daqloom::bindings
