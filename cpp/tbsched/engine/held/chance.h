// A random order of leaving, with the distribution observed on an H200 and an H100 whose blocks
// wait for a word in memory, as the launcher's do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "tbsched/engine/held/race.h"
#include "tbsched/hardware/gpu/device.h"

namespace tbsched {

class Chance final : public Race {
 public:
  // Equal seeds give equal orders. The device outlives it.
  Chance(const Device& device, uint64_t seed);

  void release_blocks(std::span<const LeavingBlock> leavers, bool have_started) override;
  // Removes and returns the blocks that left while the scheduler was busy.
  std::vector<LeavingBlock> take_exits() override;
  bool is_over() const override { return waiting_.empty() && !wants_to_turn_; }
  void note_placed(std::span<const int32_t> sms, int32_t cluster) override;
  bool may_turn() override;

  // Returns whether blocks were placed while others were about to leave.
  bool mattered() const { return mattered_; }

 private:
  struct Timed {
    double leaves_ns;
    LeavingBlock leaver;
  };

  // Returns a random number in [0, limit).
  double below(double limit);
  // Lets a block leave at this time.
  void schedule_exit(double leaves_ns, const LeavingBlock& leaver);
  // Returns how much later than the nearest blocks those on the SM learn that they may leave: a
  // random time.
  double notice_delay_ns(int32_t sm);
  // Returns how many blocks went to the SM that got most of them.
  double max_blocks_on_an_sm(std::span<const int32_t> sms);

  const Device& device_;
  std::mt19937_64 random_;
  double far_ns_;               // additional delay of the farther GPCs
  bool first_half_is_late_;     // of the GPCs on each side
  std::vector<Timed> waiting_;  // a heap with the next block to leave in front
  double now_ns_ = 0;           // when the scheduler next visits launches
  double turn_ns_ = 0;          // when it may turn to another launch
  bool wants_to_turn_ = false;  // but may not yet
  bool mattered_ = false;
  std::vector<int32_t> blocks_of_sm_;  // temporary counts of max_blocks_on_an_sm(); else 0
};

}  // namespace tbsched
