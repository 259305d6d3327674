// A policy written in Python: a callable that chooses an SM by the room of each.
#pragma once

#include <pybind11/pybind11.h>

#include "tbsched/policy/policy.h"

namespace tbsched {

// Returns a policy that calls `choose` for one block after the other, with the room of each SM for
// blocks of that launch. `choose` returns an SMID, or -1 for none.
StartPolicy python_policy(pybind11::function choose);

}  // namespace tbsched
