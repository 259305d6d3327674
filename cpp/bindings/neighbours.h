// How kernels slow each other, for Python.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tbsched/sim/paces.h"

namespace tbsched {

// By launch, its shares and waits; nothing: blocks do not slow each other.
using GivenNeeds = std::vector<std::pair<std::vector<double>, std::vector<double>>>;
using GivenNeighbours = std::optional<GivenNeeds>;

// Returns the needs of each launch; nothing for nothing.
std::optional<Neighbours> to_neighbours(const GivenNeighbours& given);
// Adds the names of resources, and the times of blocks that share SMs, to the module.
void bind_neighbours(pybind11::module_& module);

}  // namespace tbsched
