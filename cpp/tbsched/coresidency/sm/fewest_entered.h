// The ways in which an SM can be ready at the end, and how few blocks must enter for each. States
// that lead to each other are explored together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tbsched/coresidency/budget.h"
#include "tbsched/coresidency/sm/sm_states.h"

namespace tbsched {

// The fewest blocks of each entrant that must enter; the minima may belong to different histories.
struct FewestWay {
  int32_t ready;  // what ReadyOf returns of the last state
  std::array<int16_t, kMaxEntrants> entered = {};
  bool is_barred = false;  // as in ReachedState
};

class FewestEntered {
 public:
  using ReadyOf = std::function<int32_t(int32_t)>;

  // `ready`: returns a number for what a launch finds in a state, if nothing more happens. All
  // arguments but the entrants outlive it.
  FewestEntered(SmStates& states, Budget& budget, Entrants entrants, ReadyOf ready)
      : states_(states),
        budget_(budget),
        entrants_(std::move(entrants)),
        ready_(std::move(ready)) {}

  // Returns the ways from a state to each number that `ready` can return: one, or two: barred and
  // not barred. Throws BudgetExceeded.
  const std::vector<FewestWay>& ways_from(int32_t state);

 private:
  static constexpr int32_t kLeaves = -1;
  static constexpr int32_t kNever = std::numeric_limits<int32_t>::max();

  // A step from a state: a block leaves, or one of an entrant enters.
  struct Step {
    size_t from;      // index among the new states
    int32_t entrant;  // kLeaves: a block leaves
  };
  // New states, and the steps into each state.
  struct Explored {
    std::vector<int32_t> states = {};
    std::vector<std::vector<Step>> steps_to = {};
    std::vector<std::vector<Step>> into_known = {};  // by state in `known`
    std::vector<int32_t> known = {};
  };

  // By state: the fewest entered blocks, not barred and barred.
  using Fewest = std::vector<std::array<int32_t, 2>>;

  // Returns the states that can be reached from a state and are not in known_ yet, with the steps
  // between them and into states of known_.
  Explored explore(int32_t state);
  // Returns, for each new state, the fewest blocks of one entrant that must enter until ready_()
  // is `ready`: if the SM is not barred, and if it is.
  Fewest fewest(const Explored& explored, int32_t ready, size_t entrant);

  SmStates& states_;
  Budget& budget_;
  const Entrants entrants_;
  const ReadyOf ready_;
  std::unordered_map<int32_t, std::vector<FewestWay>> known_;
};

}  // namespace tbsched
