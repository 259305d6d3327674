// Handles Python's signals between two steps of long work: Ctrl-C ends it.
#pragma once

#include <pybind11/pybind11.h>

namespace tbsched {

// Throws what the handler of a signal has raised. May be called without the GIL.
inline void python_signals() {
  const pybind11::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

}  // namespace tbsched
