#include "tbsched/coresidency/outcomes/sm_outcomes.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

namespace tbsched {
namespace {

constexpr int64_t kOutcomesOfStep = 4;
constexpr Barred kAllBarred = (1U << kMaxCounted) - 1;

// Returns the outcome of two SMs of a unit together, with the sum of the blocks that arrived or
// entered; nothing: clusters cannot have entered in this way. Clusters enter on all SMs of a TPC
// together.
std::optional<SmOutcome> joined_with(const SmOutcome& first, const SmOutcome& second,
                                     const Query& query) {
  SmOutcome both = first;
  both.barred = first.barred | second.barred;
  for (size_t k = 0; k < kMaxCounted; ++k) {
    both.blocks[k] = static_cast<int16_t>(first.blocks[k] + second.blocks[k]);
  }
  for (const WaitingLaunch& waiting : query.entering) {
    if (!waiting.in_tpcs()) continue;
    const size_t k = waiting.index;
    both.blocks[k] = std::max(first.blocks[k], second.blocks[k]);
    if (is_barred(both.barred, k) && both.blocks[k] > 0) return {};
  }
  for (size_t stage = 0; stage < both.at.size(); ++stage) {
    both.at[stage].insert(both.at[stage].end(), second.at[stage].begin(), second.at[stage].end());
  }
  return both;
}

// Returns a key that sorts equal SMs by preference: for each stage whether the last SM of an
// outcome took no block, and for how many blocks it had room then. So SMs that took blocks come
// first.
std::vector<std::pair<bool, int16_t>> by_preference(const SmOutcome& outcome) {
  std::vector<std::pair<bool, int16_t>> key;
  for (const std::vector<TakenOnSm>& sms : outcome.at) {
    key.emplace_back(sms.back().taken == 0, sms.back().room_left);
  }
  return key;
}

}  // namespace

// The exploration of outcomes from one stage on.
class OutcomeExplorer::Stage {
 public:
  // The arguments outlive it.
  Stage(OutcomeExplorer& explorer, const size_t stage, const Unit& unit)
      : explorer_(explorer),
        query_(explorer.query_),
        behaviours_(explorer.behaviours_),
        stage_(stage),
        unit_(unit) {}

  // Returns all outcomes of the unit.
  SmOutcomes run() {
    try_each_transition();
    return std::move(outcomes_);
  }

 private:
  // Returns what the launch of the stage finds on an SM of the unit.
  const Ready& ready(const size_t sm) const {
    return behaviours_.ready(turns_[sm].transition.ready);
  }

  // Tries each transition of every SM just before the launch arrives, SM by SM.
  void try_each_transition() {
    if (turns_.size() == unit_.size()) {
      explorer_.budget_.spend(1);
      if (query_.is_last(stage_)) {
        end();
      } else {
        place_launch();
      }
      return;
    }
    for (const Transition& transition : behaviours_.transitions(unit_[turns_.size()])) {
      turns_.push_back({transition});
      try_each_transition();
      turns_.pop_back();
    }
  }

  // Returns the room on each SM of the unit.
  std::vector<int32_t> rooms() const {
    std::vector<int32_t> rooms;
    for (size_t sm = 0; sm < unit_.size(); ++sm) rooms.push_back(ready(sm).room);
    return rooms;
  }

  // Tries each number of blocks that the launch of the stage may take on the SMs.
  void place_launch() {
    const auto& [launch, waits] = query_.coming[stage_];
    // A launch that is placed at once waits for room for all of its blocks.
    if (waits && explorer_.demands_[launch].at_once) {
      take(std::vector<int32_t>(unit_.size()), std::vector<TakenOnSm>(unit_.size()));
      return;
    }
    switch (explorer_.places_.way(launch)) {
      case Way::single:
      case Way::balanced:
        place_each(rooms(), {});
        break;
      case Way::whole_tpcs:
        place_in_tpc();
        break;
      case Way::other:
        throw BudgetExceeded{};
    }
  }

  // Tries any number of blocks of whole-TPC clusters, the same on each SM.
  void place_in_tpc() {
    const int32_t room = std::ranges::min(rooms());
    bool idle = true;
    for (size_t sm = 0; sm < unit_.size(); ++sm) idle = idle && ready(sm).idle;
    for (int32_t taken = 0; taken <= room; ++taken) {
      const TakenOnSm on_sm = {static_cast<int16_t>(taken), static_cast<int16_t>(room - taken),
                               idle};
      take(std::vector<int32_t>(unit_.size(), taken), std::vector<TakenOnSm>(unit_.size(), on_sm));
    }
  }

  // Tries any number of blocks on each SM; single blocks that wait take all room.
  // `chosen`: the number on the first SMs.
  void place_each(const std::vector<int32_t>& rooms, const std::vector<int32_t>& chosen) {
    if (chosen.size() == rooms.size()) {
      std::vector<TakenOnSm> on_sms;
      for (size_t sm = 0; sm < rooms.size(); ++sm) {
        on_sms.push_back(
            {static_cast<int16_t>(chosen[sm]), static_cast<int16_t>(rooms[sm] - chosen[sm])});
      }
      take(chosen, on_sms);
      return;
    }
    const auto& [launch, waits] = query_.coming[stage_];
    const int32_t room = rooms[chosen.size()];
    const bool takes_all = waits && explorer_.places_.way(launch) == Way::single;
    for (int32_t count = takes_all ? room : 0; count <= room; ++count) {
      std::vector<int32_t> next = chosen;
      next.push_back(count);
      place_each(rooms, next);
    }
  }

  // Takes this number of blocks on each SM, and adds every outcome that the next stage has then.
  void take(const std::vector<int32_t>& taken, const std::vector<TakenOnSm>& on_sms) {
    for (size_t sm = 0; sm < taken.size(); ++sm) turns_[sm].taken = taken[sm];
    const SmOutcomes& next = explorer_.from(stage_ + 1, explorer_.after(turns_));
    const auto sum = static_cast<int16_t>(std::accumulate(taken.begin(), taken.end(), 0));
    explorer_.budget_.spend(1 + std::ssize(next) / kOutcomesOfStep);
    for (const auto& [outcome, least] : next) {
      SmOutcome whole = outcome;
      if (!add_entered(whole)) continue;
      whole.at.insert(whole.at.begin(), on_sms);
      whole.blocks[stage_] = static_cast<int16_t>(whole.blocks[stage_] + sum);
      // The launch was not barred if some of its blocks arrived, though there may be no room when
      // they have left: then it is the turn of another processing block.
      if (sum > 0) whole.barred = static_cast<Barred>(whole.barred & ~bit_of(stage_));
      keep_if_least(whole, least.room, &least);
    }
  }

  // Adds the blocks that entered before the stage to an outcome. Returns false if clusters cannot
  // have entered in this way.
  bool add_entered(SmOutcome& outcome) const {
    Barred barred = 0;
    for (const LeastRoom::Turn& turn : turns_) barred |= turn.transition.barred;
    outcome.barred &= barred;
    for (const WaitingLaunch& waiting : query_.entering) {
      int32_t blocks = 0;
      for (const auto& [transition, taken] : turns_) {
        const int32_t on_sm = transition.entered[waiting.index] * waiting.on_tpc;
        blocks = waiting.in_tpcs() ? std::max(blocks, on_sm) : blocks + on_sm;
      }
      if (is_barred(barred, waiting.index) && blocks > 0) return false;
      int16_t& sum = outcome.blocks[waiting.index];
      sum = static_cast<int16_t>(sum + blocks);
    }
    return true;
  }

  // Adds the outcome of the last launch's arrival.
  void end() {
    SmOutcome outcome;
    outcome.barred = kAllBarred;
    if (add_entered(outcome)) keep_if_least(outcome, explorer_.room_of(rooms()), nullptr);
  }

  // Keeps an outcome with the way to it, unless one with as little room is known.
  void keep_if_least(const SmOutcome& outcome, const int32_t room, const LeastRoom* const then) {
    const auto [entry, is_new] = outcomes_.try_emplace(outcome);
    if (!is_new && room >= entry->second.room) return;
    entry->second = {room, turns_, then, {}};
  }

  OutcomeExplorer& explorer_;
  const Query& query_;
  const Behaviours& behaviours_;
  const size_t stage_;
  const Unit& unit_;
  std::vector<LeastRoom::Turn> turns_;  // of the first SMs of the unit, in this step
  SmOutcomes outcomes_;
};

bool OutcomeExplorer::are_tied(const size_t stage) const {
  return std::any_of(
      query_.coming.begin() + static_cast<std::ptrdiff_t>(stage), query_.coming.end(),
      [&](const Arrival& arrival) { return places_.way(arrival.launch) == Way::whole_tpcs; });
}

int32_t OutcomeExplorer::room_of(const std::vector<int32_t>& sms) const {
  if (places_.way(query_.last) == Way::whole_tpcs) return std::ranges::min(sms);
  return std::accumulate(sms.begin(), sms.end(), 0);
}

SmOutcomes OutcomeExplorer::joined(const size_t stage, const Unit& unit) {
  SmOutcomes joined;
  for (const auto& [outcome, least] : from(stage, {unit.front()})) {
    joined[outcome] = {least.room, {}, nullptr, {&least}};
  }
  for (auto sm = unit.begin() + 1; sm != unit.end(); ++sm) {
    const SmOutcomes& of_sm = from(stage, {*sm});
    SmOutcomes next;
    for (const auto& [outcome, least] : joined) {
      budget_.spend(1 + std::ssize(of_sm));
      // Equal SMs are sorted.
      for (const auto& [other, least_of_other] : of_sm) {
        const bool are_alike = *sm == *(sm - 1);
        if (are_alike && by_preference(outcome) > by_preference(other)) continue;
        std::optional<SmOutcome> both = joined_with(outcome, other, query_);
        if (!both) continue;
        const int32_t room = room_of({least.room, least_of_other.room});
        const auto [entry, is_new] = next.try_emplace(*both);
        if (next.size() > kMaxOutcomes) throw BudgetExceeded{};
        if (!is_new && room >= entry->second.room) continue;
        entry->second = {room, {}, nullptr, least.of_each};
        entry->second.of_each.push_back(&least_of_other);
      }
    }
    joined = std::move(next);
  }
  return joined;
}

const SmOutcomes& OutcomeExplorer::from(const size_t stage, const Unit& unit) {
  const std::pair key(stage, unit);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  const bool is_one = unit.size() == 1 || are_tied(stage);
  SmOutcomes outcomes = is_one ? Stage(*this, stage, unit).run() : joined(stage, unit);
  count_ += outcomes.size();
  if (count_ > kMaxOutcomes) throw BudgetExceeded{};
  return known_.emplace(key, std::move(outcomes)).first->second;
}

int32_t OutcomeExplorer::successors_after(const LeastRoom::Turn& turn) const {
  return behaviours_.ready(turn.transition.ready).then[turn.taken];
}

std::vector<size_t> OutcomeExplorer::order_after(const std::vector<LeastRoom::Turn>& turns) const {
  std::vector<size_t> order(turns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](const size_t sm) { return successors_after(turns[sm]); });
  return order;
}

Unit OutcomeExplorer::after(const std::vector<LeastRoom::Turn>& turns) const {
  Unit next;
  for (const LeastRoom::Turn& turn : turns) next.push_back(successors_after(turn));
  std::ranges::sort(next);
  return next;
}

}  // namespace tbsched
