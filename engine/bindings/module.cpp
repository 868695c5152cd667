// The Python module daqloom._engine: the only place where the engine meets Python.
#include <nanobind/nanobind.h>

#include "bindings/systems.hpp"

NB_MODULE(_engine, module) {
    module.doc() = "The C++ engine of daqloom.";
    daqloom::bindings::bind_constants(module);
    daqloom::bindings::bind_enumerations(module);
    daqloom::bindings::bind_histogram(module);
    daqloom::bindings::bind_building(module);
    daqloom::bindings::bind_networks(module);
    daqloom::bindings::bind_transports(module);
    daqloom::bindings::bind_simulated(module);
    daqloom::bindings::bind_pull(module);
    daqloom::bindings::bind_shift(module);
    daqloom::bindings::bind_daqpipe(module);
    daqloom::bindings::bind_flows(module);
    daqloom::bindings::bind_live(module);
    daqloom::bindings::bind_data(module);
    daqloom::bindings::bind_buffers(module);
}
