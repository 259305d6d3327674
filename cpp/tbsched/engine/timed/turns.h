// Several processes on one GPU, without MPS: they take turns.
//
// An example: two processes have a kernel each that takes 10 ms. The first runs for a slice, and
// then the second for a slice; the GPU switches nine times before both are over. The SMs are never
// shared, and blocks stay where they are while their process has not the GPU.
//
// The rules:
//   1. A process has work from the call that issues a launch until the launch is over.
//   2. Whose turn it is keeps the GPU while nobody else has work, and else for a slice.
//   3. The next turn is that of the process with work which follows in the round.
//   4. A switch takes a while, in which nobody has the GPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"

namespace tbsched {

// A process has the GPU.
struct Turn {
  int32_t process;
  int64_t begin_ns;
  int64_t end_ns;
};

struct ProcessTimelines {
  std::vector<Timeline> timelines;  // of each process, all of one clock
  std::vector<Turn> turns;
};

// `issue_ns`: of each program, when its host issues each launch, ascending. Throws as
// TimedEngine::run().
ProcessTimelines predict_processes(const Model& model, std::span<const Sequence* const> programs,
                                   InitialState state, std::vector<std::vector<int64_t>> issue_ns);

}  // namespace tbsched
