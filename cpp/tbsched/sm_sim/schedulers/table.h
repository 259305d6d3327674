// The schedulers by name.
#pragma once

#include <span>
#include <string_view>

#include "tbsched/sm_sim/schedulers/scheduler.h"

namespace tbsched::sm_sim {

// A scheduler and what goes with it.
struct SchedulerRow {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Scheduler> (*make)(const Config& config, const CoreShape& shape);
  bool prefetch = false;    // the controllers prefetch
  bool perfect_l1 = false;  // every access hits L1
  bool perfect_l2 = false;  // what misses L1 hits L2
};

// Returns all schedulers.
std::span<const SchedulerRow> scheduler_table();
// Returns the scheduler of a name. Throws std::invalid_argument if there is none.
const SchedulerRow& scheduler_named(std::string_view name);

}  // namespace tbsched::sm_sim
