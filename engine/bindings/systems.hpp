// The functions that add the engine's subjects to the Python module.
#pragma once

#include <nanobind/nanobind.h>

namespace daqloom::bindings {

void bind_constants(nanobind::module_& module);
void bind_enumerations(nanobind::module_& module);
void bind_histogram(nanobind::module_& module);
void bind_building(nanobind::module_& module);
void bind_networks(nanobind::module_& module);
void bind_transports(nanobind::module_& module);
void bind_simulated(nanobind::module_& module);
void bind_pull(nanobind::module_& module);
void bind_shift(nanobind::module_& module);
void bind_daqpipe(nanobind::module_& module);
void bind_flows(nanobind::module_& module);
void bind_live(nanobind::module_& module);
void bind_data(nanobind::module_& module);
void bind_buffers(nanobind::module_& module);

}  // namespace daqloom::bindings
