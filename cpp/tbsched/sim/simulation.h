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
// Several GPUs take turns. While no host calls, and no launch of any GPU can end, one GPU after the
// other simulates its own instants: its state then stays in the processor's cache.
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
  Simulation(const Model& model, const InitialState state, HostCalls calls,
             const size_t most_waits = kMaxWaits)
      : Simulation(std::vector<StartingGpu>{{&model, state}}, std::move(calls), most_waits) {}
  // At least one GPU is needed.
  Simulation(const std::vector<StartingGpu>& gpus, HostCalls calls, size_t most_waits = kMaxWaits);
  // As GpuWork::take_turns(), of one GPU. Call it before run().
  void take_turns(std::vector<int32_t> turns) { gpus_[0]->work().take_turns(std::move(turns)); }
  // Makes blocks of these launches of one GPU slow each other. Durations are then those of a launch
  // that has the GPU for itself. Call it before run() or begin().
  void slow(const Neighbours& neighbours) { gpus_[0]->blocks().slow(neighbours); }
  // Makes the timeline have a row for each launch only. Call it before run() or begin().
  void keep(const Detail detail) { between_.detail = detail; }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  // Throws std::invalid_argument for a launch that can never fit or has no duration or time of
  // issue, for a GPU that is not there, for a stream of a negative number other than the legacy
  // stream, for a release, if time overflows, and for more blocks or waits than a timeline holds.
  // Throws std::logic_error if a launch does not end and nobody waits for it for ever, which
  // indicates a bug.
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
  // When the next event happens, by the process's own clock.
  int64_t next_instant() const;
  // When the next event happens that needs no turn, by the GPU's clock.
  int64_t next_gpu_ns() const {
    return std::min(host_events_.next_gpu_ns(), gpus_[0]->events().next_gpu_ns());
  }
  // How many groups of blocks have started.
  int64_t starts() const { return gpus_[0]->blocks().starts(); }
  // Simulates the next instant. Returns false if there is none.
  bool step(const Sequence& sequence);
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
  // Where the launches and transfers of an event are, by number in the whole program.
  struct Place {
    int32_t launch;
    EventNumbers numbers;  // on its GPU
  };

  void add(const Sequence& sequence);
  void check(const Event& event, int32_t first_launch) const;
  int64_t least_makespan() const;
  void wake_hosts(const Sequence& sequence);
  void issue(const Sequence& sequence);
  void activate(int32_t gpu);
  SimulatedGpu& gpu_of_call(const Event& event);
  std::optional<OperationOfGpu> wait_for(const Event& event);
  std::optional<OperationOfGpu> wait_for_place(const Event& event);
  void carry_out(const Hosts::Call& call, const Event& event);
  void order_legacy_streams(int32_t first, int32_t second);
  void pass_on();
  void find_next();
  void run_ahead(int64_t limit_ns);
  void check_waits() const;
  void find_hang();
  Timeline in_order(std::vector<Timeline> timelines) const;

  Clock clock_;
  EventQueue host_events_;
  Hosts hosts_;
  BetweenGpus between_;
  std::vector<std::unique_ptr<SimulatedGpu>> gpus_;
  std::vector<int32_t> active_;    // the GPUs to which something happens at this instant, ascending
  std::vector<int64_t> next_ns_;   // by GPU, when the next event happens
  std::vector<int64_t> quiet_ns_;  // by GPU, until when it is known to be quiet
  size_t most_waits_;
  size_t shown_rows_ = 0;  // of the timeline, without hidden launches
  int32_t launches_ = 0;
  int32_t transfers_ = 0;
  std::vector<Place> places_;           // by event
  std::vector<int32_t> launch_gpus_;    // the GPU of each launch; empty if there is one
  std::vector<int32_t> transfer_gpus_;  // the same of each copy and memset
  std::vector<int64_t> issued_ns_;      // by launch, if gaps are given
  std::optional<Hang> hang_;
};

}  // namespace tbsched
