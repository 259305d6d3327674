// What launches take of one SM, or of one TPC, and what room is left for the last launch: in every
// way in which blocks of background kernels may have left before.
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

// What a launch took of an SM when it came, and the room for it that it left there. A launch that
// takes whole TPCs has the same on each SM of one.
struct TakenOnSm {
  int16_t taken = 0;
  int16_t left = 0;
  bool was_idle = false;  // known where the launch takes whole TPCs

  auto operator<=>(const TakenOnSm&) const = default;
};

struct SmOutcome {
  BlocksOfEach blocks = {};                     // that came or entered
  std::vector<std::vector<TakenOnSm>> at = {};  // by stage and SM
  Barred barred = 0;                            // from the SM, or from one of the TPC

  auto operator<=>(const SmOutcome&) const = default;
};

// The least room for the last launch, and a way to get there: for each SM what happened before a
// launch came, and how many of its blocks it took; then the same of the next launch.
struct LeastRoom {
  struct Turn {
    Transition transition;
    int32_t taken = 0;
  };
  int32_t room = 0;
  std::vector<Turn> turns;
  const LeastRoom* then = nullptr;  // none: it was the last one
  // Where SMs do not depend on each other, one of each SM; then there is nothing of the above.
  std::vector<const LeastRoom*> of_each;
};
using SmOutcomes = std::map<SmOutcome, LeastRoom>;

// A unit is an SM, or the SMs of a TPC: the successors of each, in order.
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
  // In which order the SMs of a unit are after a turn.
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
  size_t count_ = 0;  // of outcomes
};

}  // namespace tbsched
