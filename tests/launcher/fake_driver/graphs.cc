// CUDA graphs of the fake GPU: all nodes become grids at once, and wait for each other.
#include <cuda.h>

#include <algorithm>
#include <memory>

#include "accounts.h"
#include "calls.h"
#include "contexts.h"
#include "fake_gpu.h"

// The macros of CUDA 13 name other functions.
#undef cuGraphAddDependencies
#undef cuGraphAddNode

namespace {

using fake::Accounts;
using fake::Contexts;
using fake::entered;
using fake::FakeConditional;
using fake::FakeEvent;
using fake::FakeExecutable;
using fake::FakeGpu;
using fake::FakeGraph;
using fake::FakeNode;
using fake::Function;
using fake::take_back;
using tbsched::cuda::ProbeArguments;

// Stricter than a driver, which runs a partition's function on the whole GPU.
const Function* named_in(const CUDA_KERNEL_NODE_PARAMS& parameters) {
  if (parameters.func == nullptr) return &fake::function_of(parameters.kern, parameters.ctx);
  const auto* const function = reinterpret_cast<const Function*>(parameters.func);
  return function->context == 0 ? function : nullptr;
}

CUresult set(FakeNode& node, const CUDA_KERNEL_NODE_PARAMS& parameters) {
  const Function* const function = named_in(parameters);
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Contexts::get().exists(function->context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!function->allows(parameters.sharedMemBytes)) return CUDA_ERROR_INVALID_VALUE;
  node.function = function;
  node.config.gridDimX = parameters.gridDimX;
  node.config.blockDimX = parameters.blockDimX;
  node.config.sharedMemBytes = parameters.sharedMemBytes;
  node.arguments = *static_cast<const ProbeArguments*>(parameters.kernelParams[0]);
  return CUDA_SUCCESS;
}

FakeNode& add_node(CUgraph graph) {
  auto& nodes = reinterpret_cast<FakeGraph*>(graph)->nodes;
  nodes.push_back(std::make_unique<FakeNode>());
  nodes.back()->number = nodes.size() - 1;
  return *nodes.back();
}

// A node without a function: it takes no time.
CUgraphNode add_transfer(CUgraph graph) { return reinterpret_cast<CUgraphNode>(&add_node(graph)); }

}  // namespace

extern "C" {

CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  *graph = reinterpret_cast<CUgraph>(std::make_unique<FakeGraph>().release());
  Accounts::get().give("graphs", *graph);
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const std::unique_ptr<FakeGraph> owned(reinterpret_cast<FakeGraph*>(graph));
  return take_back("graphs", graph, false);
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                 const CUDA_KERNEL_NODE_PARAMS* parameters) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  auto& nodes = reinterpret_cast<FakeGraph*>(graph)->nodes;
  auto made = std::make_unique<FakeNode>();
  made->number = nodes.size();
  *node = reinterpret_cast<CUgraphNode>(made.get());
  const CUresult result = set(*made, *parameters);
  if (result == CUDA_SUCCESS) nodes.push_back(std::move(made));
  return result;
}
CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                              const CUDA_MEMCPY3D* parameters, CUcontext) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  if (parameters->WidthInBytes == 0 || parameters->Height != 1 || parameters->Depth != 1) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool from_host = parameters->srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool to_host = parameters->dstMemoryType == CU_MEMORYTYPE_HOST;
  FakeGpu::get().count(from_host ? "h2d" : to_host ? "d2h" : "d2d");
  *node = add_transfer(graph);
  return CUDA_SUCCESS;
}
CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                              const CUDA_MEMSET_NODE_PARAMS* parameters, CUcontext) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  if (parameters->elementSize != 1 || parameters->height != 1) return CUDA_ERROR_INVALID_VALUE;
  FakeGpu::get().count("memsets");
  *node = add_transfer(graph);
  return CUDA_SUCCESS;
}
CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                            const CUDA_HOST_NODE_PARAMS* parameters) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  if (parameters->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  FakeGpu::get().count("host_functions");
  *node = add_transfer(graph);
  return CUDA_SUCCESS;
}
CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                   CUevent event) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeNode& made = add_node(graph);
  made.event = reinterpret_cast<FakeEvent*>(event);
  *node = reinterpret_cast<CUgraphNode>(&made);
  return CUDA_SUCCESS;
}
CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                 CUevent event) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeNode& made = add_node(graph);
  made.event = reinterpret_cast<FakeEvent*>(event);
  made.waits = true;
  *node = reinterpret_cast<CUgraphNode>(&made);
  return CUDA_SUCCESS;
}
CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const bool known = parameters->poolProps.allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                     parameters->poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     parameters->bytesize > 0;
  if (!known) return CUDA_ERROR_INVALID_VALUE;
  static CUdeviceptr next = 1;
  FakeNode& made = add_node(graph);
  made.allocates = parameters->dptr = next++;
  FakeGpu::get().count("graph_allocations");
  *node = reinterpret_cast<CUgraphNode>(&made);
  return CUDA_SUCCESS;
}
CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                               CUdeviceptr address) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  FakeNode& made = add_node(graph);
  made.frees = address;
  *node = reinterpret_cast<CUgraphNode>(&made);
  return CUDA_SUCCESS;
}
CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext,
                                        unsigned value, unsigned flags) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  if (flags != CU_GRAPH_COND_ASSIGN_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
  static CUgraphConditionalHandle made = 0;
  *handle = ++made;
  reinterpret_cast<FakeGraph*>(graph)->values[*handle] = value != 0;
  return CUDA_SUCCESS;
}
CUresult cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                        CUgraphNodeParams* parameters) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  auto& asked = parameters->conditional;
  const auto& values = reinterpret_cast<FakeGraph*>(graph)->values;
  const bool known = parameters->type == CU_GRAPH_NODE_TYPE_CONDITIONAL &&
                     values.contains(asked.handle) && asked.size == 1;
  if (!known) return CUDA_ERROR_INVALID_VALUE;
  FakeNode& made = add_node(graph);
  made.conditional = std::make_shared<const FakeConditional>(FakeConditional{
      .handle = asked.handle,
      .loops = asked.type == CU_GRAPH_COND_TYPE_WHILE,
      .body = std::make_unique<FakeGraph>(),
  });
  made.body = reinterpret_cast<CUgraph>(made.conditional->body.get());
  asked.phGraph_out = &made.body;
  *node = reinterpret_cast<CUgraphNode>(&made);
  return CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID which,
                                       const CUkernelNodeAttrValue* value) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  CUlaunchAttribute attribute{};
  attribute.id = which;
  attribute.value = *value;
  reinterpret_cast<FakeNode*>(handle)->attributes.push_back(attribute);
  return CUDA_SUCCESS;
}
CUresult cuGraphAddDependencies(CUgraph, const CUgraphNode* from, const CUgraphNode* to,
                                size_t count) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  for (size_t k = 0; k < count; ++k) {
    const size_t before = reinterpret_cast<const FakeNode*>(from[k])->number;
    reinterpret_cast<FakeNode*>(to[k])->after.push_back(before);
  }
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph,
                                     unsigned long long flags) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  if (flags != CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<FakeExecutable>();
  made->made_of = reinterpret_cast<const FakeGraph*>(graph);
  for (const auto& node : made->made_of->nodes) made->nodes.push_back(*node);
  *executable = reinterpret_cast<CUgraphExec>(made.release());
  FakeGpu::get().count("graphs");
  Accounts::get().give("executable graphs", *executable);
  return CUDA_SUCCESS;
}
// What has been launched keeps what it had.
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode handle,
                                           const CUDA_KERNEL_NODE_PARAMS* parameters) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  auto& whole = *reinterpret_cast<FakeExecutable*>(executable);
  if (!Accounts::get().gave("graphs", whole.made_of)) return CUDA_ERROR_INVALID_VALUE;
  const auto is_it = [&](const auto& node) {
    return node.get() == reinterpret_cast<FakeNode*>(handle);
  };
  // It does not reach into bodies.
  if (std::ranges::none_of(whole.made_of->nodes, is_it)) return CUDA_ERROR_INVALID_VALUE;
  FakeNode& node = whole.nodes.at(reinterpret_cast<const FakeNode*>(handle)->number);
  const Function* const function = named_in(*parameters);
  if (function == nullptr || function->context != node.function->context) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return set(node, *parameters);
}
CUresult cuGraphUpload(CUgraphExec, CUstream) { return entered(__func__); }
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  return FakeGpu::get().launch(*reinterpret_cast<FakeExecutable*>(executable), stream);
}
CUresult cuGraphExecDestroy(CUgraphExec executable) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const std::unique_ptr<FakeExecutable> owned(reinterpret_cast<FakeExecutable*>(executable));
  return take_back("executable graphs", executable, true);
}

}  // extern "C"
