// Infers the latent state of an idle device from where blocks went.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"

namespace tbsched {

// Returns the index of the first of `states` in which every block is predicted where it was
// observed before the next event; nothing if there is none. `seen`: the SM of every block, by
// launch. Most states are eliminated at the first launch.
std::optional<size_t> matching_state(const Model& model, const Sequence& sequence,
                                     std::span<const InitialState> states,
                                     std::span<const int32_t> seen);

}  // namespace tbsched
