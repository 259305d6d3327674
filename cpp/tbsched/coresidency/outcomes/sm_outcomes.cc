#include "tbsched/coresidency/outcomes/sm_outcomes.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

namespace tbsched {
namespace {

constexpr int64_t kOutcomesOfStep = 4;
constexpr Barred kAllBarred = (1U << kMostCounted) - 1;

// Joins the outcomes of two SMs of a unit, adding the blocks that entered; nothing: clusters cannot
// have entered in this way. Clusters enter on all SMs of a TPC together.
std::optional<SmOutcome> joined_with(const SmOutcome& one, const SmOutcome& other,
                                     const Query& query) {
  SmOutcome found = one;
  found.barred = one.barred | other.barred;
  for (size_t k = 0; k < kMostCounted; ++k) {
    found.blocks[k] = static_cast<int16_t>(one.blocks[k] + other.blocks[k]);
  }
  for (const WaitingLaunch& each : query.entering) {
    if (!each.in_tpcs()) continue;
    found.blocks[each.place] = std::max(one.blocks[each.place], other.blocks[each.place]);
    if (is_barred(found.barred, each.place) && found.blocks[each.place] > 0) return {};
  }
  for (size_t k = 0; k < found.at.size(); ++k) {
    found.at[k].insert(found.at[k].end(), other.at[k].begin(), other.at[k].end());
  }
  return found;
}

// Returns a key by stage for the last SM of an outcome, to sort equal SMs by preference. SMs that
// gave a block of a level come before those that kept theirs.
std::vector<std::pair<bool, int16_t>> by_preference(const SmOutcome& outcome) {
  std::vector<std::pair<bool, int16_t>> found;
  for (const std::vector<TakenOnSm>& sms : outcome.at) {
    found.emplace_back(sms.back().taken == 0, sms.back().left);
  }
  return found;
}

}  // namespace

// The exploration of outcomes from one stage on.
class OutcomeExplorer::Stage {
 public:
  Stage(OutcomeExplorer& all, const size_t stage, const Unit& unit)
      : all_(all), query_(all.query_), behaviours_(all.behaviours_), stage_(stage), unit_(unit) {}

  SmOutcomes run() {
    each_transition();
    return std::move(found_);
  }

 private:
  const Ready& ready(const size_t sm) const {
    return behaviours_.ready(turns_[sm].transition.ready);
  }

  // Tries everything that can leave just before the launch arrives.
  void each_transition() {
    if (turns_.size() == unit_.size()) {
      all_.budget_.spend(1);
      if (query_.is_last(stage_)) {
        end();
      } else {
        place();
      }
      return;
    }
    for (const Transition& transition : behaviours_.transitions(unit_[turns_.size()])) {
      turns_.push_back({transition});
      each_transition();
      turns_.pop_back();
    }
  }

  std::vector<int32_t> rooms() const {
    std::vector<int32_t> found;
    for (size_t sm = 0; sm < unit_.size(); ++sm) found.push_back(ready(sm).room);
    return found;
  }

  void place() {
    const auto& [launch, waits] = query_.coming[stage_];
    // Such a launch waits for room for all of its blocks.
    if (waits && all_.demands_[launch].at_once) {
      take(std::vector<int32_t>(unit_.size()), std::vector<TakenOnSm>(unit_.size()));
      return;
    }
    switch (all_.places_.way(launch)) {
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

  void place_in_tpc() {
    const int32_t room = std::ranges::min(rooms());
    bool idle = true;
    for (size_t sm = 0; sm < unit_.size(); ++sm) idle = idle && ready(sm).idle;
    for (int32_t taken = 0; taken <= room; ++taken) {
      const TakenOnSm own = {static_cast<int16_t>(taken), static_cast<int16_t>(room - taken), idle};
      take(std::vector<int32_t>(unit_.size(), taken), std::vector<TakenOnSm>(unit_.size(), own));
    }
  }

  // Tries any number of blocks on each SM; single blocks that wait take all room.
  void place_each(const std::vector<int32_t>& rooms, const std::vector<int32_t>& chosen) {
    if (chosen.size() == rooms.size()) {
      std::vector<TakenOnSm> own;
      for (size_t sm = 0; sm < rooms.size(); ++sm) {
        own.push_back(
            {static_cast<int16_t>(chosen[sm]), static_cast<int16_t>(rooms[sm] - chosen[sm])});
      }
      take(chosen, own);
      return;
    }
    const auto& [launch, waits] = query_.coming[stage_];
    const int32_t room = rooms[chosen.size()];
    const bool takes_all = waits && all_.places_.way(launch) == Way::single;
    for (int32_t count = takes_all ? room : 0; count <= room; ++count) {
      std::vector<int32_t> next = chosen;
      next.push_back(count);
      place_each(rooms, next);
    }
  }

  // Takes blocks on each SM, and adds every outcome of the next stage.
  void take(const std::vector<int32_t>& taken, const std::vector<TakenOnSm>& own) {
    for (size_t sm = 0; sm < taken.size(); ++sm) turns_[sm].taken = taken[sm];
    const SmOutcomes& next = all_.from(stage_ + 1, all_.after(turns_));
    const auto sum = static_cast<int16_t>(std::accumulate(taken.begin(), taken.end(), 0));
    all_.budget_.spend(1 + std::ssize(next) / kOutcomesOfStep);
    for (const auto& [outcome, least] : next) {
      SmOutcome whole = outcome;
      if (!count_entered(whole)) continue;
      whole.at.insert(whole.at.begin(), own);
      whole.blocks[stage_] = static_cast<int16_t>(whole.blocks[stage_] + sum);
      // The launch was not barred if some of its blocks arrived, though there may be no room when
      // they have left: then it is the turn of another processing block.
      if (sum > 0) whole.barred = static_cast<Barred>(whole.barred & ~bit_of(stage_));
      keep(whole, least.room, &least);
    }
  }

  // Counts the blocks that entered. Returns whether clusters can have entered in this way.
  bool count_entered(SmOutcome& outcome) const {
    Barred barred = 0;
    for (const LeastRoom::Turn& turn : turns_) barred |= turn.transition.barred;
    outcome.barred &= barred;
    for (const WaitingLaunch& each : query_.entering) {
      int32_t blocks = 0;
      for (const auto& [transition, taken] : turns_) {
        const int32_t own = transition.entered[each.place] * each.on_tpc;
        blocks = each.in_tpcs() ? std::max(blocks, own) : blocks + own;
      }
      if (is_barred(barred, each.place) && blocks > 0) return false;
      int16_t& sum = outcome.blocks[each.place];
      sum = static_cast<int16_t>(sum + blocks);
    }
    return true;
  }

  void end() {
    SmOutcome outcome;
    outcome.barred = kAllBarred;
    if (count_entered(outcome)) keep(outcome, all_.room_of(rooms()), nullptr);
  }

  void keep(const SmOutcome& outcome, const int32_t room, const LeastRoom* const then) {
    const auto [at, is_new] = found_.try_emplace(outcome);
    if (!is_new && room >= at->second.room) return;
    at->second = {room, turns_, then, {}};
  }

  OutcomeExplorer& all_;
  const Query& query_;
  const Behaviours& behaviours_;
  const size_t stage_;
  const Unit& unit_;
  std::vector<LeastRoom::Turn> turns_;
  SmOutcomes found_;
};

// Returns whether the blocks that a launch takes on one SM depend on another SM.
bool OutcomeExplorer::are_tied(const size_t stage) const {
  return std::any_of(
      query_.coming.begin() + static_cast<std::ptrdiff_t>(stage), query_.coming.end(),
      [&](const Arrival& arrival) { return places_.way(arrival.launch) == Way::whole_tpcs; });
}

// Returns the room for the last launch, given that on each SM.
int32_t OutcomeExplorer::room_of(const std::vector<int32_t>& sms) const {
  if (places_.way(query_.last) == Way::whole_tpcs) return std::ranges::min(sms);
  return std::accumulate(sms.begin(), sms.end(), 0);
}

SmOutcomes OutcomeExplorer::joined(const size_t stage, const Unit& unit) {
  SmOutcomes found;
  for (const auto& [outcome, least] : from(stage, {unit.front()})) {
    found[outcome] = {least.room, {}, nullptr, {&least}};
  }
  for (auto sm = unit.begin() + 1; sm != unit.end(); ++sm) {
    const SmOutcomes& own = from(stage, {*sm});
    SmOutcomes next;
    for (const auto& [outcome, least] : found) {
      budget_.spend(1 + std::ssize(own));
      // Equal SMs are sorted.
      for (const auto& [other, least_of_other] : own) {
        const bool are_alike = *sm == *(sm - 1);
        if (are_alike && by_preference(outcome) > by_preference(other)) continue;
        std::optional<SmOutcome> both = joined_with(outcome, other, query_);
        if (!both) continue;
        const int32_t room = room_of({least.room, least_of_other.room});
        const auto [at, is_new] = next.try_emplace(*both);
        if (next.size() > kMost) throw BudgetExceeded{};
        if (!is_new && room >= at->second.room) continue;
        at->second = {room, {}, nullptr, least.of_each};
        at->second.of_each.push_back(&least_of_other);
      }
    }
    found = std::move(next);
  }
  return found;
}

const SmOutcomes& OutcomeExplorer::from(const size_t stage, const Unit& unit) {
  const std::pair key(stage, unit);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  const bool is_one = unit.size() == 1 || are_tied(stage);
  SmOutcomes found = is_one ? Stage(*this, stage, unit).run() : joined(stage, unit);
  count_ += found.size();
  if (count_ > kMost) throw BudgetExceeded{};
  return known_.emplace(key, std::move(found)).first->second;
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
  Unit found;
  for (const LeastRoom::Turn& turn : turns) found.push_back(successors_after(turn));
  std::ranges::sort(found);
  return found;
}

}  // namespace tbsched
