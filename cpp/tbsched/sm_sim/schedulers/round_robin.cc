// All warps in turn.
#include "tbsched/sm_sim/schedulers/scheduler.h"
#include "tbsched/sm_sim/schedulers/turns.h"

namespace tbsched::sm_sim {
namespace {

class RoundRobin final : public Scheduler {
 public:
  int32_t pick(const Situation& now) override { return last_ = next_in_turn(now.ready, last_); }

 private:
  int32_t last_ = 63;  // warp that issued last
};

}  // namespace

std::unique_ptr<Scheduler> make_round_robin(const Config&, const CoreShape&) {
  return std::make_unique<RoundRobin>();
}

}  // namespace tbsched::sm_sim
