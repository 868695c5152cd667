// The Python module daqloom._engine. It registers the bindings of all files in this folder.
#include <nanobind/nanobind.h>

#include "bindings/subjects.hpp"

NB_MODULE(_engine, module) {
    module.doc() = "The C++ engine of daqloom.";
    daqloom::bindings::bind_simulated(module);
    for (const daqloom::bindings::Bind bind : daqloom::bindings::subjects()) {
        bind(module);
    }
}
