// The order of launches in which a program ends soonest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"
#include "tbsched/sim/host_calls.h"

namespace tbsched {

struct Shortest {
  size_t order;  // index among the orders
  int64_t makespan_ns;
};

// Returns the first order with the shortest makespan; nothing if that is not less than `limit_ns`.
// Several orders are tried in parallel. `orders`: for each order, the numbers of all events of the
// timed sequence. `calls`: gaps, which move with their events, or an interval. Throws
// std::invalid_argument for anything else, and as predict_timeline().
std::optional<Shortest> shortest_order(const Model& model, const Sequence& sequence,
                                       std::span<const int32_t> orders, InitialState state,
                                       const HostCalls& calls, int64_t limit_ns, int32_t threads);

}  // namespace tbsched
