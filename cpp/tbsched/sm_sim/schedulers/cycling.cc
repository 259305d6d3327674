// The policy that a thesis supposes for GF100 GPUs: each of several issuers holds a warp until it
// has issued it, and then takes the next one in a circle.
#include <algorithm>
#include <vector>

#include "tbsched/sm_sim/schedulers/scheduler.h"
#include "tbsched/sm_sim/schedulers/turns.h"

namespace tbsched::sm_sim {
namespace {

class Cycling final : public Scheduler {
 public:
  explicit Cycling(const int32_t issuers) : issuers_(static_cast<size_t>(issuers)) {}

  // Asks the issuers that were not asked in this slot. Returns the warp of the first whose warp is
  // ready, and gives it the next; -1: none.
  int32_t pick(const Situation& now) override {
    if (now.cycle != cycle_) begin_slot(now);
    for (Issuer& issuer : issuers_) {
      if (issuer.asked) continue;
      issuer.asked = true;
      if (issuer.warp < 0 || (now.ready >> issuer.warp & 1) == 0) continue;
      const int32_t warp = issuer.warp;
      issuer.issued = true;
      give_next(issuer, now);
      return warp;
    }
    return -1;
  }

 private:
  struct Issuer {
    int32_t warp = -1;    // it holds; -1: none
    bool asked = false;   // in this slot
    bool issued = false;  // in this slot
  };

  // Begins a slot. Those that could not issue in the last one come first.
  void begin_slot(const Situation& now) {
    cycle_ = now.cycle;
    std::ranges::stable_partition(issuers_, [](const Issuer& each) { return !each.issued; });
    for (Issuer& issuer : issuers_) {
      issuer.asked = issuer.issued = false;
      if (issuer.warp < 0 || (participants(now) >> issuer.warp & 1) == 0) give_next(issuer, now);
    }
  }

  // Returns the warps that take part. One that waits for others does not: these may wait for their
  // turn.
  static Warps participants(const Situation& now) { return now.resident & ~now.for_others; }

  // Gives an issuer the next warp that no other issuer holds.
  void give_next(Issuer& issuer, const Situation& now) {
    issuer.warp = -1;
    Warps candidates = participants(now);
    for (const Issuer& other : issuers_) {
      if (other.warp >= 0) candidates &= ~(Warps{1} << other.warp);
    }
    if (candidates != 0) issuer.warp = last_ = next_in_turn(candidates, last_);
  }

  std::vector<Issuer> issuers_;  // in the order in which they are asked
  int32_t last_ = 63;            // warp that was taken last
  int64_t cycle_ = -1;
};

}  // namespace

std::unique_ptr<Scheduler> make_cycling(const Config& config, const CoreShape&) {
  return std::make_unique<Cycling>(config.issue_width);
}

}  // namespace tbsched::sm_sim
