#include "tbsched/coresidency/sm/sm_states.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tbsched {
namespace {

constexpr size_t kMaxReached = 200'000;
constexpr size_t kMaxKept = 5'000;
constexpr size_t kMaxStates = 100'000;
constexpr size_t kMaxNodes = 400'000;  // of one question, of one or two KB each
constexpr int64_t kStepsPerNewState = 20;
constexpr int64_t kStepsPerKnownState = 10;

}  // namespace

void SmStates::forget_if_many() {
  if (nodes_.size() < kMaxStates) return;
  nodes_.clear();
  known_.clear();
  reached_.clear();
}

int32_t SmStates::state_of(const OneSm& sm) {
  std::vector<int32_t> key = sm.key();
  const auto known = known_.find(key);
  budget_.spend(known == known_.end() ? kStepsPerNewState : kStepsPerKnownState);
  if (known != known_.end()) return known->second;
  if (nodes_.size() == kMaxNodes) throw BudgetExceeded{};
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
    nodes_[state].with_one_more[launch] = state_of(sm);
  }
  return nodes_[state].with_one_more[launch];
}

const SmStates::Node& SmStates::node_with_leaving(const int32_t state) {
  Node& node = nodes_[state];
  if (node.knows_leaving) return node;
  std::vector<int32_t> after;
  std::vector<Move> moves;
  for (const int32_t launch : leaving_) {
    const std::vector<int32_t> kinds = node.sm.distinct_blocks(launch);
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      OneSm next = node.sm;
      next.leave(launch, kinds[kind]);
      after.push_back(state_of(next));
      moves.push_back({launch, static_cast<int32_t>(kind), false});
    }
  }
  node.after_leaving = std::move(after);
  node.moves_of_leaving = std::move(moves);
  node.knows_leaving = true;
  return node;
}

const std::vector<int32_t>& SmStates::after_leaving(const int32_t state) {
  return node_with_leaving(state).after_leaving;
}

const std::vector<Move>& SmStates::moves_of_leaving(const int32_t state) {
  return node_with_leaving(state).moves_of_leaving;
}

const std::vector<int32_t>& SmStates::after_entering(const int32_t state, const int32_t launch) {
  Node& node = nodes_[state];
  const auto known = node.after_entering.find(launch);
  if (known != node.after_entering.end()) return known->second;
  std::vector<int32_t> after;
  for (const int32_t configured : node.sm.entry_configurations(launch)) {
    OneSm next = node.sm;
    next.enter(launch, configured);
    after.push_back(state_of(next));
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
  if (entrants.size() > kMaxEntrants) throw BudgetExceeded{};
  std::vector<ReachedState> states = explore(state, entrants, 0);
  std::map<int32_t, size_t> index_of_state;
  for (size_t k = 0; k < states.size(); ++k) index_of_state.emplace(states[k].state, k);
  for (size_t counted = 1; counted < entrants.size(); ++counted) {
    for (const ReachedState& reached : explore(state, entrants, counted)) {
      const auto index = index_of_state.find(reached.state);
      if (index != index_of_state.end()) {
        states[index->second].entered[counted] = reached.entered[counted];
      }
    }
  }
  const bool is_kept = states.size() <= kMaxKept;
  auto all = std::make_shared<const std::vector<ReachedState>>(std::move(states));
  if (is_kept) reached_.emplace(key, all);
  return all;
}

std::vector<ReachedState> SmStates::explore(const int32_t state, const Entrants& entrants,
                                            const size_t counted) {
  std::vector<ReachedState> reached;
  // If so, states with and without an entered block are different nodes.
  const bool tells_entered = may_be_barred(entrants);
  std::set<std::pair<int32_t, bool>> visited;
  std::deque<ReachedState> open = {{state}};
  while (!open.empty()) {
    const ReachedState current = open.front();
    open.pop_front();
    const bool has_entered = current.entered.front() > 0;
    if (!visited.emplace(current.state, tells_entered && has_entered).second) continue;
    if (reached.size() == kMaxReached) throw BudgetExceeded{};
    const auto index = static_cast<int32_t>(reached.size());
    reached.push_back(current);
    reached.back().is_barred =
        tells_entered && !has_entered && !admits(current.state, entrants.front().launch);
    const Node& node = node_with_leaving(current.state);
    budget_.spend(kStepsPerKnownState + std::ssize(node.after_leaving));
    for (size_t k = 0; k < node.after_leaving.size(); ++k) {
      open.push_front({.state = node.after_leaving[k],
                       .entered = current.entered,
                       .before = index,
                       .move = node.moves_of_leaving[k]});
    }
    for (size_t entrant = 0; entrant < entrants.size(); ++entrant) {
      const int32_t launch = entrants[entrant].launch;
      if (entrant == counted && current.entered[counted] == entrants[entrant].max_blocks) continue;
      const std::vector<int32_t>& after = after_entering(current.state, launch);
      for (size_t kind = 0; kind < after.size(); ++kind) {
        ReachedState next{.state = after[kind],
                          .entered = current.entered,
                          .before = index,
                          .move = {launch, static_cast<int32_t>(kind), true}};
        if (entrant != counted) {
          open.push_front(next);
          continue;
        }
        ++next.entered[counted];
        open.push_back(next);
      }
    }
  }
  return reached;
}

}  // namespace tbsched
