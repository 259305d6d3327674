// What a campaign asks of many sequences at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tbsched/policy/model.h"
#include "tbsched/program/event_table.h"
#include "tbsched/program/refusal.h"

namespace tbsched {

// Of a sequence up to and with the first launch that is not placed whole.
struct UntilRefused {
  std::vector<int32_t> smid;  // of all blocks, launch after launch
  int64_t events = 0;
  Refusal limiter = Refusal::none;  // of that launch
};

// Each sequence by itself, on an idle GPU in `state`. Throws std::invalid_argument naming the first
// sequence at fault by its number.
std::vector<UntilRefused> predict_until_refused(const Model& model, const EventTable& table,
                                                InitialState state, int32_t threads);

// Of each launch of sequences of one launch, how many of its blocks the driver would allow if it is
// cooperative. Throws as above.
std::vector<int32_t> allowed_at_once(const Model& model, const EventTable& table);

// For each sequence the first of `states` that puts every block where it was seen, or -1. `seen` is
// of each sequence; throws std::invalid_argument else, and as above.
std::vector<int32_t> matching_states(const Model& model, const EventTable& table,
                                     std::span<const InitialState> states,
                                     std::span<const std::span<const int32_t>> seen,
                                     int32_t threads);

}  // namespace tbsched
