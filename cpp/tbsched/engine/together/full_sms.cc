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
#include "tbsched/hardware/gpu/clusters.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {
namespace {

constexpr size_t kMostMultisets = 20'000;
// What rounding may add to the number of full SMs.
constexpr double kRounding = 1e-6;
constexpr int32_t kNobody = -1;

// The fewest blocks with which an SM may be full for a launch; `most`: of each launch on an SM.
class FullSets {
 public:
  FullSets(const AnySm& sm, const size_t launch, Multiset most)
      : sm_(sm), launch_(launch), most_(std::move(most)), blocks_(most_.size()) {
    extend(0);
  }

  bool too_many() const { return looked_at_ > kMostMultisets; }
  const std::vector<Multiset>& found() const { return found_; }

 private:
  void extend(const size_t first) {
    if (++looked_at_ > kMostMultisets) return;
    if (sm_.may_be_full(blocks_, launch_)) {
      found_.push_back(blocks_);
      return;
    }
    for (size_t kind = first; kind < blocks_.size(); ++kind) {
      if (blocks_[kind] == most_[kind]) continue;
      ++blocks_[kind];
      if (sm_.can_hold(blocks_)) extend(kind);
      --blocks_[kind];
    }
  }

  const AnySm& sm_;
  const size_t launch_;
  const Multiset most_;
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

// How many of its blocks a launch can have on one SM, where so many of each are there when
// `asking` comes. A policy that takes the SM with the most room gives none a block more than an SM
// has that was idle when the launch came, and each block that was there keeps one SM from being so.
Multiset most_on_one_sm(const Model& model, const Demands& demands,
                        const Multiset& there, const size_t asking) {
  const DeviceSpec& spec = model.device().spec;
  Multiset most = there;
  if (!model.policy().most_room_first) return most;
  const int64_t all = std::accumulate(there.begin(), there.end(), int64_t{0}) - there[asking];
  for (size_t launch = 0; launch < there.size(); ++launch) {
    const Demand& demand = demands[launch];
    const int64_t idle = usable_sms(demand, spec.sms) - (all - there[launch]);
    if (launch == asking || demand.cluster > 1 || idle <= 0) continue;
    if (!idle_is_best(demand, model.device())) continue;
    most[launch] = std::min(most[launch], static_cast<int32_t>((there[launch] + idle - 1) / idle));
  }
  return most;
}

// Where one full SM of each TPC is enough, as many sets of blocks as there are for one SM of each.
Multiset for_one_of_each_tpc(const Demands& demands, const Multiset& there,
                             const DeviceSpec& spec) {
  Multiset halves = there;
  for (size_t launch = 0; launch < there.size(); ++launch) {
    if (takes_whole_tpcs(demands[launch], spec)) halves[launch] /= spec.sms_per_tpc;
  }
  return halves;
}

// The most SMs that can be full for a launch, of those that must be; nothing: too much to look at.
std::optional<double> most_full(const Model& model, const AnySm& sm, const Demands& demands,
                                const Multiset& there, const size_t launch) {
  const DeviceSpec& spec = model.device().spec;
  const FullSets full(sm, launch, most_on_one_sm(model, demands, there, launch));
  if (full.too_many()) return std::nullopt;
  if (full.found().empty()) return 0;
  const bool whole = takes_whole_tpcs(demands[launch], spec);
  return most_packed(full.found(), whole ? for_one_of_each_tpc(demands, there, spec) : there);
}

bool applies(const DeviceSpec& spec, const std::vector<Launch>& launches,
             const Demands& demands) {
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
    const bool alone = !launch.stream || streams.insert(*launch.stream).second;
    return alone && !launch.cooperative;
  });
}

}  // namespace

std::optional<std::vector<FullSms>> too_few_full_sms(const Model& model,
                                                     const std::vector<Launch>& launches,
                                                     const Demands& demands,
                                                     const std::vector<int32_t>& group) {
  const Device& device = model.device();
  if (!applies(device.spec, launches, demands)) return std::nullopt;
  std::vector<bool> may_leave(launches.size(), true);
  for (const int32_t launch : group) may_leave[launch] = false;
  Multiset stock;
  for (const Launch& launch : launches) stock.push_back(launch.blocks);
  const AnySm sm(device.spec, demands.all(), may_leave);
  std::vector<FullSms> found;
  for (size_t launch = 0; launch < launches.size(); ++launch) {
    Multiset others = stock;
    others[launch] -= demands[launch].cluster;
    // An outsider that waits strands only what comes after it: one of the group is not there yet.
    double most = 0;
    for (const int32_t absent : may_leave[launch] ? group : std::vector{kNobody}) {
      Multiset there = others;
      if (absent != kNobody) there[absent] = 0;
      const std::optional<double> full = most_full(model, sm, demands, there, launch);
      if (!full) return std::nullopt;
      most = std::max(most, *full);
    }
    const int32_t sms = needed(demands[launch], device);
    if (std::floor(most + kRounding) >= sms) return std::nullopt;
    found.push_back({static_cast<int32_t>(launch), most, sms});
  }
  return found;
}

}  // namespace tbsched
