#include "tbsched/coresidency/any_sm.h"

#include <algorithm>
#include <numeric>

#include "tbsched/coresidency/demands.h"
#include "tbsched/hardware/sm/shared_memory.h"
#include "tbsched/hardware/sm/units.h"

namespace tbsched {
namespace {

// Each returns what one block of a demand takes of an SM: block slots, block slots of clusters,
// warps, registers, and bytes of shared memory. The values of blocks add up.
int32_t one_slot(const Demand&) { return 1; }
int32_t cluster_slots(const Demand& demand) { return demand.cluster > 1 ? 1 : 0; }
int32_t warps(const Demand& demand) { return demand.warps; }
int32_t registers(const Demand& demand) { return demand.warps * demand.registers_per_warp; }
int32_t shared_memory(const Demand& demand) { return demand.shared_memory; }

}  // namespace

AnySm::AnySm(const DeviceSpec& spec, const std::vector<Demand>& demands,
             const std::vector<bool>& may_leave, const std::vector<bool>& is_resident)
    : spec_(spec),
      demands_(demands),
      may_leave_(may_leave),
      is_resident_(is_resident),
      unit_(memory_unit(demands)) {
  for (const Demand& demand : demands) configurations_.insert(demand.configuration.target);
}

// Returns what these blocks, given by launch, take together, if a block takes value(demand).
template <typename Value>
int64_t AnySm::total(const Multiset& blocks, const Value& value) const {
  int64_t sum = 0;
  for (size_t k = 0; k < blocks.size(); ++k) sum += int64_t{blocks[k]} * value(demands_[k]);
  return sum;
}

bool AnySm::can_hold(const Multiset& blocks, const int32_t configured) const {
  return total(blocks, one_slot) <= spec_.blocks_per_sm &&
         total(blocks, cluster_slots) <= spec_.cluster_blocks_per_sm &&
         total(blocks, warps) <= spec_.warps_per_sm &&
         total(blocks, registers) <= spec_.registers_per_sm &&
         suits_some_configuration(blocks, configured);
}

bool AnySm::suits_some_configuration(const Multiset& blocks, const int32_t configured) const {
  if (!spec_.mechanisms.shared_memory_configuration) return true;
  if (configured > 0 && has_resident(blocks)) return suits_configuration(blocks, configured);
  return std::ranges::any_of(configurations_,
                             [&](const int32_t size) { return suits_configuration(blocks, size); });
}

bool AnySm::has_resident(const Multiset& blocks) const {
  for (size_t k = 0; k < blocks.size(); ++k) {
    if (is_resident_[k] && blocks[k] > 0) return true;
  }
  return false;
}

bool AnySm::may_be_full(const Multiset& blocks, const SmKind& kind, const size_t launch) const {
  if (total(blocks, one_slot) == 0) return false;
  const Demand& demand = demands_[launch];
  if (slots_may_be_full(blocks, demand) || warps_may_be_full(blocks, kind, launch)) return true;
  return any_configuration(blocks, kind, [&](const int32_t configured) {
    return !demand.configuration.suits(configured) ||
           may_refuse_for_memory(blocks, kind.ever_resident, launch, configured);
  });
}

bool AnySm::slots_may_be_full(const Multiset& blocks, const Demand& demand) const {
  return total(blocks, one_slot) >= spec_.blocks_per_sm ||
         (demand.cluster > 1 && total(blocks, cluster_slots) >= spec_.cluster_blocks_per_sm);
}

WarpsAndRegisters AnySm::max_of_one_processing_block(const size_t launch,
                                                     const int32_t blocks) const {
  // Blocks that are placed at once take the processing blocks in turn. If some have left, the first
  // warps of the others may all be on the same one.
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
    const WarpsAndRegisters of_launch =
        max_of_one_processing_block(k, blocks[k] + (k == launch ? 1 : 0));
    WarpsAndRegisters& sum = is_resident_[k] ? resident : taken;
    sum.warps += of_launch.warps;
    sum.registers += of_launch.registers;
  }
  taken.warps += std::min(resident.warps, kind.taken.warps);
  taken.registers += std::min(resident.registers, kind.taken.registers);
  return taken.warps > spec_.warps_per_sm / spec_.processing_blocks ||
         taken.registers > spec_.registers_per_sm / spec_.processing_blocks;
}

// Returns what the blocks that have ended took together: those in `ever_resident` that are no
// longer in `blocks`, of launches that may leave. A block took value(demand).
template <typename Value>
int64_t AnySm::total_ended(const Multiset& blocks, const Multiset& ever_resident,
                           const Value& value) const {
  int64_t sum = 0;
  for (size_t k = 0; k < blocks.size(); ++k) {
    if (may_leave_[k]) sum += int64_t{ever_resident[k] - blocks[k]} * value(demands_[k]);
  }
  return sum;
}

bool AnySm::may_refuse_for_memory(const Multiset& blocks, const Multiset& ever_resident,
                                  const size_t launch, const int32_t configured) const {
  // Blocks are placed where the previous one ends, or where another one has left. So there is one
  // gap, and one more for each block that has left; but no more gaps than blocks, since memory is
  // circular. Each gap may be too small by one unit. Memory that no block has ever held is in one
  // gap.
  const int32_t size = demands_[launch].shared_memory;
  if (size == 0) return false;
  const int64_t free = configured - total(blocks, shared_memory);
  if (spec_.mechanisms.shared_memory == Layout::pooled) return free < size;
  const int64_t gaps =
      std::min(total(blocks, one_slot), 1 + total_ended(blocks, ever_resident, one_slot));
  return guaranteed_fits(size, free, gaps, std::gcd(unit_, configured)) == 0 &&
         free - total_ended(blocks, ever_resident, shared_memory) < size;
}

// Returns whether the SM may have a configuration for which holds(configured) is true: one that
// suits all blocks, set by a launch on the SM or by one that may have ended.
template <typename Holds>
bool AnySm::any_configuration(const Multiset& blocks, const SmKind& kind,
                              const Holds& holds) const {
  if (!spec_.mechanisms.shared_memory_configuration) {
    return holds(spec_.shared_memory_configurations.back());
  }
  if (kind.configured > 0 && has_resident(blocks)) return holds(kind.configured);
  return std::ranges::any_of(configurations_, [&](const int32_t configured) {
    return suits_configuration(blocks, configured) &&
           may_have_been_set(blocks, kind.ever_resident, configured) && holds(configured);
  });
}

bool AnySm::may_have_been_set(const Multiset& blocks, const Multiset& ever_resident,
                              const int32_t configured) const {
  for (size_t k = 0; k < blocks.size(); ++k) {
    if (demands_[k].configuration.target != configured) continue;
    const bool some_ended = may_leave_[k] && blocks[k] < ever_resident[k];
    if (blocks[k] > 0 || (some_ended && may_have_configured(k, blocks, configured))) return true;
  }
  return false;
}

bool AnySm::may_have_configured(const size_t ended, const Multiset& blocks,
                                const int32_t configured) const {
  // If it has, one of these blocks arrived while that launch, or another one that has ended too,
  // was resident.
  if (std::ranges::count(may_leave_, true) > 1) return true;
  for (size_t k = 0; k < blocks.size(); ++k) {
    if (blocks[k] == 0) continue;
    Multiset both(blocks.size());
    both[ended] = both[k] = 1;
    if (can_hold(both, 0) && suits_configuration(both, configured)) return true;
  }
  return false;
}

bool AnySm::suits_configuration(const Multiset& blocks, const int32_t configured) const {
  if (total(blocks, shared_memory) > configured) return false;
  for (size_t k = 0; k < blocks.size(); ++k) {
    if (blocks[k] > 0 && !demands_[k].configuration.suits(configured)) return false;
  }
  return true;
}

}  // namespace tbsched
