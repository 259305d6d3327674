// A whole sequence at once: where every block goes.
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
#include "tbsched/sim/snapshot.h"

namespace tbsched {

// With `warp_slots`, which needs strict turns (else throws std::invalid_argument), also those of
// the blocks placed before the next event, from processing block 0 of every SM.
std::vector<LaunchTrace> predict(const Model& model, const Sequence& sequence, InitialState state,
                                 bool warp_slots = false);
// As one race has it: in which order blocks leave, and others take their room.
std::vector<LaunchTrace> predict(const Model& model, const Sequence& sequence, InitialState state,
                                 Race& race);

// Of a sequence whose launches have durations. `turns`: a number for each launch; of those that may
// go on at the same time, the least goes first.
// With neighbours, blocks slow each other.
Timeline predict_timeline(const Model& model, const Sequence& sequence, InitialState state,
                          HostCalls calls, std::vector<int32_t> turns = {},
                          const Neighbours* neighbours = nullptr);

using Prediction = std::variant<std::vector<LaunchTrace>, Timeline>;

// Every sequence by itself, each on an idle GPU, so many at once; a Timeline where launches have
// durations. Throws std::invalid_argument naming the first sequence at fault by its number.
std::vector<Prediction> predict_many(const Model& model, std::span<const Sequence* const> sequences,
                                     InitialState state, int64_t launch_interval_ns,
                                     bool warp_slots, int32_t threads);

// For each launch and SM, the room for its blocks when it came; rows as launches, indexed by SMID.
std::vector<std::vector<Room>> capacities(const Model& model, const Sequence& sequence,
                                          InitialState state);

// What every SM holds after so many events of a sequence.
Snapshot snapshot_after(const Model& model, const Sequence& sequence, InitialState state,
                        size_t events);
// At a moment of a sequence whose launches have durations, all that happens then included.
Snapshot snapshot_at(const Model& model, const Sequence& sequence, InitialState state,
                     HostCalls calls, int64_t at_ns, const Neighbours* neighbours = nullptr);

}  // namespace tbsched
