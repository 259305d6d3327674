// The SMs of blocks before the next event, by launch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/program/refusal.h"
#include "tbsched/program/trace.h"
#include "tbsched/sim/observer.h"

namespace tbsched {

// Notes the SMs of blocks that are placed before the event after their launch.
class Places final : public Observer {
 public:
  void on_launch(const int32_t launch, const int32_t blocks, const Demand&,
                 const GpuState&) override {
    newest_ = launch;
    begin_ = smid_.size();
    limiter_ = Refusal::none;
    smid_.resize(begin_ + static_cast<size_t>(blocks), kNotPlaced);
  }
  void on_place(const PlacedBlocks& placed) override {
    if (placed.launch != newest_) return;
    std::ranges::copy(placed.sms,
                      smid_.begin() + static_cast<ptrdiff_t>(begin_) + placed.first_block);
  }
  void on_refuse(const int32_t launch, const Refusal limiter, int32_t) override {
    if (launch == newest_) limiter_ = limiter;
  }
  void on_settled(int32_t) override { newest_ = -1; }

  // Returns the SM of each block, by launch, for all launches so far; kNotPlaced: none.
  std::vector<int32_t>& smid() { return smid_; }
  // Returns what refused the remaining blocks of the last launch; none: all were placed.
  Refusal limiter() const { return limiter_; }

 private:
  std::vector<int32_t> smid_;
  int32_t newest_ = -1;  // the last launch, until the next event; then -1
  Refusal limiter_ = Refusal::none;
  size_t begin_ = 0;  // of the last launch's blocks in smid_
};

}  // namespace tbsched
