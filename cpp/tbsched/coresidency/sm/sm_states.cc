#include "tbsched/coresidency/sm/sm_states.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tbsched {
namespace {

constexpr size_t kMostReached = 200'000;
constexpr size_t kMostKept = 5'000;
constexpr size_t kMostStates = 100'000;
constexpr size_t kMostNodes = 400'000;  // of one question, of one or two KB each
constexpr int64_t kStepsOfNew = 20;
constexpr int64_t kStepsOfKnown = 10;

}  // namespace

void SmStates::forget_if_many() {
  if (nodes_.size() < kMostStates) return;
  nodes_.clear();
  known_.clear();
  reached_.clear();
}

int32_t SmStates::of(const OneSm& sm) {
  std::vector<int32_t> key = sm.key();
  const auto known = known_.find(key);
  budget_.spend(known == known_.end() ? kStepsOfNew : kStepsOfKnown);
  if (known != known_.end()) return known->second;
  if (nodes_.size() == kMostNodes) throw BudgetExceeded{};
  const auto next = static_cast<int32_t>(nodes_.size());
  const size_t launches = sm.launches();
  nodes_.push_back({sm, std::vector<std::optional<RoomRange>>(launches),
                    std::vector<int32_t>(launches, kUnknown)});
  known_.emplace(std::move(key), next);
  return next;
}

RoomRange SmStates::rooms(const int32_t state, const int32_t launch) {
  std::optional<RoomRange>& rooms = nodes_[state].rooms[launch];
  if (!rooms) rooms = nodes_[state].sm.rooms(launch);
  return *rooms;
}

int32_t SmStates::with_one_more(const int32_t state, const int32_t launch) {
  if (nodes_[state].with_one_more[launch] == kUnknown) {
    OneSm sm = nodes_[state].sm;
    sm.commit(launch);
    nodes_[state].with_one_more[launch] = of(sm);
  }
  return nodes_[state].with_one_more[launch];
}

const SmStates::Node& SmStates::left(const int32_t state) {
  Node& node = nodes_[state];
  if (node.has_left) return node;
  std::vector<int32_t> after;
  std::vector<Move> moves;
  for (const int32_t launch : leaving_) {
    const std::vector<int32_t> kinds = node.sm.distinct(launch);
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      OneSm next = node.sm;
      next.leave(launch, kinds[kind]);
      after.push_back(of(next));
      moves.push_back({launch, static_cast<int32_t>(kind), false});
    }
  }
  node.after_leaving = std::move(after);
  node.moves_of_leaving = std::move(moves);
  node.has_left = true;
  return node;
}

const std::vector<int32_t>& SmStates::after_leaving(const int32_t state) {
  return left(state).after_leaving;
}

const std::vector<Move>& SmStates::moves_of_leaving(const int32_t state) {
  return left(state).moves_of_leaving;
}

const std::vector<int32_t>& SmStates::after_entering(const int32_t state, const int32_t launch) {
  Node& node = nodes_[state];
  const auto known = node.after_entering.find(launch);
  if (known != node.after_entering.end()) return known->second;
  std::vector<int32_t> after;
  for (const int32_t configured : node.sm.may_enter(launch)) {
    OneSm next = node.sm;
    next.enter(launch, configured);
    after.push_back(of(next));
  }
  return node.after_entering.emplace(launch, std::move(after)).first->second;
}

bool SmStates::may_become_idle(const int32_t state) const {
  return nodes_[state].sm.has_only(leaving_);
}

SmStates::AllReached SmStates::reached(const int32_t state, const Entrants& entrants) {
  const std::pair key(state, entrants);
  const auto known = reached_.find(key);
  if (known != reached_.end()) return known->second;
  if (entrants.size() > kMostEntrants) throw BudgetExceeded{};
  std::vector<ReachedState> found = explore(state, entrants, 0);
  std::map<int32_t, size_t> number;
  for (size_t k = 0; k < found.size(); ++k) number.emplace(found[k].state, k);
  for (size_t counted = 1; counted < entrants.size(); ++counted) {
    for (const ReachedState& way : explore(state, entrants, counted)) {
      const auto at = number.find(way.state);
      if (at != number.end()) found[at->second].entered[counted] = way.entered[counted];
    }
  }
  const bool is_kept = found.size() <= kMostKept;
  auto all = std::make_shared<const std::vector<ReachedState>>(std::move(found));
  if (is_kept) reached_.emplace(key, all);
  return all;
}

// Explores the states, minimising the number of entered blocks of one entrant.
std::vector<ReachedState> SmStates::explore(const int32_t state, const Entrants& entrants,
                                            const size_t counted) {
  std::vector<ReachedState> found;
  const bool is_apart = may_be_barred(entrants);
  std::set<std::pair<int32_t, bool>> known;
  std::deque<ReachedState> open = {{state}};
  while (!open.empty()) {
    const ReachedState way = open.front();
    open.pop_front();
    if (!known.emplace(way.state, is_apart && way.entered.front() > 0).second) continue;
    if (found.size() == kMostReached) throw BudgetExceeded{};
    const auto number = static_cast<int32_t>(found.size());
    found.push_back(way);
    found.back().is_barred =
        is_apart && way.entered.front() == 0 && !admits(way.state, entrants.front().launch);
    const Node& node = left(way.state);
    budget_.spend(kStepsOfKnown + std::ssize(node.after_leaving));
    for (size_t k = 0; k < node.after_leaving.size(); ++k) {
      open.push_front({.state = node.after_leaving[k],
                       .entered = way.entered,
                       .before = number,
                       .move = node.moves_of_leaving[k]});
    }
    for (size_t entrant = 0; entrant < entrants.size(); ++entrant) {
      const int32_t launch = entrants[entrant].launch;
      if (entrant == counted && way.entered[counted] == entrants[entrant].most) continue;
      const std::vector<int32_t>& next = after_entering(way.state, launch);
      for (size_t kind = 0; kind < next.size(); ++kind) {
        ReachedState then{.state = next[kind],
                          .entered = way.entered,
                          .before = number,
                          .move = {launch, static_cast<int32_t>(kind), true}};
        if (entrant != counted) {
          open.push_front(then);
          continue;
        }
        ++then.entered[counted];
        open.push_back(then);
      }
    }
  }
  return found;
}

}  // namespace tbsched
