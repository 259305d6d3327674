#include "tbsched/coresidency/pending_launches.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <utility>

#include "tbsched/hardware/gpu/clusters.h"

namespace tbsched {
namespace {

// Returns for how many blocks all SMs have room together; `rooms`: in blocks, by SM.
int64_t sum(const Multiset& rooms) {
  return std::accumulate(rooms.begin(), rooms.end(), int64_t{0});
}

// Returns by SM how many blocks more than `level` it has room for; 0: no more.
Multiset above(Multiset rooms, const int32_t level) {
  for (int32_t& room : rooms) room = std::max(0, room - level);
  return rooms;
}

// Returns, by TPC of a domain, the room in blocks of its SM with the least room.
Multiset by_tpc(const ClusterDomain& domain, const Multiset& rooms) {
  Multiset tpcs;
  for (const std::vector<int32_t>& tpc : domain.tpcs) {
    int32_t least = rooms[tpc.front()];
    for (const int32_t sm : tpc) least = std::min(least, rooms[sm]);
    tpcs.push_back(least);
  }
  return tpcs;
}

// Returns for how many blocks the SMs of a domain have room together; `rooms`: in blocks, by SM.
int64_t sum_of(const ClusterDomain& domain, const Multiset& rooms) {
  int64_t total = 0;
  for (const std::vector<int32_t>& tpc : domain.tpcs) {
    for (const int32_t sm : tpc) total += rooms[sm];
  }
  return total;
}

// Returns how many clusters fit, each with a part on each of `tpcs_per_cluster` distinct TPCs.
// `tpcs`: for how many parts each TPC has room.
int64_t clusters_of_whole_tpcs(const Multiset& tpcs, const int32_t tpcs_per_cluster) {
  const auto can_be_divided = [&](const int64_t clusters) {
    int64_t parts = 0;
    for (const int32_t room : tpcs) parts += std::min<int64_t>(room, clusters);
    return parts >= clusters * tpcs_per_cluster;
  };
  const auto counts = std::views::iota(int64_t{1}, sum(tpcs) / tpcs_per_cluster + 1);
  return static_cast<int64_t>(std::ranges::partition_point(counts, can_be_divided) -
                              counts.begin());
}

// Returns whether a launch of this demand leaves all SMs with room for about equally many blocks,
// as it takes the SM with the most room first.
bool has_level(const Model& model, const Demand& demand) {
  const DeviceSpec& spec = model.device().spec;
  if (!model.most_room_first()) return false;
  if (demand.cluster == 1) return true;
  // Clusters seek idle SMs first, which then have the most room.
  return idle_is_best(demand, model.device()) &&
         (is_balanced(demand, spec) || takes_whole_tpcs(demand, spec));
}

// Returns how many blocks a launch has placed at least by the time at which no SM has room for more
// than `level` of them; of clusters of whole TPCs, no TPC.
int64_t placed_above(const Device& device, const Demand& demand, const LeastRooms& rooms,
                     const int32_t level) {
  // Each piece of room that others take costs at most one cluster.
  const int32_t max_room = std::ranges::max(rooms.untouched);
  const int64_t lost = rooms.touching * demand.cluster * (max_room - level);
  const int64_t placed = blocks_that_fit(device, demand, above(rooms.untouched, level)) - lost;
  if (rooms.always.empty()) return placed;
  return std::max(placed, blocks_that_fit(device, demand, above(rooms.always, level)));
}

// Returns, by SM, a lower bound of the room that an SM had when it took its last single block:
// `level` or `level` + 1. An SM that has room for `level` blocks takes one only when no SM has room
// for more, and after each SM that is preferred to it and has as much room has taken one. If these
// blocks alone are as many as the launch has, the SM takes none with that room.
Multiset least_room_when_taken(const Device& device, const int32_t blocks, const LeastRooms& rooms,
                               const int32_t level) {
  Multiset least(rooms.untouched.size(), level);
  // Two lower bounds of the blocks that go elsewhere before. By the first one each touched SM may
  // lack all that it could take: down to `level`, and one more.
  const int32_t max_room = std::ranges::max(rooms.untouched);
  int64_t by_untouched =
      sum(above(rooms.untouched, level)) - rooms.touching * (int64_t{max_room} - level + 1);
  int64_t by_always = rooms.always.empty() ? 0 : sum(above(rooms.always, level));
  for (const int32_t sm : device.spec.sm_preference) {
    if (std::max(by_untouched, by_always) >= blocks) least[sm] = level + 1;
    by_untouched += rooms.untouched[sm] >= level ? 1 : 0;
    by_always += !rooms.always.empty() && rooms.always[sm] >= level ? 1 : 0;
  }
  return least;
}

}  // namespace

bool PendingLaunches::can_be_on(const size_t sm, const Multiset& on_sm, const AnySm& any,
                                const Resident& resident) const {
  bool all_stay = true;
  for (size_t k = 0; k < on_sm.size(); ++k) {
    if (resident.is_resident[k] && on_sm[k] != resident.on_sm[sm][k]) all_stay = false;
  }
  Multiset then(on_sm.size());  // blocks on the SM if all that fitted had come
  for (size_t launch = 0; launch < on_sm.size(); ++launch) {
    const Level& level = levels[launch];
    if (on_sm[launch] == 0 || !level.known) continue;
    // How many blocks of the launch fitted when the SM took its last one.
    const int32_t fitted = on_sm[launch] + std::max(1, level.least_room(sm)) - 1;
    if (level.first && all_stay && fitted > resident.room_on_sm[sm][launch]) return false;
    if (fitted == on_sm[launch]) continue;
    for (size_t k = 0; k < on_sm.size(); ++k) then[k] = level.before[k] ? on_sm[k] : 0;
    then[launch] = fitted;
    if (!any.can_hold(then, resident.configured_on_sm[sm])) return false;
  }
  return true;
}

std::vector<Multiset> PendingLaunches::notes(const Resident& resident) const {
  std::vector<Multiset> notes(resident.on_sm.size());
  for (size_t sm = 0; sm < notes.size(); ++sm) {
    for (size_t launch = 0; launch < levels.size(); ++launch) {
      const Level& level = levels[launch];
      if (!level.known) continue;
      notes[sm].insert(notes[sm].end(), {level.least_room(sm), level.rooms[sm],
                                         level.first ? resident.room_on_sm[sm][launch] : 0});
    }
  }
  return notes;
}

Level level_of(const Model& model, const Demand& demand, const int32_t blocks,
               const LeastRooms& rooms) {
  if (!has_level(model, demand)) return {};
  const Device& device = model.device();
  const int32_t max_room = std::ranges::max(rooms.untouched);
  int32_t least = 0;
  while (least < max_room && placed_above(device, demand, rooms, least) > blocks - demand.cluster) {
    ++least;
  }
  Multiset least_on(rooms.untouched.size(), least);
  if (demand.cluster == 1) least_on = least_room_when_taken(device, blocks, rooms, least);
  return {.known = true,
          .min = least,
          .max = demand.blocks_per_sm,
          .least_on = std::move(least_on),
          .rooms = rooms.always.empty() ? Multiset(rooms.untouched.size()) : rooms.always};
}

int64_t taken_evenly(const Device& device, const Demand& demand, const Level& level) {
  const Multiset taken = above(level.rooms, level.max);
  if (demand.cluster == 1) return sum(taken);
  const DeviceSpec& spec = device.spec;
  int64_t blocks = 0;
  for (const ClusterDomain& domain : device.cluster_domains) {
    if (!takes_clusters(domain, demand, spec)) continue;
    if (is_balanced(demand, spec)) {
      blocks += std::max(int64_t{0}, sum_of(domain, taken) - (int64_t{demand.cluster} - 1));
      continue;
    }
    // Too few TPCs for a cluster may have room above the level: those with the most.
    Multiset tpcs = by_tpc(domain, taken);
    std::ranges::sort(tpcs);
    const auto left_out = static_cast<size_t>(demand.cluster / spec.sms_per_tpc - 1);
    tpcs.resize(tpcs.size() - std::min(tpcs.size(), left_out));
    blocks += spec.sms_per_tpc * sum(tpcs);
  }
  return blocks;
}

bool takes_whole_tpcs(const Demand& demand, const DeviceSpec& spec) {
  return demand.cluster > 1 && demand.cluster % spec.sms_per_tpc == 0 &&
         spec.sms % spec.sms_per_tpc == 0 && spec.mechanisms.clusters_take_whole_tpcs &&
         !is_balanced(demand, spec);
}

int64_t blocks_that_fit(const Device& device, const Demand& demand, const Multiset& rooms) {
  if (demand.cluster == 1) return sum(rooms);
  const DeviceSpec& spec = device.spec;
  int64_t clusters = 0;
  for (const ClusterDomain& domain : device.cluster_domains) {
    if (!takes_clusters(domain, demand, spec)) continue;
    if (is_balanced(demand, spec)) {
      clusters += sum_of(domain, rooms) / demand.cluster;
    } else if (takes_whole_tpcs(demand, spec)) {
      clusters += clusters_of_whole_tpcs(by_tpc(domain, rooms), demand.cluster / spec.sms_per_tpc);
    }
  }
  return clusters * demand.cluster;
}

}  // namespace tbsched
