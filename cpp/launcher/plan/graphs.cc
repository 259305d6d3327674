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

// Makes the nodes of a graph.
class NodeMaker {
 public:
  // `launches`: those of the graph, in all runs of bodies.
  NodeMaker(const Context& context, const TransferMemory& memory,
            const std::span<PlannedLaunch> launches)
      : context_(context), driver_(context.driver()), memory_(memory), launches_(launches) {}

  // Returns the nodes that run kernels, without those in bodies.
  std::vector<KernelNode> make(const CUgraph made, const Graph& graph) {
    std::vector<KernelNode> kernels;
    const auto add_kernel = [&](const Launch&) {
      const size_t launch = next_++;
      kernels.push_back({launch, add(made, launches_[launch])});
      return kernels.back().node;
    };
    if (graph.parts.empty()) {
      add_all(made, graph.nodes, graph.edges, add_kernel);
    } else {
      add_all(made, graph.parts, graph.part_edges, add_kernel);
    }
    return kernels;
  }

 private:
  template <typename Nodes, typename AddKernel>
  void add_all(const CUgraph made, const Nodes& nodes, const Edges& edges,
               const AddKernel& add_kernel) {
    std::vector<CUgraphNode> handles;
    const auto transfer = [&](const auto& node) { return memory_.add(context_, made, node); };
    for (const auto& node : nodes) {
      handles.push_back(
          std::visit(Overloaded{
                         add_kernel,
                         [&](const Copy& copy) { return transfer(copy); },
                         [&](const Memset& memset) { return transfer(memset); },
                         [&](const HostFunction& function) { return transfer(function); },
                         [&](const Conditional& conditional) { return add(made, conditional); },
                     },
                     node));
    }
    for (const auto& [before, after] : edges) {
      driver_.graph_add_dependencies(made, &handles[static_cast<size_t>(before)],
                                     &handles[static_cast<size_t>(after)], 1);
    }
  }

  CUgraphNode add(const CUgraph made, PlannedLaunch& planned) const {
    prepare(planned);
    const LaunchConfiguration configuration(planned.launch, nullptr, nullptr);
    const KernelParameters parameters(planned, configuration.config);
    CUgraphNode node = nullptr;
    driver_.graph_add_kernel(&node, made, nullptr, 0, &parameters.get());
    for (const CUlaunchAttribute& attribute : configuration.attributes()) {
      set(driver_, node, attribute);
    }
    CUlaunchAttribute priority{};
    priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    priority.value.priority = context_.clamped(planned.launch.priority);
    set(driver_, node, priority);
    return node;
  }

  // Its value is 1, until a kernel in the body decides that it does not run again. A body that
  // never runs stays empty.
  CUgraphNode add(const CUgraph made, const Conditional& conditional) {
    CUgraphConditionalHandle handle = 0;
    driver_.graph_conditional_handle(&handle, made, context_.handle(), conditional.times > 0,
                                     CU_GRAPH_COND_ASSIGN_DEFAULT);
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    parameters.conditional.handle = handle;
    parameters.conditional.type =
        conditional.times > 1 ? CU_GRAPH_COND_TYPE_WHILE : CU_GRAPH_COND_TYPE_IF;
    parameters.conditional.size = 1;
    parameters.conditional.ctx = context_.handle();
    CUgraphNode node = nullptr;
    driver_.graph_add_node(&node, made, nullptr, 0, &parameters);
    if (conditional.times == 0) return node;
    const size_t kernels = count_launches(*conditional.body);
    const size_t behind = next_ + kernels * static_cast<size_t>(conditional.times);
    for (PlannedLaunch& planned : launches_.subspan(next_, kernels)) {
      planned.arguments.runs.handle = handle;
    }
    make(parameters.conditional.phGraph_out[0], *conditional.body);
    next_ = behind;
    return node;
  }

  const Context& context_;
  const Driver& driver_;
  const TransferMemory& memory_;
  const std::span<PlannedLaunch> launches_;
  size_t next_ = 0;  // launch
};

}  // namespace

ReadyGraph::ReadyGraph(const Context& context, const Graph& graph, const CUstream stream,
                       const std::span<PlannedLaunch> nodes, const TransferMemory& memory)
    : driver_(context.driver()),
      graph_(driver_),
      nodes_(NodeMaker(context, memory, nodes).make(graph_.handle(), graph)),
      executable_(driver_, graph_, stream),
      first_(nodes.data()) {}

void ReadyGraph::launch(const CUstream stream, const std::span<PlannedLaunch> nodes) {
  const std::lock_guard lock(mutex_);
  if (first_ != nodes.data()) {
    // Earlier launches keep their arguments, even while they run. Kernels in bodies find out
    // themselves in which launch they are.
    for (const auto& [launch, node] : nodes_) {
      const LaunchConfiguration configuration(nodes[launch].launch, nullptr, nullptr);
      executable_.set_kernel(node, KernelParameters(nodes[launch], configuration.config).get());
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
