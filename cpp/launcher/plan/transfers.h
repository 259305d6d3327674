// Copies and memsets of graphs, as the driver has them.
#pragma once

#include <cstddef>
#include <memory>

#include "launcher/driver/context.h"
#include "launcher/driver/graph.h"
#include "launcher/driver/resources.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {

// What they read and write: one buffer of the host and two of the GPU, for all of them. Nobody
// looks at what is in there. Kept from run to run; nothing in it shrinks.
class TransferMemory {
 public:
  explicit TransferMemory(const Driver& driver)
      : driver_(driver), source_(driver), destination_(driver) {}

  // Makes room for the copies and memsets of a graph. No other graph may use it yet.
  void reserve(const Graph& graph);

  CUgraphNode add(const Context& context, const CudaGraph& graph, const Copy& copy) const;
  CUgraphNode add(const Context& context, const CudaGraph& graph, const Memset& memset) const;

 private:
  const Driver& driver_;
  std::unique_ptr<MappedMemory> host_;
  DeviceMemory<std::byte> source_;
  DeviceMemory<std::byte> destination_;
};

}  // namespace tbsched::cuda
