#include "tbsched/sm_sim/simulate.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>

#include "tbsched/sm_sim/caches/slice.h"
#include "tbsched/sm_sim/clocks.h"
#include "tbsched/sm_sim/cores/core.h"
#include "tbsched/sm_sim/dram/address_map.h"
#include "tbsched/sm_sim/dram/controller.h"
#include "tbsched/sm_sim/event_queue.h"
#include "tbsched/sm_sim/network.h"

namespace tbsched::sm_sim {
namespace {

constexpr int64_t kMaxCycle = int64_t{1}
                              << 40;  // limit, so that ticks, which are shorter, do not overflow
constexpr int64_t kEventsPerCall = 1 << 16;  // of now_and_then

// Returns how many blocks a core has at once. Throws std::invalid_argument if it cannot have one.
int32_t max_resident_blocks(const Workload& workload, const Config& config) {
  const int32_t by_warps = config.warps_per_core / workload.warps_per_block;
  if (by_warps == 0) {
    throw std::invalid_argument(
        "workload.warps_per_block: " + std::to_string(workload.warps_per_block) +
        " is more than the " + std::to_string(config.warps_per_core) + " warps of a core");
  }
  return std::min({by_warps, config.blocks_per_core, workload.blocks_per_core});
}

// Throws std::invalid_argument if cores_of does not name a core of the config for each block.
void check_cores_of(const Workload& workload, const Config& config, const Options& options) {
  if (options.cores_of.empty()) return;
  if (static_cast<int32_t>(options.cores_of.size()) != workload.blocks()) {
    throw std::invalid_argument("cores_of: " + std::to_string(options.cores_of.size()) +
                                " cores; one for each of " + std::to_string(workload.blocks()) +
                                " blocks is needed");
  }
  for (const int32_t core : options.cores_of) {
    if (core < 0 || core >= config.cores) {
      throw std::invalid_argument("cores_of: " + std::to_string(core) + " is outside 0.." +
                                  std::to_string(config.cores - 1));
    }
  }
}

// All components of one simulation.
class Machine {
 public:
  Machine(const Workload& workload, const Config& config, const Options& options,
          Simulation& result)
      : config_(config),
        options_(options),
        clocks_(config),
        map_(config),
        requests_(config, clocks_, false),
        replies_(config, clocks_, true),
        statistics_(result.statistics),
        times_(result.blocks),
        bank_use_(statistics_),
        blocks_(config, workload.blocks(), options.cores_of) {
    times_.resize(static_cast<size_t>(workload.blocks()));
    const Memory memory{config_,
                        clocks_,
                        map_,
                        events_,
                        statistics_,
                        bank_use_,
                        options.log_commands ? &result.commands : nullptr,
                        options.scheduler.prefetch,
                        options.checked};
    for (int32_t index = 0; index < config.controllers; ++index) {
      controllers_.emplace_back(index, memory);
      slices_.emplace_back(index, memory, controllers_.back(), options.scheduler.perfect_l2);
    }
    const Chip chip{config_,
                    clocks_,
                    workload,
                    map_,
                    events_,
                    requests_,
                    blocks_,
                    statistics_,
                    times_,
                    options.log_warps ? &result.warps : nullptr,
                    options.scheduler.perfect_l1};
    const int32_t places = max_resident_blocks(workload, config);
    for (int32_t core = 0; core < config.cores; ++core) {
      const CoreShape shape{core, places, workload.warps_per_block};
      cores_.emplace_back(shape, chip, options.make(config, shape));
    }
    for (int32_t place = 0; place < places; ++place) {
      for (Core& core : cores_) core.start_block(0, place);
    }
  }

  // Handles all events. Throws std::logic_error if a component is still busy then.
  void run() {
    Event event;
    for (int64_t count = 1; events_.pop(event); ++count) {
      handle(event);
      if (end_tick_ < 0 && blocks_.all_ended()) finish(event.tick);
      if (count % kEventsPerCall == 0 && options_.now_and_then) options_.now_and_then();
    }
    const auto idle = [](const auto& part) { return part.idle(); };
    if (end_tick_ < 0 || !std::ranges::all_of(cores_, idle) ||
        !std::ranges::all_of(slices_, idle)) {
      throw std::logic_error("the simulation has stopped with work left");
    }
  }

 private:
  // Hands an event to its component.
  void handle(const Event& event) {
    const auto to = static_cast<size_t>(event.to);
    switch (event.kind) {
      case EventKind::issue:
        return cores_[to].issue(event.tick);
      case EventKind::fill:
        return cores_[to].fill(event.tick, {event.line, event.sectors});
      case EventKind::written:
        return cores_[to].free_store(event.tick);
      case EventKind::request:
      case EventKind::write:
        return slices_[to].arrive(event);
      case EventKind::serve:
        return slices_[to].serve(event.tick);
      case EventKind::reply:
        return reply(event);
      case EventKind::controller:
        if (controllers_[to].wake(event.tick)) slices_[to].resume(event.tick);
        return;
      case EventKind::data:
        return slices_[to].receive_data(event);
    }
  }

  // Sends a line from a slice to a core.
  void reply(const Event& event) {
    const int32_t flits = flits_of(config_, event.sectors);
    events_.push({.tick = replies_.send(event.tick, event.to, event.from, flits),
                  .line = event.line,
                  .to = event.to,
                  .kind = EventKind::fill,
                  .sectors = event.sectors});
  }

  // Completes the statistics after the last block has ended.
  void finish(const int64_t tick) {
    end_tick_ = tick;
    statistics_.cycles = (tick + clocks_.core - 1) / clocks_.core;
    for (Core& core : cores_) core.finish(tick);
  }

  Config config_;
  const Options& options_;
  Clocks clocks_;
  AddressMap map_;
  EventQueue events_;
  Network requests_;
  Network replies_;
  Statistics& statistics_;
  std::vector<BlockTime>& times_;
  BankUse bank_use_;
  Blocks blocks_;
  std::deque<Controller> controllers_;  // which slices refer to
  std::deque<Slice> slices_;
  std::deque<Core> cores_;
  int64_t end_tick_ = -1;  // of the last block; -1: blocks remain
};

}  // namespace

Simulation simulate(const Workload& workload, const Config& config, const Options& options) {
  check(config);
  check(workload);
  check_cores_of(workload, config, options);
  Simulation result;
  if (workload.blocks() > 0) Machine(workload, config, options, result).run();
  return result;
}

std::vector<Command> dram_commands(const std::span<const MemoryRequest> requests,
                                   const Config& config, const bool prefetch) {
  check(config);
  const Clocks clocks(config);
  const AddressMap map(config);
  EventQueue events;
  Statistics statistics;
  BankUse bank_use(statistics);
  std::vector<Command> commands;
  const Memory memory{config, clocks, map, events, statistics, bank_use, &commands, prefetch, true};
  std::vector<Controller> controllers;
  for (int32_t index = 0; index < config.controllers; ++index) {
    controllers.emplace_back(index, memory);
  }
  for (size_t index = 0; index < requests.size(); ++index) {
    const MemoryRequest& request = requests[index];
    const int64_t earliest = index == 0 ? 0 : requests[index - 1].cycle;
    if (request.cycle < earliest || request.cycle > kMaxCycle) {
      throw std::invalid_argument("requests: cycle " + std::to_string(request.cycle) +
                                  " of request " + std::to_string(index) + " is outside " +
                                  std::to_string(earliest) + ".." + std::to_string(kMaxCycle));
    }
    events.push({.tick = request.cycle * clocks.dram,
                 .line = request.address / static_cast<uint64_t>(config.access_bytes()),
                 .from = request.write ? 1 : 0,
                 .kind = EventKind::request});
  }
  Event event;
  while (events.pop(event)) {
    if (event.kind == EventKind::request) {
      const uint64_t line = event.line / map.parts();
      const auto controller = static_cast<size_t>(map.controller_of(line));
      const uint64_t access = map.first_access(map.local_line_of(line)) + event.line % map.parts();
      controllers[controller].add(event.tick, access, event.from != 0);
    } else if (event.kind == EventKind::controller) {
      controllers[static_cast<size_t>(event.to)].wake(event.tick);
    }
  }
  return commands;
}

}  // namespace tbsched::sm_sim
