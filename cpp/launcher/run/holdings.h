// All that one open GPU has from the driver, and who may still use it.
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

  // Whether no block of the last plan runs or waits. Once true, it stays so until the next run.
  bool drained();

  struct Resources {
    Resources(const Context& context, bool from_ptx)
        : supplies(context, from_ptx), memory(context.driver()) {}

    Supplies supplies;
    Plan plan;  // the last one: what it holds may be given back when the GPU is idle
    RunMemory memory;
    Workers workers;
  };

  const Context context;
  std::unique_ptr<Resources> resources;
  bool idle = true;  // false from the first launch until the GPU is known to hold no block of ours
};

// What all that have opened one GPU share.
class Shelf {
 public:
  static Shelf& of(int32_t index);

  // Two sequences at once would measure each other.
  std::timed_mutex turn;

  // Keeps what blocks may still use. It is given back when they have left, or never.
  void leave(std::unique_ptr<Holdings> holdings);
  // Gives back what blocks have left by now. True: nothing remains.
  bool clear();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Holdings>> left_;
};

}  // namespace tbsched::cuda
