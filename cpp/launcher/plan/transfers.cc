#include "launcher/plan/transfers.h"

#include <chrono>
#include <variant>

namespace tbsched::cuda {
namespace {

// Host function: spins for a number of nanoseconds, which is the argument itself, so nothing has to
// outlive the call.
void CUDA_CB spin_for(void* const duration_ns) {
  const std::chrono::nanoseconds duration(reinterpret_cast<intptr_t>(duration_ns));
  const auto end = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < end) {
    // Too short a time to sleep.
  }
}

// Returns the argument of spin_for() for a host function.
void* argument_of(const HostFunction& function) {
  return reinterpret_cast<void*>(static_cast<intptr_t>(function.duration_ns));
}

}  // namespace

void PlannedTransfer::issue(const Driver& driver) const {
  const auto copy = [&](const Copy& request) {
    const auto bytes = static_cast<size_t>(request.bytes);
    if (request.kind == CopyKind::h2d) {
      driver.copy_to_device_async(destination, host, bytes, stream);
    } else if (request.kind == CopyKind::d2h) {
      driver.copy_to_host_async(host, source, bytes, stream);
    } else {
      driver.copy_on_device_async(destination, source, bytes, stream);
    }
    if (request.blocking) driver.stream_synchronize(stream);
  };
  std::visit(Overloaded{
                 copy,
                 [&](const Memset& request) {
                   driver.memset_async(destination, 0, static_cast<size_t>(request.bytes), stream);
                 },
                 [&](const HostFunction& function) {
                   driver.launch_host_function(stream, spin_for, argument_of(function));
                 },
             },
             transfer);
}

void TransferMemory::reserve(const Copy& copy) {
  const auto bytes = static_cast<size_t>(copy.bytes);
  source_.reserve(bytes);
  destination_.reserve(bytes);
  if (copy.kind == CopyKind::d2d) return;
  if (!copy.pinned) {
    if (pageable_.size() < bytes) pageable_.resize(bytes);
  } else if (!pinned_ || pinned_->bytes().size() < bytes) {
    pinned_.reset();
    pinned_ = std::make_unique<MappedMemory>(driver_, bytes);
  }
}

void TransferMemory::reserve(const Memset& memset) {
  destination_.reserve(static_cast<size_t>(memset.bytes));
}

void TransferMemory::reserve(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    std::visit(Overloaded{
                   [](const Launch&) {},
                   [&](const Copy& copy) { reserve(copy); },
                   [&](const Memset& memset) { reserve(memset); },
                   [&](const HostFunction& function) { reserve(function); },
                   [](const RecordEvent&) {},
                   [](const WaitEvent&) {},
               },
               node);
  }
}

void TransferMemory::lay_out(PlannedTransfer& planned) {
  const Copy* const copy = std::get_if<Copy>(&planned.transfer);
  if (copy != nullptr && !copy->pinned) {
    planned.host = pageable_.data();
  } else if (pinned_) {
    planned.host = pinned_->bytes().data();
  }
  planned.source = source_.address();
  planned.destination = destination_.address();
}

CUgraphNode TransferMemory::add_node(const Context& context, const CUgraph graph,
                                     const Copy& copy) const {
  CUDA_MEMCPY3D parameters{};
  parameters.WidthInBytes = static_cast<size_t>(copy.bytes);
  parameters.Height = parameters.Depth = 1;
  if (copy.kind == CopyKind::h2d) {
    parameters.srcMemoryType = CU_MEMORYTYPE_HOST;
    parameters.srcHost = pinned_->bytes().data();
  } else {
    parameters.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    parameters.srcDevice = source_.address();
  }
  if (copy.kind == CopyKind::d2h) {
    parameters.dstMemoryType = CU_MEMORYTYPE_HOST;
    parameters.dstHost = pinned_->bytes().data();
  } else {
    parameters.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    parameters.dstDevice = destination_.address();
  }
  CUgraphNode node = nullptr;
  driver_.graph_add_copy(&node, graph, nullptr, 0, &parameters, context.handle());
  return node;
}

CUgraphNode TransferMemory::add_node(const Context& context, const CUgraph graph,
                                     const Memset& memset) const {
  CUDA_MEMSET_NODE_PARAMS parameters{};
  parameters.dst = destination_.address();
  parameters.elementSize = 1;
  parameters.width = static_cast<size_t>(memset.bytes);
  parameters.height = 1;
  CUgraphNode node = nullptr;
  driver_.graph_add_memset(&node, graph, nullptr, 0, &parameters, context.handle());
  return node;
}

CUgraphNode TransferMemory::add_node(const Context& /*context*/, const CUgraph graph,
                                     const HostFunction& function) const {
  const CUDA_HOST_NODE_PARAMS parameters{.fn = spin_for, .userData = argument_of(function)};
  CUgraphNode node = nullptr;
  driver_.graph_add_host_function(&node, graph, nullptr, 0, &parameters);
  return node;
}

}  // namespace tbsched::cuda
