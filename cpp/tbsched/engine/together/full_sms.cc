#include "tbsched/engine/together/full_sms.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

#include "tbsched/engine/together/any_sm.h"
#include "tbsched/engine/together/demands.h"
#include "tbsched/engine/together/packing.h"
#include "tbsched/engine/together/sm_kinds.h"
#include "tbsched/hardware/gpu/clusters.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {
namespace {

constexpr size_t kMostMultisets = 20'000;
// What rounding may add to the number of full SMs.
constexpr double kRounding = 1e-6;

// The fewest blocks with which an SM of a kind may be full for a launch.
class FullSets {
 public:
  FullSets(const AnySm& sm, const size_t launch, const SmKind& kind, const Resident& resident)
      : sm_(sm), launch_(launch), kind_(kind), resident_(resident), blocks_(kind.least) {
    extend(0);
  }

  bool too_many() const { return looked_at_ > kMostMultisets; }
  const std::vector<Multiset>& found() const { return found_; }

 private:
  void extend(const size_t first) {
    if (++looked_at_ > kMostMultisets) return;
    if (!is_known_to_have_room() && sm_.may_be_full(blocks_, kind_, launch_)) {
      found_.push_back(blocks_);
      return;
    }
    for (size_t kind = first; kind < blocks_.size(); ++kind) {
      if (blocks_[kind] == kind_.most[kind]) continue;
      ++blocks_[kind];
      if (sm_.can_hold(blocks_)) extend(kind);
      --blocks_[kind];
    }
  }

  // Where nobody else has come, no SM has less room than it had: what leaves takes none.
  bool is_known_to_have_room() const {
    for (size_t other = 0; other < blocks_.size(); ++other) {
      if (other != launch_ && !resident_.is_there[other] && blocks_[other] > 0) return false;
    }
    return blocks_[launch_] < kind_.room;
  }

  const AnySm& sm_;
  const size_t launch_;
  const SmKind& kind_;
  const Resident& resident_;
  Multiset blocks_;
  size_t looked_at_ = 0;
  std::vector<Multiset> found_;
};

// Its clusters have as many blocks on each SM of a TPC.
bool takes_whole_tpcs(const Demand& demand, const DeviceSpec& spec) {
  return demand.cluster > 1 && demand.cluster % spec.sms_per_tpc == 0 &&
         spec.sms % spec.sms_per_tpc == 0 && spec.mechanisms.clusters_take_whole_tpcs &&
         !is_balanced(demand, spec);
}

// How many SMs of a domain must be full before it takes no cluster; 0: it never takes one. For one
// that takes whole TPCs, each of another TPC.
int32_t needed_in(const ClusterDomain& domain, const Demand& demand, const DeviceSpec& spec) {
  if (!takes_clusters(domain, demand, spec)) return 0;
  int32_t all = 0;    // SMs that may be used
  int32_t whole = 0;  // TPCs of which all SMs may be
  for (const std::vector<int32_t>& tpc : domain.tpcs) {
    const auto sms = static_cast<int32_t>(
        std::ranges::count_if(tpc, [&](const int32_t sm) { return demand.may_use(sm); }));
    all += sms;
    whole += std::cmp_equal(sms, tpc.size()) ? 1 : 0;
  }
  if (is_balanced(demand, spec) || !spec.mechanisms.clusters_take_whole_tpcs) {
    return std::max(0, all - demand.cluster + 1);
  }
  const auto per_tpc = static_cast<int32_t>(domain.tpcs.front().size());
  // Nothing is proved of a TPC with fewer SMs, the last one of some GPUs.
  if (!std::cmp_equal(domain.tpcs.back().size(), per_tpc)) return 0;
  const int32_t tpcs = demand.cluster / per_tpc;
  const int32_t singles = demand.cluster % per_tpc;
  if (whole < tpcs) return 0;
  if (singles == 0) return whole - tpcs + 1;
  const int32_t others = std::max(0, all - tpcs * per_tpc - singles + 1);
  return tpcs == 0 ? others : std::min(whole - tpcs + 1, others);
}

// How many SMs must be full before a block, or a cluster, finds no room.
int32_t needed(const Demand& demand, const Device& device) {
  if (demand.cluster == 1) return usable_sms(demand, device.spec.sms);
  int32_t sum = 0;
  for (const ClusterDomain& domain : device.cluster_domains) {
    sum += needed_in(domain, demand, device.spec);
  }
  return sum;
}

// Where one full SM of each TPC is enough, as many sets of blocks as there are for one SM of each.
Multiset for_one_of_each_tpc(const Demands& demands, const Multiset& coming,
                             const DeviceSpec& spec) {
  Multiset halves = coming;
  for (size_t launch = 0; launch < coming.size(); ++launch) {
    if (takes_whole_tpcs(demands[launch], spec)) halves[launch] /= spec.sms_per_tpc;
  }
  return halves;
}

// The most SMs that can be full for a launch, of those that must be; nothing: too much to look at.
// What is there already is part of its SM; what comes is shared by all of them.
std::optional<double> most_full(const AnySm& sm, const std::vector<SmKind>& kinds,
                                const Resident& resident, const Multiset& coming,
                                const size_t launch, const bool one_of_each_tpc) {
  std::vector<Multiset> sets;
  Multiset stock = coming;
  for (const SmKind& kind : kinds) stock.push_back(one_of_each_tpc ? kind.tpcs : kind.sms);
  for (size_t k = 0; k < kinds.size(); ++k) {
    const FullSets full(sm, launch, kinds[k], resident);
    if (full.too_many()) return std::nullopt;
    for (const Multiset& blocks : full.found()) {
      Multiset& set = sets.emplace_back(stock.size());
      for (size_t each = 0; each < blocks.size(); ++each) {
        set[each] = resident.is_there[each] ? 0 : blocks[each];
      }
      set[blocks.size() + k] = 1;
    }
  }
  return sets.empty() ? 0 : most_packed(sets, stock);
}

// What a launch that waits for room makes wait, too, if it comes later.
class Line {
 public:
  Line(const Model& model, const std::vector<Launch>& launches, const Demands& demands)
      : order_(model.order()), launches_(launches), demands_(demands), spec_(model.device().spec) {}

  // Itself, or by others of those in between that it makes wait.
  bool holds_up(const size_t holder, const size_t launch, const std::vector<bool>& between) const {
    std::vector<bool> waits(launches_.size());
    waits[holder] = true;
    for (bool moved = true; std::exchange(moved, false);) {
      for (size_t first = 0; first < waits.size(); ++first) {
        for (size_t second = 0; second < waits.size(); ++second) {
          if (!waits[first] || waits[second] || !is_before(first, second)) continue;
          if (second == launch) return true;
          if (between[second]) waits[second] = moved = true;
        }
      }
    }
    return false;
  }

 private:
  bool is_before(const size_t first, const size_t second) const {
    const bool passes =
        order_.by_priority && rank_of(launches_[second], spec_) < rank_of(launches_[first], spec_);
    return order_.head_of_line && !passes &&
           (!order_.on_own_sms || share_sms(demands_[first], demands_[second]));
  }

  bool share_sms(const Demand& one, const Demand& other) const {
    for (int32_t sm = 0; sm < spec_.sms; ++sm) {
      if (one.may_use(sm) && other.may_use(sm)) return true;
    }
    return false;
  }

  const LaunchOrder& order_;
  const std::vector<Launch>& launches_;
  const Demands& demands_;
  const DeviceSpec& spec_;
};

bool applies(const DeviceSpec& spec, const std::vector<Launch>& launches, const Demands& demands) {
  const Mechanisms& mechanisms = spec.mechanisms;
  if (!mechanisms.strict_round_robin || mechanisms.registers != Layout::pooled) return false;
  const bool shares = mechanisms.shared_memory_configuration && mechanisms.configuration_per_tpc;
  if (shares && spec.sms_per_tpc > 1) return false;
  // Algorithm 1 divides the largest gap alone.
  if (mechanisms.shared_memory == Layout::contiguous) return false;
  if (std::ranges::any_of(demands.all(),
                          [&](const Demand& demand) { return grows_local_memory(demand, spec); })) {
    return false;
  }
  std::set<int32_t> streams;
  return std::ranges::all_of(launches, [&](const Launch& launch) {
    return !launch.stream || streams.insert(*launch.stream).second;
  });
}

}  // namespace

std::optional<std::vector<FullSms>> too_few_full_sms(const Model& model,
                                                     const std::vector<Launch>& launches,
                                                     const Demands& demands,
                                                     const std::vector<int32_t>& group,
                                                     const Resident& resident) {
  const Device& device = model.device();
  if (!applies(device.spec, launches, demands)) return std::nullopt;
  std::vector<bool> may_leave(launches.size(), true);
  for (const int32_t launch : group) may_leave[launch] = false;
  Multiset stock;
  for (size_t k = 0; k < launches.size(); ++k) {
    stock.push_back(resident.is_there[k] ? 0 : launches[k].blocks);
  }
  const AnySm sm(device.spec, demands.all(), may_leave, resident.is_there);
  const Line line(model, launches, demands);
  std::vector<bool> may_wait = may_leave;
  for (size_t k = 0; k < launches.size(); ++k) {
    if (resident.is_there[k]) may_wait[k] = false;
  }
  std::vector<FullSms> found;
  for (size_t launch = 0; launch < launches.size(); ++launch) {
    if (resident.is_there[launch]) continue;
    std::vector<size_t> strands;  // if it waits
    for (const int32_t member : group) {
      const bool is_itself = std::cmp_equal(member, launch);
      const bool holds = may_leave[launch] && !resident.is_there[member] &&
                         line.holds_up(launch, static_cast<size_t>(member), may_wait);
      if (is_itself || holds) strands.push_back(static_cast<size_t>(member));
    }
    const bool whole = takes_whole_tpcs(demands[launch], device.spec);
    const int32_t sms = needed(demands[launch], device);
    double most = 0;
    for (const size_t stranded : strands) {
      Multiset coming = stock;
      coming[launch] -= demands[launch].cluster;
      if (stranded != launch) coming[stranded] = 0;  // it is not there yet
      const std::vector<SmKind> kinds =
          sm_kinds(model, demands, resident, may_leave, coming, launch);
      const std::optional<double> full = most_full(
          sm, kinds, resident, whole ? for_one_of_each_tpc(demands, coming, device.spec) : coming,
          launch, whole);
      if (!full || std::floor(*full + kRounding) >= sms) return std::nullopt;
      most = std::max(most, *full);
    }
    found.push_back({static_cast<int32_t>(launch), most, sms});
  }
  return found;
}

}  // namespace tbsched
