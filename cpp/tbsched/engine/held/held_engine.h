// Runs launches and releases against the state of a GPU.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tbsched/engine/block_scheduler.h"
#include "tbsched/engine/listener.h"
#include "tbsched/hardware/sm/footprint.h"
#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"

namespace tbsched {

class Engine {
 public:
  // The model outlives it. `leaving`: one_by_one gives each block a footprint of its own.
  Engine(const Model& model, InitialState state, std::vector<Listener*> listeners,
         BlockScheduler::Leaving leaving = BlockScheduler::Leaving::together);

  // Throws std::invalid_argument for a launch that can never fit or has a duration, for a release
  // of a launch that is not there or is released already, and for CUDA events; the state is then as
  // before.
  void step(const Event& event);

 private:
  struct Kernel {
    int32_t successor = -1;  // the launch after it in its stream, or -1
    bool released = false;
    std::vector<Footprint> resident;
  };

  void launch(const Launch& launch);
  void release(int32_t index);
  void place_waiting();
  void let_successor(int32_t index);
  std::span<int32_t> memory(int32_t launch, int32_t first_block) const;
  bool finished(int32_t index) const;
  void leave(int32_t index);
  template <typename Call>
  void tell(Call call) const;

  BlockScheduler scheduler_;
  BlockScheduler::Leaving leaving_;
  std::vector<Listener*> listeners_;
  std::vector<Kernel> kernels_;
  std::unordered_map<int32_t, int32_t> last_in_stream_;
};

}  // namespace tbsched
