#include "tbsched/coresidency/sm/one_sm.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>
#include <set>

#include "tbsched/coresidency/demands.h"

namespace tbsched {

OneSm::OneSm(const Device& device, const std::vector<Demand>& demands, const Gaps gaps)
    : device_(&device),
      demands_(&demands),
      gaps_(gaps),
      is_pooled_(device.spec.mechanisms.shared_memory == Layout::pooled),
      unit_(memory_unit(demands)),
      state_(device.empty_sm),
      arrived_(demands.size()) {}

bool OneSm::has_only(const std::vector<int32_t>& launches) const {
  return std::ranges::all_of(blocks_, [&](const Block& block) {
    return std::ranges::find(launches, block.launch) != launches.end();
  });
}

bool OneSm::admits(const int32_t launch) const {
  return std::ranges::find(blocks_, launch, &Block::launch) != blocks_.end() ||
         !entry_configurations(launch).empty();
}

RoomRange OneSm::rooms(const int32_t launch) const {
  const Demand& demand = (*demands_)[launch];
  const std::optional<int32_t> configured = configured_for(demand);
  if (!configured) return {0, 0};
  const int32_t room =
      state_.room(device_->spec, without_counted_memory(demand), *configured).blocks;
  if (gaps_ == Gaps::located) return {room, room};
  return rooms_in_memory(demand, *configured, room);
}

std::vector<int32_t> OneSm::entry_configurations(const int32_t launch) const {
  const Demand& demand = (*demands_)[launch];
  std::set<int32_t> candidates;
  if (const auto configured = configured_for(demand)) candidates.insert(*configured);
  if (idle() && configured_ && demand.configuration.suits(*configured_)) {
    candidates.insert(*configured_);
  }
  std::vector<int32_t> configurations;
  std::ranges::copy_if(
      candidates, std::back_inserter(configurations), [&](const int32_t configured) {
        return memory_.taken() + demand.shared_memory <= configured &&
               state_.room(device_->spec, without_counted_memory(demand), configured).blocks > 0;
      });
  return configurations;
}

void OneSm::reserve(const int32_t launch, const int32_t blocks) {
  memory_.reserve(int64_t{blocks} * (*demands_)[launch].shared_memory);
  has_reserved_ = true;
}

void OneSm::commit(const int32_t launch) {
  add(launch, configured_for((*demands_)[launch]).value());
  memory_.commit((*demands_)[launch].shared_memory, *configured_);
}

void OneSm::enter(const int32_t launch, const int32_t configured) {
  add(launch, configured);
  memory_.enter((*demands_)[launch].shared_memory, configured);
}

void OneSm::add(const int32_t launch, const int32_t configured) {
  const Demand& demand = (*demands_)[launch];
  configured_ = configured;
  Footprint footprint{.sm = 0, .owner = next_owner_++, .blocks = 1};
  state_.commit(device_->spec, without_counted_memory(demand), configured, footprint);
  blocks_.push_back({launch, arrived_[launch]++, footprint});
}

std::vector<int32_t> OneSm::key() const {
  // Processing blocks are interchangeable apart from their turn.
  std::vector<std::array<int32_t, 3>> kinds;
  kinds.reserve(blocks_.size());
  for (const Block& block : blocks_) {
    const auto& [processing_block, at] = position_of(block);
    kinds.push_back({block.launch, processing_block, at});
  }
  std::ranges::sort(kinds);
  const bool is_configured = configured_ && (!idle() || has_reserved_);
  std::vector<int32_t> key = {is_configured ? *configured_ : -1, has_reserved_ ? 1 : 0};
  if (gaps_ == Gaps::counted && !is_pooled_)
    std::ranges::copy(memory_.key(configured_.value_or(0)), std::back_inserter(key));
  for (auto first = kinds.begin(); first != kinds.end();) {
    const auto next = std::upper_bound(first, kinds.end(), *first);
    key.insert(key.end(), first->begin(), first->end());
    key.push_back(static_cast<int32_t>(next - first));
    first = next;
  }
  return key;
}

std::vector<int32_t> OneSm::distinct_blocks(const int32_t launch) const {
  std::map<std::array<int32_t, 2>, int32_t> block_at;
  for (const Block& block : blocks_) {
    if (block.launch == launch) block_at.try_emplace(position_of(block), block.number);
  }
  std::vector<int32_t> numbers;
  for (const auto& [position, number] : block_at) numbers.push_back(number);
  return numbers;
}

void OneSm::leave(const int32_t launch, const int32_t number) {
  const auto block = std::ranges::find_if(
      blocks_, [&](const Block& each) { return each.launch == launch && each.number == number; });
  state_.release(without_counted_memory((*demands_)[launch]), block->footprint);
  blocks_.erase(block);
  memory_.leave((*demands_)[launch].shared_memory, *configured_);
}

std::array<int32_t, 2> OneSm::position_of(const Block& block) const {
  const int32_t count = device_->spec.processing_blocks;
  const bool is_even = (*demands_)[block.launch].warps % count == 0;
  const int32_t first = block.footprint.first_processing_block;
  const int32_t from_turn = is_even ? 0 : (first - state_.turn() + count) % count;
  if (gaps_ == Gaps::counted) return {from_turn, 0};
  const auto pieces = state_.shared_memory_of(device_->spec, block.footprint.owner);
  return {from_turn, pieces.empty() ? 0 : pieces.front().begin};
}

std::optional<int32_t> OneSm::configured_for(const Demand& demand) const {
  if (!device_->spec.mechanisms.shared_memory_configuration) {
    return device_->spec.shared_memory_configurations.back();
  }
  if (idle()) return demand.configuration.target;
  if (!demand.configuration.suits(*configured_)) return {};
  return configured_;
}

RoomRange OneSm::rooms_in_memory(const Demand& demand, const int32_t configured,
                                 const int32_t wanted) const {
  const int32_t size = demand.shared_memory;
  if (size == 0) return {wanted, wanted};
  const int32_t max_room = std::min(wanted, (configured - memory_.taken()) / size);
  if (is_pooled_) return {max_room, max_room};
  return {
      std::min(max_room, memory_.guaranteed_room(size, configured, std::gcd(unit_, configured))),
      max_room};
}

Demand OneSm::without_counted_memory(const Demand& demand) const {
  Demand result = demand;
  if (gaps_ == Gaps::counted) result.shared_memory = 0;
  return result;
}

}  // namespace tbsched
