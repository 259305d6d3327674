// Tables of events as NumPy arrays.
#pragma once

#include <pybind11/numpy.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "bindings/events.h"
#include "tbsched/program/event_table.h"

namespace tbsched {

using Numbers = pybind11::array_t<int32_t, pybind11::array::c_style>;
using Bounds = pybind11::array_t<int64_t, pybind11::array::c_style>;

// Returns a table that refers to the arrays' own memory. Throws ValueError for invalid shapes.
inline EventTable event_table(const Numbers& cells, const Bounds& bounds,
                              const pybind11::tuple& partitions) {
  if (cells.ndim() != 2 || static_cast<size_t>(cells.shape(1)) != kEventColumns ||
      bounds.ndim() != 1 || bounds.size() < 1) {
    throw pybind11::value_error("cells, bounds: a table of events has " +
                                std::to_string(kEventColumns) +
                                " columns, and one bound more than sequences");
  }
  return {.cells = {cells.data(), static_cast<size_t>(cells.size())},
          .bounds = {bounds.data(), static_cast<size_t>(bounds.size())},
          .partitions = to_partitions(partitions)};
}

}  // namespace tbsched
