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

// Blocks of a launch that were placed at once. Valid until the next ones are placed.
struct PlacedBlocks {
  int32_t launch;
  int32_t first_block;
  std::span<const int32_t> sms;  // in the order of the blocks
  // If blocks leave one by one: one for each block, in order; else one per SM. An observer that
  // wants to keep them may swap them for other memory.
  std::vector<Footprint>& footprints;
};

class Observer {
 public:
  virtual ~Observer() = default;

  // Is called when one or more blocks of a launch were placed.
  virtual void on_place(const PlacedBlocks& /*placed*/) {}
  // Is called when the remaining blocks of the launch wait: it is new, or none of them fitted.
  // `behind` is the launch that holds it up, or -1. Not called again for a launch that still waits
  // behind others, unless PlaceOptions::every_refusal is set.
  virtual void on_refuse(int32_t /*launch*/, Refusal, int32_t /*behind*/) {}

  // The two functions below are called by a HeldEngine alone.
  // Is called when a launch is new. The state is that before any of its blocks.
  virtual void on_launch(int32_t /*launch*/, int32_t /*blocks*/, const Demand&, const GpuState&) {}
  // Is called when nothing more happens to the launch before the next event.
  virtual void on_settled(int32_t /*launch*/) {}
};

}  // namespace tbsched
