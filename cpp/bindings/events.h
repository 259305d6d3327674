// Python's events as the core has them: the one converter, for both extension modules.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <vector>

#include "tbsched/program/event.h"

// In Python a class of its own, never converted to and from a list.
PYBIND11_MAKE_OPAQUE(tbsched::Sequence)

namespace tbsched {

// Of a tbsched.Launch.
Launch to_launch(pybind11::handle launch);

// Of a tuple of tbsched.Partition.
std::vector<std::shared_ptr<const Partition>> to_partitions(const pybind11::tuple& partitions);

// Of an iterable of the events in tbsched.program.sequence. Throws TypeError naming what is none.
Sequence to_sequence(const pybind11::iterable& events);

}  // namespace tbsched
