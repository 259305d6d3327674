#include "tbsched/engine/together/gpcs/sm/fewest_entered.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tbsched {
namespace {

constexpr size_t kMostFresh = 200'000;
constexpr int64_t kStepsOfLook = 4;

}  // namespace

const std::vector<FewestWay>& FewestEntered::of(const int32_t state) {
  if (entrants_.size() > kMostEntrants) throw TooManyWays{};
  const auto found = known_.find(state);
  if (found != known_.end()) return found->second;
  const Fresh fresh = explore(state);
  std::set<int32_t> readies;
  for (const int32_t each : fresh.states) readies.insert(ready_(each));
  for (const int32_t each : fresh.known) {
    for (const FewestWay& way : known_.at(each)) readies.insert(way.ready);
  }
  std::vector<std::vector<FewestWay>> ways(fresh.states.size());
  for (const int32_t ready : readies) {
    std::vector<FewestWay> of_each(fresh.states.size(), FewestWay{.ready = ready});
    std::vector<bool> is_way(fresh.states.size(), true);
    for (size_t entrant = 0; entrant < entrants_.size(); ++entrant) {
      const std::vector<int32_t> least = fewest(fresh, ready, entrant);
      if (entrant == 0) {
        const std::vector<bool> some_may = may_enter(fresh, ready, least);
        for (size_t k = 0; k < some_may.size(); ++k) of_each[k].may_enter = some_may[k];
      }
      for (size_t k = 0; k < least.size(); ++k) {
        is_way[k] = is_way[k] && least[k] != kNever;
        of_each[k].entered[entrant] = static_cast<int16_t>(least[k]);
      }
    }
    for (size_t k = 0; k < ways.size(); ++k) {
      if (is_way[k]) ways[k].push_back(of_each[k]);
    }
  }
  for (size_t k = 0; k < ways.size(); ++k) known_.emplace(fresh.states[k], std::move(ways[k]));
  return known_.at(state);
}

// What a state leads to that is known leads to nothing new.
FewestEntered::Fresh FewestEntered::explore(const int32_t state) {
  Fresh fresh;
  std::unordered_map<int32_t, size_t> number;
  std::unordered_map<int32_t, size_t> number_of_known;
  const auto steps_to = [&](const int32_t to) -> std::vector<Step>& {
    const bool is_known = known_.contains(to);
    auto& all = is_known ? fresh.into_known : fresh.steps_to;
    const auto [at, is_new] = (is_known ? number_of_known : number).try_emplace(to, all.size());
    if (is_new) {
      (is_known ? fresh.known : fresh.states).push_back(to);
      all.emplace_back();
    }
    return all[at->second];
  };
  steps_to(state);
  for (size_t k = 0; k < fresh.states.size(); ++k) {
    if (k == kMostFresh) throw TooManyWays{};
    int64_t steps = 0;
    const auto add = [&](const std::vector<int32_t>& next, const int32_t entrant) {
      for (const int32_t to : next) steps_to(to).push_back({k, entrant});
      steps += std::ssize(next);
    };
    add(states_.after_leaving(fresh.states[k]), kLeaves);
    for (size_t entrant = 0; entrant < entrants_.size(); ++entrant) {
      add(states_.after_entering(fresh.states[k], entrants_[entrant].launch),
          static_cast<int32_t>(entrant));
    }
    effort_.spend(1 + steps);
  }
  return fresh;
}

// Blocks of one entrant, from each state to where it is ready so; from there on backwards.
std::vector<int32_t> FewestEntered::fewest(const Fresh& fresh, const int32_t ready,
                                           const size_t entrant) {
  std::vector<int32_t> found(fresh.states.size(), kNever);
  std::vector<std::vector<size_t>> open(1);  // by how many have entered
  const auto reach = [&](const size_t state, const int32_t entered) {
    if (entered >= found[state] || entered > entrants_[entrant].most) return;
    found[state] = entered;
    const auto at = static_cast<size_t>(entered);
    if (open.size() <= at) open.resize(at + 1);
    open[at].push_back(state);
  };
  const auto step_back = [&](const std::vector<Step>& steps, const int32_t entered) {
    effort_.spend(1 + std::ssize(steps) / kStepsOfLook);
    for (const Step& step : steps) {
      reach(step.from, entered + (std::cmp_equal(step.entrant, entrant) ? 1 : 0));
    }
  };
  for (size_t k = 0; k < fresh.states.size(); ++k) {
    if (ready_(fresh.states[k]) == ready) reach(k, 0);
  }
  for (size_t k = 0; k < fresh.known.size(); ++k) {
    for (const FewestWay& way : known_.at(fresh.known[k])) {
      if (way.ready == ready) step_back(fresh.into_known[k], way.entered[entrant]);
    }
  }
  for (size_t entered = 0; entered < open.size(); ++entered) {
    for (size_t k = 0; k < open[entered].size(); ++k) {
      const size_t state = open[entered][k];
      if (std::cmp_equal(found[state], entered)) {
        step_back(fresh.steps_to[state], static_cast<int32_t>(entered));
      }
    }
  }
  return found;
}

// Whether one of the first entrant may be there, or find room, on a way to be ready so.
std::vector<bool> FewestEntered::may_enter(const Fresh& fresh, const int32_t ready,
                                           const std::vector<int32_t>& fewest) {
  std::vector<bool> found(fresh.states.size());
  std::vector<size_t> open;
  const auto reach = [&](const size_t state) {
    if (!found[state]) open.push_back(state);
    found[state] = true;
  };
  const auto enter_from = [&](const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (step.entrant == 0) reach(step.from);
    }
  };
  for (size_t k = 0; k < fresh.states.size(); ++k) {
    const bool is_ready = ready_(fresh.states[k]) == ready;
    if (is_ready && states_.admits(fresh.states[k], entrants_.front().launch)) reach(k);
    if (fewest[k] < kNever) enter_from(fresh.steps_to[k]);
  }
  for (size_t k = 0; k < fresh.known.size(); ++k) {
    for (const FewestWay& way : known_.at(fresh.known[k])) {
      if (way.ready != ready) continue;
      enter_from(fresh.into_known[k]);
      if (!way.may_enter) continue;
      for (const Step& step : fresh.into_known[k]) reach(step.from);
    }
  }
  while (!open.empty()) {
    const size_t state = open.back();
    open.pop_back();
    for (const Step& step : fresh.steps_to[state]) reach(step.from);
  }
  return found;
}

}  // namespace tbsched
