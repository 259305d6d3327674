// One simulation of a process and its GPUs. It runs a program whose blocks end by themselves, from
// one instant at which something happens to the next.
//
// At each instant, in this order:
//   1. Blocks that end then leave. So do host threads that wait for what is over.
//   2. Hosts issue the calls that are due.
//   3. Each GPU admits launches, and places blocks (simulated_gpu.h). GPUs to which nothing happens
//      are left out.
//   4. GPUs learn what others did for which they wait.
// Blocks that take no time leave at the same instant, and the instant is simulated again.
//
// Several GPUs take turns. While no host calls, and no host and no other GPU can learn anything of
// a GPU, one GPU after the other simulates its own instants: its state then stays in the
// processor's cache.
//
// A program hangs if nothing more happens and blocks wait for others that they meet, or streams for
// values: that is a result.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"
#include "tbsched/sim/between_gpus.h"
#include "tbsched/sim/clock.h"
#include "tbsched/sim/event_queue.h"
#include "tbsched/sim/host_calls.h"
#include "tbsched/sim/numbering.h"
#include "tbsched/sim/paces.h"
#include "tbsched/sim/simulated_gpu.h"
#include "tbsched/sim/snapshot.h"

namespace tbsched {

// A GPU, and the latent state in which it begins. The model outlives its simulation.
struct StartingGpu {
  const Model* model;
  InitialState state;
};

class Simulation {
 public:
  // Simulates one GPU. More waits than `max_waits` are refused.
  Simulation(const Model& model, const InitialState state, HostCalls calls,
             const size_t max_waits = kMaxWaits)
      : Simulation(std::vector<StartingGpu>{{&model, state}}, std::move(calls), max_waits) {}
  // Simulates GPUs, at least one, that share a clock and the host threads, whose calls take as long
  // as the first GPU's device says.
  Simulation(const std::vector<StartingGpu>& gpus, HostCalls calls, size_t max_waits = kMaxWaits);
  // Sets the order of launches of one GPU as GpuWork::take_turns() does. Call it before run().
  void take_turns(std::vector<int32_t> turns) { gpus_[0]->work().take_turns(std::move(turns)); }
  // Makes blocks of these launches of one GPU slow each other. Durations are then those of a launch
  // that has the GPU for itself. Call it before run() or begin().
  void slow(const Neighbours& neighbours) { gpus_[0]->blocks().slow(neighbours); }
  // Makes the timeline have a row for each launch only. Call it before run() or begin().
  void keep(const Detail detail) { between_.detail = detail; }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Simulates a sequence to its end and returns its timeline. Throws std::invalid_argument for a
  // launch that can never fit or has no duration or time of issue, for a GPU that is not there, for
  // a stream of a negative number other than the legacy stream, for a release, if time overflows,
  // and for more blocks or waits than a timeline holds. Throws std::logic_error if a launch does
  // not end and nobody waits for it for ever, which indicates a bug.
  Timeline run(const Sequence& sequence) &&;
  // Returns the nanoseconds from the first start to the last end, of one GPU; kNever as soon as
  // they are known to be at least `limit_ns`, or if the program hangs. Throws as run().
  int64_t makespan(const Sequence& sequence, int64_t limit_ns) &&;
  // Returns what the SMs of a GPU hold after everything that happens by `at_ns`. Throws as run().
  Snapshot snapshot(const Sequence& sequence, int32_t gpu, int64_t at_ns) &&;

  // Begins what run() does in one call, for a process that shares its GPU (time_slicing.h).
  void begin(const Sequence& sequence) { add(sequence); }
  // Shares the copy engines with other processes. Call it before begin().
  void share(const std::span<EngineTurns, CopyEngines::kShared> engines, const int32_t process) {
    gpus_[0]->work().share(engines, process);
  }
  const Clock& clock() const { return clock_; }
  const GpuWork& work() const { return gpus_[0]->work(); }
  const GpuState& gpu() const { return gpus_[0]->scheduler().gpu(); }
  // Returns when the next event happens, by the process's own clock; kNever: none.
  int64_t next_instant() const;
  // Returns when the next event happens that needs no turn, by the GPU's clock; kNever: none.
  int64_t next_gpu_ns() const {
    return std::min(host_events_.next_gpu_ns(), gpus_[0]->events().next_gpu_ns());
  }
  // Returns how many batches of blocks have started.
  int64_t starts() const { return gpus_[0]->blocks().starts(); }
  // Simulates the next instant. Returns false if there is none.
  bool step(const Sequence& sequence);
  // Simulates an instant, at this time of the process's own clock.
  void step_at(const Sequence& sequence, int64_t at_ns);
  // Makes the GPU defer what comes to empty hardware queues.
  void back_off() { gpus_[0]->work().back_off(); }
  // Simulates what needs no turn. The own clock stands at `at_ns` while the GPU's is at `gpu_ns`.
  void step_without_gpu(const Sequence& sequence, int64_t at_ns, int64_t gpu_ns);
  // Gives the process the GPU again, at these times of its own clock and the GPU's.
  void resume_at(int64_t at_ns, int64_t gpu_ns);
  // Returns the timeline, with times by the GPU's clock.
  Timeline finish() &&;

 private:
  // The numbers of an event's first launch and transfers.
  struct NumbersOfEvent {
    int32_t launch;        // in the whole program
    EventNumbers numbers;  // on its GPU
  };

  // Adds the events to their GPUs, and schedules the first calls of the hosts.
  void add(const Sequence& sequence);
  // Refuses an event that cannot be simulated.
  void check(const Event& event, int32_t first_launch) const;
  // Returns a lower bound of the makespan in ns, as far as is known now.
  int64_t least_makespan();
  // Lets hosts go on whose waits have ended.
  void wake_hosts(const Sequence& sequence);
  // Makes the calls that are due.
  void issue(const Sequence& sequence);
  // Adds a GPU to those to which something happens at this instant.
  void activate(int32_t gpu);
  // Activates the GPU that a call is for, and returns it.
  SimulatedGpu& activate_gpu_of(const Event& event);
  // For a call that synchronizes or sets up local memory: adds an operation that ends when the call
  // may go on, and returns it; none: the call need not wait.
  std::optional<OperationOfGpu> await_work(const Event& event);
  // If there is no place for the work of an event's call in its stream or hardware queue: adds an
  // operation that ends when there is one, and returns it; none: there is a place, or the times of
  // calls are given.
  std::optional<OperationOfGpu> await_queue_place(const Event& event);
  // Issues the event of a call, and finishes the call or lets it wait for the end of its work.
  void carry_out(const Hosts::Call& call, const Event& event);
  // Makes later work of the legacy stream of the GPU `second` wait for earlier work of that of
  // `first`.
  void order_legacy_streams(int32_t first, int32_t second);
  // Tells GPUs what happened on others for which they wait.
  void deliver_notices();
  // Updates next_ns_ and quiet_ns_ of the active GPUs.
  void update_next();
  void run_ahead(int64_t limit_ns);
  // Refuses a program with more waits than are kept.
  void check_waits() const;
  // Sets hang_ if the program hangs, as nothing more happens. Throws std::logic_error if a launch
  // has not ended for no reason.
  void find_hang();
  // Returns the timeline of the whole program, without blocks, from those of its GPUs.
  Timeline merged(std::vector<Timeline> timelines) const;

  Clock clock_;
  EventQueue host_events_;
  Hosts hosts_;
  BetweenGpus between_;
  std::vector<std::unique_ptr<SimulatedGpu>> gpus_;
  std::vector<int32_t> active_;    // the GPUs to which something happens at this instant, ascending
  std::vector<int64_t> next_ns_;   // by GPU, when the next event happens
  std::vector<int64_t> quiet_ns_;  // by GPU, until when it is known to be quiet
  size_t max_waits_;               // of all launches together
  size_t shown_rows_ = 0;          // of the timeline, without hidden launches
  int32_t launches_ = 0;           // number in the whole program
  int32_t transfers_ = 0;          // the same of copies, memsets and host functions
  std::vector<NumbersOfEvent> numbers_of_event_;
  std::vector<int32_t> launch_gpus_;    // the GPU of each launch; empty if there is one
  std::vector<int32_t> transfer_gpus_;  // the same of each copy and memset
  std::vector<int64_t> issued_ns_;      // by launch, if gaps are given
  std::optional<Hang> hang_;
};

}  // namespace tbsched
