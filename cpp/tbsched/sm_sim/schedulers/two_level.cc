// One group issues at a time; the next one takes over when all of its warps wait for memory.
#include "tbsched/sm_sim/schedulers/groups.h"
#include "tbsched/sm_sim/schedulers/scheduler.h"

namespace tbsched::sm_sim {
namespace {

class TwoLevel final : public Scheduler {
 public:
  TwoLevel(std::vector<Warps> groups, const bool strict)
      : groups_(std::move(groups)), strict_(strict) {}

  // Returns a warp of the current group, else, unless strict, of the next one that has a ready
  // warp.
  int32_t pick(const Situation& now) override {
    for (size_t step = 0; step < groups_.size() && groups_.is_blocked(current_, now); ++step) {
      current_ = next_group(current_);
    }
    int32_t warp = groups_.pick(current_, now);
    for (size_t group = next_group(current_); warp < 0 && !strict_ && group != current_;) {
      warp = groups_.pick(group, now);
      group = next_group(group);
    }
    return warp;
  }

 private:
  size_t next_group(const size_t group) const { return (group + 1) % groups_.size(); }

  Groups groups_;
  size_t current_ = 0;  // group that issues
  bool strict_;         // no other group issues meanwhile
};

}  // namespace

std::unique_ptr<Scheduler> make_two_level(const Config& config, const CoreShape& shape) {
  return std::make_unique<TwoLevel>(groups_of_warps(config, shape), config.strict_groups != 0);
}

std::unique_ptr<Scheduler> make_cta_aware(const Config& config, const CoreShape& shape) {
  return std::make_unique<TwoLevel>(groups_of_blocks(config, shape), config.strict_groups != 0);
}

}  // namespace tbsched::sm_sim
