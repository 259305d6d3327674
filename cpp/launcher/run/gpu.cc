#include "launcher/run/gpu.h"

#include <map>
#include <string>

#include "launcher/driver/error.h"
#include "launcher/driver/resources.h"
#include "launcher/plan/plan.h"
#include "launcher/probe/probe.h"
#include "launcher/run/launch_worker.h"
#include "launcher/run/verdict.h"

namespace tbsched::cuda {
namespace {

constexpr int kAttempts = 3;

std::vector<Evidence> evidence_of(const std::vector<PlannedLaunch>& launches) {
  std::vector<Evidence> evidence;
  evidence.reserve(launches.size());
  for (const PlannedLaunch& planned : launches) {
    evidence.push_back({.records = planned.records,
                        .warp_slots = planned.warp_slots,
                        .ticks = planned.ticks,
                        .issued = planned.issued - launches.front().issued});
  }
  return evidence;
}

// Two sequences at once on one GPU would measure each other.
std::timed_mutex& turn_on(const int32_t index) {
  static std::mutex mutex;
  static std::map<int32_t, std::timed_mutex> turns;
  const std::scoped_lock lock(mutex);
  return turns[index];
}

}  // namespace

struct Gpu::Resources {
  Resources(const Context& context, const bool from_ptx)
      : probe(context, from_ptx), memory(context.driver()) {}

  Probe probe;
  StreamPool streams;
  Plan plan;  // the last one: what it holds may be given back when the GPU is idle
  RunMemory memory;
  LaunchWorker worker;
};

Gpu::Gpu(const int32_t index, const bool from_ptx)
    : context_(index),
      turn_(turn_on(index)),
      resources_(std::make_unique<Resources>(context_, from_ptx)) {}

Gpu::~Gpu() {
  try {
    const CurrentContext current(context_);
    resources_.reset();
  } catch (const CudaFailure&) {
    // The driver is gone already, as at the end of a process; so is what it gave.
  }
}

std::vector<MeasuredLaunch> Gpu::observe(const Sequence& sequence, const RunOptions& options) {
  std::unique_lock turn(turn_, std::defer_lock);
  while (!turn.try_lock_for(kBetweenInterrupts)) options.interrupted();
  if (!drained_in_order_ && !options.any_state) {
    // Where blocks go depends on how the blocks before them left. Start from the usual state.
    Launch everywhere;
    everywhere.blocks = context_.properties().sms;
    RunOptions before = options;
    before.by_worker = is_timed(sequence);
    observe_surely({everywhere}, before);
  }
  return observe_surely(sequence, options);
}

std::vector<MeasuredLaunch> Gpu::observe_surely(const Sequence& sequence,
                                                const RunOptions& options) {
  if (!idle_) {
    throw CudaFailure("cuStreamQuery", context_.driver().name_of(CUDA_ERROR_NOT_READY),
                      "blocks of an earlier run never left; only a new process can go on");
  }
  const CurrentContext current(context_);
  Plan& plan = resources_->plan;
  {
    const Stopwatch stopwatch(spent_.plan);
    resources_->probe.trim();
    plan = plan_sequence(sequence, context_, resources_->probe, resources_->streams);
  }
  std::string doubt;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ++spent_.runs;
    {
      const Stopwatch stopwatch(spent_.plan);
      resources_->memory.lay_out(plan, options.warp_slots, longest_hold(options.deadline));
      context_.shrink_local_memory();
    }
    drained_in_order_ = false;
    Run run(context_, resources_->worker, plan, options, idle_, spent_);
    run.perform(sequence);
    drained_in_order_ = run.in_order();
    const Stopwatch stopwatch(spent_.judge);
    const std::vector<Evidence> evidence = evidence_of(plan.launches);
    const int32_t sms = context_.properties().sms;
    Verdict verdict = plan.timed ? judge_timed(evidence, sms) : judge(sequence, evidence, sms);
    if (verdict.doubt.empty()) return std::move(verdict.launches);
    doubt = std::move(verdict.doubt);
  }
  throw Unstable("in each of " + std::to_string(kAttempts) + " runs something was doubtful; " +
                 doubt);
}

TimeSpent Gpu::time_spent() {
  const std::scoped_lock turn(turn_);
  return spent_;
}

int32_t Gpu::resident(const Launch& launch) {
  const CurrentContext current(context_);
  return cuda::resident(context_, resources_->probe.variant(launch.registers, launch.local_memory),
                        launch);
}

std::pair<int32_t, int32_t> Gpu::kernel_size(const Launch& launch) {
  const CurrentContext current(context_);
  const ProbeFunction& function = resources_->probe.variant(launch.registers, launch.local_memory);
  return {function.attribute(CU_FUNC_ATTRIBUTE_NUM_REGS),
          function.attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)};
}

}  // namespace tbsched::cuda
