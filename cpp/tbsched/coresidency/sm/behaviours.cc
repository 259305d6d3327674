#include "tbsched/coresidency/sm/behaviours.h"

#include <algorithm>
#include <utility>

namespace tbsched {
namespace {

constexpr int32_t kNoState = -1;  // the contents of the SM do not matter any more

// Keeps one of the transitions with equal readiness and bars, with the fewest entered blocks.
Successors shortened(Successors successors) {
  const auto key = [](const Transition& each) { return std::pair(each.ready, each.barred); };
  std::ranges::sort(successors, {}, key);
  Successors found;
  for (const Transition& transition : successors) {
    if (found.empty() || key(found.back()) != key(transition)) {
      found.push_back(transition);
      continue;
    }
    BlocksOfEach& least = found.back().entered;
    for (size_t k = 0; k < kMostCounted; ++k) least[k] = std::min(least[k], transition.entered[k]);
  }
  return found;
}

// Adds the first entrant to `anyway` if it is barred.
Barred with_first(const Barred anyway, const bool is_barred,
                  const std::vector<const WaitingLaunch*>& entering) {
  return is_barred ? static_cast<Barred>(anyway | bit_of(entering.front()->place)) : anyway;
}

Entrants entrants_of(const std::vector<const WaitingLaunch*>& entering) {
  Entrants found;
  for (const WaitingLaunch* const each : entering) {
    found.push_back({each->launch, each->most_on_sm(), each->in_tpcs()});
  }
  return found;
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

// Returns whether a launch of this stage or a later one may take the SM.
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
  std::vector<const WaitingLaunch*> found;
  if (stage == 0 && role.is_quiet) return found;
  for (size_t k = 0; k < query_.entering.size(); ++k) {
    const WaitingLaunch& each = query_.entering[k];
    if (role.enters[k] && each.from <= stage) found.push_back(&each);
  }
  return found;
}

int32_t Behaviours::successors(int32_t state, const size_t stage, const int32_t role) {
  if (!may_be_taken(stage, roles_[role])) state = kNoState;
  const auto known = known_successors_.find(key(state, stage, role));
  if (known != known_successors_.end()) return known->second;
  const int32_t found = all_successors_.of(explore(state, stage, role));
  known_successors_.emplace(key(state, stage, role), found);
  return found;
}

Successors Behaviours::explore(const int32_t state, const size_t stage, const int32_t role) {
  const SmRole& own = roles_[role];
  if (state == kNoState || !may_leave(stage, own)) return now(state, stage, role, 0);
  const Barred barred = barred_anyway(stage, own);
  const std::vector<const WaitingLaunch*> some = entering(stage, own);
  if (!some.empty()) return explore_entering(state, stage, role, some);
  if (query_.is_last(stage) && room_falls_only_when_idle_) {
    const int32_t room = rooms(state, query_.last).least;
    const bool falls = room > room_when_idle_ && states_.may_become_idle(state);
    Ready ready;
    ready.room = falls ? room_when_idle_ : room;
    return {Transition{.ready = readies_.of(std::move(ready)), .barred = barred}};
  }
  Successors found = now(state, stage, role, barred);
  for (const int32_t next : states_.after_leaving(state)) {
    const Successors& then = all_successors_[successors(next, stage, role)];
    budget_.spend(1 + std::ssize(then) / 10);
    found.insert(found.end(), then.begin(), then.end());
  }
  return shortened(std::move(found));
}

Successors Behaviours::explore_entering(const int32_t state, const size_t stage, const int32_t role,
                                        const std::vector<const WaitingLaunch*>& entering) {
  if (query_.is_last(stage)) return explore_last_stage(state, stage, role, entering);
  Successors found;
  const Barred anyway = barred_anyway(stage, roles_[role]);
  const SmStates::AllReached all = states_.reached(state, entrants_of(entering));
  for (const ReachedState& way : *all) {
    budget_.spend(1);
    Transition transition{.barred = with_first(anyway, way.is_barred, entering)};
    for (size_t k = 0; k < entering.size(); ++k) {
      transition.entered[entering[k]->place] = way.entered[k];
    }
    for (const int32_t ready : readies_of(way.state, stage, role)) {
      transition.ready = ready;
      found.push_back(transition);
    }
  }
  return shortened(std::move(found));
}

// As explore_entering() for the last stage: there are few ways to be ready, but many states
// lead to them.
Successors Behaviours::explore_last_stage(const int32_t state, const size_t stage,
                                          const int32_t role,
                                          const std::vector<const WaitingLaunch*>& entering) {
  const auto ready = [this, stage, role](const int32_t at) {
    return readies_of(at, stage, role).front();
  };
  const auto at = last_stage_.try_emplace(role, states_, budget_, entrants_of(entering), ready);
  const Barred anyway = barred_anyway(stage, roles_[role]);
  Successors found;
  for (const FewestWay& way : at.first->second.of(state)) {
    Transition transition{.ready = way.ready,
                          .barred = with_first(anyway, way.is_barred, entering)};
    for (size_t k = 0; k < entering.size(); ++k) {
      transition.entered[entering[k]->place] = way.entered[k];
    }
    found.push_back(transition);
  }
  return found;
}

// Returns the successors if nothing leaves or enters.
Successors Behaviours::now(const int32_t state, const size_t stage, const int32_t role,
                           const Barred barred) {
  Successors found;
  for (const int32_t ready : readies_of(state, stage, role)) {
    found.push_back({.ready = ready, .barred = barred});
  }
  return found;
}

// Returns the waiting launches that are barred whatever is on the SM.
Barred Behaviours::barred_anyway(const size_t stage, const SmRole& role) const {
  Barred found = 0;
  for (size_t k = 0; k < query_.entering.size(); ++k) {
    const WaitingLaunch& each = query_.entering[k];
    const bool may_enter = role.enters[k] && each.from <= stage && (stage > 0 || !role.is_quiet);
    if (each.in_tpcs() && !may_enter) found |= bit_of(each.place);
  }
  return found;
}

RoomRange Behaviours::rooms(const int32_t state, const int32_t launch) {
  const RoomRange found = states_.rooms(state, launch);
  gaps_matter_ = gaps_matter_ || found.least < found.most;
  return found;
}

// Returns one Ready for each possible room; for the last launch, only the least room.
const std::vector<int32_t>& Behaviours::readies_of(int32_t state, const size_t stage,
                                                   const int32_t role) {
  const auto known = known_readies_.find(key(state, stage, role));
  if (known != known_readies_.end()) return known->second;
  const bool is_taken = state != kNoState && roles_[role].takes[stage];
  const int32_t launch = query_.launch_at(stage);
  const RoomRange room = is_taken ? rooms(state, launch) : RoomRange{0, 0};
  const Key own = key(state, stage, role);
  std::vector<int32_t> found;
  Ready ready;
  ready.room = room.least;
  if (query_.is_last(stage)) {
    found.push_back(readies_.of(std::move(ready)));
  } else {
    ready.idle = is_taken && places_.way(launch) == Way::whole_tpcs && states_.idle(state);
    for (int32_t blocks = 0; blocks <= room.most; ++blocks) {
      budget_.spend(1);
      ready.then.push_back(successors(state, stage + 1, role));
      ready.room = blocks;
      if (blocks >= room.least) found.push_back(readies_.of(ready));
      if (blocks < room.most) state = states_.with_one_more(state, launch);
    }
  }
  return known_readies_.emplace(own, std::move(found)).first->second;
}

Behaviours::Moved Behaviours::moves(const int32_t state, const size_t stage, const int32_t role,
                                    const Transition& transition) {
  const SmRole& own = roles_[role];
  Moved found{{}, state};
  if (!may_be_taken(stage, own) || !may_leave(stage, own)) return found;
  const auto is_it = [&](const int32_t at) {
    const std::vector<int32_t>& all = readies_of(at, stage, role);
    return std::ranges::find(all, transition.ready) != all.end();
  };
  const std::vector<const WaitingLaunch*> some = entering(stage, own);
  if (!some.empty()) {
    const SmStates::AllReached kept = states_.reached(state, entrants_of(some));
    const std::vector<ReachedState>& all = *kept;
    const Barred anyway = barred_anyway(stage, own);
    auto way = std::ranges::find_if(all, [&](const ReachedState& each) {
      return is_it(each.state) && with_first(anyway, each.is_barred, some) == transition.barred;
    });
    if (way == all.end()) {
      way = std::ranges::find_if(all, [&](const ReachedState& each) { return is_it(each.state); });
    }
    found.state = way->state;
    for (int32_t at = static_cast<int32_t>(way - all.begin()); all[at].before >= 0;
         at = all[at].before) {
      found.moves.insert(found.moves.begin(), all[at].move);
    }
    return found;
  }
  const auto may_get_there = [&](const int32_t at) {
    const Successors& all = all_successors_[successors(at, stage, role)];
    return std::ranges::find(all, transition.ready, &Transition::ready) != all.end();
  };
  while (!is_it(found.state)) {
    const std::vector<int32_t>& next = states_.after_leaving(found.state);
    if (next.empty()) break;
    auto at = std::ranges::find_if(next, may_get_there);
    if (at == next.end()) at = next.begin();  // the room falls only when all have left
    found.moves.push_back(states_.moves_of_leaving(found.state)[at - next.begin()]);
    found.state = *at;
  }
  return found;
}

}  // namespace tbsched
