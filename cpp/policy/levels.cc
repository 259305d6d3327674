#include "policy/levels.h"

#include <algorithm>

namespace tbsched {
namespace {

// Whether each block leaves its SM with room for exactly one less. Where a block must have one gap
// to itself, the room of the others may stay.
bool room_falls_by_one(const Demand& demand, const DeviceSpec& spec) {
  const ConfigurationDemand& configuration = demand.configuration;
  return spec.mechanisms.shared_memory != Layout::contiguous &&
         configuration.minimum <= configuration.target &&
         configuration.target <= configuration.maximum;
}

}  // namespace

Levels::Levels(const Topology& topology, const std::span<const int32_t> positions)
    : preference_(topology.sm_preference),
      rank_of_position_(positions.size()),
      position_of_rank_(positions.size()),
      room_(positions.size()) {
  std::vector<int32_t> rank_of_sm(preference_.size());
  for (size_t rank = 0; rank < preference_.size(); ++rank) {
    rank_of_sm[preference_[rank]] = static_cast<int32_t>(rank);
  }
  for (size_t position = 0; position < positions.size(); ++position) {
    const int32_t rank = rank_of_sm[positions[position]];
    rank_of_position_[position] = rank;
    position_of_rank_[rank] = static_cast<int32_t>(position);
  }
}

void Levels::fill(const Demand& demand, const int32_t blocks, const GpuState& gpu, Rooms& rooms,
                  const Commit& commit) {
  counts_.clear();
  blocks_ = 0;
  last_is_whole_ = true;
  rooms.ask(gpu, demand);
  if (room_falls_by_one(demand, gpu.spec())) {
    fill_evenly(blocks, rooms, commit);
  } else {
    fill_one_by_one(demand, blocks, gpu, rooms, commit);
  }
}

void Levels::fill_evenly(const int32_t blocks, const Rooms& rooms, const Commit& commit) {
  const int32_t most = rooms.most();
  const std::span<const uint8_t> room = rooms.blocks();
  // Levels above `stop` are taken whole. Of those SMs with as much room as `stop`, the first get
  // what is left.
  int32_t stop = most;
  int32_t sms = rooms.sms_with(most);
  for (; stop > 0 && sms <= blocks - blocks_; sms += rooms.sms_with(stop)) {
    blocks_ += sms;
    --stop;
  }
  int32_t left = stop > 0 ? blocks - blocks_ : 0;
  blocks_ += left;
  last_is_whole_ = left == 0;
  int32_t last_rank = -1;
  const bool only_what_is_left = stop == most;
  for (size_t rank = 0; rank < room.size() && !(only_what_is_left && left == 0); ++rank) {
    const bool one_more = left > 0 && room[rank] >= stop;
    const int32_t taken = std::max(room[rank] - stop, 0) + (one_more ? 1 : 0);
    if (taken > 0) commit(preference_[rank], taken);
    if (!one_more) continue;
    --left;
    last_rank = static_cast<int32_t>(rank);
  }
  if (!last_is_whole_) last_sm_ = preference_[last_rank];

  std::ranges::transform(rank_of_position_, room_.begin(),
                         [&](const int32_t rank) { return room[rank]; });
  const size_t width = room_.size();
  const int32_t levels = most - stop + (last_is_whole_ ? 0 : 1);
  counts_.resize(static_cast<size_t>(levels) * width);
  for (int32_t k = 0; k < levels; ++k) {
    const auto level = static_cast<uint8_t>(most - k);
    uint8_t* const row = counts_.data() + static_cast<size_t>(k) * width;
    for (size_t i = 0; i < width; ++i) row[i] = room_[i] >= level;
  }
  if (last_is_whole_) return;
  uint8_t* const row = counts_.data() + static_cast<size_t>(levels - 1) * width;
  for (size_t i = 0; i < width; ++i) row[i] &= rank_of_position_[i] <= last_rank;
}

void Levels::fill_one_by_one(const Demand& demand, const int32_t blocks, const GpuState& gpu,
                             const Rooms& rooms, const Commit& commit) {
  room_.assign(rooms.blocks().begin(), rooms.blocks().end());  // by rank here
  const size_t width = room_.size();
  for (int32_t level = rooms.most(); level > 0 && blocks_ < blocks; --level) {
    const size_t row = counts_.size();
    counts_.resize(row + width);
    for (size_t rank = 0; rank < width && blocks_ < blocks; ++rank) {
      const int32_t sm = preference_[rank];
      while (room_[rank] == level && blocks_ < blocks) {
        commit(sm, 1);
        ++counts_[row + position_of_rank_[rank]];
        ++blocks_;
        last_sm_ = sm;
        room_[rank] = static_cast<uint8_t>(gpu.room(sm, demand).blocks);
      }
    }
    last_is_whole_ = std::ranges::find(room_, level) == room_.end();
  }
}

}  // namespace tbsched
