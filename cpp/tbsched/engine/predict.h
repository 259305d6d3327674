// Predictions of whole sequences: where every block goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "tbsched/engine/held/race.h"
#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"
#include "tbsched/program/trace.h"
#include "tbsched/sim/host_calls.h"
#include "tbsched/sim/paces.h"
#include "tbsched/sim/simulation.h"
#include "tbsched/sim/snapshot.h"

namespace tbsched {

// Predicts where the blocks of held launches go. With `warp_slots`, also the warp slots of blocks
// placed before the next event, counted from processing block 0 of every SM; needs warps in strict
// turn, else throws std::invalid_argument.
std::vector<LaunchTrace> predict(const Model& model, const Sequence& sequence, InitialState state,
                                 bool warp_slots = false);
// Predicts where blocks go if they leave, and others take their room, in the order of `race`.
std::vector<LaunchTrace> predict(const Model& model, const Sequence& sequence, InitialState state,
                                 Race& race);

// Predicts when and where the blocks of a sequence whose launches have durations run. `turns`: a
// number for each launch; of those that may start at the same time, the least goes first; empty: in
// order of issue. With `neighbours`, blocks slow each other.
Timeline predict_timeline(const Model& model, const Sequence& sequence, InitialState state,
                          HostCalls calls, std::vector<int32_t> turns = {},
                          const Neighbours* neighbours = nullptr, Detail detail = Detail::blocks);

// Predicts a timed sequence over several GPUs.
Timeline predict_timeline(const std::vector<StartingGpu>& gpus, const Sequence& sequence,
                          HostCalls calls);

using Prediction = std::variant<std::vector<LaunchTrace>, Timeline>;

// Predicts every sequence separately, each on an idle GPU, on `threads` threads. Returns a Timeline
// where launches have durations. Throws std::invalid_argument naming the first sequence at fault by
// its number.
std::vector<Prediction> predict_many(const Model& model, std::span<const Sequence* const> sequences,
                                     InitialState state, int64_t launch_interval_ns,
                                     bool warp_slots, int32_t threads);

// The room of an SM for a launch's blocks, and all that limits it.
struct LimitedRoom {
  Room room;
  Refusals limiters = 0;
};

// Returns, by launch and SM, the room for the launch's blocks when it arrived.
std::vector<std::vector<LimitedRoom>> capacities(const Model& model, const Sequence& sequence,
                                                 InitialState state);

// Returns what every SM holds after this number of events of a sequence.
Snapshot snapshot_after(const Model& model, const Sequence& sequence, InitialState state,
                        size_t event_count);
// Returns what every SM holds at a time of a sequence whose launches have durations, including
// everything that happens at that time.
Snapshot snapshot_at(const Model& model, const Sequence& sequence, InitialState state,
                     HostCalls calls, int64_t at_ns, const Neighbours* neighbours = nullptr);
// Returns what every SM of one of several GPUs holds at a time, including everything that happens
// at that time.
Snapshot snapshot_at(const std::vector<StartingGpu>& gpus, const Sequence& sequence,
                     HostCalls calls, int32_t gpu, int64_t at_ns);

}  // namespace tbsched
