// The assignment of blocks to cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tbsched/sm_sim/config.h"

namespace tbsched::sm_sim {

class Blocks {
 public:
  // `cores_of`: the core of each block, or empty.
  Blocks(const Config& config, const int32_t blocks, const std::span<const int32_t> cores_of)
      : left_(blocks), blocks_(blocks) {
    if (cores_of.empty() && config.own_blocks == 0) return;
    own_.resize(static_cast<size_t>(config.cores));
    for (int32_t block = blocks - 1; block >= 0; --block) {
      const int32_t core =
          cores_of.empty() ? block % config.cores : cores_of[static_cast<size_t>(block)];
      own_[static_cast<size_t>(core)].push_back(block);
    }
  }

  std::optional<int32_t> next(const int32_t core) {
    if (own_.empty()) {
      if (next_ == blocks_) return {};
      return next_++;
    }
    std::vector<int32_t>& own = own_[static_cast<size_t>(core)];
    if (own.empty()) return {};
    const int32_t block = own.back();
    own.pop_back();
    return block;
  }

  void ended() { --left_; }
  bool all_ended() const { return left_ == 0; }

 private:
  int32_t left_;
  int32_t blocks_;
  int32_t next_ = 0;
  std::vector<std::vector<int32_t>> own_;  // by core, in reverse: the next block is the last one
};

}  // namespace tbsched::sm_sim
