// Filling the SMs level by level: all SMs with the most room get a block each, in order of
// preference, then all with one less. The same choices as Algorithm 1, because a block never leaves
// its SM more room than before and never changes the room of another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/policy.h"

namespace tbsched {

class Levels {
 public:
  // `positions`: the SMs in the order in which the levels are to be read.
  Levels(const Topology& topology, std::span<const int32_t> positions);

  // Chooses the SMs of up to `blocks` blocks, committing them.
  void fill(const Demand& demand, int32_t blocks, const GpuState& gpu, Rooms& rooms,
            const Commit& commit);

  size_t count() const { return counts_.size() / room_.size(); }
  // The blocks that the SM at each position gets, at most one but in gaps of contiguous memory.
  std::span<const uint8_t> level(const size_t k) const {
    return std::span(counts_).subspan(k * room_.size(), room_.size());
  }
  int32_t blocks() const { return blocks_; }
  // Whether the last level took every SM with that much room; if not, the last SM that it took.
  bool last_is_whole() const { return last_is_whole_; }
  int32_t last_sm() const { return last_sm_; }

 private:
  void fill_evenly(int32_t blocks, const Rooms& rooms, const Commit& commit);
  void fill_one_by_one(const Demand& demand, int32_t blocks, const GpuState& gpu,
                       const Rooms& rooms, const Commit& commit);

  std::vector<int32_t> preference_;
  std::vector<int32_t> rank_of_position_;
  std::vector<int32_t> position_of_rank_;
  std::vector<uint8_t> room_;
  std::vector<uint8_t> counts_;  // by level and position
  int32_t blocks_ = 0;
  bool last_is_whole_ = true;
  int32_t last_sm_ = -1;
};

}  // namespace tbsched
