// The SMs of a query: their outcomes, SM by SM or TPC by TPC; and which blocks leave in a solution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/coresidency/budget.h"
#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/outcomes/outcome_program.h"
#include "tbsched/coresidency/outcomes/places.h"
#include "tbsched/coresidency/outcomes/query.h"
#include "tbsched/coresidency/outcomes/sm_outcomes.h"
#include "tbsched/coresidency/sm/behaviours.h"
#include "tbsched/coresidency/sm/one_sm.h"
#include "tbsched/coresidency/sm/sm_states.h"
#include "tbsched/hardware/gpu/device.h"

namespace tbsched {

// A block on an SM leaves, or one that waited enters. Those of a launch are numbered as they came.
struct MoveOnSm {
  int32_t launch;
  int32_t sm;
  int32_t number;
  bool enters;
};

// A launch comes, just after these moves. Moves on one SM are in order.
struct HistoryStep {
  std::vector<MoveOnSm> moves;
  int32_t launch;
};

class QueriedSms {
 public:
  // All outlive it.
  QueriedSms(const Device& device, const Demands& demands, const LaunchPlaces& places,
             const Query& query, SmStates& states, Budget& budget);
  // Its parts know each other.
  QueriedSms(const QueriedSms&) = delete;
  QueriedSms& operator=(const QueriedSms&) = delete;

  // Adds the next SM, as it is before anything leaves. Throws BudgetExceeded.
  void add(OneSm first, SmRole role);
  // Fills in the outcomes and groups; they stay valid as long as this. Throws BudgetExceeded.
  void add_to(OutcomeProgram& program);
  bool gaps_matter() const { return behaviours_.gaps_matter(); }
  // A history with such counts. If clusters enter, some of their parts may be missing. Throws
  // BudgetExceeded.
  std::vector<HistoryStep> history(const OutcomeProgram& program, const Counts& counts);

 private:
  struct Sm {
    OneSm first;
    int32_t state;
    int32_t role;
    int32_t successors;
  };
  class Replay;

  bool by_tpc() const;
  bool are_tied() const;

  const Device& device_;
  const LaunchPlaces& places_;
  const Query& query_;
  SmStates& states_;
  Behaviours behaviours_;
  OutcomeExplorer explorer_;
  std::vector<Sm> sms_;
};

}  // namespace tbsched
