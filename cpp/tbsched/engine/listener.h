// What can be recorded of a run. Each default does nothing.
#pragma once

#include <cstdint>
#include <span>

#include "tbsched/engine/block_scheduler.h"
#include "tbsched/hardware/gpu/gpu_state.h"
#include "tbsched/hardware/sm/demand.h"
#include "tbsched/program/refusal.h"

namespace tbsched {

class Listener {
 public:
  virtual ~Listener() = default;

  // Launch k is new; the state is that before any of its blocks.
  virtual void on_launch(int32_t /*launch*/, int32_t /*blocks*/, const Demand&, const GpuState&) {}
  // Where the SMs of the launch's blocks from this one on are to be written; empty: anywhere.
  virtual std::span<int32_t> memory(int32_t /*launch*/, int32_t /*first_block*/) { return {}; }
  // Blocks of a launch go to SMs, one or more.
  virtual void on_place(const BlockScheduler::Placed&) {}
  // The blocks of launch k that are left wait: it is new, or was looked at in vain. Of one that
  // goes on waiting behind others nothing is said.
  virtual void on_refuse(int32_t /*launch*/, Refusal) {}
  // Nothing more happens to launch k before the next event.
  virtual void on_settled(int32_t /*launch*/) {}
  virtual void on_release(int32_t /*launch*/) {}
};

}  // namespace tbsched
