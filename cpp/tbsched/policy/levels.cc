#include "tbsched/policy/levels.h"

#include <algorithm>
#include <cstring>

namespace tbsched {

int32_t only_sm(const int32_t blocks, const GpuState& gpu, const Rooms& rooms) {
  const int32_t most = rooms.most();
  const bool last_room = most == 1 && rooms.sms_with(1) == 1 && room_falls_by_one(gpu.spec());
  if (blocks < 1 || most == 0 || (blocks > 1 && !last_room)) return kNoSm;
  const std::span<const uint8_t> room = rooms.blocks();
  const void* const found = std::memchr(room.data(), most, room.size());
  return gpu.spec().sm_preference[static_cast<const uint8_t*>(found) - room.data()];
}

Levels::Levels(const std::span<const int32_t> rank_of_position)
    : rank_of_position_(rank_of_position),
      room_(rank_of_position.size()),
      row_(rank_of_position.size()) {}

void Levels::fill(const Demand& demand, const int32_t blocks, const GpuState& gpu, Rooms& rooms,
                  const Commit& commit) {
  blocks_ = 0;
  last_is_whole_ = true;
  rooms.ask(gpu, demand);
  most_ = rooms.most();
  evenly_ = room_falls_by_one(gpu.spec());
  if (evenly_) {
    fill_evenly(blocks, gpu, rooms, commit);
  } else {
    fill_one_by_one(demand, blocks, gpu, rooms, commit);
  }
}

void Levels::fill_evenly(const int32_t blocks, const GpuState& gpu, const Rooms& rooms,
                         const Commit& commit) {
  const std::vector<int32_t>& preference = gpu.spec().sm_preference;
  const std::span<const uint8_t> room = rooms.blocks();
  // Levels above `stop` are taken whole. Among the SMs with as much room as `stop`, the first ones
  // get the rest.
  int32_t stop = most_;
  int32_t sms = rooms.sms_with(most_);
  for (; stop > 0 && sms <= blocks - blocks_; sms += rooms.sms_with(stop)) {
    blocks_ += sms;
    --stop;
  }
  int32_t left = stop > 0 ? blocks - blocks_ : 0;
  blocks_ += left;
  last_is_whole_ = left == 0;
  int32_t not_taken = blocks_;
  for (size_t rank = 0; not_taken > 0; ++rank) {
    const bool one_more = left > 0 && room[rank] >= stop;
    const int32_t taken = std::max(room[rank] - stop, 0) + (one_more ? 1 : 0);
    if (taken > 0) commit(preference[rank], taken);
    not_taken -= taken;
    if (!one_more) continue;
    --left;
    last_rank_ = static_cast<int32_t>(rank);
  }
  if (!last_is_whole_) last_sm_ = preference[last_rank_];
  count_ = most_ - stop + (last_is_whole_ ? 0 : 1);
  std::ranges::transform(rank_of_position_, room_.begin(),
                         [&](const int32_t rank) { return room[rank]; });
}

void Levels::fill_one_by_one(const Demand& demand, const int32_t blocks, const GpuState& gpu,
                             const Rooms& rooms, const Commit& commit) {
  const std::vector<int32_t>& preference = gpu.spec().sm_preference;
  room_.assign(rooms.blocks().begin(), rooms.blocks().end());
  counts_.clear();
  count_ = 0;
  const size_t width = room_.size();
  for (int32_t level = most_; level > 0 && blocks_ < blocks; --level, ++count_) {
    const size_t row = counts_.size();
    counts_.resize(row + width);
    for (size_t rank = 0; rank < width && blocks_ < blocks; ++rank) {
      const int32_t sm = preference[rank];
      while (room_[rank] == level && blocks_ < blocks) {
        commit(sm, 1);
        ++counts_[row + rank];
        ++blocks_;
        last_sm_ = sm;
        room_[rank] = static_cast<uint8_t>(gpu.room(sm, demand).blocks);
      }
    }
    last_is_whole_ = std::ranges::find(room_, level) == room_.end();
  }
}

std::span<const uint8_t> Levels::level(const size_t k) {
  const size_t width = row_.size();
  if (!evenly_) {
    const std::span by_rank = std::span(counts_).subspan(k * width, width);
    std::ranges::transform(rank_of_position_, row_.begin(),
                           [&](const int32_t rank) { return by_rank[rank]; });
    return row_;
  }
  const auto least = static_cast<uint8_t>(most_ - static_cast<int32_t>(k));
  std::ranges::transform(room_, row_.begin(),
                         [least](const uint8_t room) -> uint8_t { return room >= least; });
  if (k + 1 == count() && !last_is_whole_) {
    std::transform(row_.begin(), row_.end(), rank_of_position_.begin(), row_.begin(),
                   [last = last_rank_](const uint8_t taken, const int32_t rank) -> uint8_t {
                     return taken & (rank <= last);
                   });
  }
  return row_;
}

}  // namespace tbsched
