#include "tbsched/engine/together/gpcs/sm_states.h"

#include <algorithm>
#include <set>

namespace tbsched {
namespace {

constexpr size_t kMostReached = 50'000;
constexpr size_t kMostStates = 100'000;
constexpr int64_t kLooksOfNew = 20;
constexpr int64_t kLooksOfKnown = 10;

}  // namespace

void SmStates::forget_if_many() {
  if (nodes_.size() < kMostStates) return;
  nodes_.clear();
  known_.clear();
  reached_.clear();
}

int32_t SmStates::of(const OneSm& sm) {
  const auto next = static_cast<int32_t>(nodes_.size());
  const auto [at, is_new] = known_.try_emplace(sm.key(), next);
  if (is_new) {
    const std::vector<int32_t> unknown(sm.launches(), kUnknown);
    nodes_.push_back({sm, unknown, unknown});
  }
  effort_.spend(is_new ? kLooksOfNew : kLooksOfKnown);
  return at->second;
}

int32_t SmStates::room(const int32_t state, const int32_t launch) {
  int32_t& room = nodes_[state].room[launch];
  if (room == kUnknown) room = nodes_[state].sm.room(launch);
  return room;
}

int32_t SmStates::with_one_more(const int32_t state, const int32_t launch) {
  if (nodes_[state].with_one_more[launch] == kUnknown) {
    OneSm sm = nodes_[state].sm;
    sm.commit(launch);
    nodes_[state].with_one_more[launch] = of(sm);
  }
  return nodes_[state].with_one_more[launch];
}

const std::vector<Reached>& SmStates::reached(const int32_t state, const int32_t waiting,
                                              const int32_t most_enter) {
  const std::array<int32_t, 3> key = {state, waiting, most_enter};
  const auto known = reached_.find(key);
  if (known != reached_.end()) return known->second;
  return reached_.emplace(key, look(state, waiting, most_enter)).first->second;
}

std::vector<Reached> SmStates::look(const int32_t state, const int32_t waiting,
                                    const int32_t most_enter) {
  std::vector<Reached> found;
  std::set<int32_t> known;
  std::deque<Reached> open = {{state}};
  while (!open.empty()) {
    const Reached way = open.front();
    open.pop_front();
    if (!known.insert(way.state).second) continue;
    if (found.size() == kMostReached) throw TooManyWays{};
    const auto number = static_cast<int32_t>(found.size());
    found.push_back(way);
    const OneSm& sm = nodes_[way.state].sm;
    for (const int32_t launch : leaving_) {
      const std::vector<int32_t> kinds = sm.distinct(launch);
      for (size_t kind = 0; kind < kinds.size(); ++kind) {
        OneSm next = sm;
        next.leave(launch, kinds[kind]);
        open.push_front({.state = of(next),
                         .entered = way.entered,
                         .before = number,
                         .move = {launch, static_cast<int32_t>(kind), false}});
      }
    }
    if (waiting < 0 || way.entered == most_enter) continue;
    const std::vector<int32_t> configured = sm.may_enter(waiting);
    for (size_t kind = 0; kind < configured.size(); ++kind) {
      OneSm next = sm;
      next.enter(waiting, configured[kind]);
      open.push_back({.state = of(next),
                      .entered = way.entered + 1,
                      .before = number,
                      .move = {waiting, static_cast<int32_t>(kind), true}});
    }
  }
  return found;
}

}  // namespace tbsched
