// What can be observed of launches and their blocks. Each default does nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tbsched/hardware/gpu/gpu_state.h"
#include "tbsched/hardware/sm/demand.h"
#include "tbsched/hardware/sm/footprint.h"
#include "tbsched/program/refusal.h"

namespace tbsched {

// Blocks of a launch that were placed at once. Valid until the next are.
struct PlacedBlocks {
  int32_t launch;
  int32_t first_block;
  std::span<const int32_t> sms;  // in the order of the blocks
  // Where blocks leave one by one: each block's, in order; else one per SM. Whoever wants to keep
  // them may swap them for other memory.
  std::vector<Footprint>& footprints;
};

class Observer {
 public:
  virtual ~Observer() = default;

  // Blocks of a launch go to SMs, one or more.
  virtual void on_place(const PlacedBlocks& /*placed*/) {}
  // The blocks of the launch that are left wait: it is new, or was looked at in vain. `behind` is
  // the launch that holds it up, or -1. Of one that goes on waiting behind others nothing is said,
  // unless PlaceOptions::every_refusal asks for it.
  virtual void on_refuse(int32_t /*launch*/, Refusal, int32_t /*behind*/) {}

  // The three below come from a HeldEngine alone.
  // The launch is new; the state is that before any of its blocks.
  virtual void on_launch(int32_t /*launch*/, int32_t /*blocks*/, const Demand&, const GpuState&) {}
  // Nothing more happens to the launch before the next event.
  virtual void on_settled(int32_t /*launch*/) {}
  virtual void on_release(int32_t /*launch*/) {}
};

}  // namespace tbsched
