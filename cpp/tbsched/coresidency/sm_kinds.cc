#include "tbsched/coresidency/sm_kinds.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace tbsched {

Resident::Resident(const Device& device, const Demands& demands)
    : is_resident(demands.all().size()),
      waits(demands.all().size()),
      on_sm(device.spec.sms, Multiset(demands.all().size())),
      room_on_sm(device.spec.sms),
      taken_on_sm(device.spec.sms),
      configured_on_sm(device.spec.sms) {
  for (int32_t sm = 0; sm < device.spec.sms; ++sm) {
    for (size_t k = 0; k < is_resident.size(); ++k) {
      room_on_sm[sm].push_back(demands.may_be_on(k, sm) ? room_when_idle(demands[k], device) : 0);
    }
  }
}

std::vector<SmKind> sm_kinds(const Device& device, const Demands& demands, const Resident& resident,
                             const std::vector<bool>& may_leave, const Multiset& coming,
                             const std::vector<Multiset>& notes, const size_t asking) {
  struct Members {
    std::vector<int32_t> sms;
    std::set<int32_t> tpcs;
  };
  std::map<std::tuple<Multiset, Multiset, int32_t, WarpsAndRegisters, int32_t, Multiset>, Members>
      members;
  const int32_t when_idle = room_when_idle(demands[asking], device);
  for (int32_t sm = 0; sm < device.spec.sms; ++sm) {
    if (!demands.may_be_on(asking, sm)) continue;
    Multiset min_blocks(coming.size());
    Multiset max_blocks(coming.size());
    for (size_t launch = 0; launch < coming.size(); ++launch) {
      const int32_t blocks = resident.on_sm[sm][launch];
      if (resident.is_resident[launch]) {
        max_blocks[launch] = blocks;
        min_blocks[launch] = may_leave[launch] ? 0 : blocks;
      } else if (demands.may_be_on(launch, sm)) {
        max_blocks[launch] = coming[launch];
      }
    }
    const int32_t room = std::min(when_idle, resident.room_on_sm[sm][asking]);
    Members& alike = members[{std::move(min_blocks), std::move(max_blocks), room,
                              resident.taken_on_sm[sm], resident.configured_on_sm[sm], notes[sm]}];
    alike.sms.push_back(sm);
    alike.tpcs.insert(device.topology.tpc_of_sm[sm]);
  }
  std::vector<SmKind> kinds;
  for (auto& [kind, alike] : members) {
    const auto& [min_blocks, max_blocks, room, taken, configured, note] = kind;
    Multiset ever_resident = max_blocks;
    for (size_t k = 0; k < coming.size(); ++k) {
      if (!resident.is_resident[k]) ever_resident[k] = coming[k];
    }
    kinds.push_back({.min_blocks = min_blocks,
                     .max_blocks = max_blocks,
                     .ever_resident = std::move(ever_resident),
                     .room = room,
                     .taken = taken,
                     .configured = configured,
                     .sms = std::move(alike.sms),
                     .tpcs = static_cast<int32_t>(alike.tpcs.size())});
  }
  return kinds;
}

}  // namespace tbsched
