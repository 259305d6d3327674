#include "tbsched/policy/levels.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

namespace tbsched {
namespace {

constexpr size_t kBits = 64;  // of a word

// Returns the first rank of preference, from `rank` on, whose SM has room; there must be one. Looks
// at eight at a time.
size_t next_with_room(const std::span<const uint8_t> room, size_t rank) {
  constexpr size_t kWord = sizeof(uint64_t);
  for (uint64_t word = 0; rank + kWord <= room.size(); rank += kWord) {
    std::memcpy(&word, room.data() + rank, kWord);
    if (word != 0) break;
  }
  while (room[rank] == 0) ++rank;
  return rank;
}

}  // namespace

int32_t only_sm(const int32_t blocks, const GpuState& gpu, const Rooms& rooms) {
  const int32_t max_room = rooms.max_room();
  const bool is_last_room =
      max_room == 1 && rooms.sms_with(1) == 1 && room_falls_by_one(gpu.spec());
  if (blocks < 1 || max_room == 0 || (blocks > 1 && !is_last_room)) return kNoSm;
  const std::span<const uint8_t> room = rooms.blocks();
  const void* const first = std::memchr(room.data(), max_room, room.size());
  return gpu.spec().sm_preference[static_cast<const uint8_t*>(first) - room.data()];
}

Levels::Levels(const std::span<const int32_t> rank_of_position)
    : rank_of_position_(rank_of_position),
      position_of_rank_(rank_of_position.size()),
      taken_((rank_of_position.size() + kBits - 1) / kBits),
      room_before_(rank_of_position.size()),
      all_(rank_of_position.size()) {
  std::iota(all_.begin(), all_.end(), 0);
  for (size_t position = 0; position < rank_of_position.size(); ++position) {
    position_of_rank_[rank_of_position[position]] = static_cast<int32_t>(position);
  }
}

void Levels::fill(const Demand& demand, const int32_t blocks, const GpuState& gpu, Rooms& rooms,
                  const Commit& commit) {
  blocks_ = 0;
  last_is_whole_ = true;
  rooms.update(gpu, demand);
  max_room_ = rooms.max_room();
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
  int32_t stop = max_room_;
  int32_t sms = rooms.sms_with(max_room_);
  for (; stop > 0 && sms <= blocks - blocks_; sms += rooms.sms_with(stop)) {
    blocks_ += sms;
    --stop;
  }
  int32_t rest = stop > 0 ? blocks - blocks_ : 0;  // blocks of the last level, if it is not whole
  blocks_ += rest;
  last_is_whole_ = rest == 0;
  // Few blocks, or few SMs with room: the levels are about the SMs that get blocks alone.
  const auto sms_in_all = static_cast<int32_t>(room.size());
  const bool few = 4 * std::min(blocks_, sms_in_all - rooms.sms_with(0)) <= sms_in_all;
  int32_t not_taken = blocks_;
  for (size_t rank = 0; not_taken > 0; ++rank) {
    if (room[rank] == 0) rank = next_with_room(room, rank);
    const bool one_more = rest > 0 && room[rank] >= stop;
    const int32_t taken = std::max(room[rank] - stop, 0) + (one_more ? 1 : 0);
    if (taken > 0) {
      commit(preference[rank], taken);
      if (few) mark_taken(static_cast<int32_t>(rank), room[rank]);
    }
    not_taken -= taken;
    if (!one_more) continue;
    --rest;
    last_rank_ = static_cast<int32_t>(rank);
  }
  if (!last_is_whole_) last_sm_ = preference[last_rank_];
  count_ = max_room_ - stop + (last_is_whole_ ? 0 : 1);
  if (few) {
    list_taken();
  } else {
    list_all(room);
  }
}

void Levels::mark_taken(const int32_t rank, const uint8_t room) {
  const auto position = static_cast<size_t>(position_of_rank_[rank]);
  taken_[position / kBits] |= uint64_t{1} << (position % kBits);
  room_before_[position] = room;
}

void Levels::list_taken() {
  few_.resize(rank_of_position_.size());
  room_.resize(rank_of_position_.size());
  size_t count = 0;
  for (size_t word = 0; word < taken_.size(); ++word) {
    for (uint64_t bits = std::exchange(taken_[word], 0); bits != 0; bits &= bits - 1) {
      const size_t position = word * kBits + static_cast<size_t>(std::countr_zero(bits));
      few_[count] = static_cast<int32_t>(position);
      room_[count++] = room_before_[position];
    }
  }
  few_.resize(count);
  room_.resize(count);
  positions_ = few_;
}

void Levels::list_all(const std::span<const uint8_t> room) {
  room_.resize(room.size());
  std::ranges::transform(rank_of_position_, room_.begin(),
                         [&](const int32_t rank) { return room[rank]; });
  positions_ = all_;
}

void Levels::fill_one_by_one(const Demand& demand, const int32_t blocks, const GpuState& gpu,
                             const Rooms& rooms, const Commit& commit) {
  const std::vector<int32_t>& preference = gpu.spec().sm_preference;
  room_.assign(rooms.blocks().begin(), rooms.blocks().end());
  positions_ = all_;
  counts_.clear();
  count_ = 0;
  const size_t width = room_.size();
  for (int32_t level = max_room_; level > 0 && blocks_ < blocks; --level, ++count_) {
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
  row_.resize(positions_.size());
  if (!evenly_) {
    const std::span by_rank = std::span(counts_).subspan(k * row_.size(), row_.size());
    std::ranges::transform(rank_of_position_, row_.begin(),
                           [&](const int32_t rank) { return by_rank[rank]; });
    return row_;
  }
  const auto level_room = static_cast<uint8_t>(max_room_ - static_cast<int32_t>(k));
  std::ranges::transform(room_, row_.begin(), [level_room](const uint8_t room) -> uint8_t {
    return room >= level_room;
  });
  if (k + 1 == count() && !last_is_whole_) {
    std::transform(row_.begin(), row_.end(), positions_.begin(), row_.begin(),
                   [this](const uint8_t taken, const int32_t position) -> uint8_t {
                     return taken & (rank_of_position_[position] <= last_rank_);
                   });
  }
  return row_;
}

}  // namespace tbsched
