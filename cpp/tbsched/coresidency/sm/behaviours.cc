#include "tbsched/coresidency/sm/behaviours.h"

#include <algorithm>
#include <utility>

namespace tbsched {
namespace {

constexpr int32_t kNoState = -1;  // the contents of the SM do not matter any more

// Returns one transition for those with equal `ready` and `barred`, with the fewest entered blocks
// of each launch among them.
Successors merged(Successors successors) {
  const auto key = [](const Transition& each) { return std::pair(each.ready, each.barred); };
  std::ranges::sort(successors, {}, key);
  Successors result;
  for (const Transition& transition : successors) {
    if (result.empty() || key(result.back()) != key(transition)) {
      result.push_back(transition);
      continue;
    }
    BlocksOfEach& least = result.back().entered;
    for (size_t k = 0; k < kMaxCounted; ++k) least[k] = std::min(least[k], transition.entered[k]);
  }
  return result;
}

// Returns `barred` and, if `is_first_barred`, the first of the entering launches.
Barred with_first(const Barred barred, const bool is_first_barred,
                  const std::vector<const WaitingLaunch*>& entering) {
  return is_first_barred ? static_cast<Barred>(barred | bit_of(entering.front()->index)) : barred;
}

// Returns the entering launches as SmStates needs them.
Entrants entrants_of(const std::vector<const WaitingLaunch*>& entering) {
  Entrants entrants;
  for (const WaitingLaunch* const waiting : entering) {
    entrants.push_back({waiting->launch, waiting->max_on_sm(), waiting->in_tpcs()});
  }
  return entrants;
}

}  // namespace

Behaviours::Behaviours(const Device& device, const Demands& demands, const LaunchPlaces& places,
                       const Query& query, SmStates& states, Budget& budget)
    : demands_(demands),
      places_(places),
      query_(query),
      states_(states),
      budget_(budget),
      room_falls_only_when_idle_(gains_by_leaving(device, demands[query.last])),
      room_when_idle_(room_when_idle(demands[query.last], device)) {}

Behaviours::Key Behaviours::key(const int32_t state, const size_t stage, const int32_t role) {
  return static_cast<Key>(static_cast<uint32_t>(state)) << 32U | static_cast<Key>(stage) << 24U |
         static_cast<Key>(role);
}

bool Behaviours::may_be_taken(const size_t stage, const SmRole& role) const {
  for (size_t k = stage; k < role.takes.size(); ++k) {
    if (role.takes[k]) return true;
  }
  return false;
}

bool Behaviours::may_leave(const size_t stage, const SmRole& role) const {
  return query_.is_last(stage) ? query_.leave_before_last : role.leaves[stage];
}

std::vector<const WaitingLaunch*> Behaviours::entering(const size_t stage,
                                                       const SmRole& role) const {
  std::vector<const WaitingLaunch*> entering;
  if (stage == 0 && role.is_quiet) return entering;
  for (size_t k = 0; k < query_.entering.size(); ++k) {
    const WaitingLaunch& waiting = query_.entering[k];
    if (role.enters[k] && waiting.first_stage <= stage) entering.push_back(&waiting);
  }
  return entering;
}

int32_t Behaviours::successors(int32_t state, const size_t stage, const int32_t role) {
  if (!may_be_taken(stage, roles_[role])) state = kNoState;
  const auto known = known_successors_.find(key(state, stage, role));
  if (known != known_successors_.end()) return known->second;
  const int32_t index = all_successors_.index_of(explore(state, stage, role));
  known_successors_.emplace(key(state, stage, role), index);
  return index;
}

Successors Behaviours::explore(const int32_t state, const size_t stage, const int32_t role) {
  const SmRole& sm_role = roles_[role];
  if (state == kNoState || !may_leave(stage, sm_role)) return unchanged(state, stage, role, 0);
  const Barred barred = barred_in_any_state(stage, sm_role);
  const std::vector<const WaitingLaunch*> waiting = entering(stage, sm_role);
  if (!waiting.empty()) return explore_entering(state, stage, role, waiting);
  if (query_.is_last(stage) && room_falls_only_when_idle_) {
    const int32_t room = rooms(state, query_.last).min;
    const bool falls = room > room_when_idle_ && states_.may_become_idle(state);
    Ready ready;
    ready.room = falls ? room_when_idle_ : room;
    return {Transition{.ready = readies_.index_of(std::move(ready)), .barred = barred}};
  }
  Successors all = unchanged(state, stage, role, barred);
  for (const int32_t next : states_.after_leaving(state)) {
    const Successors& of_next = all_successors_[successors(next, stage, role)];
    budget_.spend(1 + std::ssize(of_next) / 10);
    all.insert(all.end(), of_next.begin(), of_next.end());
  }
  return merged(std::move(all));
}

Successors Behaviours::explore_entering(const int32_t state, const size_t stage, const int32_t role,
                                        const std::vector<const WaitingLaunch*>& entering) {
  if (query_.is_last(stage)) return explore_last_stage(state, stage, role, entering);
  Successors all;
  const Barred barred = barred_in_any_state(stage, roles_[role]);
  const SmStates::AllReached reached_states = states_.reached(state, entrants_of(entering));
  for (const ReachedState& reached : *reached_states) {
    budget_.spend(1);
    Transition transition{.barred = with_first(barred, reached.is_barred, entering)};
    for (size_t k = 0; k < entering.size(); ++k) {
      transition.entered[entering[k]->index] = reached.entered[k];
    }
    for (const int32_t ready : readies_of(reached.state, stage, role)) {
      transition.ready = ready;
      all.push_back(transition);
    }
  }
  return merged(std::move(all));
}

Successors Behaviours::explore_last_stage(const int32_t state, const size_t stage,
                                          const int32_t role,
                                          const std::vector<const WaitingLaunch*>& entering) {
  const auto ready = [this, stage, role](const int32_t at) {
    return readies_of(at, stage, role).front();
  };
  const auto known = last_stage_.try_emplace(role, states_, budget_, entrants_of(entering), ready);
  const Barred barred = barred_in_any_state(stage, roles_[role]);
  Successors all;
  for (const FewestWay& way : known.first->second.ways_from(state)) {
    Transition transition{.ready = way.ready,
                          .barred = with_first(barred, way.is_barred, entering)};
    for (size_t k = 0; k < entering.size(); ++k) {
      transition.entered[entering[k]->index] = way.entered[k];
    }
    all.push_back(transition);
  }
  return all;
}

Successors Behaviours::unchanged(const int32_t state, const size_t stage, const int32_t role,
                                 const Barred barred) {
  Successors all;
  for (const int32_t ready : readies_of(state, stage, role)) {
    all.push_back({.ready = ready, .barred = barred});
  }
  return all;
}

Barred Behaviours::barred_in_any_state(const size_t stage, const SmRole& role) const {
  Barred barred = 0;
  for (size_t k = 0; k < query_.entering.size(); ++k) {
    const WaitingLaunch& waiting = query_.entering[k];
    const bool may_enter =
        role.enters[k] && waiting.first_stage <= stage && (stage > 0 || !role.is_quiet);
    if (waiting.in_tpcs() && !may_enter) barred |= bit_of(waiting.index);
  }
  return barred;
}

RoomRange Behaviours::rooms(const int32_t state, const int32_t launch) {
  const RoomRange room = states_.rooms(state, launch);
  gaps_matter_ = gaps_matter_ || room.min < room.max;
  return room;
}

const std::vector<int32_t>& Behaviours::readies_of(int32_t state, const size_t stage,
                                                   const int32_t role) {
  const auto known = known_readies_.find(key(state, stage, role));
  if (known != known_readies_.end()) return known->second;
  const bool is_taken = state != kNoState && roles_[role].takes[stage];
  const int32_t launch = query_.launch_at(stage);
  const RoomRange room = is_taken ? rooms(state, launch) : RoomRange{0, 0};
  const Key first = key(state, stage, role);
  std::vector<int32_t> readies;
  Ready ready;
  ready.room = room.min;
  if (query_.is_last(stage)) {
    readies.push_back(readies_.index_of(std::move(ready)));
  } else {
    ready.idle = is_taken && places_.way(launch) == Way::whole_tpcs && states_.idle(state);
    for (int32_t blocks = 0; blocks <= room.max; ++blocks) {
      budget_.spend(1);
      ready.then.push_back(successors(state, stage + 1, role));
      ready.room = blocks;
      if (blocks >= room.min) readies.push_back(readies_.index_of(ready));
      if (blocks < room.max) state = states_.with_one_more(state, launch);
    }
  }
  return known_readies_.emplace(first, std::move(readies)).first->second;
}

Behaviours::Moved Behaviours::moves(const int32_t state, const size_t stage, const int32_t role,
                                    const Transition& transition) {
  const SmRole& sm_role = roles_[role];
  Moved moved{{}, state};
  if (!may_be_taken(stage, sm_role) || !may_leave(stage, sm_role)) return moved;
  const auto is_ready = [&](const int32_t at) {
    const std::vector<int32_t>& readies = readies_of(at, stage, role);
    return std::ranges::find(readies, transition.ready) != readies.end();
  };
  const std::vector<const WaitingLaunch*> waiting = entering(stage, sm_role);
  if (!waiting.empty()) {
    const SmStates::AllReached kept = states_.reached(state, entrants_of(waiting));
    const std::vector<ReachedState>& all = *kept;
    const Barred barred = barred_in_any_state(stage, sm_role);
    auto reached = std::ranges::find_if(all, [&](const ReachedState& each) {
      return is_ready(each.state) &&
             with_first(barred, each.is_barred, waiting) == transition.barred;
    });
    if (reached == all.end()) {
      reached =
          std::ranges::find_if(all, [&](const ReachedState& each) { return is_ready(each.state); });
    }
    moved.state = reached->state;
    for (int32_t at = static_cast<int32_t>(reached - all.begin()); all[at].before >= 0;
         at = all[at].before) {
      moved.moves.insert(moved.moves.begin(), all[at].move);
    }
    return moved;
  }
  const auto may_become_ready = [&](const int32_t at) {
    const Successors& all = all_successors_[successors(at, stage, role)];
    return std::ranges::find(all, transition.ready, &Transition::ready) != all.end();
  };
  while (!is_ready(moved.state)) {
    const std::vector<int32_t>& next = states_.after_leaving(moved.state);
    if (next.empty()) break;
    auto chosen = std::ranges::find_if(next, may_become_ready);
    if (chosen == next.end()) chosen = next.begin();  // the room falls only when all have left
    moved.moves.push_back(states_.moves_of_leaving(moved.state)[chosen - next.begin()]);
    moved.state = *chosen;
  }
  return moved;
}

}  // namespace tbsched
