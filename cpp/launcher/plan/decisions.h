// Which kernels decide how often bodies of conditional nodes run.
//
// An example: a body has kernel A, a conditional node, and kernel B behind it. It runs three times,
// and so does the body of the node in it. B decides in its first two runs that all of that comes
// again. Before each of these runs, A or B must decide that the inner body runs again: its last run
// has decided that it does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tbsched/program/event.h"

namespace tbsched::cuda {

// One decision. Positions are among the parts of a body, or among its nodes if it has no parts.
struct BodyDecision {
  size_t kernel = 0;  // position of the kernel that decides
  std::optional<size_t> node =
      {};              // position of the conditional node; none: that of the body itself
  uint32_t every = 0;  // as in Decision
};

// Returns what the kernels of a body decide: whether the body, and those in it, run again.
// `repeats`: the body runs more than once in a launch of its graph. Throws std::invalid_argument if
// no kernel can decide.
std::vector<BodyDecision> decisions_of(const Conditional& conditional, bool repeats);

}  // namespace tbsched::cuda
