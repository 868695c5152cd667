// Nodes on a ring, for Python. Plain attributes; times in seconds (`_s`).
#include "systems/node_ring.hpp"

#include "bindings/casters.hpp"
#include "bindings/errors.hpp"
#include "bindings/report.hpp"
#include "bindings/subjects.hpp"

namespace daqloom::bindings {

namespace nb = nanobind;
using namespace systems;

namespace {

void bind_node_ring(nb::module_& module) {
    using Config = NodeRingConfig;
    nb::class_<Config>(module, "NodeRingConfig")
        .def(nb::init<>())
        .def_rw("work", &Config::work,
                "By node: the time of a transfer that has a builder for itself.")
        .def_rw("delays", &Config::delays, "What a node waits before each transfer, added up.")
        .def_rw("writers", &Config::writers,
                "Nodes that a builder serves at a time, in the order of arrival; 0: all.")
        .def_rw("in_step", &Config::in_step)
        .def_rw("duration_s", &Config::duration)
        .def_rw("bins", &Config::bins)
        .def_rw("seed", &Config::seed);
    bind_report<NodeRingReport>(module, "NodeRingReport", "What nodes on a ring have sent.");
    module.def(
        "play_node_ring",
        [](const Config& config) { return without_lock([&] { return play_node_ring(config); }); },
        nb::arg("config"), "Nodes on a ring; all begin step 0 at time zero.");
}

const Subject node_ring(bind_node_ring);

}  // namespace

}  // namespace daqloom::bindings
