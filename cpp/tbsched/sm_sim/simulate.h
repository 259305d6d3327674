// Warp schedulers, caches and memory of a GPU that runs one kernel, cycle by cycle. Idle cycles are
// skipped.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tbsched/sm_sim/config.h"
#include "tbsched/sm_sim/dram/command.h"
#include "tbsched/sm_sim/schedulers/scheduler.h"
#include "tbsched/sm_sim/schedulers/table.h"
#include "tbsched/sm_sim/statistics.h"
#include "tbsched/sm_sim/workload.h"

namespace tbsched::sm_sim {

struct Options {
  const SchedulerRow& scheduler;  // e.g. scheduler_named("owl")
  MakeScheduler make = scheduler.make;
  bool log_commands = false;
  bool log_warps = false;
  bool checked = false;  // every DRAM command is checked against every constraint
  std::span<const int32_t> cores_of =
      {};  // the core of each block; empty: assigned as the config says
  std::function<void()> now_and_then = {};  // called at intervals; may throw to end early
};

struct Simulation {
  Statistics statistics;
  std::vector<BlockTime> blocks;
  std::vector<Command> commands;  // only with log_commands
  std::vector<WarpTime> warps;    // only with log_warps
};

// Simulates a kernel. Equal arguments give equal results. Throws std::invalid_argument for an
// invalid workload or config, and for a scheduler that picks a warp which is not ready.
Simulation simulate(const Workload& workload, const Config& config, const Options& options);

// A line that a controller reads or writes, from a cycle of the DRAM clock on.
struct MemoryRequest {
  int64_t cycle;
  uint64_t address;
  bool write;
};

// Returns the commands that the controllers send for requests. These bypass cores and caches, and
// must be in order of their cycles. Throws std::invalid_argument if they are not.
std::vector<Command> dram_commands(std::span<const MemoryRequest> requests, const Config& config,
                                   bool prefetch);

}  // namespace tbsched::sm_sim
