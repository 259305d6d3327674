// Outcomes of an SM or TPC: what launches take there, and what room is left for the last launch,
// for every way in which blocks of background kernels may have left before.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tbsched/coresidency/budget.h"
#include "tbsched/coresidency/outcomes/places.h"
#include "tbsched/coresidency/outcomes/query.h"
#include "tbsched/coresidency/sm/behaviours.h"

namespace tbsched {

// How many blocks an arriving launch took on an SM, and the room that it left there. A launch that
// takes whole TPCs has the same on each SM of a TPC.
struct TakenOnSm {
  int16_t taken = 0;
  int16_t room_left = 0;
  bool was_idle = false;  // set only if the launch takes whole TPCs

  auto operator<=>(const TakenOnSm&) const = default;
};

// What launches have done on a unit.
struct SmOutcome {
  BlocksOfEach blocks = {};                     // that arrived or entered
  std::vector<std::vector<TakenOnSm>> at = {};  // by stage and SM
  Barred barred = 0;                            // on the SM, or on one SM of the TPC

  auto operator<=>(const SmOutcome&) const = default;
};

// The least room for the last launch, and a way to it: for each SM the moves before an arrival and
// how many blocks it took there, then the same for the next arrival.
struct LeastRoom {
  struct Turn {
    Transition transition;
    int32_t taken = 0;
  };
  int32_t room = 0;
  std::vector<Turn> turns;
  const LeastRoom* then = nullptr;  // nullptr: it was the last one
  // If SMs are independent, the way of each SM; all of the above but `room` is empty then.
  std::vector<const LeastRoom*> of_each;
};
using SmOutcomes = std::map<SmOutcome, LeastRoom>;

// A unit is an SM or the SMs of a TPC: the number of the successors of each, in order.
using Unit = std::vector<int32_t>;

// Finds the outcomes of the units of one query. The functions throw BudgetExceeded.
class OutcomeExplorer {
 public:
  // The arguments outlive it.
  OutcomeExplorer(const Demands& demands, const LaunchPlaces& places, const Query& query,
                  Behaviours& behaviours, Budget& budget)
      : demands_(demands),
        places_(places),
        query_(query),
        behaviours_(behaviours),
        budget_(budget) {}

  // Returns all outcomes of a unit. The result stays valid as long as the explorer.
  const SmOutcomes& of(const Unit& unit) { return from(0, unit); }
  // Returns the indices of a unit's SMs, sorted as after(turns) sorts these SMs.
  std::vector<size_t> order_after(const std::vector<LeastRoom::Turn>& turns) const;
  // Returns the unit at the next stage, after these turns of its SMs: the successors of each,
  // sorted.
  Unit after(const std::vector<LeastRoom::Turn>& turns) const;

 private:
  class Stage;
  static constexpr size_t kMaxOutcomes = 400'000;

  // Returns the outcomes of a unit from a stage on.
  const SmOutcomes& from(size_t stage, const Unit& unit);
  // Returns whether the SMs of a unit depend on each other from this stage on: whether what a
  // launch takes on one of them depends on another one.
  bool are_tied(size_t stage) const;
  // Returns the outcomes on a unit whose SMs are independent, by joining the outcomes of each.
  SmOutcomes joined(size_t stage, const Unit& unit);
  // Returns how many blocks, or parts of clusters, of the last launch fit a unit, given for each
  // SM.
  int32_t room_of(const std::vector<int32_t>& sms) const;
  // Returns the index of the successors (Behaviours) of an SM at the next stage, after this turn.
  int32_t successors_after(const LeastRoom::Turn& turn) const;

  const Demands& demands_;
  const LaunchPlaces& places_;
  const Query& query_;
  Behaviours& behaviours_;
  Budget& budget_;
  std::map<std::pair<size_t, Unit>, SmOutcomes> known_;
  size_t count_ = 0;  // number of outcomes
};

}  // namespace tbsched
