#include "tbsched/coresidency/ended_work.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/needed_sms.h"
#include "tbsched/coresidency/packing.h"
#include "tbsched/coresidency/pending_launches.h"
#include "tbsched/hardware/gpu/cluster_domains.h"
#include "tbsched/hardware/sm/demand.h"
#include "tbsched/hardware/sm/shared_memory.h"
#include "tbsched/hardware/sm/units.h"
#include "tbsched/policy/launch_order.h"

namespace tbsched {
namespace {

// Returns whether the rules of a device are among those that the proof covers.
bool covers(const Demands& demands, const DeviceSpec& spec) {
  const Mechanisms& mechanisms = spec.mechanisms;
  if (!mechanisms.strict_round_robin || mechanisms.registers != Layout::pooled) return false;
  std::set<int32_t> targets;
  for (const Demand& demand : demands.all()) {
    if (demand.partition != nullptr || demand.at_once || grows_local_memory(demand, spec)) {
      return false;
    }
    targets.insert(demand.configuration.target);
  }
  const bool shares = mechanisms.shared_memory_configuration && mechanisms.configuration_per_tpc;
  // A neighbour may configure an idle SM.
  return !shares || spec.sms_per_tpc == 1 || targets.size() == 1;
}

// Returns the configurations of shared memory, in bytes, that launches which end may set, each with
// its row in the sets of FilledSms: 1, 2, ...
std::map<int32_t, size_t> rows_of_setting(const EndedWork& work, const Demands& demands) {
  std::map<int32_t, size_t> row_of_configuration;
  for (size_t k = work.staying; k < work.launches.size(); ++k) {
    row_of_configuration.try_emplace(demands[k].configuration.target,
                                     row_of_configuration.size() + 1);
  }
  return row_of_configuration;
}

// The sets of staying blocks with which an SM may lack room for one more block of the last staying
// launch. A set is the number of blocks of each staying launch, followed by the number of blocks
// that must have been there and ended: of all launches together, and of those that set each
// configuration.
class FilledSms {
 public:
  // `known`: how many blocks of the first staying launches the SM has. Others are varied.
  FilledSms(const Model& model, const EndedWork& work, const Demands& demands,
            const Multiset& known = {})
      : spec_(model.device().spec),
        work_(work),
        demands_(demands),
        asking_(demands[work.staying - 1]),
        unit_(memory_unit(demands.all())),
        setting_(rows_of_setting(work, demands)),
        blocks_(work.staying) {
    const auto urgency = [&](const Launch& launch) { return urgency_of(launch, spec_); };
    const std::vector<Launch>& all = work.launches;
    in_line_ = model.order().head_of_line && std::ranges::all_of(all, [&](const Launch& other) {
                 return urgency(other) == urgency(all.front());
               });
    in_order_ = in_line_ && std::ranges::none_of(work.configured_by, [&](const auto& others) {
                  return std::ranges::any_of(others, [&](const int32_t other) {
                    return std::cmp_less(other, work.staying);
                  });
                });
    for (const Launch& launch : all) max_blocks_.push_back(launch.blocks);
    max_blocks_[work.staying - 1] -= asking_.cluster;
    for (size_t k = 0; k < work.staying; ++k) first_.push_back(configurations_for(k));
    std::ranges::copy(known, blocks_.begin());
    extend(known.size(), {});
  }

  // Returns whether there were too many sets to find them all.
  bool gave_up() const { return tried_ > kMaxTried; }
  const std::vector<Multiset>& sets() const { return sets_; }

 private:
  static constexpr size_t kMaxTried = 20'000;

  // Returns the configurations, in bytes, that an SM may have when the first block that stays there
  // is one of this launch.
  std::set<int32_t> configurations_for(const size_t launch) const {
    if (!spec_.mechanisms.shared_memory_configuration) {
      return {spec_.shared_memory_configurations.back()};
    }
    std::set<int32_t> configurations = {demands_[launch].configuration.target};
    if (!in_line_) {
      for (const Demand& demand : demands_.all()) {
        configurations.insert(demand.configuration.target);
      }
    }
    // The first block on an idle SM configures it anew, whatever was there before.
    if (in_line_ && work_.beside[launch].empty()) return configurations;
    for (const int32_t other : work_.configured_by[launch]) {
      configurations.insert(demands_[other].configuration.target);
    }
    return configurations;
  }

  // Adds the sets that have blocks_ and any more blocks of the launches from `first` on:
  // depth-first search. `known`: the blocks that must have ended if fewer stay, one row for each
  // way; more staying blocks are of no interest if they need no fewer ended ones.
  void extend(const size_t first, std::vector<Multiset> known) {
    if (++tried_ > kMaxTried) return;
    for (const Multiset& ended : ways_to_lack_room()) {
      const bool needs_more = std::ranges::any_of(known, [&](const Multiset& fewer) {
        return std::ranges::equal(fewer, ended, std::less_equal());
      });
      if (needs_more) continue;
      known.push_back(ended);
      sets_.push_back(blocks_);
      sets_.back().insert(sets_.back().end(), ended.begin(), ended.end());
      if (ended.front() == 0) return;
    }
    for (size_t k = first; k < blocks_.size(); ++k) {
      if (blocks_[k] == max_blocks_[k]) continue;
      ++blocks_[k];
      if (can_be_on_an_sm()) extend(k, known);
      --blocks_[k];
    }
  }

  // Returns the sum of value(demand) over blocks_.
  template <typename Value>
  int64_t total(const Value& value) const {
    int64_t sum = 0;
    for (size_t k = 0; k < blocks_.size(); ++k) sum += int64_t{blocks_[k]} * value(demands_[k]);
    return sum;
  }
  // Return how many slots, slots of clusters and bytes of shared memory blocks_ take.
  int64_t slots() const { return std::accumulate(blocks_.begin(), blocks_.end(), int64_t{0}); }
  int64_t cluster_slots() const {
    return total([](const Demand& demand) { return demand.cluster > 1 ? 1 : 0; });
  }
  int64_t shared_memory() const {
    return total([](const Demand& demand) { return demand.shared_memory; });
  }

  // Returns whether blocks_ can be on one SM, alone or with others of these launches.
  bool can_be_on_an_sm() const {
    const auto warps = [](const Demand& demand) { return demand.warps; };
    const auto registers = [](const Demand& demand) {
      return demand.warps * demand.registers_per_warp;
    };
    return slots() <= spec_.blocks_per_sm && cluster_slots() <= spec_.cluster_blocks_per_sm &&
           total(warps) <= spec_.warps_per_sm && total(registers) <= spec_.registers_per_sm &&
           std::ranges::any_of(first_, [&](const std::set<int32_t>& configurations) {
             return std::ranges::any_of(configurations,
                                        [&](const int32_t size) { return suits_blocks(size); });
           });
  }

  // Returns whether blocks_ can be on an SM that is configured to so many bytes.
  bool suits_blocks(const int32_t configured) const {
    if (shared_memory() > configured) return false;
    for (size_t k = 0; k < blocks_.size(); ++k) {
      if (blocks_[k] > 0 && !suits(demands_[k], configured)) return false;
    }
    return true;
  }

  // Returns whether an SM that is configured to so many bytes takes blocks of the demand.
  bool suits(const Demand& demand, const int32_t configured) const {
    return !spec_.mechanisms.shared_memory_configuration || demand.configuration.suits(configured);
  }

  // Returns the ways in which an SM with blocks_ may lack room, each as the fewest blocks that must
  // have ended on it: in all, and for each configuration. An idle SM has room: the next block
  // configures it.
  std::vector<Multiset> ways_to_lack_room() const {
    const auto resident =
        std::ranges::find_if(blocks_, [](const int32_t count) { return count > 0; });
    if (resident == blocks_.end()) return {};
    const Multiset none(1 + setting_.size());
    if (slots() >= spec_.blocks_per_sm || warps_may_be_full()) return {none};
    if (asking_.cluster > 1 && cluster_slots() >= spec_.cluster_blocks_per_sm) return {none};
    const auto first = static_cast<size_t>(resident - blocks_.begin());
    std::vector<Multiset> ways;
    for (const int32_t configured : first_[first]) {
      if (!suits_blocks(configured)) continue;
      const std::optional<int32_t> gaps = least_gaps(configured);
      if (!gaps) continue;
      if (!in_line_) return {none};
      // A block sets its own configuration, and leaves one gap. Each other gap needs a block that
      // has ended before it, and another configuration one that set it.
      Multiset ended = none;
      ended.front() = *gaps - 1;
      if (spec_.mechanisms.shared_memory_configuration && !may_be_set_by_staying(configured)) {
        const auto setting = setting_.find(configured);
        if (setting == setting_.end()) continue;
        ended.front() = std::max(1, ended.front());
        ended[setting->second] = 1;
      }
      ways.push_back(std::move(ended));
    }
    return ways;
  }

  // Returns whether a block that stays may have configured the SM.
  bool may_be_set_by_staying(const int32_t configured) const {
    for (size_t k = 0; k < blocks_.size(); ++k) {
      if (blocks_[k] > 0 && demands_[k].configuration.target == configured) return true;
    }
    return false;
  }

  // Returns how many gaps there may be in shared memory at most. A block is placed at the beginning
  // of a gap, so blocks that come without others around leave one gap behind them all. Each block
  // that comes while others are there may leave one of its own.
  int64_t gaps(const int32_t configured) const {
    // Memory that is no ring may have one before the first block.
    int64_t max_gaps = spec_.mechanisms.shared_memory == Layout::contiguous ? 1 : 0;
    if (!in_order_) return max_gaps + slots();
    int64_t taken_bytes = 0;
    bool is_first = true;
    for (size_t k = 0; k < blocks_.size(); ++k) {
      if (blocks_[k] == 0) continue;
      const int64_t block_bytes = demands_[k].shared_memory;
      const bool among_others = !is_first || may_be_set_by_others(k, configured);
      const int32_t beside =
          among_others ? max_beside(k, configured - taken_bytes - block_bytes, configured) : 0;
      max_gaps += std::min(blocks_[k], std::max(beside, is_first ? 1 : 0));
      taken_bytes += blocks_[k] * block_bytes;
      is_first = false;
    }
    return max_gaps;
  }

  // Returns how many blocks that end can be on the SM at most when the first block of a launch
  // comes. No more come before all of its blocks are resident. `memory`: bytes that are left for
  // them.
  int32_t max_beside(const size_t launch, const int64_t memory, const int32_t configured) const {
    int64_t slots = int64_t{spec_.blocks_per_sm} - 1;
    int64_t warps = int64_t{spec_.warps_per_sm} - demands_[launch].warps;
    for (size_t k = 0; k < launch; ++k) {
      slots -= blocks_[k];
      warps -= int64_t{blocks_[k]} * demands_[k].warps;
    }
    int64_t max_blocks = 0;
    int64_t least_warps = spec_.warps_per_sm;
    int64_t least_memory = configured;
    for (const int32_t other : work_.beside[launch]) {
      const Demand& demand = demands_[other];
      if (!suits(demand, configured) || demand.shared_memory > memory) continue;
      max_blocks = slots;
      least_warps = std::min(least_warps, int64_t{demand.warps});
      least_memory = std::min(least_memory, int64_t{demand.shared_memory});
    }
    max_blocks = std::min(max_blocks, warps / least_warps);
    if (least_memory > 0) max_blocks = std::min(max_blocks, memory / least_memory);
    return static_cast<int32_t>(std::max(max_blocks, int64_t{0}));
  }

  // Returns whether others may have set this configuration before the first block of a launch came.
  bool may_be_set_by_others(const size_t launch, const int32_t configured) const {
    return !spec_.mechanisms.shared_memory_configuration ||
           std::ranges::any_of(work_.configured_by[launch], [&](const int32_t other) {
             return demands_[other].configuration.target == configured;
           });
  }

  // Returns whether one more block may find too few warps or registers. The blocks of one launch
  // come to an SM one after the other, in turns of the processing blocks. Where launches pass each
  // other, blocks that have ended may have been between them.
  bool warps_may_be_full() const {
    const int32_t parts = spec_.processing_blocks;
    int32_t warps = 0;
    int32_t registers = 0;
    for (size_t k = 0; k < blocks_.size(); ++k) {
      const int32_t blocks = blocks_[k] + (k + 1 == work_.staying ? 1 : 0);
      const int32_t max_warps = in_line_ ? ceil_div(blocks * demands_[k].warps, parts)
                                         : blocks * ceil_div(demands_[k].warps, parts);
      warps += max_warps;
      registers += max_warps * demands_[k].registers_per_warp;
    }
    return warps > spec_.warps_per_sm / parts || registers > spec_.registers_per_sm / parts;
  }

  // Returns the fewest gaps in shared memory with which the SM may lack room; nothing: it has room.
  // Each gap may be too small by one unit.
  std::optional<int32_t> least_gaps(const int32_t configured) const {
    if (!suits(asking_, configured)) return 1;
    const int32_t size = asking_.shared_memory;
    const int64_t free = configured - shared_memory();
    if (size == 0) return std::nullopt;
    const bool pooled = spec_.mechanisms.shared_memory == Layout::pooled;
    const int64_t max_gaps = pooled ? 1 : std::max(int64_t{1}, gaps(configured));
    for (int32_t count = 1; count <= max_gaps; ++count) {
      if (guaranteed_fits(size, free, count, std::gcd(unit_, configured)) == 0) return count;
    }
    return std::nullopt;
  }

  const DeviceSpec& spec_;
  const EndedWork& work_;
  const Demands& demands_;
  const Demand& asking_;
  int32_t unit_;                       // common divisor of sizes of shared memory
  std::map<int32_t, size_t> setting_;  // as of rows_of_setting()
  bool in_line_ = false;               // no launch passes another
  bool in_order_ = false;              // and those that stay arrive in their order
  Multiset max_blocks_;                // by launch
  Multiset blocks_;  // of each staying launch on the SM, in this step of the search
  // By staying launch: configurations_for() it.
  std::vector<std::set<int32_t>> first_;
  size_t tried_ = 0;  // steps of the search
  std::vector<Multiset> sets_;
};

// Units that are alike: SMs, or TPCs if one full SM of each is enough.
struct AlikeUnits {
  std::vector<bool> takes;   // by staying launch: whether blocks of it may be there
  std::set<Multiset> on_sm;  // what one of their SMs has of the launches whose SMs are known
  int32_t count = 0;

  // Returns whether all of these blocks, by launch, may be there.
  bool may_have(const Multiset& blocks) const {
    for (size_t k = 0; k < takes.size(); ++k) {
      if (blocks[k] > 0 && !takes[k]) return false;
    }
    return true;
  }
};

// The units of a domain, of which `needed` must be full before it takes nothing more.
struct UnitsOfDomain {
  int32_t needed = 0;
  std::vector<AlikeUnits> units;
};

// Returns the domains in which the last of `staying` launches can be; for single blocks the whole
// GPU is one. `on_sm`: by SM, the known blocks.
std::vector<UnitsOfDomain> units_of(const Device& device, const Demands& demands,
                                    const size_t staying, const std::vector<Multiset>& on_sm) {
  using Kind = std::pair<std::vector<bool>, std::set<Multiset>>;  // AlikeUnits without their count
  const Demand& asking = demands[staying - 1];
  std::vector<UnitsOfDomain> domains;
  std::map<Kind, int32_t> counts;  // of alike units of the domain
  const auto add_domain = [&](const int32_t needed) {
    UnitsOfDomain& domain = domains.emplace_back(UnitsOfDomain{.needed = needed, .units = {}});
    for (const auto& [kind, count] : std::exchange(counts, {})) {
      domain.units.push_back({kind.first, kind.second, count});
    }
  };
  // All SMs of a TPC take the same launches.
  const auto takes = [&](const int32_t sm) {
    std::vector<bool> by_launch;
    for (size_t k = 0; k < staying; ++k) by_launch.push_back(demands.may_be_on(k, sm));
    return by_launch;
  };
  if (asking.cluster == 1) {
    for (int32_t sm = 0; sm < device.spec.sms; ++sm) {
      if (asking.may_use(sm)) ++counts[{takes(sm), {on_sm[sm]}}];
    }
    add_domain(usable_sms(asking, device.spec.sms));
    return domains;
  }
  for (const ClusterDomain& domain : device.cluster_domains) {
    const int32_t needed = sms_to_fill_in(domain, asking, device.spec);
    if (needed == 0) continue;
    for (const std::vector<int32_t>& tpc : domain.tpcs) {
      std::set<Multiset> whole;
      for (const int32_t sm : tpc) {
        whole.insert(on_sm[sm]);
        if (!takes_whole_tpcs(asking, device.spec)) ++counts[{takes(sm), {on_sm[sm]}}];
      }
      if (takes_whole_tpcs(asking, device.spec)) ++counts[{takes(tpc.front()), std::move(whole)}];
    }
    add_domain(needed);
  }
  return domains;
}

// Returns how many of these blocks, given by launch, end: in all, then of the launches that set
// each configuration (rows_of_setting).
Multiset sums_of_ended(const EndedWork& work, const Demands& demands, const Multiset& blocks) {
  const std::map<int32_t, size_t> setting = rows_of_setting(work, demands);
  std::vector<int64_t> sums(1 + setting.size());
  for (size_t k = work.staying; k < blocks.size(); ++k) {
    sums.front() += blocks[k];
    sums[setting.at(demands[k].configuration.target)] += blocks[k];
  }
  constexpr int64_t kMaxSum = 1 << 30;
  Multiset limited;
  for (const int64_t sum : sums) limited.push_back(static_cast<int32_t>(std::min(sum, kMaxSum)));
  return limited;
}

// Returns whether all blocks together fill too few SMs or TPCs for the last staying launch to find
// no room. Packs the sets of FilledSms, a column each, into a stock of blocks and of SMs or TPCs.
bool packs_too_few(const Model& model, const EndedWork& work, const Demands& demands) {
  const Device& device = model.device();
  const Demand& asking = demands[work.staying - 1];
  const std::vector<Multiset> on_sm =
      work.on_sm.empty() ? std::vector<Multiset>(device.spec.sms) : work.on_sm;
  std::map<Multiset, std::vector<Multiset>> sets;
  for (const Multiset& known : on_sm) {
    if (sets.contains(known)) continue;
    const FilledSms filled(model, work, demands, known);
    if (filled.gave_up()) return false;
    sets[known] = filled.sets();
  }
  Multiset stock;
  for (const Launch& launch : work.launches) stock.push_back(launch.blocks);
  stock[work.staying - 1] -= asking.cluster;
  if (takes_whole_tpcs(asking, device.spec)) {
    stock = for_one_of_each_tpc(demands, stock, device.spec);
  }
  const Multiset ended = sums_of_ended(work, demands, stock);
  stock.resize(work.staying);
  stock.insert(stock.end(), ended.begin(), ended.end());
  // Where the first launches are is known, so a set has as many of their blocks as there are.
  const auto known = static_cast<std::ptrdiff_t>(on_sm.front().size());
  stock.erase(stock.begin(), stock.begin() + known);
  // More rows: of each domain how many units must be full, and how many there are that are alike.
  std::vector<Multiset> columns;
  int32_t needed = 0;
  for (const UnitsOfDomain& domain : units_of(device, demands, work.staying, on_sm)) {
    const size_t row = stock.size();
    stock.push_back(domain.needed);
    needed += domain.needed;
    for (const AlikeUnits& alike : domain.units) {
      for (const Multiset& on_one : alike.on_sm) {
        for (const Multiset& set : sets[on_one]) {
          if (!alike.may_have(set)) continue;
          Multiset& column = columns.emplace_back(set.begin() + known, set.end());
          column.resize(stock.size() + 1);
          column[row] = 1;
          column.back() = 1;
        }
      }
      stock.push_back(alike.count);
    }
  }
  for (Multiset& column : columns) column.resize(stock.size());
  return packs_fewer(max_packed(columns, stock), needed);
}

// Returns whether a launch that stays alone has too few blocks to fill every SM, or one SM of each
// TPC.
bool fills_too_few(const Model& model, const EndedWork& work, const Demands& demands) {
  if (work.staying > 1) return false;
  const FilledSms filled(model, work, demands);
  if (filled.gave_up()) return false;
  const Demand& asking = demands[0];
  const int32_t other_blocks = work.launches.front().blocks - asking.cluster;
  int32_t per_sm = asking.cluster + other_blocks;
  for (const Multiset& set : filled.sets()) per_sm = std::min(per_sm, set.front());
  return other_blocks < blocks_to_fill(asking, model.device(), per_sm);
}

}  // namespace

bool finds_room_after(const Model& model, const EndedWork& work) {
  const Demands demands(model.device(), work.launches);
  return covers(demands, model.device().spec) &&
         (fills_too_few(model, work, demands) || packs_too_few(model, work, demands));
}

}  // namespace tbsched
