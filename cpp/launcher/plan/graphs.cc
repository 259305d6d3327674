#include "launcher/plan/graphs.h"

#include <array>
#include <chrono>
#include <map>
#include <variant>
#include <vector>

#include "launcher/plan/plan.h"
#include "launcher/probe/probe.h"

namespace tbsched::cuda {
namespace {

void set(const Driver& driver, const CUgraphNode node, const CUlaunchAttribute& attribute) {
  driver.graph_set_attribute(node, attribute.id, &attribute.value);
}

// Parameters of a node's kernel. They point into the launch.
class KernelParameters {
 public:
  KernelParameters(PlannedLaunch& planned, const CUlaunchConfig& config)
      : arguments_{&planned.arguments} {
    planned.function->name_in(parameters_);
    parameters_.gridDimX = config.gridDimX;
    parameters_.gridDimY = parameters_.gridDimZ = 1;
    parameters_.blockDimX = config.blockDimX;
    parameters_.blockDimY = parameters_.blockDimZ = 1;
    parameters_.sharedMemBytes = config.sharedMemBytes;
    parameters_.kernelParams = arguments_.data();
  }
  KernelParameters(const KernelParameters&) = delete;
  KernelParameters& operator=(const KernelParameters&) = delete;

  const CUDA_KERNEL_NODE_PARAMS& get() const { return parameters_; }

 private:
  std::array<void*, 1> arguments_;
  CUDA_KERNEL_NODE_PARAMS parameters_{};
};

void prepare(PlannedLaunch& planned) {
  const CurrentContext current = planned.function->enter();
  planned.function->prepare(planned.launch);
}

CUgraphNode add_node(const Context& context, const CudaGraph& graph, PlannedLaunch& planned) {
  const Driver& driver = context.driver();
  prepare(planned);
  const LaunchConfiguration configuration(planned.launch, nullptr, nullptr);
  const KernelParameters parameters(planned, configuration.config);
  CUgraphNode node = nullptr;
  driver.graph_add_kernel(&node, graph.handle(), nullptr, 0, &parameters.get());
  for (const CUlaunchAttribute& attribute : configuration.attributes()) {
    set(driver, node, attribute);
  }
  CUlaunchAttribute priority{};
  priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  priority.value.priority = context.clamped(planned.launch.priority);
  set(driver, node, priority);
  return node;
}

// Returns the nodes that run kernels.
std::vector<CUgraphNode> add_all(const Context& context, const CudaGraph& made, const Graph& graph,
                                 const std::span<PlannedLaunch> launches,
                                 const TransferMemory& memory) {
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphNode> kernels;
  const auto add_kernel = [&](const Launch&) {
    kernels.push_back(add_node(context, made, launches[kernels.size()]));
    return kernels.back();
  };
  const auto transfer = [&](const auto& node) { return memory.add(context, made, node); };
  for (const Node& node : graph.nodes) {
    nodes.push_back(std::visit(Overloaded{
                                   add_kernel,
                                   [&](const Copy& copy) { return transfer(copy); },
                                   [&](const Memset& memset) { return transfer(memset); },
                                   [&](const HostFunction& function) { return transfer(function); },
                               },
                               node));
  }
  for (const auto& [before, after] : graph.edges) {
    context.driver().graph_add_dependencies(made.handle(), &nodes[static_cast<size_t>(before)],
                                            &nodes[static_cast<size_t>(after)], 1);
  }
  return kernels;
}

}  // namespace

ReadyGraph::ReadyGraph(const Context& context, const Graph& graph, const CUstream stream,
                       const std::span<PlannedLaunch> nodes, const TransferMemory& memory)
    : driver_(context.driver()),
      graph_(driver_),
      nodes_(add_all(context, graph_, graph, nodes, memory)),
      executable_(driver_, graph_, stream),
      first_(nodes.data()) {}

void ReadyGraph::launch(const CUstream stream, const std::span<PlannedLaunch> nodes) {
  if (first_ != nodes.data()) {
    // Earlier launches keep their arguments, even while they run.
    for (size_t node = 0; node < nodes.size(); ++node) {
      const LaunchConfiguration configuration(nodes[node].launch, nullptr, nullptr);
      executable_.set_kernel(nodes_[node],
                             KernelParameters(nodes[node], configuration.config).get());
    }
    first_ = nodes.data();
  }
  const auto issued = std::chrono::steady_clock::now();
  for (PlannedLaunch& planned : nodes) planned.issued = issued;
  driver_.graph_launch(executable_.handle(), stream);
}

void make_ready(const Context& context, Plan& plan, const TransferMemory& memory) {
  std::map<const Graph*, std::shared_ptr<ReadyGraph>> ready;
  for (PlannedGraph& planned : plan.graphs) {
    auto& graph = ready[planned.graph.get()];
    if (!graph) {
      graph = std::make_shared<ReadyGraph>(context, *planned.graph, planned.stream,
                                           plan.nodes_of(planned), memory);
    }
    planned.ready = graph;
  }
}

}  // namespace tbsched::cuda
