#include "sm/clusters.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace tbsched {
namespace {

struct Candidate {
  int32_t sm;
  ClusterRoom room;
  ClusterRoom room_beside;  // the least of its TPC

  bool free() const { return room.blocks > 0; }
};

ClusterRoom room_on(const int32_t sm, const Demand& demand, const GpuState& gpu) {
  const int32_t blocks = gpu.room(sm, demand).blocks;
  // Where one block is all that an SM holds, an SM with room is as good as idle.
  const bool seeks_idle = gpu.spec().mechanisms.clusters_seek_idle_sms;
  return {blocks > 0 && seeks_idle && demand.blocks_at_target > 1 && gpu.idle(sm), blocks};
}

std::vector<std::vector<Candidate>> candidates(const ClusterDomain& domain, const Demand& demand,
                                               const GpuState& gpu) {
  std::vector<std::vector<Candidate>> tpcs;
  for (const auto& sms : domain.tpcs) {
    auto& tpc = tpcs.emplace_back();
    for (const int32_t sm : sms) tpc.push_back({sm, room_on(sm, demand, gpu), {}});
    const ClusterRoom least = std::ranges::min_element(tpc, {}, &Candidate::room)->room;
    for (Candidate& candidate : tpc) candidate.room_beside = least;
  }
  return tpcs;
}

std::optional<ClusterFit> fit_of(const std::vector<Candidate>& chosen, const size_t wanted) {
  if (chosen.size() < wanted) return std::nullopt;
  ClusterFit fit{.room = std::ranges::min_element(chosen, {}, &Candidate::room)->room, .sms = {}};
  for (const Candidate& candidate : chosen) fit.sms.push_back(candidate.sm);
  return fit;
}

std::optional<ClusterFit> first_free(const std::vector<std::vector<Candidate>>& tpcs,
                                     const size_t wanted) {
  std::vector<Candidate> chosen;
  for (const auto& tpc : tpcs) {
    for (const Candidate& candidate : tpc) {
      if (candidate.free() && chosen.size() < wanted) chosen.push_back(candidate);
    }
  }
  return fit_of(chosen, wanted);
}

std::optional<ClusterFit> whole_tpcs_first(const std::vector<std::vector<Candidate>>& tpcs,
                                           const size_t wanted) {
  std::vector<size_t> order(tpcs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater{},
                           [&](const size_t tpc) { return tpcs[tpc].front().room_beside; });
  std::vector<bool> whole(tpcs.size());
  size_t left = wanted;
  for (const size_t tpc : order) {
    if (tpcs[tpc].front().room_beside.blocks == 0 || tpcs[tpc].size() > left) break;
    whole[tpc] = true;
    left -= tpcs[tpc].size();
  }

  std::vector<Candidate> chosen;
  std::vector<Candidate> singles;
  for (size_t tpc = 0; tpc < tpcs.size(); ++tpc) {
    auto& to = whole[tpc] ? chosen : singles;
    to.insert(to.end(), tpcs[tpc].begin(), tpcs[tpc].end());
  }
  if (left >= tpcs.front().size()) return std::nullopt;
  std::ranges::stable_sort(singles, std::greater{}, [](const Candidate& candidate) {
    return std::pair(candidate.room, candidate.room_beside < candidate.room);
  });
  for (const Candidate& candidate : singles) {
    if (left > 0 && candidate.free()) {
      chosen.push_back(candidate);
      --left;
    }
  }
  return fit_of(chosen, wanted);
}

}  // namespace

int32_t ClusterDomain::sms() const {
  return std::accumulate(tpcs.begin(), tpcs.end(), 0, [](const int32_t sum, const auto& tpc) {
    return sum + static_cast<int32_t>(tpc.size());
  });
}

std::vector<ClusterDomain> cluster_domains(const Topology& topology) {
  std::vector<ClusterDomain> singletons;
  std::vector<ClusterDomain> gpcs(std::ranges::max(topology.gpc_of_sm) + 1);
  for (size_t gpc = 0; gpc < gpcs.size(); ++gpc) gpcs[gpc].gpc = static_cast<int32_t>(gpc);
  int32_t last_tpc = -1;
  for (int32_t sm = 0; sm < topology.sms(); ++sm) {
    const int32_t gpc = topology.gpc_of_sm[sm];
    const bool starts = topology.tpc_of_sm[sm] != last_tpc;
    last_tpc = topology.tpc_of_sm[sm];
    if (gpc < 0 && starts) singletons.push_back({.gpc = -1, .tpcs = {}});
    auto& tpcs = gpc < 0 ? singletons.back().tpcs : gpcs[gpc].tpcs;
    if (starts) tpcs.emplace_back();
    tpcs.back().push_back(sm);
  }
  singletons.insert(singletons.end(), gpcs.begin(), gpcs.end());
  return singletons;
}

int32_t largest_cluster(const Topology& topology) {
  const auto domains = cluster_domains(topology);
  return std::ranges::max_element(domains, {}, &ClusterDomain::sms)->sms();
}

bool fits_a_singleton(const Topology& topology, const int32_t cluster) {
  return std::ranges::any_of(cluster_domains(topology), [&](const ClusterDomain& domain) {
    return domain.gpc < 0 && domain.sms() >= cluster;
  });
}

std::optional<ClusterFit> fit_cluster(const ClusterDomain& domain, const Demand& demand,
                                      const GpuState& gpu) {
  if (domain.sms() < demand.cluster) return std::nullopt;
  const auto tpcs = candidates(domain, demand, gpu);
  const auto wanted = static_cast<size_t>(demand.cluster);
  const bool whole_tpcs =
      gpu.spec().mechanisms.clusters_take_whole_tpcs && demand.blocks_at_target > 1;
  return whole_tpcs ? whole_tpcs_first(tpcs, wanted) : first_free(tpcs, wanted);
}

}  // namespace tbsched
