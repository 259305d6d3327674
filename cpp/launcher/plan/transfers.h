// Copies, memsets and host functions of a plan.
#pragma once

#include <cstddef>
#include <memory>
#include <variant>
#include <vector>

#include "launcher/driver/context.h"
#include "launcher/driver/resources.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {

// A copy, memset or host function in a stream.
struct PlannedTransfer {
  std::variant<Copy, Memset, HostFunction> transfer;
  CUstream stream = nullptr;
  std::byte* host = nullptr;  // host memory that the copy reads or writes
  CUdeviceptr source = 0;     // memory of the GPU
  CUdeviceptr destination = 0;

  // Makes the call of CUDA, and returns when that does. The context must be current.
  void issue(const Driver& driver) const;
};

// Memory for all copies and memsets: two buffers of the host, one of them pinned, and two of the
// GPU. Their contents do not matter. Kept from run to run; it never shrinks.
class TransferMemory {
 public:
  explicit TransferMemory(const Driver& driver)
      : driver_(driver), source_(driver), destination_(driver) {}

  // Each makes room for a transfer, or for all of a graph. Nothing may use the memory yet.
  void reserve(const Copy& copy);
  void reserve(const Memset& memset);
  void reserve(const HostFunction& /*function*/) {}  // needs none
  void reserve(const Graph& graph);

  // Sets the addresses of a transfer, for which there must be room.
  void lay_out(PlannedTransfer& planned);
  // Each adds a node to a graph. There must be room for its transfer. Returns the node.
  CUgraphNode add_node(const Context& context, CUgraph graph, const Copy& copy) const;
  CUgraphNode add_node(const Context& context, CUgraph graph, const Memset& memset) const;
  CUgraphNode add_node(const Context& context, CUgraph graph, const HostFunction& function) const;

 private:
  const Driver& driver_;
  std::unique_ptr<MappedMemory> pinned_;
  std::vector<std::byte> pageable_;
  DeviceMemory<std::byte> source_;
  DeviceMemory<std::byte> destination_;
};

}  // namespace tbsched::cuda
