// What can be recorded of a run. Each default does nothing.
#pragma once

#include <cstdint>
#include <span>

#include "model/refusal.h"
#include "sm/demand.h"
#include "sm/gpu_state.h"

namespace tbsched {

class Listener {
 public:
  virtual ~Listener() = default;

  // Launch k is new; the state is that before any of its blocks.
  virtual void on_launch(int32_t /*launch*/, int32_t /*blocks*/, const Demand&, const GpuState&) {}
  // Blocks of launch k, from `first_block`, go to these SMs.
  virtual void on_place(int32_t /*launch*/, int32_t /*first_block*/,
                        std::span<const int32_t> /*sms*/) {}
  // The blocks of launch k that are left wait.
  virtual void on_refuse(int32_t /*launch*/, Refusal) {}
  // Nothing more happens to launch k before the next event.
  virtual void on_settled(int32_t /*launch*/) {}
  virtual void on_release(int32_t /*launch*/) {}
};

}  // namespace tbsched
