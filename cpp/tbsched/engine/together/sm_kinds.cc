#include "tbsched/engine/together/sm_kinds.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace tbsched {
namespace {

// SMs that a launch may use and that nothing resident is on.
int32_t idle_sms(const Demand& demand, const Resident& resident) {
  int32_t idle = 0;
  for (size_t sm = 0; sm < resident.on_sm.size(); ++sm) {
    const bool is_idle =
        std::ranges::all_of(resident.on_sm[sm], [](const int32_t n) { return n == 0; });
    idle += is_idle && demand.may_use(static_cast<int32_t>(sm)) ? 1 : 0;
  }
  return idle;
}

// How many blocks of each coming launch an SM can get.
Multiset most_of_coming(const Model& model, const Demands& demands, const Resident& resident,
                        const Multiset& coming, const size_t asking) {
  Multiset most = coming;
  if (!model.policy().most_room_first) return most;
  const int64_t all = std::accumulate(coming.begin(), coming.end(), int64_t{0}) - coming[asking];
  for (size_t launch = 0; launch < coming.size(); ++launch) {
    const Demand& demand = demands[launch];
    if (launch == asking || demand.cluster > 1 || coming[launch] == 0) continue;
    // Each block of another keeps one SM from being idle.
    const int64_t idle = idle_sms(demand, resident) - (all - coming[launch]);
    if (idle <= 0 || !idle_is_best(demand, model.device())) continue;
    most[launch] = std::min(most[launch], static_cast<int32_t>((coming[launch] + idle - 1) / idle));
  }
  return most;
}

}  // namespace

Resident::Resident(const Device& device, const Demands& demands)
    : is_there(demands.all().size()),
      on_sm(device.spec.sms, Multiset(demands.all().size())),
      room_on_sm(device.spec.sms),
      taken_on_sm(device.spec.sms) {
  for (int32_t sm = 0; sm < device.spec.sms; ++sm) {
    for (const Demand& demand : demands.all()) {
      room_on_sm[sm].push_back(demand.may_use(sm) ? room_when_idle(demand, device) : 0);
    }
  }
}

std::vector<SmKind> sm_kinds(const Model& model, const Demands& demands, const Resident& resident,
                             const std::vector<bool>& may_leave, const Multiset& coming,
                             const size_t asking) {
  const Multiset most_coming = most_of_coming(model, demands, resident, coming, asking);
  struct Count {
    int32_t sms = 0;
    std::set<int32_t> tpcs;
  };
  std::map<std::tuple<Multiset, Multiset, int32_t, WarpsAndRegisters>, Count> counts;
  const int32_t when_idle = room_when_idle(demands[asking], model.device());
  for (int32_t sm = 0; sm < model.device().spec.sms; ++sm) {
    if (!demands[asking].may_use(sm)) continue;
    Multiset least(coming.size());
    Multiset most(coming.size());
    for (size_t launch = 0; launch < coming.size(); ++launch) {
      const int32_t there = resident.on_sm[sm][launch];
      if (resident.is_there[launch]) {
        most[launch] = there;
        least[launch] = may_leave[launch] ? 0 : there;
      } else if (demands[launch].may_use(sm)) {
        most[launch] = most_coming[launch];
      }
    }
    const int32_t room = std::min(when_idle, resident.room_on_sm[sm][asking]);
    Count& count = counts[{std::move(least), std::move(most), room, resident.taken_on_sm[sm]}];
    ++count.sms;
    count.tpcs.insert(model.device().topology.tpc_of_sm[sm]);
  }
  std::vector<SmKind> kinds;
  for (const auto& [what, count] : counts) {
    const auto& [least, most, room, taken] = what;
    Multiset in_all = most;
    for (size_t k = 0; k < coming.size(); ++k) {
      if (!resident.is_there[k]) in_all[k] = coming[k];
    }
    kinds.push_back({.least = least,
                     .most = most,
                     .in_all = std::move(in_all),
                     .room = room,
                     .taken = taken,
                     .sms = count.sms,
                     .tpcs = static_cast<int32_t>(count.tpcs.size())});
  }
  return kinds;
}

}  // namespace tbsched
