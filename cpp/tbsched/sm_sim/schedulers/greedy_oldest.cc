// Picks the warp that issued last; if it cannot issue, the first warp of the oldest block that can.
#include <bit>
#include <vector>

#include "tbsched/sm_sim/schedulers/scheduler.h"

namespace tbsched::sm_sim {
namespace {

class GreedyThenOldest final : public Scheduler {
 public:
  explicit GreedyThenOldest(const CoreShape& shape) : shape_(shape) {}

  // Returns the warp that issued last if it is ready, else a ready one of the oldest block that has
  // one; -1: none is ready.
  int32_t pick(const Situation& now) override {
    if (last_ >= 0 && (now.ready >> last_ & 1) != 0) return last_;
    for (const int32_t place : places_) {
      const Warps candidates = now.ready & shape_.warps_at(place);
      if (candidates != 0) return last_ = std::countr_zero(candidates);
    }
    return -1;
  }

  // Makes the block in a place the newest.
  void block_started(const int32_t place) override {
    std::erase(places_, place);
    places_.push_back(place);
  }

 private:
  CoreShape shape_;
  std::vector<int32_t> places_;  // from the oldest block to the newest
  int32_t last_ = -1;            // warp that issued last; -1: none
};

}  // namespace

std::unique_ptr<Scheduler> make_greedy_oldest(const Config&, const CoreShape& shape) {
  return std::make_unique<GreedyThenOldest>(shape);
}

}  // namespace tbsched::sm_sim
