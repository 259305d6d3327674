#include "tbsched/engine/together/gpcs/one_sm.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "tbsched/engine/together/demands.h"
#include "tbsched/hardware/sm/shared_memory.h"

namespace tbsched {

OneSm::OneSm(const Device& device, const std::vector<Demand>& demands, const Gaps gaps)
    : device_(&device),
      demands_(&demands),
      gaps_(gaps),
      unit_(memory_unit(demands)),
      state_(device.empty_sm),
      came_(demands.size()) {}

int32_t OneSm::room(const int32_t launch) const {
  const Demand& demand = (*demands_)[launch];
  const int32_t configured = configured_for(demand);
  if (configured == 0) return 0;
  const int32_t room = state_.room(device_->spec, seen(demand), configured).blocks;
  return gaps_ == Gaps::looked_at ? room : room_in_memory(demand, configured, room);
}

bool OneSm::may_take(const int32_t launch) const {
  const Demand& demand = (*demands_)[launch];
  const int32_t configured = configured_for(demand);
  return configured > 0 && taken_ + demand.shared_memory <= configured &&
         state_.room(device_->spec, seen(demand), configured).blocks > 0;
}

int32_t OneSm::commit(const int32_t launch) {
  const Demand& demand = (*demands_)[launch];
  if (idle()) {
    configured_ = configured_for(demand);
    left_ = 0;
  }
  Footprint footprint{.sm = 0, .owner = next_owner_++, .blocks = 1};
  state_.commit(device_->spec, seen(demand), configured_, footprint);
  taken_ += demand.shared_memory;
  blocks_.push_back({launch, came_[launch]++, footprint});
  return blocks_.back().number;
}

std::vector<int32_t> OneSm::key() const {
  std::vector<std::array<int32_t, 3>> blocks;
  for (const Block& block : blocks_) {
    blocks.push_back({block.launch, block.footprint.first_processing_block, at(block)});
  }
  std::ranges::sort(blocks);
  const auto left = std::min(left_, static_cast<int32_t>(blocks_.size()));
  std::vector<int32_t> found = {state_.turn(), configured_, idle() ? 0 : left};
  for (const auto& block : blocks) found.insert(found.end(), block.begin(), block.end());
  return found;
}

std::vector<int32_t> OneSm::distinct(const int32_t launch) const {
  std::map<std::array<int32_t, 2>, int32_t> found;
  for (const Block& block : blocks_) {
    if (block.launch != launch) continue;
    found.try_emplace({block.footprint.first_processing_block, at(block)}, block.number);
  }
  std::vector<int32_t> numbers;
  for (const auto& [kind, number] : found) numbers.push_back(number);
  return numbers;
}

void OneSm::leave(const int32_t launch, const int32_t number) {
  const auto block = std::ranges::find_if(
      blocks_, [&](const Block& each) { return each.launch == launch && each.number == number; });
  state_.release(seen((*demands_)[launch]), block->footprint);
  taken_ -= (*demands_)[launch].shared_memory;
  ++left_;
  blocks_.erase(block);
}

// Of a block, its shared memory, where that is looked at.
int32_t OneSm::at(const Block& block) const {
  if (gaps_ == Gaps::counted) return 0;
  const auto pieces = state_.shared_memory_of(device_->spec, block.footprint.owner);
  return pieces.empty() ? 0 : pieces.front().begin;
}

// 0: it may not enter.
int32_t OneSm::configured_for(const Demand& demand) const {
  if (!device_->spec.mechanisms.shared_memory_configuration) {
    return device_->spec.shared_memory_configurations.back();
  }
  if (idle()) return demand.configuration.target;
  return demand.configuration.suits(configured_) ? configured_ : 0;
}

// Of `wanted` blocks. Each block that has left may have left a gap.
int32_t OneSm::room_in_memory(const Demand& demand, const int32_t configured,
                              const int32_t wanted) const {
  const int32_t size = demand.shared_memory;
  if (size == 0) return wanted;
  const int32_t free = configured - taken_;
  if (left_ == 0 || idle() || device_->spec.mechanisms.shared_memory == Layout::pooled) {
    return std::min(wanted, free / size);
  }
  if (free < size || wanted == 0) return 0;
  const int32_t gaps = std::min(static_cast<int32_t>(blocks_.size()), 1 + left_);
  if (sure_pieces(size, free, gaps, std::gcd(unit_, configured)) < wanted) throw GapsMatter{};
  return wanted;
}

Demand OneSm::seen(const Demand& demand) const {
  Demand found = demand;
  if (gaps_ == Gaps::counted) found.shared_memory = 0;
  return found;
}

}  // namespace tbsched
