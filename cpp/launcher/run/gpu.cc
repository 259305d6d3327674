#include "launcher/run/gpu.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>

#include "launcher/driver/error.h"
#include "launcher/plan/plan.h"
#include "launcher/probe/probe.h"
#include "launcher/run/verdict.h"

namespace tbsched::cuda {
namespace {

using std::chrono::milliseconds;

// Returns a function that calls `interrupted`, but at most once in kBetweenInterrupts.
std::function<void()> rate_limited(const std::function<void()>& interrupted) {
  return [&interrupted, last_call = std::chrono::steady_clock::now()]() mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_call < kBetweenInterrupts) return;
    last_call = now;
    interrupted();
  };
}

using Clock = std::chrono::steady_clock;

// Returns when the first launch call was made; with several host threads any launch may have been
// first.
Clock::time_point first_issue(const std::vector<PlannedLaunch>& launches) {
  Clock::time_point first = Clock::time_point::max();
  for (const PlannedLaunch& planned : launches) first = std::min(first, planned.issued);
  return first;
}

// Returns what each launch of a run has left in its memory.
std::vector<Evidence> evidence_of(const std::vector<PlannedLaunch>& launches) {
  const Clock::time_point first = first_issue(launches);
  std::vector<Evidence> evidence;
  evidence.reserve(launches.size());
  for (const PlannedLaunch& planned : launches) {
    evidence.push_back({.records = planned.records,
                        .warp_slots = planned.warp_slots,
                        .ticks = planned.ticks,
                        .issued = planned.issued - first});
  }
  return evidence;
}

// Returns the launches of groups that have not met; none: there are no groups.
std::optional<std::set<size_t>> stranded(const Plan& plan, const std::vector<bool>& met) {
  if (plan.meetings.empty()) return std::nullopt;
  std::set<size_t> launches;
  for (size_t group = 0; group < met.size(); ++group) {
    const std::vector<size_t>& members = plan.meetings[group].launches;
    if (!met[group]) launches.insert(members.begin(), members.end());
  }
  return launches;
}

// Returns when each call began and returned, ns from the first call on.
CallsNs calls_of(const std::vector<PlannedCall>& calls) {
  Clock::time_point first = Clock::time_point::max();
  for (const PlannedCall& call : calls) first = std::min(first, call.begin);
  const auto ns = [&](const Clock::time_point time) {
    return int64_t{std::chrono::nanoseconds(time - first).count()};
  };
  CallsNs calls_ns;
  for (const PlannedCall& call : calls) calls_ns.push_back({ns(call.begin), ns(call.end)});
  return calls_ns;
}

}  // namespace

Gpu::Gpu(const int32_t index, const bool from_ptx)
    : shared_gpu_(SharedGpu::of(index)), holdings_(std::make_unique<Holdings>(index, from_ptx)) {}

Gpu::~Gpu() {
  if (!drained()) shared_gpu_.keep(std::move(holdings_));
}

bool Gpu::drained() {
  return poll_until(kUntilLeft, [this] { return holdings_->update_idle(); });
}

Observation Gpu::observe(const Sequence& sequence, const RunOptions& options) {
  std::unique_lock turn(shared_gpu_.turn, std::defer_lock);
  while (!turn.try_lock_for(kBetweenInterrupts)) options.interrupted();
  const bool timed = is_timed(sequence);
  const bool times_matter = timed && options.groups.empty();
  if (times_matter || (!drained_in_order_ && !options.any_state)) {
    // Where blocks go depends on how the blocks before them left: this starts from the usual state.
    // And the worker's first call after a while is slow, which would show in the times of its
    // launch.
    Launch warm_up;
    warm_up.blocks = context().properties().sms;
    RunOptions warm_up_options = options;
    warm_up_options.by_worker = times_matter;
    warm_up_options.groups.clear();
    warm_up_options.issue_times.clear();
    warm_up_options.together.reset();
    observe_until_sure({warm_up}, warm_up_options);
  }
  return observe_until_sure(sequence, options);
}

Observation Gpu::observe_until_sure(const Sequence& sequence, const RunOptions& options) {
  wait_for_earlier_blocks(options);
  const CurrentContext current(context());
  Holdings::Resources& resources = *holdings_->resources;
  {
    const Stopwatch stopwatch(spent_.plan);
    resources.plan = {};  // its graphs have kernels that may be forgotten
    resources.plan_resources.trim();
    resources.plan = plan_sequence(sequence, options.groups, context(), resources.plan_resources,
                                   rate_limited(options.interrupted));
  }
  int doubtful_runs = 0;
  size_t shared_runs = 0;
  for (;;) {
    Verdict verdict = run_once(sequence, options);
    if (verdict.still.count() != 0) {
      ++interruptions_;
      if (options.together) {
        throw Shared("blocks were off their SMs: another process uses GPU " +
                     std::to_string(context().device()));
      }
      if (shared_runs == kPausesWhileShared.size()) {
        throw Shared("another process uses this GPU: in each of " +
                     std::to_string(shared_runs + 1) + " runs blocks were off their SMs, for " +
                     std::to_string(verdict.still.count() / 1000) +
                     " us in the last; stop the other one, or wait until it is done");
      }
      const auto pause = kPausesWhileShared[shared_runs++];
      poll_until(pause, [&] { return options.interrupted(), false; });
    } else if (verdict.doubt.empty()) {
      return {.launches = std::move(verdict.launches),
              .calls_ns = std::move(verdict.calls_ns),
              .met = std::move(verdict.met)};
    } else if (options.together) {
      throw Unstable(verdict.doubt);  // all GPUs run again
    } else if (++doubtful_runs == kAttempts) {
      throw Unstable("in each of " + std::to_string(kAttempts) + " runs something was doubtful; " +
                     verdict.doubt);
    }
  }
}

void Gpu::wait_for_earlier_blocks(const RunOptions& options) {
  const bool have_left = poll_until(options.deadline, [&] {
    if (holdings_->update_idle() && shared_gpu_.release_drained()) return true;
    options.interrupted();
    return false;
  });
  if (have_left) return;
  throw DeadlineExceeded(
      "observe: nothing was launched: blocks of an earlier run, which were told to leave, have not "
      "left after " +
      std::to_string(std::chrono::duration_cast<milliseconds>(options.deadline).count()) + " ms");
}

Verdict Gpu::run_once(const Sequence& sequence, const RunOptions& options) {
  Holdings::Resources& resources = *holdings_->resources;
  Plan& plan = resources.plan;
  ++spent_.runs;
  {
    const Stopwatch stopwatch(spent_.plan);
    resources.ensure_memory(holdings_->kept_context);
    resources.memory->lay_out(plan, options.warp_slots, longest_hold(options.deadline));
    if (waits_for_local_memory(plan, context().local_memory())) context().shrink_local_memory();
    instantiate_graphs(context(), plan, resources.memory->transfers());
    if (!plan.graphs.empty()) context().driver().context_synchronize();
    if (options.together) {
      resources.meets_in = options.together->join(options.part, plan, context(), resources.memory);
    }
  }
  drained_in_order_ = false;
  Run run(context(), resources.workers, plan, options, holdings_->idle, spent_);
  run.perform(sequence);
  const auto end = Clock::now();
  if (holdings_->idle) resources.meets_in.reset();  // the first GPU, which owns it, may reuse it
  drained_in_order_ = run.in_order();
  const Stopwatch stopwatch(spent_.judge);
  const std::chrono::nanoseconds took =
      plan.launches.empty() ? end - end : end - first_issue(plan.launches);
  const std::vector<Evidence> evidence = evidence_of(plan.launches);
  const int32_t sms = context().properties().sms;
  if (!plan.timed) {
    Verdict verdict = judge(sequence, evidence, sms, took);
    judge_meetings(plan.meetings, run.met(), verdict);
    return verdict;
  }
  Verdict verdict = judge_timed(evidence, stranded(plan, run.met()), sms, took);
  if (options.together) {
    verdict.met = run.met();
  } else {
    judge_meetings(plan.meetings, run.met(), verdict);
  }
  verdict.calls_ns = calls_of(plan.calls);
  return verdict;
}

TimeSpent Gpu::time_spent() {
  const std::scoped_lock turn(shared_gpu_.turn);
  return spent_;
}

int32_t Gpu::resident(const Launch& launch) {
  const CurrentContext current(context());
  PlanResources& plan_resources = holdings_->resources->plan_resources;
  const Lane lane = plan_resources.lane(launch);
  return plan_resources.probe.function(launch, /*meets=*/false, lane.partition)
      .resident(launch, plan_resources.streams.at(context().driver(), lane, 0));
}

std::pair<int32_t, int32_t> Gpu::kernel_size(const Launch& launch) {
  const CurrentContext current(context());
  PlanResources& plan_resources = holdings_->resources->plan_resources;
  const ProbeFunction& function =
      plan_resources.probe.function(launch, /*meets=*/false, plan_resources.lane(launch).partition);
  return {function.attribute(CU_FUNC_ATTRIBUTE_NUM_REGS),
          function.attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)};
}

}  // namespace tbsched::cuda
