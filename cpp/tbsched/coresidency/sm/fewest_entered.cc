#include "tbsched/coresidency/sm/fewest_entered.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tbsched {
namespace {

constexpr size_t kMaxNewStates = 200'000;
constexpr int64_t kStatesPerStep = 4;

}  // namespace

const std::vector<FewestWay>& FewestEntered::ways_from(const int32_t state) {
  if (entrants_.size() > kMaxEntrants) throw BudgetExceeded{};
  const auto known = known_.find(state);
  if (known != known_.end()) return known->second;
  const Explored explored = explore(state);
  std::set<int32_t> readies;
  for (const int32_t new_state : explored.states) readies.insert(ready_(new_state));
  for (const int32_t known_state : explored.known) {
    for (const FewestWay& way : known_.at(known_state)) readies.insert(way.ready);
  }
  std::vector<std::vector<FewestWay>> ways(explored.states.size());
  for (const int32_t ready : readies) {
    std::vector<Fewest> of_entrant;
    for (size_t entrant = 0; entrant < entrants_.size(); ++entrant) {
      of_entrant.push_back(fewest(explored, ready, entrant));
    }
    for (size_t k = 0; k < ways.size(); ++k) {
      for (const bool is_barred : {false, true}) {
        FewestWay way{.ready = ready, .is_barred = is_barred};
        bool is_way = true;
        for (size_t entrant = 0; entrant < entrants_.size(); ++entrant) {
          const int32_t entered = of_entrant[entrant][k][is_barred ? 1 : 0];
          is_way = is_way && entered != kNever;
          way.entered[entrant] = static_cast<int16_t>(entered);
        }
        if (is_way) ways[k].push_back(way);
        if (is_way && way.entered == FewestWay{}.entered) break;
      }
    }
  }
  for (size_t k = 0; k < ways.size(); ++k) known_.emplace(explored.states[k], std::move(ways[k]));
  return known_.at(state);
}

FewestEntered::Explored FewestEntered::explore(const int32_t state) {
  // States that are known lead to no new ones.
  Explored explored;
  std::unordered_map<int32_t, size_t> index_of_new;
  std::unordered_map<int32_t, size_t> index_of_known;
  const auto steps_to = [&](const int32_t to) -> std::vector<Step>& {
    const bool is_known = known_.contains(to);
    auto& all = is_known ? explored.into_known : explored.steps_to;
    const auto [at, is_new] =
        (is_known ? index_of_known : index_of_new).try_emplace(to, all.size());
    if (is_new) {
      (is_known ? explored.known : explored.states).push_back(to);
      all.emplace_back();
    }
    return all[at->second];
  };
  steps_to(state);
  for (size_t k = 0; k < explored.states.size(); ++k) {
    if (k == kMaxNewStates) throw BudgetExceeded{};
    int64_t steps = 0;
    const auto add = [&](const std::vector<int32_t>& next, const int32_t entrant) {
      for (const int32_t to : next) steps_to(to).push_back({k, entrant});
      steps += std::ssize(next);
    };
    add(states_.after_leaving(explored.states[k]), kLeaves);
    for (size_t entrant = 0; entrant < entrants_.size(); ++entrant) {
      add(states_.after_entering(explored.states[k], entrants_[entrant].launch),
          static_cast<int32_t>(entrant));
    }
    budget_.spend(1 + steps);
  }
  return explored;
}

FewestEntered::Fewest FewestEntered::fewest(const Explored& explored, const int32_t ready,
                                            const size_t entrant) {
  // Shortest paths, backwards from the ready states: an entering block of the entrant costs 1,
  // other steps nothing. Nodes wait in buckets by cost.
  Fewest fewest(explored.states.size(), {kNever, kNever});
  budget_.spend(1 + std::ssize(fewest) / kStatesPerStep);
  std::vector<std::vector<std::pair<size_t, bool>>> open(1);  // by number of entered blocks
  const auto reach = [&](const size_t state, const bool is_barred, const int32_t entered) {
    int32_t& least = fewest[state][is_barred ? 1 : 0];
    if (entered >= least || entered > entrants_[entrant].max_blocks) return;
    least = entered;
    const auto bucket = static_cast<size_t>(entered);
    if (open.size() <= bucket) open.resize(bucket + 1);
    open[bucket].emplace_back(state, is_barred);
  };
  const auto step_back = [&](const std::vector<Step>& steps, const bool is_barred,
                             const int32_t entered) {
    budget_.spend(1 + std::ssize(steps) / kStatesPerStep);
    for (const Step& step : steps) {
      const bool is_counted = std::cmp_equal(step.entrant, entrant);
      reach(step.from, is_barred && !is_counted, entered + (is_counted ? 1 : 0));
    }
  };
  for (size_t k = 0; k < explored.states.size(); ++k) {
    if (ready_(explored.states[k]) != ready) continue;
    reach(k,
          may_be_barred(entrants_) && !states_.admits(explored.states[k], entrants_.front().launch),
          0);
  }
  for (size_t k = 0; k < explored.known.size(); ++k) {
    for (const FewestWay& way : known_.at(explored.known[k])) {
      if (way.ready == ready)
        step_back(explored.into_known[k], way.is_barred, way.entered[entrant]);
    }
  }
  for (size_t entered = 0; entered < open.size(); ++entered) {
    for (size_t k = 0; k < open[entered].size(); ++k) {
      const auto [state, is_barred] = open[entered][k];
      if (!std::cmp_equal(fewest[state][is_barred ? 1 : 0], entered)) continue;
      step_back(explored.steps_to[state], is_barred, static_cast<int32_t>(entered));
    }
  }
  return fewest;
}

}  // namespace tbsched
