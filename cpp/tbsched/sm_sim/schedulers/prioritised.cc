// Groups of blocks in an order of priority: a group issues when no group before it can.
#include <algorithm>
#include <numeric>

#include "tbsched/sm_sim/schedulers/groups.h"
#include "tbsched/sm_sim/schedulers/scheduler.h"

namespace tbsched::sm_sim {
namespace {

class Prioritised final : public Scheduler {
 public:
  // `first`: the group with the highest priority; `turn_cycles`: for how many core cycles a group
  // has it; 0: for ever.
  Prioritised(const Config& config, const CoreShape& shape, const size_t first,
              const int64_t turn_cycles)
      : groups_(groups_of_blocks(config, shape)),
        shape_(shape),
        order_(groups_.size()),
        turn_cycles_(turn_cycles),
        turn_ends_(turn_cycles),
        strict_(config.strict_groups != 0),
        refill_to_back_(config.refill_to_back != 0) {
    for (size_t position = 0; position < order_.size(); ++position) {
      order_[position] = (first + position) % order_.size();
    }
  }

  // Returns the next warp of the first group that has a ready one; -1: none has, or, with strict
  // groups, a group before it is not blocked: one of its warps will soon be ready.
  int32_t pick(const Situation& now) override {
    for (; turn_cycles_ > 0 && now.cycle >= turn_ends_; turn_ends_ += turn_cycles_) {
      std::ranges::rotate(order_, order_.begin() + 1);
    }
    for (const size_t group : order_) {
      const int32_t warp = groups_.pick(group, now);
      if (warp >= 0 || (strict_ && !groups_.is_blocked(group, now))) return warp;
    }
    return -1;
  }

  // Moves a group to the end once all of its blocks have been replaced.
  void block_started(const int32_t place) override {
    const Warps started = shape_.warps_at(place);
    const bool first = (filled_ & started) == 0;
    filled_ |= started;
    if (first || !refill_to_back_) return;
    replaced_ |= started;
    const auto of_place = [&](const size_t group) { return (groups_[group] & started) != 0; };
    const auto at = std::ranges::find_if(order_, of_place);
    const Warps filled = groups_[*at] & filled_;
    if ((replaced_ & filled) != filled) return;
    replaced_ &= ~filled;
    std::rotate(at, at + 1, order_.end());
  }

 private:
  Groups groups_;
  CoreShape shape_;
  std::vector<size_t> order_;  // groups, highest priority first
  Warps filled_ = 0;           // places that have had a block
  Warps replaced_ = 0;  // places with a block that started after their group got its priority
  int64_t turn_cycles_;
  int64_t turn_ends_;  // core cycle
  bool strict_;
  bool refill_to_back_;
};

// Returns the scheduler of a core. `by_core`: cores begin with different groups.
std::unique_ptr<Scheduler> make_prioritised(const Config& config, const CoreShape& shape,
                                            const bool by_core, const int64_t turn_cycles) {
  // The priority of group g of core c is g, or (g - c) modulo the number of groups.
  const size_t groups = groups_of_blocks(config, shape).size();
  const size_t first = by_core ? static_cast<size_t>(shape.core) % groups : 0;
  return std::make_unique<Prioritised>(config, shape, first, turn_cycles);
}

}  // namespace

std::unique_ptr<Scheduler> make_locality(const Config& config, const CoreShape& shape) {
  return make_prioritised(config, shape, false, 0);
}

std::unique_ptr<Scheduler> make_bank_parallel(const Config& config, const CoreShape& shape) {
  return make_prioritised(config, shape, true, 0);
}

std::unique_ptr<Scheduler> make_fair(const Config& config, const CoreShape& shape) {
  return make_prioritised(config, shape, false, config.fair_cycles);
}

}  // namespace tbsched::sm_sim
