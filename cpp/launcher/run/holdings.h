// All resources of one open GPU, and whether blocks may still use them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "launcher/driver/context.h"
#include "launcher/driver/resources.h"
#include "launcher/plan/plan.h"
#include "launcher/run/workers.h"

namespace tbsched::cuda {

struct Holdings {
  Holdings(int32_t index, bool from_ptx);
  ~Holdings();  // nothing may run
  Holdings(const Holdings&) = delete;
  Holdings& operator=(const Holdings&) = delete;

  // Updates `idle`, and returns it: whether no block of the last plan runs or waits. Once true, it
  // stays true until the next run. Memory of other GPUs is then given back.
  bool update_idle();

  struct Resources {
    Resources(const Context& context, bool from_ptx) : plan_resources(context, from_ptx) {}

    // Makes memory for a run, unless there is some that no other GPU's blocks may still use.
    void ensure_memory(const std::shared_ptr<const Context>& context);

    PlanResources plan_resources;
    Plan plan;  // the last one: its resources may be released when the GPU is idle
    std::shared_ptr<RunMemory> memory;
    std::shared_ptr<RunMemory> meets_in;  // of another GPU: blocks of the last run meet there
    Workers workers;
  };

  const std::shared_ptr<const Context> kept_context;  // memory that outlives this needs it
  const Context& context;
  std::unique_ptr<Resources> resources;
  bool idle =
      true;  // false from the first launch until the GPU is known to hold none of our blocks
};

// State shared by all users of one GPU in this process.
class SharedGpu {
 public:
  // Returns the state of a GPU, made at the first call.
  static SharedGpu& of(int32_t index);

  // Held by a sequence: two sequences at once would measure each other.
  std::timed_mutex turn;

  // Keeps resources that blocks may still use, until these have left, or for ever.
  void keep(std::unique_ptr<Holdings> holdings);
  // Releases the resources of blocks that have left by now. Returns true if none remain.
  bool release_drained();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Holdings>> kept_;
};

}  // namespace tbsched::cuda
