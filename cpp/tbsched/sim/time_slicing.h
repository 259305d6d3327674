// Several processes on one GPU, without MPS: they take turns.
//
// An example: two processes have a kernel each that takes 10 ms. The first runs for a slice, and
// then the second for a slice. The SMs are never shared: a block that is stopped stays where it is,
// and goes on when its process has the GPU again.
//
// The rules:
//   1. A process has work from the time at which a launch reaches the GPU until it is over. It
//      gives its turn up as soon as it has none and another process has.
//   2. A process keeps the GPU for a slice. Where nobody else has work, a new slice begins as soon
//      as one is over, if anything waits in hardware queues: a launch, or a copy or an event behind
//      a launch. So it does with each of these that comes while nothing waits, and when a launch
//      need not wait for a copy any more. After the last slice it goes on until another process
//      comes.
//   3. Who is next is chosen as soon as another process has work and nothing waits in hardware
//      queues, or else at the end of the turn: the process that follows in the round, of those that
//      have work then. A launch that waits for a copy by an engine does not count as waiting.
//   4. While others have work, and nothing else waits in hardware queues, the GPU does not look at
//      a hardware queue that was empty, nor at a launch that waited for a copy. Both wait for the
//      next turn of their process. What is issued after the work of another process reaches the GPU
//      after it.
//   5. To switch takes a while. To stop blocks, and to let them go on, takes longer the more
//      registers and shared memory they have.
//   6. Meanwhile hosts go on, and copies by engines. Who only waits for such copies has no work.
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

// `calls`: by program. `last`: the process that had the GPU before, if that is known; the GPU must
// switch to any other one. Throws as Simulation::run().
ProcessTimelines predict_processes(const Model& model, std::span<const Sequence* const> programs,
                                   InitialState state, std::vector<HostCalls> calls,
                                   std::optional<size_t> last = {});

}  // namespace tbsched
