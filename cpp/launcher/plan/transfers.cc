#include "launcher/plan/transfers.h"

#include <algorithm>
#include <variant>

namespace tbsched::cuda {

void TransferMemory::reserve(const Graph& graph) {
  size_t host = 0;
  size_t device = 0;
  const auto on_device = [&](const int64_t bytes) {
    device = std::max(device, static_cast<size_t>(bytes));
  };
  for (const Node& node : graph.nodes) {
    std::visit(Overloaded{
                   [](const Launch&) {},
                   [&](const Copy& copy) {
                     on_device(copy.bytes);
                     if (copy.kind == CopyKind::d2d) return;
                     host = std::max(host, static_cast<size_t>(copy.bytes));
                   },
                   [&](const Memset& memset) { on_device(memset.bytes); },
               },
               node);
  }
  source_.reserve(device);
  destination_.reserve(device);
  if (host == 0 || (host_ && host_->bytes().size() >= host)) return;
  host_.reset();
  host_ = std::make_unique<MappedMemory>(driver_, host);
}

CUgraphNode TransferMemory::add(const Context& context, const CudaGraph& graph,
                                const Copy& copy) const {
  CUDA_MEMCPY3D parameters{};
  parameters.WidthInBytes = static_cast<size_t>(copy.bytes);
  parameters.Height = parameters.Depth = 1;
  if (copy.kind == CopyKind::h2d) {
    parameters.srcMemoryType = CU_MEMORYTYPE_HOST;
    parameters.srcHost = host_->bytes().data();
  } else {
    parameters.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    parameters.srcDevice = source_.address();
  }
  if (copy.kind == CopyKind::d2h) {
    parameters.dstMemoryType = CU_MEMORYTYPE_HOST;
    parameters.dstHost = host_->bytes().data();
  } else {
    parameters.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    parameters.dstDevice = destination_.address();
  }
  CUgraphNode node = nullptr;
  driver_.graph_add_copy(&node, graph.handle(), nullptr, 0, &parameters, context.handle());
  return node;
}

CUgraphNode TransferMemory::add(const Context& context, const CudaGraph& graph,
                                const Memset& memset) const {
  CUDA_MEMSET_NODE_PARAMS parameters{};
  parameters.dst = destination_.address();
  parameters.elementSize = 1;
  parameters.width = static_cast<size_t>(memset.bytes);
  parameters.height = 1;
  CUgraphNode node = nullptr;
  driver_.graph_add_memset(&node, graph.handle(), nullptr, 0, &parameters, context.handle());
  return node;
}

}  // namespace tbsched::cuda
