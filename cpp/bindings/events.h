// Converts Python's events to the core's, for both extension modules.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <vector>

#include "tbsched/program/event.h"

// A class of its own in Python, never converted to and from a list.
PYBIND11_MAKE_OPAQUE(tbsched::Sequence)

namespace tbsched {

// Converts a tbsched.Launch.
Launch to_launch(pybind11::handle launch);

// Converts a tuple of tbsched.Partition.
std::vector<std::shared_ptr<const Partition>> to_partitions(const pybind11::tuple& partitions);

// Converts an iterable of the events in tbsched.program.sequence. Throws TypeError naming what is
// none.
Sequence to_sequence(const pybind11::iterable& events);

}  // namespace tbsched
