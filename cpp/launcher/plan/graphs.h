// CUDA graphs of a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "launcher/driver/context.h"
#include "launcher/driver/graph.h"
#include "launcher/driver/resources.h"
#include "launcher/plan/transfers.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {

struct Plan;
struct PlannedLaunch;

// A node that runs a kernel.
struct KernelNode {
  size_t launch;  // index among the launches of the graph, counting all runs of bodies
  CUgraphNode node;
};

// What nodes of the graphs of a plan use.
struct GraphSupplies {
  const TransferMemory& memory;                                   // has room for the transfers
  const std::map<int32_t, std::unique_ptr<StreamEvent>>& events;  // by number
  std::map<std::string, CUdeviceptr> allocated = {};  // memory of the graphs made so far, by name
};

// A graph on the GPU that can be launched any number of times: the driver never runs two launches
// of it at once.
class ReadyGraph {
 public:
  // `nodes`: the launches of all kernel nodes in its first launch.
  ReadyGraph(const Context& context, const Graph& graph, CUstream stream,
             std::span<PlannedLaunch> nodes, GraphSupplies& supplies);

  // Launches the graph. Each launch has its own records, so its nodes' arguments are updated. The
  // context must be current.
  void launch(CUstream stream, std::span<PlannedLaunch> nodes);

 private:
  const Driver& driver_;
  const CudaGraph graph_;
  const std::vector<KernelNode> nodes_;  // without those in bodies
  const ExecutableGraph executable_;
  std::mutex mutex_;            // guards what follows: several hosts may launch the graph
  const PlannedLaunch* first_;  // first kernel of the launch whose arguments the nodes have
};

// A launch of a graph.
struct PlannedGraph {
  std::shared_ptr<const Graph> graph;
  CUstream stream = nullptr;
  size_t first = 0;                        // index of its first launch in the plan
  std::shared_ptr<ReadyGraph> ready = {};  // one for all launches of a graph
};

// Instantiates each graph of the plan once, after memory is laid out. The GPU must be idle.
void instantiate_graphs(const Context& context, Plan& plan, const TransferMemory& memory);

}  // namespace tbsched::cuda
