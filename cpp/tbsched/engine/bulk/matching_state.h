// Which latent state an idle device was in, by where blocks went.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"

namespace tbsched {

// The first of `states` from which every block is predicted where it was seen before the next
// event, launch after launch. Most states are given up at the first launch.
std::optional<size_t> matching_state(const Model& model, const Sequence& sequence,
                                     std::span<const InitialState> states,
                                     std::span<const int32_t> seen);

}  // namespace tbsched
