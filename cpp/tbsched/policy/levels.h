// Fills the SMs level by level: all SMs with the most room get a block each, in order of
// preference, then all with one less. Makes the same choices as Algorithm 1, because a block never
// leaves its SM more room than before and never changes the room of another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tbsched/policy/policy.h"

namespace tbsched {

inline constexpr int32_t kNoSm = -1;

// Returns the SM of the next block, if exactly one of up to `blocks` blocks can be placed; kNoSm:
// none can, or perhaps several. `rooms` must be up to date for the launch.
int32_t only_sm(int32_t blocks, const GpuState& gpu, const Rooms& rooms);

class Levels {
 public:
  // `rank_of_position`: the SMs, by rank of preference, in the order in which the levels are read.
  // It outlives this object.
  explicit Levels(std::span<const int32_t> rank_of_position);

  // Returns the positions of the SMs that levels are about, in ascending order: at least those that
  // get a block.
  std::span<const int32_t> positions() const { return positions_; }

  // Chooses the SMs of up to `blocks` blocks, and commits the blocks.
  void fill(const Demand& demand, int32_t blocks, const GpuState& gpu, Rooms& rooms,
            const Commit& commit);

  // Returns the number of levels.
  size_t count() const { return static_cast<size_t>(count_); }
  // Returns the number of blocks that each SM of positions() gets at level k: at most one, except
  // in gaps of contiguous memory. Valid until the next call.
  std::span<const uint8_t> level(size_t k);
  // Returns the number of blocks that fill() placed.
  int32_t blocks() const { return blocks_; }
  // Returns whether the last level took every SM with that much room; if not, last_sm() is the last
  // SM that it took.
  bool last_is_whole() const { return last_is_whole_; }
  int32_t last_sm() const { return last_sm_; }

 private:
  // Places up to `blocks` blocks if each leaves its SM with room for one less: all SMs of a level
  // are known from their room.
  void fill_evenly(int32_t blocks, const GpuState& gpu, const Rooms& rooms, const Commit& commit);
  // Places up to `blocks` blocks if they need not leave room for one less: asks for the room of an
  // SM again after each block.
  void fill_one_by_one(const Demand& demand, int32_t blocks, const GpuState& gpu,
                       const Rooms& rooms, const Commit& commit);
  // Notes that the SM at this rank of preference, which had this room, gets blocks.
  void mark_taken(int32_t rank, uint8_t room);
  // Sets positions() and room_ to the SMs that get blocks.
  void list_taken();
  // Sets positions() to all SMs, and room_ to their room, which is given by rank of preference.
  void list_all(std::span<const uint8_t> room);

  std::span<const int32_t> rank_of_position_;
  std::vector<int32_t> position_of_rank_;
  std::vector<uint64_t> taken_;         // a bit for each position whose SM gets a block
  std::vector<uint8_t> room_before_;    // of each such SM, by position
  std::vector<int32_t> all_;            // positions
  std::vector<int32_t> few_;            // positions of taken_
  std::span<const int32_t> positions_;  // one of the two
  std::vector<uint8_t> room_;           // as positions(); by rank where SMs are chosen one by one
  std::vector<uint8_t> row_;            // the result of level(), as positions()
  int32_t max_room_ = 0;                // the room at the first level
  int32_t count_ = 0;                   // of levels
  int32_t blocks_ = 0;                  // that were placed
  bool last_is_whole_ = true;
  int32_t last_rank_ = -1;       // of the SM that got the last block of a level that is not whole
  int32_t last_sm_ = -1;         // that SM
  bool evenly_ = true;           // whether room falls by one with each block
  std::vector<uint8_t> counts_;  // by level and rank, where SMs are chosen one by one
};

}  // namespace tbsched
