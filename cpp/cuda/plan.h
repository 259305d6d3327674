// Everything that a run needs, got ready before its first launch: while blocks are held, any other
// driver call might block.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cuda/context.h"
#include "cuda/probe.h"
#include "cuda/probe_abi.h"
#include "cuda/resources.h"
#include "model/sequence.h"

namespace tbsched::cuda {

struct PlannedLaunch {
  Launch launch;
  ProbeFunction* function = nullptr;
  CUstream stream = nullptr;
  std::span<BlockRecord> records;
  std::span<int32_t> warp_slots;
  uint32_t* release = nullptr;
  ProbeArguments arguments{};  // the same places, as the GPU sees them
};

// Kept from run to run; nothing in it shrinks.
class Arena {
 public:
  explicit Arena(const Driver& driver) : driver_(driver) {}

  // Points the launches at zeroed memory of their own.
  void lay_out(std::span<PlannedLaunch> launches, bool warp_slots, uint32_t hold_ticks);

 private:
  const Driver& driver_;
  std::unique_ptr<MappedMemory> memory_;
};

// Throws std::invalid_argument for what this GPU refuses. The context is current.
std::vector<PlannedLaunch> plan_launches(const Sequence& sequence, const Context& context,
                                         Probe& probe, StreamPool& streams);

}  // namespace tbsched::cuda
