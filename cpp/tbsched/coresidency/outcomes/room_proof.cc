#include "tbsched/coresidency/outcomes/room_proof.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <ranges>
#include <utility>

namespace tbsched {
namespace {

constexpr int32_t kMaxBlocks = std::numeric_limits<int16_t>::max();  // limit of counts in outcomes

}  // namespace

RoomProof::RoomProof(const Model& model, const std::vector<Launch>& launches,
                     const Demands& demands, const std::vector<int32_t>& group,
                     const Resident& resident, const ArrivedLaunches& arrived,
                     std::array<SmStates, 2>& known, Budget& budget, const Solver& solver)
    : model_(model),
      device_(model.device()),
      launches_(launches),
      demands_(demands),
      resident_(resident),
      arrived_(arrived),
      all_states_(known),
      budget_(budget),
      solver_(solver),
      places_(model, demands),
      blocking_order_(model, launches, demands) {
  for (int32_t launch = 0; std::cmp_less(launch, launches.size()); ++launch) {
    if (std::ranges::find(group, launch) == group.end()) query_.leaving.push_back(launch);
  }
}

bool RoomProof::finds_room(const std::vector<Arrival>& coming, const int32_t last) {
  if (!solver_ || !is_counted(coming, last)) return false;
  set_query(coming, last);
  return finds_room_for_each_held_up({});
}

bool RoomProof::is_counted(const std::vector<Arrival>& coming, const int32_t last) const {
  const auto waiting = static_cast<size_t>(
      std::ranges::count_if(arrived_.waiting, [](const int32_t blocks) { return blocks > 0; }));
  const bool few_wait = std::ranges::all_of(
      arrived_.waiting, [](const int32_t blocks) { return blocks <= kMaxBlocks; });
  const auto may_come = [&](const Arrival& arrival) {
    return places_.way(arrival.launch) != Way::other &&
           launches_[arrival.launch].blocks <= kMaxBlocks;
  };
  return coming.size() + waiting <= kMaxCounted && few_wait &&
         std::ranges::all_of(coming, may_come) && places_.way(last) != Way::other &&
         device_.spec.sms * device_.spec.blocks_per_sm <= kMaxBlocks;
}

void RoomProof::set_query(const std::vector<Arrival>& coming, const int32_t last) {
  query_.coming = coming;
  query_.last = last;
  query_.entering.clear();
  for (size_t k = 0; k < coming.size(); ++k) {
    if (coming[k].waits)
      add_entering(coming[k].launch, launches_[coming[k].launch].blocks, k + 1, k);
  }
  size_t index = coming.size();
  for (size_t k = 0; k < arrived_.order.size(); ++k) {
    if (arrived_.waiting[k] == 0) continue;
    add_entering(arrived_.order[k], arrived_.waiting[k], 0, index++);
  }
  query_.leave_before_last = !query_.entering.empty() || !is_monotone(device_, demands_[last]);
}

void RoomProof::add_entering(const int32_t launch, const int32_t waiting, const size_t first_stage,
                             const size_t index) {
  const bool in_tpcs = places_.way(launch) == Way::whole_tpcs;
  query_.entering.push_back({.launch = launch,
                             .blocks = waiting,
                             .cluster = demands_[launch].cluster,
                             .on_tpc = in_tpcs ? device_.spec.sms_per_tpc : 1,
                             .first_stage = first_stage,
                             .index = index});
}

bool RoomProof::finds_room_for_each_held_up(HeldUp held_up) {
  // The blocks of a waiting launch wait until some stage: arrivals up to there are held up, later
  // ones are not.
  const size_t stages = query_.coming.size() + 1;
  if (held_up.size() == query_.entering.size()) {
    const bool any_is_held_up = std::ranges::any_of(held_up, [](const auto& by_launch) {
      return std::ranges::find(by_launch, true) != by_launch.end();
    });
    if (any_is_held_up && !model_.order().on_own_sms) return false;
    held_up_ = std::move(held_up);
    Result result = finds_room_with(Gaps::counted);
    if (result == Result::gaps_matter) result = finds_room_with(Gaps::located);
    return result == Result::proved;
  }
  const WaitingLaunch& waiting = query_.entering[held_up.size()];
  held_up.emplace_back(stages);
  if (!finds_room_for_each_held_up(held_up)) return false;
  for (size_t stage = waiting.first_stage; stage < stages; ++stage) {
    if (!blocking_order_.holds_up(waiting.launch, query_.launch_at(stage))) continue;
    held_up.back()[stage] = true;
    if (could_arrive_later(waiting, held_up.back(), stage)) continue;
    if (!finds_room_for_each_held_up(held_up)) return false;
  }
  return true;
}

bool RoomProof::could_arrive_later(const WaitingLaunch& waiting, const std::vector<bool>& held_up,
                                   const size_t stage) const {
  // If so, these arrivals need not be checked: they could as well arrive later or never, which is
  // checked, too.
  if (query_.is_last(stage)) return false;
  for (size_t k = 0; k <= stage; ++k) {
    if (!held_up[k]) continue;
    for (int32_t sm = 0; sm < device_.spec.sms; ++sm) {
      const bool is_free = !demands_.reserves(waiting.launch, sm);
      if (is_free && demands_.reserves(query_.launch_at(k), sm)) return false;
    }
  }
  return true;
}

RoomProof::Result RoomProof::finds_room_with(const Gaps gaps) {
  SmStates& states = all_states_[static_cast<size_t>(gaps)];
  states.forget_if_many();
  try {
    QueriedSms sms(device_, demands_, places_, query_, states, budget_);
    for (int32_t sm = 0; sm < device_.spec.sms; ++sm) {
      OneSm contents(device_, demands_.all(), gaps);
      for (const int32_t launch : arrived_.order) {
        for (int32_t k = 0; k < resident_.on_sm[sm][launch]; ++k) contents.commit(launch);
      }
      for (const WaitingLaunch& waiting : query_.entering) {
        contents.reserve(waiting.launch, waiting.max_on_sm());
      }
      sms.add(std::move(contents), role_of(sm));
    }
    OutcomeProgram program;
    for (const auto& [launch, waits] : query_.coming) {
      program.stages.push_back(stage_of(launch, waits));
    }
    program.stages.push_back(stage_of(query_.last, false));
    program.entering = query_.entering;
    sms.add_to(program);
    const Solution solution = solver_(program);
    if (std::holds_alternative<NoSolution>(solution)) return Result::proved;
    if (sms.gaps_matter()) return Result::gaps_matter;
    if (const auto* const counts = std::get_if<Counts>(&solution)) {
      candidates_.push_back(sms.history(program, *counts));
    }
  } catch (const BudgetExceeded&) {
  }
  return Result::failed;
}

OutcomeProgram::Stage RoomProof::stage_of(const int32_t launch, const bool waits) const {
  const Demand& demand = demands_[launch];
  const int32_t parts = places_.parts(launch);
  return {.way = places_.way(launch),
          .blocks = launches_[launch].blocks,
          .parts = parts,
          .on_part = demand.cluster / parts,
          .most_room = places_.most_room(launch),
          .waits = waits,
          .waits_whole = waits && demand.at_once};
}

bool RoomProof::may_take(const int32_t sm, const size_t stage) const {
  for (size_t k = 0; k < query_.entering.size(); ++k) {
    if (held_up_[k][stage] && demands_.reserves(query_.entering[k].launch, sm)) return false;
  }
  return demands_.may_be_on(query_.launch_at(stage), sm);
}

std::vector<int32_t> RoomProof::moving_together(const int32_t sm) const {
  // Blocks that leave before the arrival of a launch that does not use the SM could leave later;
  // but clusters of whole TPCs enter on all SMs of a TPC before the same arrival.
  if (std::ranges::none_of(query_.entering, &WaitingLaunch::in_tpcs)) {
    return {sm};
  }
  const std::vector<int32_t>& tpc_of_sm = device_.topology.tpc_of_sm;
  const auto tpc = std::ranges::equal_range(tpc_of_sm, tpc_of_sm[sm]);
  std::vector<int32_t> sms(tpc.size());
  std::iota(sms.begin(), sms.end(), static_cast<int32_t>(tpc.begin() - tpc_of_sm.begin()));
  return sms;
}

SmRole RoomProof::role_of(const int32_t sm) const {
  SmRole role{.takes = {}, .leaves = {}, .enters = {}, .is_quiet = is_quiet(sm)};
  const std::vector<int32_t> together = moving_together(sm);
  for (size_t stage = 0; stage <= query_.coming.size(); ++stage) {
    role.takes.push_back(may_take(sm, stage));
    role.leaves.push_back(
        std::ranges::any_of(together, [&](const int32_t other) { return may_take(other, stage); }));
  }
  for (const WaitingLaunch& waiting : query_.entering) {
    role.enters.push_back(demands_.may_be_on(waiting.launch, sm));
  }
  return role;
}

bool RoomProof::is_quiet(const int32_t sm) const {
  // Waiting blocks have no room, so none enters where nothing can leave: on an SM, or for clusters
  // in a GPC. This is not sure for a launch that is placed at once, nor for a launch behind another
  // one.
  const auto waits_at_first = [](const WaitingLaunch& waiting) { return waiting.first_stage == 0; };
  const auto waiting = std::ranges::find_if(query_.entering, waits_at_first);
  if (waiting == query_.entering.end() || demands_[waiting->launch].at_once) return false;
  if (std::ranges::count_if(query_.entering, waits_at_first) > 1) return false;
  const auto may_leave = [&](const int32_t other) {
    return std::ranges::any_of(
        query_.leaving, [&](const int32_t launch) { return resident_.on_sm[other][launch] > 0; });
  };
  if (waiting->cluster == 1) return !may_leave(sm);
  const auto domain = std::ranges::find_if(device_.cluster_domains, [&](const auto& candidate) {
    return std::ranges::count(candidate.tpcs | std::views::join, sm) > 0;
  });
  return std::ranges::none_of(domain->tpcs | std::views::join, may_leave);
}

}  // namespace tbsched
