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
         !may_enter(launch).empty();
}

RoomRange OneSm::rooms(const int32_t launch) const {
  const Demand& demand = (*demands_)[launch];
  const std::optional<int32_t> configured = configured_for(demand);
  if (!configured) return {0, 0};
  const int32_t room = state_.room(device_->spec, as_counted(demand), *configured).blocks;
  if (gaps_ == Gaps::located) return {room, room};
  return rooms_in_memory(demand, *configured, room);
}

std::vector<int32_t> OneSm::may_enter(const int32_t launch) const {
  const Demand& demand = (*demands_)[launch];
  std::set<int32_t> ways;
  if (const auto configured = configured_for(demand)) ways.insert(*configured);
  if (idle() && configured_ && demand.configuration.suits(*configured_)) ways.insert(*configured_);
  std::vector<int32_t> found;
  std::ranges::copy_if(ways, std::back_inserter(found), [&](const int32_t configured) {
    return memory_.taken() + demand.shared_memory <= configured &&
           state_.room(device_->spec, as_counted(demand), configured).blocks > 0;
  });
  return found;
}

void OneSm::reserve(const int32_t launch, const int32_t blocks) {
  memory_.reserve(int64_t{blocks} * (*demands_)[launch].shared_memory);
  is_entered_ = true;
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
  state_.commit(device_->spec, as_counted(demand), configured, footprint);
  blocks_.push_back({launch, arrived_[launch]++, footprint});
}

// Processing blocks are interchangeable apart from their turn.
std::vector<int32_t> OneSm::key() const {
  std::vector<std::array<int32_t, 3>> kinds;
  kinds.reserve(blocks_.size());
  for (const Block& block : blocks_) {
    const auto& [processing_block, at] = kind_of(block);
    kinds.push_back({block.launch, processing_block, at});
  }
  std::ranges::sort(kinds);
  const bool is_configured = configured_ && (!idle() || is_entered_);
  std::vector<int32_t> found = {is_configured ? *configured_ : -1, is_entered_ ? 1 : 0};
  if (gaps_ == Gaps::counted && !is_pooled_)
    std::ranges::copy(memory_.key(configured_.value_or(0)), std::back_inserter(found));
  for (auto first = kinds.begin(); first != kinds.end();) {
    const auto next = std::upper_bound(first, kinds.end(), *first);
    found.insert(found.end(), first->begin(), first->end());
    found.push_back(static_cast<int32_t>(next - first));
    first = next;
  }
  return found;
}

std::vector<int32_t> OneSm::distinct(const int32_t launch) const {
  std::map<std::array<int32_t, 2>, int32_t> found;
  for (const Block& block : blocks_) {
    if (block.launch == launch) found.try_emplace(kind_of(block), block.number);
  }
  std::vector<int32_t> numbers;
  for (const auto& [kind, number] : found) numbers.push_back(number);
  return numbers;
}

void OneSm::leave(const int32_t launch, const int32_t number) {
  const auto block = std::ranges::find_if(
      blocks_, [&](const Block& each) { return each.launch == launch && each.number == number; });
  state_.release(as_counted((*demands_)[launch]), block->footprint);
  blocks_.erase(block);
  memory_.leave((*demands_)[launch].shared_memory, *configured_);
}

// Returns the block's first processing block, counted from the next turn, unless it takes equally
// much of all; and the position of its shared memory, where gaps are located.
std::array<int32_t, 2> OneSm::kind_of(const Block& block) const {
  const int32_t count = device_->spec.processing_blocks;
  const bool is_even = (*demands_)[block.launch].warps % count == 0;
  const int32_t first = block.footprint.first_processing_block;
  const int32_t from_turn = is_even ? 0 : (first - state_.turn() + count) % count;
  if (gaps_ == Gaps::counted) return {from_turn, 0};
  const auto pieces = state_.shared_memory_of(device_->spec, block.footprint.owner);
  return {from_turn, pieces.empty() ? 0 : pieces.front().begin};
}

// Returns nothing if the launch may not enter.
std::optional<int32_t> OneSm::configured_for(const Demand& demand) const {
  if (!device_->spec.mechanisms.shared_memory_configuration) {
    return device_->spec.shared_memory_configurations.back();
  }
  if (idle()) return demand.configuration.target;
  if (!demand.configuration.suits(*configured_)) return {};
  return configured_;
}

// Returns how many of `wanted` blocks fit into shared memory.
RoomRange OneSm::rooms_in_memory(const Demand& demand, const int32_t configured,
                                 const int32_t wanted) const {
  const int32_t size = demand.shared_memory;
  if (size == 0) return {wanted, wanted};
  const int32_t most = std::min(wanted, (configured - memory_.taken()) / size);
  if (is_pooled_) return {most, most};
  return {std::min(most, memory_.sure(size, configured, std::gcd(unit_, configured))), most};
}

Demand OneSm::as_counted(const Demand& demand) const {
  Demand found = demand;
  if (gaps_ == Gaps::counted) found.shared_memory = 0;
  return found;
}

}  // namespace tbsched
