// The rule measured on Hopper: a warp goes on while it issues in every slot; else all warps in
// turn. Each of the issuers of a core has its own warps, as a processing block has.
#include <vector>

#include "tbsched/sm_sim/schedulers/scheduler.h"
#include "tbsched/sm_sim/schedulers/turns.h"

namespace tbsched::sm_sim {
namespace {

class UnbrokenRoundRobin final : public Scheduler {
 public:
  UnbrokenRoundRobin(const int32_t issuers, const int32_t issue_cycles)
      : issuers_(static_cast<size_t>(issuers)), issue_cycles_(issue_cycles) {
    for (size_t warp = 0; warp < 64; ++warp) {
      issuers_[warp % issuers_.size()].warps |= Warps{1} << warp;
    }
  }

  // Asks the issuers that were not asked in this slot. Returns the warp of the first that has a
  // ready one; -1: none has.
  int32_t pick(const Situation& now) override {
    if (now.cycle != cycle_) asked_ = 0;
    cycle_ = now.cycle;
    while (asked_ < issuers_.size()) {
      Issuer& issuer = issuers_[asked_++];
      const Warps candidates = now.ready & issuer.warps;
      if (candidates != 0) return pick_of(issuer, candidates);
    }
    return -1;
  }

 private:
  struct Issuer {
    Warps warps = 0;
    int32_t last = 63;        // warp that issued last
    int64_t last_cycle = -1;  // core cycle of that; -1: none
  };

  // Returns the next of an issuer's ready warps.
  int32_t pick_of(Issuer& issuer, const Warps candidates) const {
    const bool unbroken = issuer.last_cycle >= 0 && cycle_ - issuer.last_cycle <= issue_cycles_;
    issuer.last_cycle = cycle_;
    if (unbroken && (candidates >> issuer.last & 1) != 0) return issuer.last;
    return issuer.last = next_in_turn(candidates, issuer.last);
  }

  std::vector<Issuer> issuers_;
  int64_t issue_cycles_;
  size_t asked_ = 0;  // issuers in this slot
  int64_t cycle_ = -1;
};

}  // namespace

std::unique_ptr<Scheduler> make_unbroken_round_robin(const Config& config, const CoreShape&) {
  return std::make_unique<UnbrokenRoundRobin>(config.issue_width, config.issue_cycles);
}

}  // namespace tbsched::sm_sim
