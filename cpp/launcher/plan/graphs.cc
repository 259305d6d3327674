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

// Sets an attribute of a kernel node.
void set_attribute(const Driver& driver, const CUgraphNode node,
                   const CUlaunchAttribute& attribute) {
  driver.graph_set_attribute(node, attribute.id, &attribute.value);
}

// Parameters of a node's kernel. They point into the launch.
class KernelParameters {
 public:
  KernelParameters(PlannedLaunch& planned, const CUlaunchConfig& config)
      : arguments_{&planned.arguments} {
    planned.function->set_in(parameters_);
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

// Sets the carveout with which the next kernel node is made.
void prepare_function(PlannedLaunch& planned) {
  const CurrentContext current = planned.function->enter();
  planned.function->prepare(planned.launch);
}

// The conditional node whose body a graph is.
struct Body {
  const Conditional* node = nullptr;  // null: the graph is no body
  CUgraphConditionalHandle handle = 0;
  bool repeats = false;  // whether the body runs more than once in a launch
};

// Returns how many launches a node stands for, counting all runs of bodies.
template <typename Node>
size_t count_launches_of(const Node& node) {
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

  // Adds all nodes of a graph, or of a body. Returns the nodes that run kernels, without those in
  // bodies.
  std::vector<KernelNode> make(const CUgraph graph_handle, const Graph& graph,
                               const Body& body = {}) {
    if (graph.parts.empty()) return add_all(graph_handle, graph.nodes, graph.edges, body);
    return add_all(graph_handle, graph.parts, graph.part_edges, body);
  }

 private:
  // Adds nodes and their edges. Returns the nodes that run kernels, without those in bodies.
  template <typename Nodes>
  std::vector<KernelNode> add_all(const CUgraph graph_handle, const Nodes& nodes,
                                  const Edges& edges, const Body& body) {
    const std::vector<CUgraphConditionalHandle> conditions =
        add_conditions(graph_handle, nodes, body);
    std::vector<KernelNode> kernels;
    std::vector<CUgraphNode> handles;
    const auto add_kernel = [&](const Launch&) {
      const size_t launch = next_++;
      kernels.push_back({launch, add(graph_handle, launches_[launch])});
      return kernels.back().node;
    };
    const auto add_conditional = [&](const Conditional& conditional) {
      return add(graph_handle, conditional,
                 {.node = &conditional,
                  .handle = conditions[handles.size()],
                  .repeats = body.repeats || conditional.times > 1});
    };
    const auto add_transfer = [&](const auto& node) {
      return supplies_.memory.add_node(context_, graph_handle, node);
    };
    for (const auto& node : nodes) {
      handles.push_back(
          std::visit(Overloaded{
                         add_kernel,
                         [&](const Copy& copy) { return add_transfer(copy); },
                         [&](const Memset& memset) { return add_transfer(memset); },
                         [&](const HostFunction& function) { return add_transfer(function); },
                         [&](const RecordEvent& record) { return add(graph_handle, record); },
                         [&](const WaitEvent& wait) { return add(graph_handle, wait); },
                         [&](const MemAlloc& memory) { return add(graph_handle, memory); },
                         [&](const MemFree& memory) { return add(graph_handle, memory); },
                         add_conditional,
                     },
                     node));
    }
    for (const auto& [before, after] : edges) {
      driver_.graph_add_dependencies(graph_handle, &handles[static_cast<size_t>(before)],
                                     &handles[static_cast<size_t>(after)], 1);
    }
    return kernels;
  }

  // Makes the handles of the conditional nodes among some nodes, and tells kernels of a body what
  // they decide. A value is 1 at first, and 0 of a body that never runs.
  template <typename Nodes>
  std::vector<CUgraphConditionalHandle> add_conditions(const CUgraph graph_handle,
                                                       const Nodes& nodes, const Body& body) {
    std::vector<CUgraphConditionalHandle> handles;
    std::vector<size_t> first = {next_};  // launch of each node
    for (const auto& node : nodes) {
      first.push_back(first.back() + count_launches_of(node));
      CUgraphConditionalHandle& handle = handles.emplace_back(0);
      std::visit(Overloaded{
                     [&](const Conditional& conditional) {
                       driver_.graph_conditional_handle(&handle, graph_handle, context_.handle(),
                                                        conditional.times > 0,
                                                        CU_GRAPH_COND_ASSIGN_DEFAULT);
                     },
                     [](const auto&) {},
                 },
                 node);
    }
    if (body.node == nullptr) return handles;
    for (const auto& [kernel, node, every] : decisions_of(*body.node, body.repeats)) {
      Runs& runs = launches_[first[kernel]].arguments.runs;
      runs.decides[runs.decisions++] = {.handle = node ? handles[*node] : body.handle,
                                        .every = every};
    }
    return handles;
  }

  // Each adds one node.
  CUgraphNode add(const CUgraph graph_handle, PlannedLaunch& planned) const {
    prepare_function(planned);
    const LaunchConfiguration configuration(planned.launch, nullptr, nullptr);
    const KernelParameters parameters(planned, configuration.config);
    CUgraphNode node = nullptr;
    driver_.graph_add_kernel(&node, graph_handle, nullptr, 0, &parameters.get());
    for (const CUlaunchAttribute& attribute : configuration.attributes()) {
      set_attribute(driver_, node, attribute);
    }
    CUlaunchAttribute priority{};
    priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    priority.value.priority = context_.clamped(planned.launch.priority);
    set_attribute(driver_, node, priority);
    return node;
  }

  // Adds a conditional node and its body. A body that never runs stays empty.
  CUgraphNode add(const CUgraph graph_handle, const Conditional& conditional, const Body& inner) {
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    parameters.conditional.handle = inner.handle;
    parameters.conditional.type =
        conditional.times > 1 ? CU_GRAPH_COND_TYPE_WHILE : CU_GRAPH_COND_TYPE_IF;
    parameters.conditional.size = 1;
    parameters.conditional.ctx = context_.handle();
    CUgraphNode node = nullptr;
    driver_.graph_add_node(&node, graph_handle, nullptr, 0, &parameters);
    if (conditional.times == 0) return node;
    const size_t behind =
        next_ + count_launches(*conditional.body) * static_cast<size_t>(conditional.times);
    make(parameters.conditional.phGraph_out[0], *conditional.body, inner);
    next_ = behind;
    return node;
  }

  CUgraphNode add(const CUgraph graph_handle, const RecordEvent& record) const {
    CUgraphNode node = nullptr;
    driver_.graph_add_record(&node, graph_handle, nullptr, 0,
                             supplies_.events.at(record.event)->handle());
    return node;
  }

  CUgraphNode add(const CUgraph graph_handle, const WaitEvent& wait) const {
    CUgraphNode node = nullptr;
    driver_.graph_add_wait(&node, graph_handle, nullptr, 0,
                           supplies_.events.at(wait.event)->handle());
    return node;
  }

  CUgraphNode add(const CUgraph graph_handle, const MemAlloc& memory) {
    CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
    parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    parameters.poolProps.location.id = context_.device();
    parameters.bytesize = static_cast<size_t>(memory.bytes);
    CUgraphNode node = nullptr;
    driver_.graph_add_alloc(&node, graph_handle, nullptr, 0, &parameters);
    supplies_.allocated[memory.name] = parameters.dptr;
    return node;
  }

  CUgraphNode add(const CUgraph graph_handle, const MemFree& memory) const {
    CUgraphNode node = nullptr;
    driver_.graph_add_free(&node, graph_handle, nullptr, 0, supplies_.allocated.at(memory.name));
    return node;
  }

  const Context& context_;
  const Driver& driver_;
  GraphSupplies& supplies_;
  const std::span<PlannedLaunch> launches_;
  size_t next_ = 0;  // index of the launch that the next kernel node stands for
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

void instantiate_graphs(const Context& context, Plan& plan, const TransferMemory& memory) {
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
