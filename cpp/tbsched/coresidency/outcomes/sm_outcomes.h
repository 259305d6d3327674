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
  int16_t left = 0;
  bool was_idle = false;  // set only if the launch takes whole TPCs

  auto operator<=>(const TakenOnSm&) const = default;
};

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
  // All outlive it.
  OutcomeExplorer(const Demands& demands, const LaunchPlaces& places, const Query& query,
                  Behaviours& behaviours, Budget& budget)
      : demands_(demands),
        places_(places),
        query_(query),
        behaviours_(behaviours),
        budget_(budget) {}

  // The result stays valid as long as the explorer.
  const SmOutcomes& of(const Unit& unit) { return from(0, unit); }
  // Returns the order of a unit's SMs after a turn.
  std::vector<size_t> order_after(const std::vector<LeastRoom::Turn>& turns) const;
  Unit after(const std::vector<LeastRoom::Turn>& turns) const;

 private:
  class Stage;
  static constexpr size_t kMost = 400'000;  // outcomes

  const SmOutcomes& from(size_t stage, const Unit& unit);
  bool are_tied(size_t stage) const;
  SmOutcomes joined(size_t stage, const Unit& unit);
  int32_t room_of(const std::vector<int32_t>& sms) const;
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
