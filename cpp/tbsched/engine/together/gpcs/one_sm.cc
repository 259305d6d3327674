#include "tbsched/engine/together/gpcs/one_sm.h"

#include <algorithm>
#include <map>

#include "tbsched/hardware/sm/shared_memory.h"

namespace tbsched {

OneSm::OneSm(const Device& device, const std::vector<Demand>& demands, const Gaps gaps)
    : device_(&device),
      demands_(&demands),
      gaps_(gaps),
      state_(device.empty_sm),
      came_(demands.size()) {}

int32_t OneSm::room(const int32_t launch) const {
  const Demand& demand = (*demands_)[launch];
  const int32_t configured = configured_for(demand);
  if (configured == 0) return 0;
  const int32_t room = state_.room(device_->spec, seen(demand), configured).blocks;
  return gaps_ == Gaps::looked_at ? room : room_in_memory(demand, configured, room);
}

void OneSm::commit(const int32_t launch) {
  const Demand& demand = (*demands_)[launch];
  if (idle()) {
    configured_ = configured_for(demand);
    left_ = 0;
  }
  Footprint footprint{.sm = 0, .owner = next_owner_++, .blocks = 1};
  state_.commit(device_->spec, seen(demand), configured_, footprint);
  taken_ += demand.shared_memory;
  blocks_.push_back({launch, came_[launch]++, footprint});
}

std::vector<std::vector<int32_t>> OneSm::alike(const int32_t launch) const {
  std::map<int32_t, std::vector<int32_t>> found;
  for (const Block& block : blocks_) {
    if (block.launch != launch) continue;
    const int32_t kind =
        gaps_ == Gaps::looked_at ? block.number : block.footprint.first_processing_block;
    found[kind].push_back(block.number);
  }
  std::vector<std::vector<int32_t>> kinds;
  for (auto& [kind, blocks] : found) kinds.push_back(std::move(blocks));
  return kinds;
}

void OneSm::leave(const int32_t launch, const int32_t number) {
  const auto block = std::ranges::find_if(
      blocks_, [&](const Block& each) { return each.launch == launch && each.number == number; });
  state_.release(seen((*demands_)[launch]), block->footprint);
  taken_ -= (*demands_)[launch].shared_memory;
  ++left_;
  blocks_.erase(block);
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
  if (sure_pieces(device_->spec, size, free, gaps, configured) < wanted) throw GapsMatter{};
  return wanted;
}

Demand OneSm::seen(const Demand& demand) const {
  Demand found = demand;
  if (gaps_ == Gaps::counted) found.shared_memory = 0;
  return found;
}

}  // namespace tbsched
