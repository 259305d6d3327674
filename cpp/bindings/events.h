// Sequences for Python.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "tbsched/program/event.h"

// A sequence is built event by event; it is never converted from a list.
PYBIND11_MAKE_OPAQUE(tbsched::Sequence)

namespace tbsched {

void bind_events(pybind11::module_& module);

}  // namespace tbsched
