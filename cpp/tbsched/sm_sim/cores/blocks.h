// The assignment of blocks to cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tbsched/sm_sim/config.h"

namespace tbsched::sm_sim {

// Blocks that have not started, for all cores.
class Blocks {
 public:
  // `cores_of`: the core of each block; empty: as the config says.
  Blocks(const Config& config, const int32_t blocks, const std::span<const int32_t> cores_of)
      : unended_(blocks), block_count_(blocks) {
    if (cores_of.empty() && config.own_blocks == 0) return;
    assigned_.resize(static_cast<size_t>(config.cores));
    for (int32_t block = blocks - 1; block >= 0; --block) {
      const int32_t core =
          cores_of.empty() ? block % config.cores : cores_of[static_cast<size_t>(block)];
      assigned_[static_cast<size_t>(core)].push_back(block);
    }
  }

  // Takes the next block for a core; none: no block is left for it.
  std::optional<int32_t> take_next(const int32_t core) {
    if (assigned_.empty()) {
      if (next_ == block_count_) return {};
      return next_++;
    }
    std::vector<int32_t>& assigned = assigned_[static_cast<size_t>(core)];
    if (assigned.empty()) return {};
    const int32_t block = assigned.back();
    assigned.pop_back();
    return block;
  }

  void end_one() { --unended_; }
  bool all_ended() const { return unended_ == 0; }

 private:
  int32_t unended_;  // blocks that have not ended
  int32_t block_count_;
  int32_t next_ = 0;                            // block; where any core takes it
  std::vector<std::vector<int32_t>> assigned_;  // by core, in reverse: the next block is the last;
                                                // empty: any core takes any block
};

}  // namespace tbsched::sm_sim
