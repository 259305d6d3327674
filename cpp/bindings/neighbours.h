// How kernels slow each other, for Python.
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tbsched/engine/neighbours/paces.h"

namespace tbsched {

// Of each kernel its shares and waits.
using GivenNeeds = std::vector<std::pair<PerResource, PerResource>>;
// And of each launch its kernel, or -1.
using GivenNeighbours = std::optional<std::pair<GivenNeeds, std::vector<int32_t>>>;

std::optional<Neighbours> to_neighbours(const GivenNeighbours& given);
void bind_neighbours(pybind11::module_& module);

}  // namespace tbsched
