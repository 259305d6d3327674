#include "tbsched/coresidency/any_sm.h"

#include <algorithm>
#include <numeric>

#include "tbsched/coresidency/demands.h"
#include "tbsched/hardware/sm/shared_memory.h"
#include "tbsched/hardware/sm/units.h"

namespace tbsched {
namespace {

// Values of a demand that add up.
int32_t one(const Demand&) { return 1; }
int32_t one_of_cluster(const Demand& demand) { return demand.cluster > 1 ? 1 : 0; }
int32_t warps(const Demand& demand) { return demand.warps; }
int32_t registers(const Demand& demand) { return demand.warps * demand.registers_per_warp; }
int32_t memory(const Demand& demand) { return demand.shared_memory; }

}  // namespace

AnySm::AnySm(const DeviceSpec& spec, const std::vector<Demand>& demands,
             const std::vector<bool>& may_leave, const std::vector<bool>& is_there)
    : spec_(spec),
      demands_(demands),
      may_leave_(may_leave),
      is_resident_(is_there),
      unit_(memory_unit(demands)) {
  for (const Demand& demand : demands) configurations_.insert(demand.configuration.target);
}

template <typename Value>
int64_t AnySm::total(const Multiset& blocks, const Value& value) const {
  int64_t sum = 0;
  for (size_t k = 0; k < blocks.size(); ++k) sum += int64_t{blocks[k]} * value(demands_[k]);
  return sum;
}

bool AnySm::can_hold(const Multiset& blocks, const int32_t configured) const {
  return total(blocks, one) <= spec_.blocks_per_sm &&
         total(blocks, one_of_cluster) <= spec_.cluster_blocks_per_sm &&
         total(blocks, warps) <= spec_.warps_per_sm &&
         total(blocks, registers) <= spec_.registers_per_sm && can_enter_some(blocks, configured);
}

bool AnySm::can_enter_some(const Multiset& blocks, const int32_t configured) const {
  if (!spec_.mechanisms.shared_memory_configuration) return true;
  if (configured > 0 && some_stayed(blocks)) return can_enter(blocks, configured);
  return std::ranges::any_of(configurations_,
                             [&](const int32_t other) { return can_enter(blocks, other); });
}

bool AnySm::some_stayed(const Multiset& blocks) const {
  for (size_t k = 0; k < blocks.size(); ++k) {
    if (is_resident_[k] && blocks[k] > 0) return true;
  }
  return false;
}

bool AnySm::may_be_full(const Multiset& blocks, const SmKind& kind, const size_t launch) const {
  if (total(blocks, one) == 0) return false;
  const Demand& demand = demands_[launch];
  if (slots_may_be_full(blocks, demand) || warps_may_be_full(blocks, kind, launch)) return true;
  return exists_configuration(blocks, kind, [&](const int32_t configured) {
    return !demand.configuration.suits(configured) ||
           memory_may_be_full(blocks, kind.in_all, launch, configured);
  });
}

bool AnySm::slots_may_be_full(const Multiset& blocks, const Demand& demand) const {
  return total(blocks, one) >= spec_.blocks_per_sm ||
         (demand.cluster > 1 && total(blocks, one_of_cluster) >= spec_.cluster_blocks_per_sm);
}

// Returns the most warps and registers that a launch's blocks take of one processing block. Blocks
// placed at once take turns. If some have left, the others may all be on the same one.
WarpsAndRegisters AnySm::most_of_one_processing_block(const size_t launch,
                                                      const int32_t blocks) const {
  const Demand& demand = demands_[launch];
  const int32_t warps = may_leave_[launch]
                            ? blocks * ceil_div(demand.warps, spec_.processing_blocks)
                            : ceil_div(blocks * demand.warps, spec_.processing_blocks);
  return {warps, warps * demand.registers_per_warp};
}

bool AnySm::warps_may_be_full(const Multiset& blocks, const SmKind& kind,
                              const size_t launch) const {
  WarpsAndRegisters resident;
  WarpsAndRegisters taken;
  for (size_t k = 0; k < blocks.size(); ++k) {
    const WarpsAndRegisters own =
        most_of_one_processing_block(k, blocks[k] + (k == launch ? 1 : 0));
    WarpsAndRegisters& sum = is_resident_[k] ? resident : taken;
    sum.warps += own.warps;
    sum.registers += own.registers;
  }
  taken.warps += std::min(resident.warps, kind.taken.warps);
  taken.registers += std::min(resident.registers, kind.taken.registers);
  return taken.warps > spec_.warps_per_sm / spec_.processing_blocks ||
         taken.registers > spec_.registers_per_sm / spec_.processing_blocks;
}

template <typename Value>
int64_t AnySm::total_left(const Multiset& blocks, const Multiset& had, const Value& value) const {
  int64_t sum = 0;
  for (size_t k = 0; k < blocks.size(); ++k) {
    if (may_leave_[k]) sum += int64_t{had[k] - blocks[k]} * value(demands_[k]);
  }
  return sum;
}

// Blocks are placed where the previous one ends, or where another one has left. So there is one
// gap, and one more for each block that has left; but no more gaps than blocks, since memory is
// circular. Each gap may be too small by one unit. Memory that no block has ever had is in one gap.
bool AnySm::memory_may_be_full(const Multiset& blocks, const Multiset& had, const size_t launch,
                               const int32_t configured) const {
  const int64_t size = demands_[launch].shared_memory;
  if (size == 0) return false;
  const int64_t free = configured - total(blocks, memory);
  if (spec_.mechanisms.shared_memory == Layout::pooled) return free < size;
  const int64_t gaps = std::min(total(blocks, one), 1 + total_left(blocks, had, one));
  return sure_pieces(demands_[launch].shared_memory, free, gaps, std::gcd(unit_, configured)) ==
             0 &&
         free - total_left(blocks, had, memory) < size;
}

// Returns whether a configuration satisfies `holds` that a launch on the SM, or one that may have
// left, has set, and that suits all blocks.
template <typename Holds>
bool AnySm::exists_configuration(const Multiset& blocks, const SmKind& kind,
                                 const Holds& holds) const {
  if (!spec_.mechanisms.shared_memory_configuration) {
    return holds(spec_.shared_memory_configurations.back());
  }
  if (kind.configured > 0 && some_stayed(blocks)) return holds(kind.configured);
  return std::ranges::any_of(configurations_, [&](const int32_t configured) {
    return can_enter(blocks, configured) && may_be_set(blocks, kind.in_all, configured) &&
           holds(configured);
  });
}

bool AnySm::may_be_set(const Multiset& blocks, const Multiset& had,
                       const int32_t configured) const {
  for (size_t k = 0; k < blocks.size(); ++k) {
    if (demands_[k].configuration.target != configured) continue;
    const bool has_left = may_leave_[k] && blocks[k] < had[k];
    if (blocks[k] > 0 || (has_left && may_have_configured(k, blocks, configured))) return true;
  }
  return false;
}

// Returns whether a launch that has left may have configured the SM for these blocks: one of them
// arrived while that launch, or another one that has left too, was there.
bool AnySm::may_have_configured(const size_t gone, const Multiset& blocks,
                                const int32_t configured) const {
  if (std::ranges::count(may_leave_, true) > 1) return true;
  for (size_t k = 0; k < blocks.size(); ++k) {
    if (blocks[k] == 0) continue;
    Multiset both(blocks.size());
    both[gone] = both[k] = 1;
    if (can_hold(both, 0) && can_enter(both, configured)) return true;
  }
  return false;
}

bool AnySm::can_enter(const Multiset& blocks, const int32_t configured) const {
  if (total(blocks, memory) > configured) return false;
  for (size_t k = 0; k < blocks.size(); ++k) {
    if (blocks[k] > 0 && !demands_[k].configuration.suits(configured)) return false;
  }
  return true;
}

}  // namespace tbsched
