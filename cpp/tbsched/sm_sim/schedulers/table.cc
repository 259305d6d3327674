// The schedulers. To add one: its file, and here its factory and a row.
#include "tbsched/sm_sim/schedulers/table.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

namespace tbsched::sm_sim {

// Factories, each defined in the scheduler's own file.
std::unique_ptr<Scheduler> make_round_robin(const Config& config, const CoreShape& shape);
std::unique_ptr<Scheduler> make_greedy_oldest(const Config& config, const CoreShape& shape);
std::unique_ptr<Scheduler> make_unbroken_round_robin(const Config& config, const CoreShape& shape);
std::unique_ptr<Scheduler> make_cycling(const Config& config, const CoreShape& shape);
std::unique_ptr<Scheduler> make_two_level(const Config& config, const CoreShape& shape);
std::unique_ptr<Scheduler> make_cta_aware(const Config& config, const CoreShape& shape);
std::unique_ptr<Scheduler> make_locality(const Config& config, const CoreShape& shape);
std::unique_ptr<Scheduler> make_bank_parallel(const Config& config, const CoreShape& shape);
std::unique_ptr<Scheduler> make_fair(const Config& config, const CoreShape& shape);

namespace {

constexpr std::array kSchedulers = {
    SchedulerRow{"round_robin", "all warps in turn", make_round_robin},
    SchedulerRow{"greedy_oldest", "the warp that issued last, else the oldest", make_greedy_oldest},
    SchedulerRow{"unbroken_round_robin", "a warp while it issues in every slot, else all in turn",
                 make_unbroken_round_robin},
    SchedulerRow{"cycling", "all warps in turn, ready or not: the next waits for its turn",
                 make_cycling},
    SchedulerRow{"two_level", "groups of warps in turn", make_two_level},
    SchedulerRow{"cta_aware", "groups of whole blocks in turn", make_cta_aware},
    SchedulerRow{"locality", "groups of blocks in order of priority", make_locality},
    SchedulerRow{"bank_parallel", "as locality, but cores begin with different groups",
                 make_bank_parallel},
    SchedulerRow{"owl", "as bank_parallel, and open rows are prefetched", make_bank_parallel, true},
    SchedulerRow{"fair", "as locality, but the priorities change in turn", make_fair},
    SchedulerRow{"perfect_l2", "as round_robin; what misses L1 hits L2", make_round_robin, false,
                 false, true},
    SchedulerRow{"perfect_l1", "as round_robin; every access hits L1", make_round_robin, false,
                 true},
};

}  // namespace

std::span<const SchedulerRow> scheduler_table() { return kSchedulers; }

const SchedulerRow& scheduler_named(const std::string_view name) {
  const auto row = std::ranges::find(kSchedulers, name, &SchedulerRow::name);
  if (row != kSchedulers.end()) return *row;
  std::string known;
  for (const SchedulerRow& each : kSchedulers) {
    known += (known.empty() ? "" : ", ") + std::string(each.name);
  }
  throw std::invalid_argument("scheduler: " + std::string(name) + " is unknown; there are " +
                              known);
}

}  // namespace tbsched::sm_sim
