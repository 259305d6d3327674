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

// What a run has shown.
struct Observation {
  std::vector<MeasuredLaunch> launches;
  CallsNs calls_ns;
  std::vector<bool> met;  // whether each group has met
};

class Gpu {
 public:
  // Opens a GPU. `from_ptx`: lets the driver compile the probe, as it does on GPUs newer than this
  // build. Throws NoGpu, CudaFailure.
  explicit Gpu(int32_t index, bool from_ptx = false);
  // Resources that blocks may still use are released only after these have left.
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const Context& context() const { return holdings_->context; }
  // Waits a moment until released blocks have left. Returns false if some are still there.
  bool drained();

  // Runs a sequence. Waits while another thread observes on the same GPU. Throws
  // std::invalid_argument, CudaFailure, DeadlineExceeded, Unstable, Shared or what
  // options.interrupted throws.
  Observation observe(const Sequence& sequence, const RunOptions& options);

  // Returns how the time since the GPU was opened was spent.
  TimeSpent time_spent();
  // Returns the number of runs that another process's turns spoiled since it was opened. Never
  // waits.
  uint64_t interruptions() const { return interruptions_; }

  // Returns the driver's occupancy: blocks of the launch per SM, or clusters on the whole GPU. Must
  // not be called while a sequence is observed.
  int32_t resident(const Launch& launch);
  // Returns the driver's registers per thread and bytes of local memory of the loaded kernel. Must
  // not be called while a sequence is observed.
  std::pair<int32_t, int32_t> kernel_size(const Launch& launch);

 private:
  // Plans a sequence and runs it until a run is not doubtful. Throws as observe().
  Observation observe_until_sure(const Sequence& sequence, const RunOptions& options);
  // Waits until blocks of earlier runs have left: they would be measured, too. Throws
  // DeadlineExceeded.
  void wait_for_earlier_blocks(const RunOptions& options);
  // Runs the plan once and judges the run.
  Verdict run_once(const Sequence& sequence, const RunOptions& options);

  SharedGpu& shared_gpu_;
  std::unique_ptr<Holdings> holdings_;
  bool drained_in_order_ = false;
  TimeSpent spent_;
  std::atomic<uint64_t> interruptions_ = 0;
};

}  // namespace tbsched::cuda
