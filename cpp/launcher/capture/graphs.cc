#include "launcher/capture/graphs.h"

#include <cuda.h>

#include <algorithm>
#include <array>

#include "launcher/capture/driver.h"

namespace tbsched::capture {
namespace {

constexpr std::array kInstantiate = {CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate,
                                     CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2,
                                     CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags,
                                     CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams,
                                     CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz};
constexpr std::array kUpdate = {CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate,
                                CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2};
// All begin with the executable graph.
constexpr std::array kChange = {
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams_v2,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecMemcpyNodeSetParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecMemsetNodeSetParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecHostNodeSetParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecChildGraphNodeSetParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecEventRecordNodeSetEvent,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecEventWaitNodeSetEvent,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecExternalSemaphoresSignalNodeSetParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecExternalSemaphoresWaitNodeSetParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecBatchMemOpNodeSetParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphExecNodeSetParams,
    CUPTI_DRIVER_TRACE_CBID_cuGraphNodeSetEnabled};

// Returns whether a callback is one of these.
template <size_t count>
bool contains(const std::array<CUpti_driver_api_trace_cbid, count>& ids,
              const CUpti_CallbackId id) {
  return std::ranges::find(ids, static_cast<CUpti_driver_api_trace_cbid>(id)) != ids.end();
}

// Functions of the driver that describe graphs. An older driver lacks some: they are null.
struct GraphFunctions {
  decltype(&cuGraphGetNodes) nodes = driver_function<decltype(nodes)>("cuGraphGetNodes");
  decltype(&cuGraphGetEdges_v2) edges = driver_function<decltype(edges)>("cuGraphGetEdges_v2");
  decltype(&cuGraphNodeGetType) type = driver_function<decltype(type)>("cuGraphNodeGetType");
  decltype(&cuGraphKernelNodeGetParams_v2) kernel =
      driver_function<decltype(kernel)>("cuGraphKernelNodeGetParams_v2");
  decltype(&cuGraphKernelNodeGetAttribute) attribute =
      driver_function<decltype(attribute)>("cuGraphKernelNodeGetAttribute");
  decltype(&cuGraphChildGraphNodeGetGraph) child =
      driver_function<decltype(child)>("cuGraphChildGraphNodeGetGraph");
  decltype(&cuGraphEventRecordNodeGetEvent) recorded =
      driver_function<decltype(recorded)>("cuGraphEventRecordNodeGetEvent");
  decltype(&cuGraphEventWaitNodeGetEvent) awaited =
      driver_function<decltype(awaited)>("cuGraphEventWaitNodeGetEvent");
  decltype(&cuGraphBatchMemOpNodeGetParams) batch =
      driver_function<decltype(batch)>("cuGraphBatchMemOpNodeGetParams");
  decltype(&cuFuncGetName) function_name =
      driver_function<decltype(function_name)>("cuFuncGetName");
  decltype(&cuKernelGetName) kernel_name =
      driver_function<decltype(kernel_name)>("cuKernelGetName");
  decltype(&cuFuncGetParamInfo) function_parameter =
      driver_function<decltype(function_parameter)>("cuFuncGetParamInfo");
  decltype(&cuKernelGetParamInfo) kernel_parameter =
      driver_function<decltype(kernel_parameter)>("cuKernelGetParamInfo");
  decltype(&cuFuncIsLoaded) is_loaded = driver_function<decltype(is_loaded)>("cuFuncIsLoaded");
};

const GraphFunctions& driver() {
  static const GraphFunctions functions;
  return functions;
}

// Returns the linker's name of a function, or of a kernel without a context, which has no function;
// null: the driver does not name it.
const char* name_of(const CUfunction function, const CUkernel kernel) {
  const char* name = nullptr;
  const auto of_function = driver().function_name;
  const auto of_kernel = driver().kernel_name;
  if (function != nullptr && of_function != nullptr) of_function(&name, function);
  if (function == nullptr && kernel != nullptr && of_kernel != nullptr) of_kernel(&name, kernel);
  return name;
}

// Returns whether the code of a function is on the GPU; false also if the driver does not say.
bool is_loaded(const CUfunction function) {
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_UNLOADED;
  return function != nullptr && driver().is_loaded != nullptr &&
         driver().is_loaded(&state, function) == CUDA_SUCCESS &&
         state == CU_FUNCTION_LOADING_STATE_LOADED;
}

// Returns whether the driver says that a function, or a kernel without a context, has these
// parameters: a kernel of another module may have the same name, and others.
bool has_parameters(const CUfunction function, const CUkernel kernel,
                    const std::vector<cuda::Parameter>& parameters) {
  if (function != nullptr && !is_loaded(function)) return false;  // the question would load it
  const auto has = [&](const size_t index, size_t& offset, size_t& size) {
    const auto of_function = driver().function_parameter;
    const auto of_kernel = driver().kernel_parameter;
    return function != nullptr
               ? of_function != nullptr &&
                     of_function(function, index, &offset, &size) == CUDA_SUCCESS
               : of_kernel != nullptr && of_kernel(kernel, index, &offset, &size) == CUDA_SUCCESS;
  };
  size_t offset = 0;
  size_t size = 0;
  if (parameters.empty() || has(parameters.size(), offset, size)) return false;
  const cuda::Parameter& last = parameters.back();
  return has(parameters.size() - 1, offset, size) && offset == last.offset && size == last.size;
}

// Returns whether one of the operations of a batch waits for a value in memory.
bool waits_for_value(const CUDA_BATCH_MEM_OP_NODE_PARAMS& batch) {
  for (const CUstreamBatchMemOpParams& each : std::span(batch.paramArray, batch.count)) {
    if (each.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
        each.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64) {
      return true;
    }
  }
  return false;
}

// Returns how many records CUPTI writes for a launch of a graph; none: the graph is not known
// whole, has no such node, or has nodes that may take time without a record.
std::optional<GraphRecords> count_records(const Graph& graph) {
  GraphRecords records;
  for (const GraphNode& node : graph.nodes) {
    switch (node.type) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
        ++records.kernels;
        break;
      case CU_GRAPH_NODE_TYPE_MEMCPY:
      case CU_GRAPH_NODE_TYPE_MEMSET:
        ++records.transfers;
        break;
      case CU_GRAPH_NODE_TYPE_GRAPH:
      case CU_GRAPH_NODE_TYPE_EMPTY:
      case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      case CU_GRAPH_NODE_TYPE_MEM_FREE:
        break;
      default:
        return std::nullopt;
    }
    if (!node.is_known) return std::nullopt;
  }
  const bool has_any = records.kernels + records.transfers > 0;
  return graph.is_whole && has_any ? std::optional(records) : std::nullopt;
}

}  // namespace

// Fills in a Graph with what the driver says of its nodes and edges.
class Graphs::Reader {
 public:
  Reader(Graphs& graphs, Graph& graph) : graphs_(graphs), graph_(graph) {}

  // Adds the nodes and edges of a graph, and of the graphs in its nodes. `parent` and `body`: where
  // it is in the whole graph, as in GraphNode.
  void add(const CUgraph graph, const uint32_t parent, const uint32_t body) {
    size_t count = 0;
    bool is_known = driver().nodes(graph, nullptr, &count) == CUDA_SUCCESS;
    std::vector<CUgraphNode> handles(count);
    if (count > 0) is_known = driver().nodes(graph, handles.data(), &count) == CUDA_SUCCESS;
    graph_.is_whole &= is_known;
    if (!is_known) return;
    std::unordered_map<uint64_t, uint32_t> indices;
    indices.reserve(handles.size());
    for (const CUgraphNode handle : handles) {
      const auto index = static_cast<uint32_t>(graph_.nodes.size());
      indices.emplace(handle_value(handle), index);
      add_node(handle, parent, body);
      add_bodies(handle, index);
    }
    add_edges(graph, indices);
  }

 private:
  // Adds a node, described as far as the driver does.
  void add_node(const CUgraphNode handle, const uint32_t parent, const uint32_t body) {
    GraphNode node{.parent = parent, .body = body};
    node.is_known = driver().type(handle, &node.type) == CUDA_SUCCESS && describe(handle, node);
    graph_.nodes.push_back(node);
  }

  // Fills in what a node has beside its type. Returns false if the driver refuses.
  bool describe(const CUgraphNode handle, GraphNode& node) {
    CUevent event = nullptr;
    switch (node.type) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
        return describe_kernel(handle, node);
      case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      case CU_GRAPH_NODE_TYPE_WAIT_EVENT: {
        const auto get =
            node.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT ? driver().awaited : driver().recorded;
        if (get == nullptr || get(handle, &event) != CUDA_SUCCESS) return false;
        node.event = handle_value(event);
        return true;
      }
      case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: {
        CUDA_BATCH_MEM_OP_NODE_PARAMS batch{};
        if (driver().batch == nullptr || driver().batch(handle, &batch) != CUDA_SUCCESS)
          return false;
        node.waits_for_value = waits_for_value(batch);
        return true;
      }
      default:
        return true;
    }
  }

  // Fills in the launch of a kernel node, and counts it. Returns false if the driver refuses.
  bool describe_kernel(const CUgraphNode handle, GraphNode& node) {
    CUDA_KERNEL_NODE_PARAMS_v2 given{};
    if (driver().kernel == nullptr || driver().kernel(handle, &given) != CUDA_SUCCESS) return false;
    Shape& shape = node.shape;
    shape.grid = {given.gridDimX, given.gridDimY, given.gridDimZ};
    shape.block = {given.blockDimX, given.blockDimY, given.blockDimZ};
    shape.dynamic_shared_memory = given.sharedMemBytes;
    for (const auto id : {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                          CU_LAUNCH_ATTRIBUTE_PRIORITY}) {
      CUlaunchAttributeValue value{};
      if (driver().attribute != nullptr && driver().attribute(handle, id, &value) == CUDA_SUCCESS) {
        set_attribute(shape, id, value);
      }
    }
    node.function = function_of(given.func, given.kern);
    if (node.function == nullptr) return true;
    shape.arguments = given.kernelParams;
    shape.buffer = argument_buffer(given.extra);
    node.first_word = graph_.words.size();
    const Kernel* const known = node.function->kernel;
    if (known != nullptr && has_parameters(given.func, given.kern, known->usage.parameters)) {
      std::vector<std::byte> bytes;
      add_arguments(bytes, *node.function, shape);
      const std::vector<Word> words = words_of(bytes, node.function);
      graph_.words.insert(graph_.words.end(), words.begin(), words.end());
      node.words = words.size();
    }
    node.has_separate_arguments = shape.buffer.empty();
    shape.arguments = nullptr;  // the driver's, for a while
    shape.buffer = {};
    ++graph_.kernels[kernels_.at(node.function->launches)].second;
    return true;
  }

  // Returns the function of a kernel node; null: the driver does not name it. Counts from now on
  // the nodes with its name.
  const Function* function_of(const CUfunction function, const CUkernel kernel) {
    const uint64_t handle = function != nullptr ? handle_value(function) : handle_value(kernel);
    const auto [known, is_new] = functions_.try_emplace(handle, nullptr);
    if (!is_new) return known->second;
    const char* const name = name_of(function, kernel);
    if (name == nullptr) return nullptr;
    known->second = &graphs_.launched_.find(handle, name, is_loaded(function));
    std::atomic<uint64_t>* const launches = known->second->launches;
    if (kernels_.try_emplace(launches, graph_.kernels.size()).second) {
      graph_.kernels.emplace_back(launches, 0);
    }
    return known->second;
  }

  // Adds the graphs that are in a node: a child graph, or the bodies of a conditional node.
  void add_bodies(const CUgraphNode handle, const uint32_t index) {
    const CUgraphNodeType type = graph_.nodes[index].type;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
      CUgraph child = nullptr;
      const bool is_known =
          driver().child != nullptr && driver().child(handle, &child) == CUDA_SUCCESS;
      graph_.nodes[index].is_known = is_known;
      if (is_known) add(child, index, 0);
    } else if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
      const std::vector<CUgraph> bodies = graphs_.bodies_of(handle);
      graph_.nodes[index].is_known = !bodies.empty();
      for (uint32_t body = 0; body < bodies.size(); ++body) add(bodies[body], index, body);
    }
  }

  // Adds the edges of a graph. `indices`: of its nodes, by handle.
  void add_edges(const CUgraph graph, const std::unordered_map<uint64_t, uint32_t>& indices) {
    const auto ask = driver().edges;
    size_t count = 0;
    std::vector<CUgraphNode> from;
    std::vector<CUgraphNode> to;
    std::vector<CUgraphEdgeData> data;
    bool is_known = ask != nullptr && ask(graph, nullptr, nullptr, nullptr, &count) == CUDA_SUCCESS;
    if (is_known && count > 0) {
      from.resize(count);
      to.resize(count);
      data.resize(count);
      is_known = ask(graph, from.data(), to.data(), data.data(), &count) == CUDA_SUCCESS;
    }
    graph_.is_whole &= is_known;
    if (!is_known) return;
    for (size_t each = 0; each < count; ++each) {
      const auto before = indices.find(handle_value(from[each]));
      const auto after = indices.find(handle_value(to[each]));
      if (before == indices.end() || after == indices.end()) continue;
      graph_.edges.push_back({before->second, after->second,
                              data[each].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC});
    }
  }

  Graphs& graphs_;
  Graph& graph_;
  std::unordered_map<uint64_t, const Function*> functions_;     // by handle
  std::unordered_map<std::atomic<uint64_t>*, size_t> kernels_;  // indices into Graph::kernels
};

std::vector<CUgraph> Graphs::bodies_of(const CUgraphNode node) {
  const std::lock_guard lock(mutex_);
  const auto bodies = bodies_.find(handle_value(node));
  return bodies != bodies_.end() ? bodies->second : std::vector<CUgraph>();
}

void Graphs::read(const Cupti& cupti, const CUgraphExec executable, const CUgraph graph) {
  if (driver().nodes == nullptr || driver().type == nullptr) return;
  auto made = std::make_shared<Graph>();
  made->number = count_++;
  cupti.graph_id(executable, &made->executable);
  Reader(*this, *made).add(graph, GraphNode::kNone, 0);
  made->records = count_records(*made);
  const std::lock_guard lock(mutex_);
  known_[handle_value(executable)] = {std::move(made), false};
}

void Graphs::keep_bodies(const CUgraphNode node, const CUgraphNodeParams& given) {
  if (given.type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return;
  const CUgraph* const bodies = given.conditional.phGraph_out;
  const std::lock_guard lock(mutex_);
  bodies_[handle_value(node)].assign(bodies, bodies + given.conditional.size);
}

void Graphs::mark_changed(const uint64_t executable) {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find(executable);
  if (known != known_.end()) known->second.is_changed = true;
}

std::shared_ptr<const GraphLaunch> Graphs::count_launch(const uint64_t executable) {
  std::shared_ptr<GraphLaunch> launch;
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(executable);
    if (known == known_.end()) return nullptr;
    launch = std::make_shared<GraphLaunch>();
    launch->graph = known->second.graph;
    launch->is_changed = known->second.is_changed;
  }
  launch->before.reserve(launch->graph->kernels.size());
  for (const auto& [launches, count] : launch->graph->kernels) {
    launch->before.push_back(launches->fetch_add(count));
  }
  return launch;
}

std::span<const CUpti_CallbackId> graph_callbacks() {
  static const auto& kept = *new std::vector<CUpti_CallbackId>([] {
    std::vector<CUpti_CallbackId> ids;
    const auto add = [&](const auto& those) { ids.insert(ids.end(), those.begin(), those.end()); };
    add(kInstantiate);
    add(kUpdate);
    add(kChange);
    add(std::array{CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode,
                   CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode_v2,
                   CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy});
    return ids;
  }());
  return kept;
}

bool reads_graph(const CUpti_CallbackId id) {
  return contains(kInstantiate, id) || contains(kUpdate, id);
}

void Graphs::before_call(const CUpti_CallbackId id, const void* const parameters) {
  if (id != CUPTI_DRIVER_TRACE_CBID_cuGraphExecDestroy) return;
  const std::lock_guard lock(mutex_);
  known_.erase(handle_value(static_cast<const cuGraphExecDestroy_params*>(parameters)->hGraphExec));
}

void Graphs::after_call(const Cupti& cupti, const CUpti_CallbackId id,
                        const void* const parameters) {
  if (contains(kInstantiate, id)) {  // all begin so
    const auto& given = *static_cast<const cuGraphInstantiateWithFlags_params*>(parameters);
    read(cupti, *given.phGraphExec, given.hGraph);
  } else if (contains(kUpdate, id)) {
    const auto& given = *static_cast<const cuGraphExecUpdate_v2_params*>(parameters);
    read(cupti, given.hGraphExec, given.hGraph);
  } else if (id == CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode) {
    const auto& given = *static_cast<const cuGraphAddNode_params*>(parameters);
    keep_bodies(*given.phGraphNode, *given.nodeParams);
  } else if (id == CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode_v2) {
    const auto& given = *static_cast<const cuGraphAddNode_v2_params*>(parameters);
    keep_bodies(*given.phGraphNode, *given.nodeParams);
  } else if (contains(kChange, id)) {
    mark_changed(
        handle_value(static_cast<const cuGraphNodeSetEnabled_params*>(parameters)->hGraphExec));
  }
}

}  // namespace tbsched::capture
