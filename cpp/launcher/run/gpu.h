// A GPU on which sequences run. Resources are kept from one sequence to the next.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "launcher/driver/context.h"
#include "launcher/run/holdings.h"
#include "launcher/run/run.h"
#include "launcher/run/time_spent.h"
#include "launcher/run/verdict.h"
#include "tbsched/program/event.h"
#include "tbsched/program/trace.h"

namespace tbsched::cuda {

struct Observation {
  std::vector<MeasuredLaunch> launches;
  CallsNs calls_ns;
  std::vector<bool> met;  // by group
};

class Gpu {
 public:
  // `from_ptx`: let the driver compile the probe, as it does on GPUs newer than this build.
  // Throws NoGpu, CudaFailure.
  explicit Gpu(int32_t index, bool from_ptx = false);
  // Resources that blocks may still use are released only after these have left.
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Context& context() const { return holdings_->context; }
  // Waits a moment for released blocks to leave. Returns false if some are still there.
  bool drained();

  // Runs a sequence. Waits while another thread observes on the same GPU. Throws
  // std::invalid_argument, CudaFailure, DeadlineExceeded, Unstable, Shared or what
  // options.interrupted throws.
  Observation observe(const Sequence& sequence, const RunOptions& options);

  // Returns the time spent since it was opened.
  TimeSpent time_spent();
  // Returns the number of runs that another process's turns spoiled since it was opened. Never
  // waits.
  uint64_t interruptions() const { return interruptions_; }

  // The two functions below must not be called while a sequence is observed.
  // Returns the driver's occupancy: blocks of the launch per SM, or clusters on the whole GPU.
  int32_t resident(const Launch& launch);
  // Returns the driver's registers per thread and bytes of local memory of the loaded kernel.
  std::pair<int32_t, int32_t> kernel_size(const Launch& launch);

 private:
  Observation observe_surely(const Sequence& sequence, const RunOptions& options);
  void wait_for_blocks_of_before(const RunOptions& options);
  Verdict run_once(const Sequence& sequence, const RunOptions& options);

  SharedGpu& shelf_;
  std::unique_ptr<Holdings> holdings_;
  bool drained_in_order_ = false;
  TimeSpent spent_;
  std::atomic<uint64_t> interruptions_ = 0;
};

}  // namespace tbsched::cuda
