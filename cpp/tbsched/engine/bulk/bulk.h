// Predictions of many sequences at once, as campaigns need them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tbsched/policy/model.h"
#include "tbsched/program/event_table.h"
#include "tbsched/program/refusal.h"

namespace tbsched {

// The prediction of a sequence up to and including the first launch that is not placed whole.
struct UntilRefused {
  std::vector<int32_t> smid;        // of all blocks, by launch
  int64_t events = 0;               // of the sequence that were predicted
  Refusal limiter = Refusal::none;  // of the first launch that is not placed whole
};

// Predicts each sequence separately, on an idle GPU in `state`. Throws std::invalid_argument naming
// the first sequence at fault by its number.
std::vector<UntilRefused> predict_until_refused(const Model& model, const EventTable& table,
                                                InitialState state, int32_t threads);

// Returns, for sequences of one launch each, how many of its blocks the driver would allow if it
// were cooperative. Throws std::invalid_argument naming the first sequence at fault by its number.
std::vector<int32_t> allowed_at_once(const Model& model, const EventTable& table);

// Returns, for each sequence, the index of the first of `states` that places every block where it
// was observed; -1: none does. `seen`: for each sequence, the SM of every block, by launch. Throws
// std::invalid_argument if it has not an array for each sequence, and naming the first sequence at
// fault by its number.
std::vector<int32_t> matching_states(const Model& model, const EventTable& table,
                                     std::span<const InitialState> states,
                                     std::span<const std::span<const int32_t>> seen,
                                     int32_t threads);

}  // namespace tbsched
