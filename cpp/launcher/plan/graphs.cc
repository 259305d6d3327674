#include "launcher/plan/graphs.h"

#include <array>
#include <chrono>
#include <map>
#include <variant>
#include <vector>

#include "launcher/plan/decisions.h"
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

// The conditional node whose body a graph is.
struct Enclosing {
  const Conditional* node = nullptr;  // none: it is no body
  CUgraphConditionalHandle handle = 0;
  bool repeats = false;  // whether the body runs more than once in a launch
};

// Returns how many launches a node is, counting all runs of bodies.
template <typename Node>
size_t count_in(const Node& node) {
  return std::visit(Overloaded{
                        [](const Launch&) { return size_t{1}; },
                        [](const Conditional& conditional) {
                          return count_launches(*conditional.body) *
                                 static_cast<size_t>(conditional.times);
                        },
                        [](const auto&) { return size_t{0}; },
                    },
                    node);
}

// Makes the nodes of a graph.
class NodeMaker {
 public:
  // `launches`: those of the graph, in all runs of bodies.
  NodeMaker(const Context& context, GraphSupplies& supplies,
            const std::span<PlannedLaunch> launches)
      : context_(context), driver_(context.driver()), supplies_(supplies), launches_(launches) {}

  // Returns the nodes that run kernels, without those in bodies.
  std::vector<KernelNode> make(const CUgraph made, const Graph& graph,
                               const Enclosing& enclosing = {}) {
    if (graph.parts.empty()) return add_all(made, graph.nodes, graph.edges, enclosing);
    return add_all(made, graph.parts, graph.part_edges, enclosing);
  }

 private:
  template <typename Nodes>
  std::vector<KernelNode> add_all(const CUgraph made, const Nodes& nodes, const Edges& edges,
                                  const Enclosing& enclosing) {
    const std::vector<CUgraphConditionalHandle> conditions = add_conditions(made, nodes, enclosing);
    std::vector<KernelNode> kernels;
    std::vector<CUgraphNode> handles;
    const auto add_kernel = [&](const Launch&) {
      const size_t launch = next_++;
      kernels.push_back({launch, add(made, launches_[launch])});
      return kernels.back().node;
    };
    const auto add_conditional = [&](const Conditional& conditional) {
      return add(made, conditional,
                 {.node = &conditional,
                  .handle = conditions[handles.size()],
                  .repeats = enclosing.repeats || conditional.times > 1});
    };
    const auto add_transfer = [&](const auto& node) {
      return supplies_.memory.add(context_, made, node);
    };
    for (const auto& node : nodes) {
      handles.push_back(
          std::visit(Overloaded{
                         add_kernel,
                         [&](const Copy& copy) { return add_transfer(copy); },
                         [&](const Memset& memset) { return add_transfer(memset); },
                         [&](const HostFunction& function) { return add_transfer(function); },
                         [&](const RecordEvent& record) { return add(made, record); },
                         [&](const WaitEvent& wait) { return add(made, wait); },
                         [&](const MemAlloc& memory) { return add(made, memory); },
                         [&](const MemFree& memory) { return add(made, memory); },
                         add_conditional,
                     },
                     node));
    }
    for (const auto& [before, after] : edges) {
      driver_.graph_add_dependencies(made, &handles[static_cast<size_t>(before)],
                                     &handles[static_cast<size_t>(after)], 1);
    }
    return kernels;
  }

  // Makes the handles of the conditional nodes among some nodes, and tells kernels of a body what
  // they decide. A value is 1 at first, and 0 of a body that never runs.
  template <typename Nodes>
  std::vector<CUgraphConditionalHandle> add_conditions(const CUgraph made, const Nodes& nodes,
                                                       const Enclosing& enclosing) {
    std::vector<CUgraphConditionalHandle> handles;
    std::vector<size_t> first = {next_};  // launch of each node
    for (const auto& node : nodes) {
      first.push_back(first.back() + count_in(node));
      CUgraphConditionalHandle& handle = handles.emplace_back(0);
      std::visit(Overloaded{
                     [&](const Conditional& conditional) {
                       driver_.graph_conditional_handle(&handle, made, context_.handle(),
                                                        conditional.times > 0,
                                                        CU_GRAPH_COND_ASSIGN_DEFAULT);
                     },
                     [](const auto&) {},
                 },
                 node);
    }
    if (enclosing.node == nullptr) return handles;
    for (const auto& [kernel, node, every] : decisions_of(*enclosing.node, enclosing.repeats)) {
      Runs& runs = launches_[first[kernel]].arguments.runs;
      runs.decides[runs.decisions++] = {.handle = node ? handles[*node] : enclosing.handle,
                                        .every = every};
    }
    return handles;
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

  // A body that never runs stays empty.
  CUgraphNode add(const CUgraph made, const Conditional& conditional, const Enclosing& own) {
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    parameters.conditional.handle = own.handle;
    parameters.conditional.type =
        conditional.times > 1 ? CU_GRAPH_COND_TYPE_WHILE : CU_GRAPH_COND_TYPE_IF;
    parameters.conditional.size = 1;
    parameters.conditional.ctx = context_.handle();
    CUgraphNode node = nullptr;
    driver_.graph_add_node(&node, made, nullptr, 0, &parameters);
    if (conditional.times == 0) return node;
    const size_t behind =
        next_ + count_launches(*conditional.body) * static_cast<size_t>(conditional.times);
    make(parameters.conditional.phGraph_out[0], *conditional.body, own);
    next_ = behind;
    return node;
  }

  CUgraphNode add(const CUgraph made, const RecordEvent& record) const {
    CUgraphNode node = nullptr;
    driver_.graph_add_record(&node, made, nullptr, 0, supplies_.events.at(record.event)->handle());
    return node;
  }

  CUgraphNode add(const CUgraph made, const WaitEvent& wait) const {
    CUgraphNode node = nullptr;
    driver_.graph_add_wait(&node, made, nullptr, 0, supplies_.events.at(wait.event)->handle());
    return node;
  }

  CUgraphNode add(const CUgraph made, const MemAlloc& memory) {
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    parameters.poolProps.location.id = context_.device();
    parameters.bytesize = static_cast<size_t>(memory.bytes);
    CUgraphNode node = nullptr;
    driver_.graph_add_alloc(&node, made, nullptr, 0, &parameters);
    supplies_.allocated[memory.name] = parameters.dptr;
    return node;
  }

  CUgraphNode add(const CUgraph made, const MemFree& memory) const {
    CUgraphNode node = nullptr;
    driver_.graph_add_free(&node, made, nullptr, 0, supplies_.allocated.at(memory.name));
    return node;
  }

  const Context& context_;
  const Driver& driver_;
  GraphSupplies& supplies_;
  const std::span<PlannedLaunch> launches_;
  size_t next_ = 0;  // launch
};

}  // namespace

ReadyGraph::ReadyGraph(const Context& context, const Graph& graph, const CUstream stream,
                       const std::span<PlannedLaunch> nodes, GraphSupplies& supplies)
    : driver_(context.driver()),
      graph_(driver_),
      nodes_(NodeMaker(context, supplies, nodes).make(graph_.handle(), graph)),
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
  GraphSupplies supplies{.memory = memory, .events = plan.events};
  for (PlannedGraph& planned : plan.graphs) {
    auto& graph = ready[planned.graph.get()];
    if (!graph) {
      graph = std::make_shared<ReadyGraph>(context, *planned.graph, planned.stream,
                                           plan.nodes_of(planned), supplies);
    }
    planned.ready = graph;
  }
}

}  // namespace tbsched::cuda
