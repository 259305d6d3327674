#include "tbsched/sim/time_slicing.h"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "tbsched/hardware/sm/units.h"
#include "tbsched/program/refuse.h"
#include "tbsched/sim/simulation.h"

namespace tbsched {
namespace {

constexpr size_t kMaxTurns = 1'000'000;  // of 24 bytes each

// A process simulated by its own clock, which stops while it waits for the GPU. Meanwhile its hosts
// and copies continue.
class Process {
 public:
  Process(const Model& model, const Sequence& program, const InitialState state, HostCalls calls,
          const std::span<EngineTurns, CopyEngines::kShared> engines, const int32_t index)
      : program_(program), simulation_(model, state, std::move(calls)) {
    simulation_.share(engines, index);
    simulation_.begin(program_);
  }

  const GpuState& gpu() const { return simulation_.gpu(); }
  // Returns from when on it has work, by the GPU's clock.
  int64_t works_from_ns() const { return in_gpu_time(simulation_.work().works_from_ns(true)); }
  // Returns whether it does not have the GPU, and had work when it lost the GPU or since.
  bool stopped() const { return stopped_.has_value(); }
  // Returns whether it has work that the GPU sees.
  bool busy() const { return simulation_.work().works_from_ns(false) != kNever; }
  // Returns whether it has work, all of which is deferred.
  bool is_deferred() const { return !busy() && simulation_.work().works_from_ns(true) != kNever; }
  // Returns whether something waits in its hardware queues.
  bool waits_in_queue() const { return simulation_.work().any_waits(); }
  int64_t arrivals() const { return simulation_.work().arrivals(); }
  int64_t wakeups() const { return simulation_.work().wakeups(); }
  // Returns whether blocks have started since it last resumed.
  bool started() const { return simulation_.starts() > starts_; }
  // Returns from when on it wants the GPU while it does not have it; kNever: not as far as is
  // known.
  int64_t wants_ns() const { return stopped_ ? stopped_->wants_ns : kNever; }
  // Returns its next instant if it has the GPU until then.
  int64_t next_ns() const { return in_gpu_time(simulation_.next_instant()); }
  // Returns its next instant while it does not have the GPU.
  int64_t next_without_gpu_ns() const {
    return stopped_ ? std::max(stopped_->gpu_ns, simulation_.next_gpu_ns()) : next_ns();
  }
  // Simulates its next instant, while it has the GPU.
  void step() { simulation_.step(program_); }
  void back_off() { simulation_.back_off(); }

  // Simulates the next instant of its hosts and copies while it does not have the GPU.
  void step_without_gpu() {
    const int64_t gpu_ns = next_without_gpu_ns();
    const int64_t own_ns = stopped_ ? stopped_->own_ns : simulation_.next_instant();
    simulation_.step_without_gpu(program_, own_ns, gpu_ns);
    const int64_t works_ns = simulation_.work().works_from_ns(true);
    if (works_ns == kNever) return;
    if (!stopped_) stopped_ = {own_ns, gpu_ns, in_gpu_time(works_ns), works_ns - own_ns};
    // A graph reaches the GPU sooner than a launch that was issued before it.
    const int64_t arrival_ns = simulation_.work().first_arrival_ns();
    if (arrival_ns != kNever) {
      stopped_->reaches_ns = std::min(stopped_->reaches_ns, arrival_ns - own_ns);
    }
  }

  // Returns until when work must have been issued to be on the GPU if the process gets it at
  // `gpu_ns`.
  int64_t issued_by_ns(const int64_t gpu_ns) const { return gpu_ns - stopped_->reaches_ns; }
  // Gives the process the GPU at `gpu_ns`: its own time goes on from where it stopped.
  void resume(const int64_t gpu_ns) {
    starts_ = simulation_.starts();
    simulation_.resume_at(stopped_->own_ns, issued_by_ns(gpu_ns));
    simulation_.step_at(program_, stopped_->own_ns);
    stopped_.reset();
  }

  // Takes the GPU away at `gpu_ns`: the process's own time stops, unless nothing is left to run.
  void stop(const int64_t gpu_ns) {
    simulation_.back_off();
    if (simulation_.work().works_from_ns(true) == kNever) return;
    stopped_ = {simulation_.clock().to_own(gpu_ns), gpu_ns, gpu_ns, 0};
  }

  // Simulates the rest, and returns the timeline.
  Timeline finish() && {
    while (simulation_.step(program_)) {
    }
    return std::move(simulation_).finish();
  }

 private:
  // The state of a stopped clock.
  struct StoppedClock {
    int64_t own_ns;      // at which it stands
    int64_t gpu_ns;      // since when, by the GPU's clock
    int64_t wants_ns;    // from when on the process wants the GPU, by the GPU's clock
    int64_t reaches_ns;  // time from when the own clock resumes until its first work is on the GPU
  };

  int64_t in_gpu_time(const int64_t own_ns) const { return simulation_.clock().to_gpu(own_ns); }

  const Sequence& program_;
  Simulation simulation_;
  int64_t starts_ = 0;
  std::optional<StoppedClock> stopped_;
};

// The processes, which take turns.
class RoundRobin {
 public:
  RoundRobin(const Model& model, const std::span<const Sequence* const> programs,
             const InitialState state, std::vector<HostCalls> calls, Runlist runlist)
      : spec_(model.device().spec),
        runlist_(std::move(runlist)),
        engines_{EngineTurns(spec_), EngineTurns(spec_)} {
    for (size_t k = 0; k < programs.size(); ++k) {
      processes_.emplace_back(model, *programs[k], state, std::move(calls[k]), engines_,
                              static_cast<int32_t>(k));
    }
    for (const size_t process : runlist_.slots) {
      if (std::ranges::find(order_, process) == order_.end()) order_.push_back(process);
    }
  }

  // Simulates all processes. `last`: the process that had the GPU before.
  ProcessTimelines run(const std::optional<size_t> last) && {
    std::vector<Turn> turns = processes_.size() == 1 ? turn_of_one() : turns_of_all(last);
    ProcessTimelines result{.timelines = {}, .turns = std::move(turns)};
    for (Process& process : processes_) result.timelines.push_back(std::move(process).finish());
    return result;
  }

 private:
  // Simulates a single process, and returns its turn; empty if it has no work.
  std::vector<Turn> turn_of_one() {
    Process& process = processes_.front();
    int64_t begin_ns = kNever;
    for (int64_t next_ns = process.next_ns(); next_ns != kNever; next_ns = process.next_ns()) {
      now_ = next_ns;
      process.step();
      if (now_ < begin_ns) begin_ns = std::min(begin_ns, process.works_from_ns());
    }
    return begin_ns == kNever ? std::vector<Turn>() : std::vector<Turn>{{0, begin_ns, now_}};
  }

  // Simulates several processes, and returns their turns.
  std::vector<Turn> turns_of_all(const std::optional<size_t> last_process) {
    std::vector<Turn> turns;
    for (Process& process : processes_) process.back_off();
    std::optional<size_t> last;
    if (last_process)
      last = std::ranges::find(runlist_.slots, *last_process) - runlist_.slots.begin();
    std::optional<size_t> next = first_to_come(last.value_or(0));
    while (next) {
      if (turns.size() == kMaxTurns) {
        refuse("durations: the processes take more than " + std::to_string(kMaxTurns) +
               " turns; give shorter ones");
      }
      now_ = std::max(now_, process_of(*next).wants_ns());
      const bool same = last && &process_of(*next) == &process_of(*last);
      if (last && !same) now_ += switch_ns(process_of(*last));
      const bool continues = same && next != last;  // from one of its slots to another
      const int64_t begin_ns = now_;
      const std::optional<size_t> chosen = take_turn(*next, continues);
      turns.push_back({static_cast<int32_t>(runlist_.slots[*next]), begin_ns, now_});
      last = next;
      const bool wanted = chosen && process_of(*chosen).wants_ns() != kNever;
      next = wanted ? chosen : next_in_round(*last, now_);
      if (!next) next = first_to_come(*last + 1);
    }
    return turns;
  }

  // Returns how long it takes to stop the process's blocks, or to let them continue.
  int64_t preemption_ns(const Process& process) const {
    if (process.gpu().idle()) return 0;
    return spec_.preemption_ns + move_ns(process.gpu().bytes_taken(), spec_.preemption_bandwidth);
  }

  // Returns how long it takes to switch to another process.
  int64_t switch_ns(const Process& from) const {
    const bool stops = !from.gpu().idle();
    return spec_.process_switch_ns + preemption_ns(from) +
           (stops && from.started() ? spec_.first_preemption_ns : 0);
  }

  const Process& process_of(const size_t slot) const { return processes_[runlist_.slots[slot]]; }

  // Returns the slot that follows in the round, of those whose process has work by then. A process
  // that has the GPU has work if the GPU sees it.
  std::optional<size_t> next_in_round(const size_t current, const int64_t by_ns) const {
    const size_t slots = runlist_.slots.size();
    for (size_t k = 1; k < slots; ++k) {
      const size_t other = (current + k) % slots;
      const Process& process = process_of(other);
      if (process.wants_ns() <= by_ns) return other;
      if (&process == &process_of(current) && !process.stopped() && process.busy()) return other;
    }
    return std::nullopt;
  }

  // Simulates until a process has work. Returns the slot whose process has work first; at a tie,
  // the first in the round from `from` on; none: no process has work any more.
  std::optional<size_t> first_to_come(const size_t from) {
    wait_for_any(nullptr, kNever);
    const size_t slots = runlist_.slots.size();
    size_t first = from % slots;
    for (size_t k = 1; k < slots; ++k) {
      const size_t other = (from + k) % slots;
      if (process_of(other).wants_ns() < process_of(first).wants_ns()) first = other;
    }
    return process_of(first).wants_ns() == kNever ? std::nullopt : std::optional(first);
  }

  // Runs the process of a slot until its slice is over, or until it has nothing to do while another
  // one has. Returns the next slot if it was chosen before the end. `continues`: the process had
  // the GPU until now.
  std::optional<size_t> take_turn(const size_t current, const bool continues) {
    Process& process = processes_[runlist_.slots[current]];
    const int64_t slice_ns = runlist_.slice_ns[runlist_.slots[current]];
    int64_t slice_ends_ns = now_ + slice_ns;
    const int64_t resumed_ns = continues ? now_ : now_ + preemption_ns(process);
    run_without_gpu_until(nullptr, std::min(now_, process.issued_by_ns(resumed_ns)));
    run_without_gpu_until(&process, now_);
    std::optional<size_t> chosen;
    if (resumed_ns >= slice_ends_ns) {
      refuse("time_slice_ns: " + std::to_string(slice_ns) +
             " ns are over before the blocks of a process can go on");
    }
    run_without_gpu_until(nullptr, process.issued_by_ns(resumed_ns));
    process.resume(resumed_ns);
    for (;;) {
      const int64_t next_ns = process.next_ns();
      const int64_t other_ns = wait_for_any(&process, next_ns);
      const bool waits = process.waits_in_queue();
      if (waits) {
        slice_ends_ns = extended_slice_end_ns(slice_ends_ns, std::min(next_ns, other_ns), slice_ns);
      }
      // Work issued from then on reaches the GPU after the other process's.
      if (next_ns >= other_ns - spec_.launch_latency_ns) process.back_off();
      const bool any_came = other_ns != kNever && next_ns >= other_ns;
      if (!chosen && !waits && any_came && next_ns > resumed_ns) {
        chosen = next_in_round(current, std::max(now_, other_ns));
      }
      const bool busy = process.busy();
      const int64_t until_ns = busy ? std::max(slice_ends_ns, other_ns) : other_ns;
      run_without_gpu_until(&process, std::min(next_ns, until_ns));
      if (next_ns == kNever || next_ns > until_ns) {
        if (busy || process.is_deferred()) now_ = std::max(now_, until_ns);
        break;
      }
      now_ = std::max(now_, next_ns);
      const int64_t arrivals = process.arrivals();
      const int64_t wakeups = process.wakeups();
      process.step();
      if (now_ >= other_ns) continue;
      if (!waits && arrivals < process.arrivals()) {
        slice_ends_ns = now_ + spec_.launch_latency_ns + slice_ns;
      } else if (wakeups < process.wakeups()) {
        slice_ends_ns = now_ + slice_ns;
      }
    }
    process.stop(now_);
    return chosen;
  }

  // Simulates all processes excluded one until the first of them wants the GPU, or until
  // `until_ns`. Returns when the first one wants the GPU; kNever: that is not known.
  int64_t wait_for_any(const Process* const excluded, const int64_t until_ns) {
    for (;;) {
      int64_t wanted_ns = kNever;
      for (const Process& process : processes_) {
        if (&process != excluded) wanted_ns = std::min(wanted_ns, process.wants_ns());
      }
      Process* const next = first_without_gpu(excluded);
      if (next == nullptr) return wanted_ns;
      const int64_t next_ns = next->next_without_gpu_ns();
      if (next_ns > until_ns || next_ns >= wanted_ns) return wanted_ns;
      next->step_without_gpu();
    }
  }

  // Simulates the hosts and copies of all processes excluded one until then, in the order of time.
  void run_without_gpu_until(const Process* const excluded, const int64_t until_ns) {
    for (Process* next = first_without_gpu(excluded); next != nullptr;
         next = first_without_gpu(excluded)) {
      if (next->next_without_gpu_ns() > until_ns) return;
      next->step_without_gpu();
    }
  }

  // Returns the process without the GPU whose next instant is the earliest; at a tie, the one whose
  // slot comes first in the round.
  Process* first_without_gpu(const Process* const excluded) {
    Process* next = nullptr;
    int64_t next_ns = kNever;
    for (const size_t index : order_) {
      Process& process = processes_[index];
      if (&process == excluded || process.next_without_gpu_ns() >= next_ns) continue;
      next = &process;
      next_ns = process.next_without_gpu_ns();
    }
    return next;
  }

  const DeviceSpec& spec_;
  Runlist runlist_;
  std::vector<size_t> order_;  // processes by their first slot
  std::array<EngineTurns, CopyEngines::kShared> engines_;
  std::deque<Process> processes_;  // which cannot be moved
  int64_t now_ = 0;
};

}  // namespace

ProcessTimelines predict_processes(const Model& model,
                                   const std::span<const Sequence* const> programs,
                                   const InitialState state, std::vector<HostCalls> calls,
                                   const std::optional<size_t> last, Runlist runlist) {
  return RoundRobin(model, programs, state, std::move(calls), std::move(runlist)).run(last);
}

}  // namespace tbsched
