// Graphs that are launched, as the driver has them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "launcher/driver/context.h"
#include "launcher/driver/graph.h"
#include "launcher/plan/transfers.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {

struct Plan;
struct PlannedLaunch;

// On the GPU, ready to be launched, however often: the driver does not run it beside itself.
class ReadyGraph {
 public:
  // `nodes`: those of its first launch that run kernels. `memory`: there is room in it for the
  // graph.
  ReadyGraph(const Context& context, const Graph& graph, CUstream stream,
             std::span<PlannedLaunch> nodes, const TransferMemory& memory);

  // Each launch has records of its own, so its nodes have other arguments. The context is current.
  void launch(CUstream stream, std::span<PlannedLaunch> nodes);

 private:
  const Driver& driver_;
  const CudaGraph graph_;
  const std::vector<CUgraphNode> nodes_;  // that run kernels
  const ExecutableGraph executable_;
  const PlannedLaunch* first_;  // of the launch whose arguments it has
};

struct PlannedGraph {
  std::shared_ptr<const Graph> graph;
  CUstream stream = nullptr;
  size_t first = 0;                        // its first launch among those of the plan
  std::shared_ptr<ReadyGraph> ready = {};  // one for all launches of a graph
};

// Gets all graphs of the plan ready, once memory is laid out. The GPU is idle.
void make_ready(const Context& context, Plan& plan, const TransferMemory& memory);

}  // namespace tbsched::cuda
