// Graphs that are launched, as the driver has them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "launcher/driver/context.h"
#include "launcher/driver/graph.h"
#include "launcher/plan/transfers.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {

struct PlannedLaunch;

// One launch of a graph. It has records of its own, so it is a graph of its own.
struct PlannedGraph {
  std::shared_ptr<const Graph> graph;
  CUstream stream = nullptr;
  size_t first = 0;                                  // its first launch among those of the plan
  std::unique_ptr<ExecutableGraph> executable = {};  // once memory is laid out

  // Gets it ready on the GPU, which must be idle. `launches`: those of the plan. `memory`: there is
  // room in it for the graph.
  void make(const Context& context, std::span<PlannedLaunch> launches,
            const TransferMemory& memory);
};

}  // namespace tbsched::cuda
