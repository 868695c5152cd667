// The Python module daqloom._engine: the only place where the engine meets Python.
#include <nanobind/nanobind.h>

NB_MODULE(_engine, module) { module.doc() = "The C++ engine of daqloom."; }
