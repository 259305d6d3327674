#include "launcher/run/holdings.h"

#include <map>
#include <utility>

#include "launcher/driver/error.h"
#include "launcher/run/run.h"

namespace tbsched::cuda {

Holdings::Holdings(const int32_t index, const bool from_ptx)
    : context(index), resources(std::make_unique<Resources>(context, from_ptx)) {}

Holdings::~Holdings() {
  try {
    const CurrentContext current(context);
    resources.reset();
  } catch (const CudaFailure&) {
    // The driver is gone already, as at the end of a process; so are its resources.
  }
}

bool Holdings::drained() {
  if (idle) return true;
  try {
    const CurrentContext current(context);
    end_waits(resources->plan.values);
    idle = all_done(context.driver(), resources->workers, resources->plan);
  } catch (const CudaFailure&) {
    // Whether blocks still run is not known.
  }
  return idle;
}

SharedGpu& SharedGpu::of(const int32_t index) {
  // Never destroyed: at the end of a process blocks may still use these resources.
  static std::mutex mutex;
  static auto& shelves = *std::make_unique<std::map<int32_t, SharedGpu>>().release();
  const std::scoped_lock lock(mutex);
  return shelves[index];
}

void SharedGpu::leave(std::unique_ptr<Holdings> holdings) {
  const std::scoped_lock lock(mutex_);
  left_.push_back(std::move(holdings));
}

bool SharedGpu::clear() {
  const std::scoped_lock lock(mutex_);
  std::erase_if(left_, [](const auto& holdings) { return holdings->drained(); });
  return left_.empty();
}

}  // namespace tbsched::cuda
