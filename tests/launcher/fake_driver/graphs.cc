// CUDA graphs of the fake GPU: all nodes become grids at once, and wait for each other.
#include <cuda.h>

#include <memory>

#include "accounts.h"
#include "calls.h"
#include "fake_gpu.h"

// The macro of CUDA 13 names another function.
#undef cuGraphAddDependencies

namespace {

using fake::Accounts;
using fake::entered;
using fake::FakeGpu;
using fake::FakeGraph;
using fake::FakeNode;
using fake::Function;
using fake::take_back;
using tbsched::cuda::ProbeArguments;

// A node without a function: it takes no time.
CUgraphNode add_transfer(CUgraph graph) {
  auto& nodes = reinterpret_cast<FakeGraph*>(graph)->nodes;
  nodes.push_back(std::make_unique<FakeNode>());
  return reinterpret_cast<CUgraphNode>(nodes.back().get());
}

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
  const bool whole = parameters->func != nullptr;
  auto made = std::make_unique<FakeNode>();
  made->function = whole ? reinterpret_cast<const Function*>(parameters->func)
                         : reinterpret_cast<const Function*>(parameters->kern);
  made->sms = whole ? fake::kAllSms : fake::sms_of(parameters->ctx);
  made->config.gridDimX = parameters->gridDimX;
  made->config.blockDimX = parameters->blockDimX;
  made->config.sharedMemBytes = parameters->sharedMemBytes;
  made->arguments = *static_cast<const ProbeArguments*>(parameters->kernelParams[0]);
  *node = reinterpret_cast<CUgraphNode>(made.get());
  reinterpret_cast<FakeGraph*>(graph)->nodes.push_back(std::move(made));
  return CUDA_SUCCESS;
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
    reinterpret_cast<FakeNode*>(to[k])->after.push_back(reinterpret_cast<FakeNode*>(from[k]));
  }
  return CUDA_SUCCESS;
}
// The nodes move to the graph that can be launched: nobody makes two of one.
CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph,
                                     unsigned long long flags) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  if (flags != CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<FakeGraph>(std::move(*reinterpret_cast<FakeGraph*>(graph)));
  *executable = reinterpret_cast<CUgraphExec>(made.release());
  FakeGpu::get().count("graphs");
  Accounts::get().give("executable graphs", *executable);
  return CUDA_SUCCESS;
}
CUresult cuGraphUpload(CUgraphExec, CUstream) { return entered(__func__); }
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  return FakeGpu::get().launch(*reinterpret_cast<FakeGraph*>(executable), stream);
}
CUresult cuGraphExecDestroy(CUgraphExec executable) {
  if (const CUresult error = entered(__func__); error != CUDA_SUCCESS) return error;
  const std::unique_ptr<FakeGraph> owned(reinterpret_cast<FakeGraph*>(executable));
  return take_back("executable graphs", executable, true);
}

}  // extern "C"
