// What the engine has for Python, one function for each of its subjects.
#pragma once

#include <nanobind/nanobind.h>

namespace daqloom::bindings {

void bind_rack_config(nanobind::module_& module);
void bind_rack(nanobind::module_& module);
void bind_fabric(nanobind::module_& module);
void bind_shift(nanobind::module_& module);
void bind_daqpipe(nanobind::module_& module);
void bind_flows(nanobind::module_& module);
void bind_live(nanobind::module_& module);
void bind_data(nanobind::module_& module);
void bind_buffers(nanobind::module_& module);

}  // namespace daqloom::bindings
