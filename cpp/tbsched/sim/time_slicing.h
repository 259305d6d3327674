// Several processes on one GPU, without MPS: they take turns.
//
// An example: two processes have a kernel each that takes 10 ms. The first runs for a slice, and
// then the second for a slice. The SMs are never shared: a block that is stopped stays where it is,
// and goes on when its process has the GPU again.
//
// The rules:
//   1. A process has work from the time at which a launch reaches the GPU until it is over. It
//      gives its turn up as soon as it has none and another process has.
//   2. A process keeps the GPU for a slice. If no other process has work, a new slice begins after
//      one ends, provided that something waits in hardware queues: a launch, or a copy or an event
//      behind a launch. A slice also begins when one of these arrives while nothing waits, and when
//      a launch no longer waits for a copy. After the last slice the process goes on until another
//      one has work.
//      Slices can differ by process, and a process can have several slots in a round: Runlist.
//   3. The next process is chosen as soon as another one has work and nothing waits in hardware
//      queues, or else at the end of the turn: the process that follows in the round, of those that
//      have work then. A launch that waits for a copy by an engine does not count as waiting.
//   4. While others have work, and nothing else waits in hardware queues, the GPU does not look at
//      a hardware queue that was empty, nor at a launch that waited for a copy. Both wait for the
//      next turn of their process. What is issued after the work of another process reaches the GPU
//      after it.
//   5. Switching takes a while. Stopping blocks, and resuming them, takes longer the more registers
//      and shared memory they have.
//   6. Meanwhile hosts and copies by engines continue. A process that only waits for such copies
//      has no work.
//      The record of an event needs a turn, but not behind a copy by an engine.
//   7. Processes that copy in one direction take turns in the engine: engine_sharing.h.
// Source: traces processes; docs/explanation/processes.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"
#include "tbsched/sim/host_calls.h"

namespace tbsched {

// A time during which a process has the GPU.
struct Turn {
  int32_t process;
  int64_t begin_ns;
  int64_t end_ns;
};

struct ProcessTimelines {
  std::vector<Timeline> timelines;  // by process, all by the GPU's clock
  std::vector<Turn> turns;
};

// The slots of a round, and how long they are. A slot is skipped while its process has no work.
struct Runlist {
  std::vector<size_t> slots;      // the process of each; every process has one at least
  std::vector<int64_t> slice_ns;  // by process
};

// Predicts the timelines of processes, one for each program, that share a GPU. `calls`: by program.
// `last`: the process that had the GPU before, if that is known; the GPU must switch to any other
// one. Throws as Simulation::run().
ProcessTimelines predict_processes(const Model& model, std::span<const Sequence* const> programs,
                                   InitialState state, std::vector<HostCalls> calls,
                                   std::optional<size_t> last, Runlist runlist);

}  // namespace tbsched
