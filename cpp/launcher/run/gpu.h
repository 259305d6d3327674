// A GPU that sequences run on. What they need is kept from one to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "launcher/driver/context.h"
#include "launcher/run/run.h"
#include "launcher/run/time_spent.h"
#include "tbsched/program/event.h"
#include "tbsched/program/trace.h"

namespace tbsched::cuda {

class Gpu {
 public:
  // `from_ptx`: let the driver compile the probe, as it does on GPUs newer than this build.
  // Throws NoGpu, CudaFailure.
  explicit Gpu(int32_t index, bool from_ptx = false);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Context& context() const { return context_; }

  // Waits while another thread observes on the same GPU. Throws std::invalid_argument, CudaFailure,
  // DeadlineExceeded, Unstable or what options.interrupted throws.
  std::vector<MeasuredLaunch> observe(const Sequence& sequence, const RunOptions& options);

  // Since it was opened.
  TimeSpent time_spent();

  // The two below are not for use while a sequence is observed.
  // Blocks of the launch per SM, or clusters on the whole GPU, as the driver's occupancy query
  // says.
  int32_t resident(const Launch& launch);
  // Registers per thread and bytes of local memory of the loaded kernel, as the driver says.
  std::pair<int32_t, int32_t> kernel_size(const Launch& launch);

 private:
  struct Resources;

  std::vector<MeasuredLaunch> observe_surely(const Sequence& sequence, const RunOptions& options);

  const Context context_;
  std::timed_mutex& turn_;
  std::unique_ptr<Resources> resources_;
  bool idle_ = true;
  bool drained_in_order_ = false;
  TimeSpent spent_;
};

}  // namespace tbsched::cuda
