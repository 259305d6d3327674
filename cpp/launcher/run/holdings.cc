#include "launcher/run/holdings.h"

#include <map>
#include <optional>
#include <utility>

#include "launcher/driver/error.h"
#include "launcher/run/run.h"

namespace tbsched::cuda {

namespace {

// Memory of runs, which is freed in its own context.
class KeptMemory {
 public:
  explicit KeptMemory(std::shared_ptr<const Context> context)
      : context_(std::move(context)), memory_(std::in_place, context_->driver()) {}
  ~KeptMemory() {
    try {
      const CurrentContext current(*context_);
      memory_.reset();
    } catch (const CudaFailure&) {
      // As in ~Holdings.
    }
  }
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  RunMemory& memory() { return *memory_; }

 private:
  const std::shared_ptr<const Context> context_;
  std::optional<RunMemory> memory_;
};

}  // namespace

Holdings::Holdings(const int32_t index, const bool from_ptx)
    : kept_context(std::make_shared<const Context>(index)),
      context(*kept_context),
      resources(std::make_unique<Resources>(context, from_ptx)) {}

void Holdings::Resources::ensure_memory(const std::shared_ptr<const Context>& context) {
  if (memory && memory.use_count() == 1) return;
  const auto kept = std::make_shared<KeptMemory>(context);
  memory = {kept, &kept->memory()};
}

Holdings::~Holdings() {
  try {
    const CurrentContext current(context);
    resources.reset();
  } catch (const CudaFailure&) {
    // The driver is gone already, as at the end of a process; so are its resources.
  }
}

bool Holdings::update_idle() {
  if (!idle) {
    try {
      const CurrentContext current(context);
      end_waits(resources->plan.values);
      idle = all_done(context.driver(), resources->workers, resources->plan);
    } catch (const CudaFailure&) {
      // Whether blocks still run is not known.
    }
  }
  if (idle) resources->meets_in.reset();
  return idle;
}

SharedGpu& SharedGpu::of(const int32_t index) {
  // Never destroyed: at the end of a process blocks may still use these resources.
  static std::mutex mutex;
  static auto& shared_gpus = *std::make_unique<std::map<int32_t, SharedGpu>>().release();
  const std::scoped_lock lock(mutex);
  return shared_gpus[index];
}

void SharedGpu::keep(std::unique_ptr<Holdings> holdings) {
  const std::scoped_lock lock(mutex_);
  kept_.push_back(std::move(holdings));
}

bool SharedGpu::release_drained() {
  const std::scoped_lock lock(mutex_);
  std::erase_if(kept_, [](const auto& holdings) { return holdings->update_idle(); });
  return kept_.empty();
}

}  // namespace tbsched::cuda
