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

std::optional<Neighbours> to_neighbours(const GivenNeighbours& given);
void bind_neighbours(pybind11::module_& module);

}  // namespace tbsched
