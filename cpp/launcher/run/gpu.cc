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

// Returns a function that calls `interrupted`, but at most every kBetweenInterrupts.
std::function<void()> now_and_then(const std::function<void()>& interrupted) {
  return [&interrupted, last_call = std::chrono::steady_clock::now()]() mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_call < kBetweenInterrupts) return;
    last_call = now;
    interrupted();
  };
}

using Clock = std::chrono::steady_clock;

// Returns the first launch call; with several host threads any launch may have been first.
Clock::time_point first_issue(const std::vector<PlannedLaunch>& launches) {
  Clock::time_point first = Clock::time_point::max();
  for (const PlannedLaunch& planned : launches) first = std::min(first, planned.issued);
  return first;
}

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

// Returns the launches of groups that have not met; nothing if there are no groups.
std::optional<std::set<size_t>> stranded(const Plan& plan, const std::vector<bool>& met) {
  if (plan.meetings.empty()) return std::nullopt;
  std::set<size_t> launches;
  for (size_t group = 0; group < met.size(); ++group) {
    const std::vector<size_t>& members = plan.meetings[group].launches;
    if (!met[group]) launches.insert(members.begin(), members.end());
  }
  return launches;
}

CallsNs calls_of(const std::vector<PlannedCall>& calls) {
  Clock::time_point first = Clock::time_point::max();
  for (const PlannedCall& call : calls) first = std::min(first, call.begin);
  const auto ns = [&](const Clock::time_point time) {
    return int64_t{std::chrono::nanoseconds(time - first).count()};
  };
  CallsNs found;
  for (const PlannedCall& call : calls) found.push_back({ns(call.begin), ns(call.end)});
  return found;
}

}  // namespace

Gpu::Gpu(const int32_t index, const bool from_ptx)
    : shelf_(SharedGpu::of(index)), holdings_(std::make_unique<Holdings>(index, from_ptx)) {}

Gpu::~Gpu() {
  if (!drained()) shelf_.leave(std::move(holdings_));
}

bool Gpu::drained() {
  return poll_until(kUntilLeft, [this] { return holdings_->drained(); });
}

Observation Gpu::observe(const Sequence& sequence, const RunOptions& options) {
  std::unique_lock turn(shelf_.turn, std::defer_lock);
  while (!turn.try_lock_for(kBetweenInterrupts)) options.interrupted();
  const bool timed = is_timed(sequence);
  const bool times_matter = timed && options.groups.empty();
  if (times_matter || (!drained_in_order_ && !options.any_state)) {
    // Where blocks go depends on how the blocks before them left: this starts from the usual state.
    // And the worker's first call after a while is slow, which would show in the times of its
    // launch.
    Launch everywhere;
    everywhere.blocks = context().properties().sms;
    RunOptions before = options;
    before.by_worker = times_matter;
    before.groups.clear();
    before.issue_times.clear();
    before.together.reset();
    observe_surely({everywhere}, before);
  }
  return observe_surely(sequence, options);
}

Observation Gpu::observe_surely(const Sequence& sequence, const RunOptions& options) {
  wait_for_blocks_of_before(options);
  const CurrentContext current(context());
  Holdings::Resources& resources = *holdings_->resources;
  {
    const Stopwatch stopwatch(spent_.plan);
    resources.plan = {};  // its graphs have kernels that may be forgotten
    resources.plan_resources.trim();
    resources.plan = plan_sequence(sequence, options.groups, context(), resources.plan_resources,
                                   now_and_then(options.interrupted));
  }
  int doubtful = 0;
  size_t shared = 0;
  for (;;) {
    Verdict verdict = run_once(sequence, options);
    if (verdict.still.count() != 0) {
      ++interruptions_;
      if (options.together) {
        throw Shared("blocks were off their SMs: another process uses GPU " +
                     std::to_string(context().device()));
      }
      if (shared == kPausesWhileShared.size()) {
        throw Shared("another process uses this GPU: in each of " + std::to_string(shared + 1) +
                     " runs blocks were off their SMs, for " +
                     std::to_string(verdict.still.count() / 1000) +
                     " us in the last; stop the other one, or wait until it is done");
      }
      const auto pause = kPausesWhileShared[shared++];
      poll_until(pause, [&] { return options.interrupted(), false; });
    } else if (verdict.doubt.empty()) {
      return {.launches = std::move(verdict.launches),
              .calls_ns = std::move(verdict.calls_ns),
              .met = std::move(verdict.met)};
    } else if (options.together) {
      throw Unstable(verdict.doubt);  // all GPUs run again
    } else if (++doubtful == kAttempts) {
      throw Unstable("in each of " + std::to_string(kAttempts) + " runs something was doubtful; " +
                     verdict.doubt);
    }
  }
}

// Waits until blocks of earlier runs have left: they would be measured, too.
void Gpu::wait_for_blocks_of_before(const RunOptions& options) {
  const bool gone = poll_until(options.deadline, [&] {
    if (holdings_->drained() && shelf_.clear()) return true;
    options.interrupted();
    return false;
  });
  if (gone) return;
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
    resources.own_memory(holdings_->kept_context);
    resources.memory->lay_out(plan, options.warp_slots, longest_hold(options.deadline));
    if (waits_for_local_memory(plan, context().local_memory())) context().shrink_local_memory();
    make_ready(context(), plan, resources.memory->transfers());
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
  const std::scoped_lock turn(shelf_.turn);
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
