#include "tbsched/engine/timed/turns.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "tbsched/engine/timed/timed_engine.h"
#include "tbsched/hardware/sm/units.h"
#include "tbsched/program/refuse.h"

namespace tbsched {
namespace {

// What a process does by its own clock, which stands still while another one has the GPU.
class Process {
 public:
  Process(const Model& model, const Sequence& program, const InitialState state,
          std::vector<int64_t> issue_ns)
      : program_(program),
        engine_(model, state, CallTimes{std::move(issue_ns)}),
        latency_ns_(model.device().spec.launch_latency_ns) {
    engine_.begin(program_);
  }

  const GpuState& gpu() const { return engine_.gpu(); }
  bool busy() const { return engine_.busy(); }
  bool waits_in_queue() const { return engine_.waits(); }
  size_t launches_issued() const { return engine_.launches_issued(); }
  // Whether blocks have started since it last went on.
  bool started() const { return engine_.starts() > starts_; }
  // From when on it wants the GPU; kNever: no more.
  int64_t wants_ns() const {
    return engine_.under_way() ? stopped_ns_ : on_the_gpu(engine_.next_call_ns(), latency_ns_);
  }
  // When it next does anything, if it has the GPU until then.
  int64_t next_ns() const { return on_the_gpu(engine_.next_instant()); }
  void step() { engine_.step(program_); }
  void doze() { engine_.doze(); }

  // It has something to do.
  void go_on(const int64_t now) {
    const int64_t at_ns = engine_.under_way() ? stopped_ns_ - late_ns_ : engine_.next_call_ns();
    if (const int64_t waited_ns = now - wants_ns(); waited_ns > 0) {
      late_ns_ += waited_ns;
      stops_.push_back({at_ns, late_ns_});
      engine_.stand_still(at_ns, waited_ns);
    }
    engine_.look_again(at_ns);
    starts_ = engine_.starts();
    while (engine_.next_call_ns() <= at_ns) step();
  }

  void stop(const int64_t now) {
    stopped_ns_ = now;
    // Streams learn that all is over.
    while (!engine_.under_way() && engine_.next_instant() < engine_.next_call_ns()) step();
  }

  Timeline finish() && {
    Timeline timeline = std::move(engine_).finish();
    for (BlockTime& block : timeline.blocks) {
      block.start_ns = begun_ns(block.start_ns);
      block.end_ns = ended_ns(block.end_ns);
    }
    for (Wait& wait : timeline.waits) {
      wait.begin_ns = begun_ns(wait.begin_ns);
      wait.end_ns = begun_ns(wait.end_ns);
    }
    return timeline;
  }

 private:
  struct Stop {
    int64_t at_ns;    // of its own clock
    int64_t late_ns;  // all stops up to this one
  };

  int64_t on_the_gpu(const int64_t own_ns, const int64_t later_ns = 0) const {
    return own_ns == kNever ? kNever : own_ns + late_ns_ + later_ns;
  }
  // What begins as the process is stopped begins when it goes on; what ends has ended.
  int64_t begun_ns(const int64_t own_ns) const {
    return own_ns + late_ns(std::ranges::upper_bound(stops_, own_ns, {}, &Stop::at_ns));
  }
  int64_t ended_ns(const int64_t own_ns) const {
    return own_ns + late_ns(std::ranges::lower_bound(stops_, own_ns, {}, &Stop::at_ns));
  }
  int64_t late_ns(const std::vector<Stop>::const_iterator behind) const {
    return behind == stops_.begin() ? 0 : std::prev(behind)->late_ns;
  }

  const Sequence& program_;
  TimedEngine engine_;
  const int64_t latency_ns_;
  int64_t late_ns_ = 0;  // its clock behind that of the GPU
  int64_t stopped_ns_ = 0;
  int64_t starts_ = 0;
  std::vector<Stop> stops_;
};

class Round {
 public:
  Round(const Model& model, const std::span<const Sequence* const> programs,
        const InitialState state, std::vector<std::vector<int64_t>> issue_ns)
      : spec_(model.device().spec) {
    for (size_t k = 0; k < programs.size(); ++k) {
      processes_.emplace_back(model, *programs[k], state, std::move(issue_ns[k]));
    }
  }

  ProcessTimelines run() && {
    ProcessTimelines found;
    std::optional<size_t> last;
    std::optional<size_t> next = first_to_come(0);
    while (next) {
      now_ = std::max(now_, processes_[*next].wants_ns());
      if (last && next != last) now_ += switch_ns(processes_[*last]);
      const int64_t begin_ns = now_;
      const std::optional<size_t> waits = next_in_round(*next, now_ + spec_.process_switch_ns);
      take_turn(processes_[*next]);
      found.turns.push_back({static_cast<int32_t>(*next), begin_ns, now_});
      const bool expired = processes_[*next].busy();
      last = next;
      next = expired ? waits : next_in_round(*last, now_);
      if (!next) next = first_to_come(*last + 1);
    }
    for (Process& process : processes_) {
      found.timelines.push_back(std::move(process).finish());
    }
    return found;
  }

 private:
  // To stop its blocks, or to let them go on.
  int64_t preemption_ns(const Process& process) const {
    if (process.gpu().idle()) return 0;
    return spec_.preemption_ns + move_ns(process.gpu().bytes_taken(), spec_.preemption_bandwidth);
  }

  // From a process to another.
  int64_t switch_ns(const Process& from) const {
    const bool stops = !from.gpu().idle();
    return spec_.process_switch_ns + preemption_ns(from) +
           (stops && from.started() ? spec_.first_preemption_ns : 0);
  }

  // The process that follows in the round of those that have work by then.
  std::optional<size_t> next_in_round(const size_t current, const int64_t by_ns) const {
    for (size_t k = 1; k < processes_.size(); ++k) {
      const size_t other = (current + k) % processes_.size();
      if (processes_[other].wants_ns() <= by_ns) return other;
    }
    return std::nullopt;
  }

  // Of several at once the first in the round from this one on.
  std::optional<size_t> first_to_come(const size_t from) const {
    size_t first = from % processes_.size();
    for (size_t k = 1; k < processes_.size(); ++k) {
      const size_t other = (from + k) % processes_.size();
      if (processes_[other].wants_ns() < processes_[first].wants_ns()) first = other;
    }
    return processes_[first].wants_ns() == kNever ? std::nullopt : std::optional(first);
  }

  // Until its slice is over, or it has nothing to do while another one has.
  void take_turn(Process& process) {
    const int64_t other_ns = first_of_others(process);
    int64_t slice_ends_ns = now_ + spec_.time_slice_ns;
    const int64_t resumed_ns = now_ + preemption_ns(process);
    if (resumed_ns >= slice_ends_ns) {
      refuse("time_slice_ns: " + std::to_string(spec_.time_slice_ns) +
             " ns are over before the blocks of a process can go on");
    }
    process.go_on(resumed_ns);
    for (;;) {
      const int64_t next_ns = process.next_ns();
      const bool waits = process.waits_in_queue();
      if (waits) slice_ends_ns = renewed(slice_ends_ns, std::min(next_ns, other_ns));
      if (next_ns >= other_ns) process.doze();
      const int64_t until_ns = process.busy() ? std::max(slice_ends_ns, other_ns) : other_ns;
      if (next_ns == kNever || next_ns > until_ns) {
        if (process.busy()) now_ = until_ns;
        break;
      }
      now_ = std::max(now_, next_ns);
      const size_t issued = process.launches_issued();
      process.step();
      if (!waits && issued < process.launches_issued() && now_ < other_ns) {
        slice_ends_ns = now_ + spec_.launch_latency_ns + spec_.time_slice_ns;
      }
    }
    process.stop(now_);
  }

  int64_t first_of_others(const Process& process) const {
    int64_t first_ns = kNever;
    for (const Process& other : processes_) {
      if (&other != &process) first_ns = std::min(first_ns, other.wants_ns());
    }
    return first_ns;
  }

  // One slice follows another until then.
  int64_t renewed(const int64_t slice_ends_ns, const int64_t until_ns) const {
    const int64_t missing_ns = until_ns - slice_ends_ns;
    if (missing_ns <= 0 || until_ns == kNever) return slice_ends_ns;
    const int64_t slices = (missing_ns + spec_.time_slice_ns - 1) / spec_.time_slice_ns;
    return slice_ends_ns + slices * spec_.time_slice_ns;
  }

  const DeviceSpec& spec_;
  std::deque<Process> processes_;  // which cannot be moved
  int64_t now_ = 0;
};

}  // namespace

ProcessTimelines predict_processes(const Model& model,
                                   const std::span<const Sequence* const> programs,
                                   const InitialState state,
                                   std::vector<std::vector<int64_t>> issue_ns) {
  return Round(model, programs, state, std::move(issue_ns)).run();
}

}  // namespace tbsched
