#include "tbsched/hardware/gpu/rooms.h"

#include <algorithm>
#include <numeric>

namespace tbsched {

bool room_falls_by_one(const DeviceSpec& spec) {
  return spec.mechanisms.shared_memory != Layout::contiguous;
}

Rooms::Rooms(const Device& device)
    : rank_of_sm_(device.rank_of_sm), blocks_(rank_of_sm_.size()), limiters_(rank_of_sm_.size()) {}

void Rooms::update(const GpuState& gpu, const Demand& demand) {
  const uint64_t unseen = gpu.changes() - changes_seen_;
  if (demand_ == demand && reserved_ == gpu.reserved() && unseen <= gpu.change_log_size()) {
    for (; changes_seen_ < gpu.changes(); ++changes_seen_) {
      const auto [begin, end] = gpu.changed(changes_seen_);
      for (int32_t sm = begin; sm < end; ++sm) {
        const int32_t rank = rank_of_sm_[sm];
        --sms_with_[blocks_[rank]];
        --sms_limited_by_[static_cast<size_t>(limiters_[rank])];
        update_sm(gpu, sm);
      }
    }
    return;
  }
  demand_ = demand;
  reserved_ = gpu.reserved();
  changes_seen_ = gpu.changes();
  update_all(gpu);
}

void Rooms::update_all(const GpuState& gpu) {
  untouched_.reset();
  sms_with_ = {};
  sms_limited_by_ = {};
  const auto sms = static_cast<int32_t>(rank_of_sm_.size());
  if (demand_->partition != nullptr || !gpu.untouched()) {
    for (int32_t sm = 0; sm < sms; ++sm) update_sm(gpu, sm);
    return;
  }
  const Room room = gpu.room(0, *demand_);
  std::ranges::fill(blocks_, static_cast<uint8_t>(room.blocks));
  std::ranges::fill(limiters_, room.limiter);
  sms_with_[room.blocks] = sms;
  sms_limited_by_[static_cast<size_t>(room.limiter)] = sms;
  untouched_ = room;
}

void Rooms::update_sm(const GpuState& gpu, const int32_t sm) {
  const bool untouched = gpu.untouched(sm) && demand_->may_use(sm);
  const Room room = untouched && untouched_ ? *untouched_ : gpu.room(sm, *demand_);
  if (untouched) untouched_ = room;
  const int32_t rank = rank_of_sm_[sm];
  blocks_[rank] = static_cast<uint8_t>(room.blocks);
  limiters_[rank] = room.limiter;
  ++sms_with_[room.blocks];
  ++sms_limited_by_[static_cast<size_t>(room.limiter)];
}

int32_t Rooms::max_room() const {
  int32_t blocks = demand_->blocks_per_sm;
  while (blocks > 0 && sms_with_[blocks] == 0) --blocks;
  return blocks;
}

int64_t Rooms::total_room() const {
  return std::accumulate(blocks_.begin(), blocks_.end(), int64_t{0});
}

Refusal Rooms::commonest_limiter() const {
  static_assert(static_cast<size_t>(Refusal::partition) + 1 == kRefusalNames.size());
  const std::span counts = std::span(sms_limited_by_).first<kRefusalNames.size() - 1>();
  return static_cast<Refusal>(std::ranges::find(counts, std::ranges::max(counts)) - counts.begin());
}

}  // namespace tbsched
