// Copies and memsets, as the driver has them.
#pragma once

#include <cstddef>
#include <memory>
#include <variant>
#include <vector>

#include "launcher/driver/context.h"
#include "launcher/driver/graph.h"
#include "launcher/driver/resources.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {

// A copy or memset in a stream.
struct PlannedTransfer {
  std::variant<Copy, Memset> transfer;
  CUstream stream = nullptr;
  std::byte* host = nullptr;  // what it reads and writes
  CUdeviceptr source = 0;
  CUdeviceptr destination = 0;

  // Returns when CUDA does. The context is current.
  void issue(const Driver& driver) const;
};

// What copies and memsets read and write: two buffers of the host, one of them pinned, and two of
// the GPU, for all of them. Nobody looks at what is in there. Kept from run to run; nothing in it
// shrinks.
class TransferMemory {
 public:
  explicit TransferMemory(const Driver& driver)
      : driver_(driver), source_(driver), destination_(driver) {}

  // Make room. Nothing may use the memory yet.
  void reserve(const Copy& copy);
  void reserve(const Memset& memset);
  void reserve(const Graph& graph);

  // Points it at the memory, in which there is room for it.
  void lay_out(PlannedTransfer& planned);
  CUgraphNode add(const Context& context, const CudaGraph& graph, const Copy& copy) const;
  CUgraphNode add(const Context& context, const CudaGraph& graph, const Memset& memset) const;

 private:
  const Driver& driver_;
  std::unique_ptr<MappedMemory> pinned_;
  std::vector<std::byte> pageable_;
  DeviceMemory<std::byte> source_;
  DeviceMemory<std::byte> destination_;
};

}  // namespace tbsched::cuda
