#include "tbsched/coresidency/full_sms.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <utility>

#include "tbsched/coresidency/any_sm.h"
#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/needed_sms.h"
#include "tbsched/coresidency/packing.h"
#include "tbsched/coresidency/sm_kinds.h"
#include "tbsched/hardware/gpu/clusters.h"
#include "tbsched/hardware/sm/demand.h"

namespace tbsched {
namespace {

constexpr size_t kMaxMultisets = 20'000;

// The smallest sets of blocks with which an SM of a kind may lack room for one more block of a
// launch. A set is the number of blocks of each launch on the SM.
class FullSets {
 public:
  FullSets(const AnySm& sm, const size_t launch, const SmKind& kind, const Resident& resident,
           const PendingLaunches& coming)
      : sm_(sm),
        launch_(launch),
        kind_(kind),
        resident_(resident),
        coming_(coming),
        blocks_(kind.min_blocks) {
    extend(0);
  }

  // Returns whether there were too many sets to find them all.
  bool gave_up() const { return tried_ > kMaxMultisets; }
  const std::vector<Multiset>& sets() const { return sets_; }

 private:
  // Adds the sets that have blocks_ and any more blocks of the launches from `first` on:
  // depth-first search.
  void extend(const size_t first) {
    if (++tried_ > kMaxMultisets) return;
    if (!is_known_to_have_room() && sm_.may_be_full(blocks_, kind_, launch_)) {
      sets_.push_back(blocks_);
      return;
    }
    for (size_t other = first; other < blocks_.size(); ++other) {
      if (blocks_[other] == kind_.max_blocks[other]) continue;
      ++blocks_[other];
      if (sm_.can_hold(blocks_, kind_.configured) && can_have_arrived()) extend(other);
      --blocks_[other];
    }
  }

  // Returns false if an SM cannot have blocks_, given the levels of the launches that arrived (see
  // pending_launches.h).
  bool can_have_arrived() const {
    return coming_.can_be_on(static_cast<size_t>(kind_.sms.front()), blocks_, sm_, resident_);
  }

  // Returns whether an SM with blocks_ has room, since it had before. If no other launch has
  // arrived, no SM has less room than before: blocks that leave take none. A launch that arrived
  // and left has moved the turn of the processing blocks; but there would be no more room had it
  // stayed, which is checked separately.
  bool is_known_to_have_room() const {
    for (size_t other = 0; other < blocks_.size(); ++other) {
      if (other != launch_ && !resident_.is_resident[other] && blocks_[other] > 0) return false;
    }
    return blocks_[launch_] < kind_.room;
  }

  const AnySm& sm_;
  const size_t launch_;
  const SmKind& kind_;
  const Resident& resident_;
  const PendingLaunches& coming_;
  Multiset blocks_;   // of each launch on the SM, in this step of the search
  size_t tried_ = 0;  // steps of the search
  std::vector<Multiset> sets_;
};

// Returns whether clusters take all room that can be divided among them, in any order of SMs.
bool takes_all_room(const Demand& demand, const Device& device) {
  return demand.cluster <= device.spec.sms_per_tpc || is_balanced(demand, device.spec) ||
         idle_is_best(demand, device);
}

}  // namespace

FullSmsProof::FullSmsProof(const Model& model, const std::vector<Launch>& launches,
                           const Demands& demands, const std::vector<int32_t>& group,
                           const std::vector<bool>& awaited, const Resident& resident)
    : model_(model),
      spec_(model.device().spec),
      launches_(launches),
      demands_(demands),
      awaited_(awaited),
      resident_(resident),
      blocking_order_(model, launches, demands),
      may_leave_(launches.size(), true),
      sm_(spec_, demands.all(), may_leave_, resident.is_resident) {
  for (const int32_t launch : group) may_leave_[launch] = false;
}

bool FullSmsProof::applies() const {
  // The proof is not valid for launches that share a stream or need more local
  // memory than there is, for SMs that share a configuration, for warps that do not take processing
  // blocks in strict turn, and for contiguous registers.
  const Mechanisms& mechanisms = spec_.mechanisms;
  if (!mechanisms.strict_round_robin || mechanisms.registers != Layout::pooled) return false;
  const bool shares = mechanisms.shared_memory_configuration && mechanisms.configuration_per_tpc;
  if (shares && spec_.sms_per_tpc > 1) return false;
  // Algorithm 1 divides the largest gap alone.
  if (mechanisms.shared_memory == Layout::contiguous) return false;
  if (std::ranges::any_of(demands_.all(), [&](const Demand& demand) {
        return grows_local_memory(demand, spec_);
      })) {
    return false;
  }
  std::set<int32_t> streams;
  return std::ranges::all_of(launches_, [&](const Launch& launch) {
    return !launch.stream || streams.insert(*launch.stream).second;
  });
}

bool FullSmsProof::holds_up_through(const size_t holder, const size_t launch,
                                    const std::vector<bool>& between) const {
  std::vector<bool> waits(launches_.size());
  waits[holder] = true;
  for (bool changed = true; std::exchange(changed, false);) {
    for (size_t first = 0; first < waits.size(); ++first) {
      for (size_t second = 0; second < waits.size(); ++second) {
        if (!waits[first] || waits[second] || !blocking_order_.holds_up(first, second)) continue;
        if (second == launch) return true;
        if (between[second]) waits[second] = changed = true;
      }
    }
  }
  return false;
}

std::vector<size_t> FullSmsProof::stranded_by(const size_t launch) const {
  std::vector<bool> may_wait = may_leave_;
  for (size_t k = 0; k < launches_.size(); ++k) {
    if (resident_.is_resident[k]) may_wait[k] = false;
  }
  std::vector<size_t> stranded;
  for (size_t k = 0; k < launches_.size(); ++k) {
    if (!awaited_[k]) continue;
    const bool is_held_up =
        may_leave_[launch] && !resident_.is_resident[k] && holds_up_through(launch, k, may_wait);
    if (k == launch || is_held_up) stranded.push_back(k);
  }
  return stranded;
}

bool FullSmsProof::may_be_held_up(const size_t launch) const {
  // Awaited launches never wait if the proof succeeds.
  for (size_t other = 0; other < launches_.size(); ++other) {
    if (other == launch || resident_.is_resident[other] || awaited_[other]) continue;
    if (blocking_order_.holds_up(other, launch)) return true;
  }
  return false;
}

Multiset FullSmsProof::room_before(const size_t launch) const {
  // Resident blocks may have left: then the SM is configured anew.
  const int32_t when_idle = room_when_idle(demands_[launch], model_.device());
  Multiset rooms;
  for (const Multiset& room : resident_.room_on_sm) {
    rooms.push_back(std::min(when_idle, room[launch]));
  }
  return rooms;
}

PendingLaunches FullSmsProof::all_coming(const size_t launch) const {
  PendingLaunches coming{.blocks = {}, .levels = std::vector<Level>(launches_.size())};
  for (size_t k = 0; k < launches_.size(); ++k) {
    coming.blocks.push_back(resident_.is_resident[k] ? 0 : launches_[k].blocks);
  }
  coming.blocks[launch] -= demands_[launch].cluster;
  const int64_t all_blocks =
      std::accumulate(coming.blocks.begin(), coming.blocks.end(), int64_t{0});
  for (size_t k = 0; k < launches_.size(); ++k) {
    if (k == launch || resident_.is_resident[k] || resident_.waits[k] || may_be_held_up(k))
      continue;
    const int64_t other_blocks = all_blocks - coming.blocks[launch] - launches_[k].blocks;
    coming.levels[k] = level_of(model_, demands_[k], launches_[k].blocks,
                                {.untouched = room_before(k), .touching = other_blocks});
    coming.levels[k].before = resident_.is_resident;
  }
  return coming;
}

std::vector<SmKind> FullSmsProof::kinds(const size_t launch, const PendingLaunches& coming) const {
  return sm_kinds(model_.device(), demands_, resident_, may_leave_, coming.blocks,
                  coming.notes(resident_), launch);
}

std::optional<double> FullSmsProof::max_full(const size_t launch,
                                             const PendingLaunches& coming) const {
  // Resident blocks are part of their SM; blocks that arrive are shared by all SMs: the stock.
  const bool one_of_each_tpc = takes_whole_tpcs(demands_[launch], spec_);
  const std::vector<SmKind> sms = kinds(launch, coming);
  Multiset stock = coming.blocks;
  for (size_t k = 0; k < stock.size(); ++k) {
    const Level& level = coming.levels[k];
    if (level.known) {
      stock[k] -= static_cast<int32_t>(taken_evenly(model_.device(), demands_[k], level));
    }
  }
  if (one_of_each_tpc) stock = for_one_of_each_tpc(demands_, stock, spec_);
  for (const SmKind& kind : sms) {
    stock.push_back(one_of_each_tpc ? kind.tpcs : static_cast<int32_t>(kind.sms.size()));
  }
  std::vector<Multiset> sets;
  for (size_t k = 0; k < sms.size(); ++k) {
    const FullSets full(sm_, launch, sms[k], resident_, coming);
    if (full.gave_up()) return std::nullopt;
    const auto sm = static_cast<size_t>(sms[k].sms.front());
    for (const Multiset& blocks : full.sets()) {
      Multiset& set = sets.emplace_back(stock.size());
      for (size_t other = 0; other < blocks.size(); ++other) {
        const Level& level = coming.levels[other];
        const int32_t evenly = level.known ? std::max(0, level.rooms[sm] - level.max) : 0;
        set[other] = resident_.is_resident[other] ? 0 : std::max(0, blocks[other] - evenly);
      }
      set[blocks.size() + k] = 1;
    }
  }
  return max_packed(sets, stock);
}

std::optional<std::vector<FullSms>> FullSmsProof::in_any_order() const {
  if (!applies()) return std::nullopt;
  std::vector<FullSms> rows;
  for (size_t launch = 0; launch < launches_.size(); ++launch) {
    if (resident_.is_resident[launch]) continue;
    const int32_t sms = sms_to_fill(demands_[launch], model_.device());
    double max_sms = 0;
    for (const size_t stranded : stranded_by(launch)) {
      PendingLaunches coming = all_coming(launch);
      if (stranded != launch) coming.blocks[stranded] = 0;  // it is not there yet
      const std::optional<double> full = max_full(launch, coming);
      if (!full || !packs_fewer(*full, sms)) return std::nullopt;
      max_sms = std::max(max_sms, *full);
    }
    rows.push_back({static_cast<int32_t>(launch), max_sms, sms});
  }
  return rows;
}

// The arrivals so far, in one order.
struct FullSmsProof::History {
  PendingLaunches coming;
  std::vector<int32_t> order;  // launches that arrived
  std::vector<bool> arrived;
  std::vector<bool> placed;  // whether a launch found room for all its blocks when it arrived
  std::vector<bool> finds_room_next;
  std::function<bool()> goes_on;
  FindsRoom finds_room_exactly;  // slower, for known launches that wait

  // Returns whether a launch has arrived and may not have found room.
  bool may_wait(const size_t launch) const { return arrived[launch] && !placed[launch]; }
};

bool FullSmsProof::in_each_order(const std::vector<bool>& finds_room_next,
                                 const std::function<bool()>& goes_on,
                                 const FindsRoom& finds_room_exactly) const {
  if (!applies()) return false;
  History history{.coming = {.blocks = Multiset(launches_.size()),
                             .levels = std::vector<Level>(launches_.size())},
                  .order = {},
                  .arrived = resident_.is_resident,
                  .placed = resident_.is_resident,
                  .finds_room_next = finds_room_next,
                  .goes_on = goes_on,
                  .finds_room_exactly = finds_room_exactly};
  for (size_t launch = 0; launch < launches_.size(); ++launch) {
    if (resident_.waits[launch]) history = after(history, launch, false);
  }
  return is_safe_after(history);
}

bool FullSmsProof::is_safe_after(const History& history) const {
  for (size_t launch = 0; launch < launches_.size(); ++launch) {
    if (history.may_wait(launch) && awaited_[launch]) return false;
    if (history.arrived[launch]) continue;
    if (!is_safe_after(after(history, launch, finds_room(launch, history)))) return false;
  }
  return true;
}

FullSmsProof::History FullSmsProof::after(const History& history, const size_t launch,
                                          const bool finds_room) const {
  History next = history;
  next.order.push_back(static_cast<int32_t>(launch));
  next.arrived[launch] = true;
  next.placed[launch] = finds_room;
  next.finds_room_next.assign(launches_.size(), false);
  next.coming.blocks[launch] = launches_[launch].blocks;
  if (!finds_room) return next;
  const Multiset& blocks = history.coming.blocks;
  LeastRooms rooms{.untouched = room_before(launch),
                   .touching = std::accumulate(blocks.begin(), blocks.end(), int64_t{0})};
  if (rooms.touching == 0) {
    rooms.always = rooms.untouched;
  } else {
    PendingLaunches before = history.coming;
    before.blocks[launch] = launches_[launch].blocks;
    rooms.always = least_rooms(launch, before).value_or(Multiset{});
  }
  if (const auto reserved = reserved_before(launch, history)) {
    for (size_t sm = 0; sm < reserved->size(); ++sm) {
      if (!(*reserved)[sm]) continue;
      rooms.untouched[sm] = 0;
      if (!rooms.always.empty()) rooms.always[sm] = 0;
    }
  }
  Level& level = next.coming.levels[launch];
  level = level_of(model_, demands_[launch], launches_[launch].blocks, rooms);
  level.before = history.placed;
  level.first = rooms.touching == 0;
  return next;
}

std::optional<std::vector<bool>> FullSmsProof::reserved_before(const size_t launch,
                                                               const History& history) const {
  std::vector<bool> reserved(static_cast<size_t>(spec_.sms));
  for (size_t other = 0; other < launches_.size(); ++other) {
    if (!history.may_wait(other) || !blocking_order_.holds_up(other, launch)) continue;
    if (!model_.order().on_own_sms) return std::nullopt;
    for (int32_t sm = 0; sm < spec_.sms; ++sm) {
      if (demands_.reserves(other, sm)) reserved[static_cast<size_t>(sm)] = true;
    }
  }
  return reserved;
}

bool FullSmsProof::finds_room(const size_t launch, const History& history) const {
  if (history.finds_room_next[launch]) return true;
  PendingLaunches coming = history.coming;
  coming.blocks[launch] = launches_[launch].blocks - demands_[launch].cluster;
  const auto reserved = reserved_before(launch, history);
  if (reserved && finds_room(launch, coming, *reserved, history.goes_on)) return true;
  return finds_room_in_each_case(launch, history);
}

bool FullSmsProof::finds_room_in_each_case(const size_t launch, const History& history) const {
  std::vector<Arrival> coming;
  std::vector<size_t> may_wait;
  for (const int32_t other : history.order) {
    if (resident_.waits[other]) continue;
    if (history.may_wait(other)) may_wait.push_back(coming.size());
    coming.push_back({other});
  }
  for (size_t waiting = 0; waiting < size_t{1} << may_wait.size(); ++waiting) {
    for (size_t k = 0; k < may_wait.size(); ++k)
      coming[may_wait[k]].waits = (waiting >> k & 1U) != 0;
    if (!history.finds_room_exactly(coming, static_cast<int32_t>(launch))) return false;
  }
  return true;
}

// Returns whether a launch finds room for all its blocks, given the launches before it, `coming`,
// and the SMs that are `reserved` for others. If that is not proved at once, it is proved for both
// halves of the range [min, max] of an earlier launch's level.
bool FullSmsProof::finds_room(const size_t launch, const PendingLaunches& coming,
                              const std::vector<bool>& reserved,
                              const std::function<bool()>& goes_on) const {
  if (!goes_on()) return false;
  const bool any_is_reserved = std::ranges::find(reserved, true) != reserved.end();
  if (!any_is_reserved && has_too_few(launch, coming)) return true;
  const Demand& demand = demands_[launch];
  if (auto rooms = least_rooms(launch, coming)) {
    for (size_t sm = 0; sm < reserved.size(); ++sm) {
      if (reserved[sm]) (*rooms)[sm] = 0;
    }
    if (takes_all_room(demand, model_.device()) &&
        blocks_that_fit(model_.device(), demand, *rooms) >= launches_[launch].blocks) {
      return true;
    }
  }
  for (size_t other = 0; other < launches_.size(); ++other) {
    const Level& level = coming.levels[other];
    if (!level.known || level.min >= level.max) continue;
    const int32_t middle = std::midpoint(level.min, level.max);
    PendingLaunches low = coming;
    low.levels[other].max = middle;
    PendingLaunches high = coming;
    high.levels[other].min = middle + 1;
    return finds_room(launch, low, reserved, goes_on) &&
           finds_room(launch, high, reserved, goes_on);
  }
  return false;
}

bool FullSmsProof::has_too_few(const size_t launch, const PendingLaunches& coming) const {
  const std::optional<double> full = max_full(launch, coming);
  return full && packs_fewer(*full, sms_to_fill(demands_[launch], model_.device()));
}

std::optional<Multiset> FullSmsProof::least_rooms(const size_t launch,
                                                  const PendingLaunches& coming) const {
  Multiset rooms(static_cast<size_t>(spec_.sms));
  for (const SmKind& kind : kinds(launch, coming)) {
    const FullSets full(sm_, launch, kind, resident_, coming);
    if (full.gave_up()) return std::nullopt;
    int32_t least = coming.blocks[launch] + 1;
    for (const Multiset& blocks : full.sets()) least = std::min(least, blocks[launch]);
    for (const int32_t sm : kind.sms) rooms[static_cast<size_t>(sm)] = least;
  }
  return rooms;
}

}  // namespace tbsched
