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

// Returns the configurations that blocks set which end, numbered from 1.
std::map<int32_t, size_t> rows_of_setting(const EndedWork& work, const Demands& demands) {
  std::map<int32_t, size_t> found;
  for (size_t k = work.staying; k < work.launches.size(); ++k) {
    found.try_emplace(demands[k].configuration.target, found.size() + 1);
  }
  return found;
}

// The sets of staying blocks with which an SM may lack room for one more block of a launch, each
// followed by the blocks that must have been there and ended: of all launches together, and of
// those that set each configuration.
class FilledSms {
 public:
  // `known`: how many blocks of the first staying launches the SM has.
  FilledSms(const Model& model, const EndedWork& work, const Demands& demands,
            const Multiset& known = {})
      : spec_(model.device().spec),
        work_(work),
        demands_(demands),
        asking_(demands[work.staying - 1]),
        unit_(memory_unit(demands.all())),
        setting_(rows_of_setting(work, demands)),
        blocks_(work.staying) {
    const auto rank = [&](const Launch& launch) { return rank_of(launch, spec_); };
    const std::vector<Launch>& all = work.launches;
    in_line_ = model.order().head_of_line && std::ranges::all_of(all, [&](const Launch& other) {
                 return rank(other) == rank(all.front());
               });
    in_order_ = in_line_ && std::ranges::none_of(work.configured_by, [&](const auto& others) {
                  return std::ranges::any_of(others, [&](const int32_t other) {
                    return std::cmp_less(other, work.staying);
                  });
                });
    for (const Launch& launch : all) most_.push_back(launch.blocks);
    most_[work.staying - 1] -= asking_.cluster;
    for (size_t k = 0; k < work.staying; ++k) first_.push_back(configurations_for(k));
    std::ranges::copy(known, blocks_.begin());
    extend(known.size(), {});
  }

  bool too_many() const { return tried_ > kMostSets; }
  const std::vector<Multiset>& found() const { return found_; }

 private:
  static constexpr size_t kMostSets = 20'000;

  // Returns the configurations of an SM on which a block of a launch is the first that stays.
  std::set<int32_t> configurations_for(const size_t launch) const {
    if (!spec_.mechanisms.shared_memory_configuration) {
      return {spec_.shared_memory_configurations.back()};
    }
    std::set<int32_t> found = {demands_[launch].configuration.target};
    if (!in_line_) {
      for (const Demand& demand : demands_.all()) found.insert(demand.configuration.target);
    }
    // The first block on an idle SM configures it anew, whatever was there before.
    if (in_line_ && work_.beside[launch].empty()) return found;
    for (const int32_t other : work_.configured_by[launch]) {
      found.insert(demands_[other].configuration.target);
    }
    return found;
  }

  // `known`: the blocks that must have ended if fewer stay, one row for each way.
  void extend(const size_t first, std::vector<Multiset> known) {
    if (++tried_ > kMostSets) return;
    for (const Multiset& ended : ways_to_lack_room()) {
      const bool needs_more = std::ranges::any_of(known, [&](const Multiset& fewer) {
        return std::ranges::equal(fewer, ended, std::less_equal());
      });
      if (needs_more) continue;
      known.push_back(ended);
      found_.push_back(blocks_);
      found_.back().insert(found_.back().end(), ended.begin(), ended.end());
      if (ended.front() == 0) return;
    }
    for (size_t k = first; k < blocks_.size(); ++k) {
      if (blocks_[k] == most_[k]) continue;
      ++blocks_[k];
      if (can_be()) extend(k, known);
      --blocks_[k];
    }
  }

  template <typename Value>
  int64_t total(const Value& value) const {
    int64_t sum = 0;
    for (size_t k = 0; k < blocks_.size(); ++k) sum += int64_t{blocks_[k]} * value(demands_[k]);
    return sum;
  }
  int64_t slots() const { return std::accumulate(blocks_.begin(), blocks_.end(), int64_t{0}); }
  int64_t cluster_slots() const {
    return total([](const Demand& demand) { return demand.cluster > 1 ? 1 : 0; });
  }
  int64_t memory() const {
    return total([](const Demand& demand) { return demand.shared_memory; });
  }

  // Returns whether the blocks can be on one SM, alone or with others of these launches.
  bool can_be() const {
    const auto warps = [](const Demand& demand) { return demand.warps; };
    const auto registers = [](const Demand& demand) {
      return demand.warps * demand.registers_per_warp;
    };
    return slots() <= spec_.blocks_per_sm && cluster_slots() <= spec_.cluster_blocks_per_sm &&
           total(warps) <= spec_.warps_per_sm && total(registers) <= spec_.registers_per_sm &&
           std::ranges::any_of(first_, [&](const std::set<int32_t>& configurations) {
             return std::ranges::any_of(configurations,
                                        [&](const int32_t size) { return can_enter(size); });
           });
  }

  bool can_enter(const int32_t configured) const {
    if (memory() > configured) return false;
    for (size_t k = 0; k < blocks_.size(); ++k) {
      if (blocks_[k] > 0 && !suits(demands_[k], configured)) return false;
    }
    return true;
  }

  bool suits(const Demand& demand, const int32_t configured) const {
    return !spec_.mechanisms.shared_memory_configuration || demand.configuration.suits(configured);
  }

  // Returns the ways in which the SM may lack room, each as the fewest blocks that must have ended
  // on it. An idle SM has room: the next block configures it.
  std::vector<Multiset> ways_to_lack_room() const {
    const auto there = std::ranges::find_if(blocks_, [](const int32_t count) { return count > 0; });
    if (there == blocks_.end()) return {};
    const Multiset none(1 + setting_.size());
    if (slots() >= spec_.blocks_per_sm || warps_may_be_full()) return {none};
    if (asking_.cluster > 1 && cluster_slots() >= spec_.cluster_blocks_per_sm) return {none};
    const auto first = static_cast<size_t>(there - blocks_.begin());
    std::vector<Multiset> ways;
    for (const int32_t configured : first_[first]) {
      if (!can_enter(configured)) continue;
      const std::optional<int32_t> gaps = least_gaps(configured);
      if (!gaps) continue;
      if (!in_line_) return {none};
      // A block sets its own configuration, and leaves one gap. Each other gap needs a block that
      // has ended before it, and another configuration one that set it.
      Multiset ended = none;
      ended.front() = *gaps - 1;
      if (spec_.mechanisms.shared_memory_configuration && !is_set_by_one(configured)) {
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
  bool is_set_by_one(const int32_t configured) const {
    for (size_t k = 0; k < blocks_.size(); ++k) {
      if (blocks_[k] > 0 && demands_[k].configuration.target == configured) return true;
    }
    return false;
  }

  // Returns how many gaps there may be in shared memory. A block is placed at the beginning of a
  // gap, so blocks that come without others around leave one gap behind them all. Each block that
  // comes while others are there may leave one of its own.
  int64_t gaps(const int32_t configured) const {
    // Memory that is no ring may have one before the first block.
    int64_t found = spec_.mechanisms.shared_memory == Layout::contiguous ? 1 : 0;
    if (!in_order_) return found + slots();
    int64_t taken = 0;
    bool is_first = true;
    for (size_t k = 0; k < blocks_.size(); ++k) {
      if (blocks_[k] == 0) continue;
      const int64_t one = demands_[k].shared_memory;
      const bool among_others = !is_first || may_be_set_by_others(k, configured);
      const int32_t beside =
          among_others ? most_beside(k, configured - taken - one, configured) : 0;
      found += std::min(blocks_[k], std::max(beside, is_first ? 1 : 0));
      taken += blocks_[k] * one;
      is_first = false;
    }
    return found;
  }

  // Returns how many blocks that end can be on the SM when the first block of a launch comes. No
  // more come before all of its blocks are resident.
  int32_t most_beside(const size_t launch, const int64_t memory, const int32_t configured) const {
    int64_t slots = int64_t{spec_.blocks_per_sm} - 1;
    int64_t warps = int64_t{spec_.warps_per_sm} - demands_[launch].warps;
    for (size_t k = 0; k < launch; ++k) {
      slots -= blocks_[k];
      warps -= int64_t{blocks_[k]} * demands_[k].warps;
    }
    int64_t most = 0;
    int64_t least_warps = spec_.warps_per_sm;
    int64_t least_memory = configured;
    for (const int32_t other : work_.beside[launch]) {
      const Demand& demand = demands_[other];
      if (!suits(demand, configured) || demand.shared_memory > memory) continue;
      most = slots;
      least_warps = std::min(least_warps, int64_t{demand.warps});
      least_memory = std::min(least_memory, int64_t{demand.shared_memory});
    }
    most = std::min(most, warps / least_warps);
    if (least_memory > 0) most = std::min(most, memory / least_memory);
    return static_cast<int32_t>(std::max(most, int64_t{0}));
  }

  bool may_be_set_by_others(const size_t launch, const int32_t configured) const {
    return !spec_.mechanisms.shared_memory_configuration ||
           std::ranges::any_of(work_.configured_by[launch], [&](const int32_t other) {
             return demands_[other].configuration.target == configured;
           });
  }

  // The blocks of one launch come to an SM one after the other, in turns of the processing blocks.
  // Where launches pass each other, blocks that have ended may have been between them.
  bool warps_may_be_full() const {
    const int32_t parts = spec_.processing_blocks;
    int32_t warps = 0;
    int32_t registers = 0;
    for (size_t k = 0; k < blocks_.size(); ++k) {
      const int32_t blocks = blocks_[k] + (k + 1 == work_.staying ? 1 : 0);
      const int32_t own = in_line_ ? ceil_div(blocks * demands_[k].warps, parts)
                                   : blocks * ceil_div(demands_[k].warps, parts);
      warps += own;
      registers += own * demands_[k].registers_per_warp;
    }
    return warps > spec_.warps_per_sm / parts || registers > spec_.registers_per_sm / parts;
  }

  // Returns the fewest gaps in shared memory with which the SM may lack room; nothing: it has room.
  // Each gap may be too small by one unit.
  std::optional<int32_t> least_gaps(const int32_t configured) const {
    if (!suits(asking_, configured)) return 1;
    const int32_t size = asking_.shared_memory;
    const int64_t free = configured - memory();
    if (size == 0) return std::nullopt;
    const bool pooled = spec_.mechanisms.shared_memory == Layout::pooled;
    const int64_t most = pooled ? 1 : std::max(int64_t{1}, gaps(configured));
    for (int32_t gaps = 1; gaps <= most; ++gaps) {
      if (sure_pieces(size, free, gaps, std::gcd(unit_, configured)) == 0) return gaps;
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
  Multiset most_;
  Multiset blocks_;
  std::vector<std::set<int32_t>> first_;
  size_t tried_ = 0;
  std::vector<Multiset> found_;
};

// Places that are alike: SMs, or TPCs if one full SM of each is enough.
struct AlikePlaces {
  int32_t number = 0;
  std::set<Multiset> on_sm;  // what one of their SMs has of the launches whose SMs are known
};

// The places of a domain of which so many must be full before it takes nothing more.
struct PlacesOfDomain {
  int32_t needed = 0;
  std::vector<AlikePlaces> places;
};

std::vector<PlacesOfDomain> places_of(const Device& device, const Demand& asking,
                                      const std::vector<Multiset>& on_sm) {
  std::vector<PlacesOfDomain> found;
  std::map<std::set<Multiset>, int32_t> counts;
  const auto finish = [&](const int32_t needed) {
    PlacesOfDomain& domain = found.emplace_back(PlacesOfDomain{.needed = needed, .places = {}});
    for (const auto& [alike, number] : std::exchange(counts, {})) {
      domain.places.push_back({number, alike});
    }
  };
  if (asking.cluster == 1) {
    for (int32_t sm = 0; sm < device.spec.sms; ++sm) {
      if (asking.may_use(sm)) ++counts[{on_sm[sm]}];
    }
    finish(usable_sms(asking, device.spec.sms));
    return found;
  }
  for (const ClusterDomain& domain : device.cluster_domains) {
    const int32_t needed = needed_in(domain, asking, device.spec);
    if (needed == 0) continue;
    for (const std::vector<int32_t>& tpc : domain.tpcs) {
      std::set<Multiset> whole;
      for (const int32_t sm : tpc) {
        whole.insert(on_sm[sm]);
        if (!takes_whole_tpcs(asking, device.spec)) ++counts[{on_sm[sm]}];
      }
      if (takes_whole_tpcs(asking, device.spec)) ++counts[std::move(whole)];
    }
    finish(needed);
  }
  return found;
}

// Returns how many blocks end, of these for each launch: in all, and of those that set each
// configuration.
Multiset sums_of_ended(const EndedWork& work, const Demands& demands, const Multiset& blocks) {
  const std::map<int32_t, size_t> setting = rows_of_setting(work, demands);
  std::vector<int64_t> sums(1 + setting.size());
  for (size_t k = work.staying; k < blocks.size(); ++k) {
    sums.front() += blocks[k];
    sums[setting.at(demands[k].configuration.target)] += blocks[k];
  }
  constexpr int64_t most = 1 << 30;
  Multiset found;
  for (const int64_t sum : sums) found.push_back(static_cast<int32_t>(std::min(sum, most)));
  return found;
}

// Returns whether too few places can be full for the last launch to find no room.
bool packs_too_few(const Model& model, const EndedWork& work, const Demands& demands) {
  const Device& device = model.device();
  const Demand& asking = demands[work.staying - 1];
  const std::vector<Multiset> on_sm =
      work.on_sm.empty() ? std::vector<Multiset>(device.spec.sms) : work.on_sm;
  std::map<Multiset, std::vector<Multiset>> sets;
  for (const Multiset& known : on_sm) {
    if (sets.contains(known)) continue;
    const FilledSms filled(model, work, demands, known);
    if (filled.too_many()) return false;
    sets[known] = filled.found();
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
  // More rows: of each domain how many places must be full, and how many there are that are alike.
  std::vector<Multiset> columns;
  int32_t needed = 0;
  for (const PlacesOfDomain& domain : places_of(device, asking, on_sm)) {
    const size_t row = stock.size();
    stock.push_back(domain.needed);
    needed += domain.needed;
    for (const AlikePlaces& alike : domain.places) {
      for (const Multiset& on_one : alike.on_sm) {
        for (const Multiset& filled : sets[on_one]) {
          Multiset& column = columns.emplace_back(filled.begin() + known, filled.end());
          column.resize(stock.size() + 1);
          column[row] = 1;
          column.back() = 1;
        }
      }
      stock.push_back(alike.number);
    }
  }
  for (Multiset& column : columns) column.resize(stock.size());
  return packs_fewer(most_packed(columns, stock), needed);
}

// Returns whether a launch that stays alone has too few blocks to fill each place.
bool fills_too_few(const Model& model, const EndedWork& work, const Demands& demands) {
  if (work.staying > 1) return false;
  const FilledSms filled(model, work, demands);
  if (filled.too_many()) return false;
  const Demand& asking = demands[0];
  const int32_t others = work.launches.front().blocks - asking.cluster;
  int32_t per_sm = asking.cluster + others;
  for (const Multiset& blocks : filled.found()) per_sm = std::min(per_sm, blocks.front());
  return others < needed_blocks(asking, model.device(), per_sm);
}

}  // namespace

bool finds_room_after(const Model& model, const EndedWork& work) {
  const Demands demands(model.device(), work.launches);
  return covers(demands, model.device().spec) &&
         (fills_too_few(model, work, demands) || packs_too_few(model, work, demands));
}

}  // namespace tbsched
