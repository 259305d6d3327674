// The outcomes of the SMs of a query, by SM or by TPC, and the history behind a solution.
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

// A block leaves an SM, or a waiting block enters it. Blocks of a launch are numbered in the order
// of arrival.
struct MoveOnSm {
  int32_t launch;
  int32_t sm;
  int32_t number;  // of the block that leaves; -1: any one enters
  bool enters;
};

// An arrival, right after these moves. Moves on one SM are in order.
struct HistoryStep {
  std::vector<MoveOnSm> moves;
  int32_t launch;
};

class QueriedSms {
 public:
  // The arguments outlive it.
  QueriedSms(const Device& device, const Demands& demands, const LaunchPlaces& places,
             const Query& query, SmStates& states, Budget& budget);
  // Not copyable: its parts refer to each other.
  QueriedSms(const QueriedSms&) = delete;
  QueriedSms& operator=(const QueriedSms&) = delete;

  // Adds the next SM in its state before any block leaves. Throws BudgetExceeded.
  void add(OneSm sm, SmRole role);
  // Adds outcomes and groups to a program, which must not outlive this object. Throws
  // BudgetExceeded.
  void add_to(OutcomeProgram& program);
  // Returns whether the outcomes may be too many, because gaps in memory were only counted.
  bool gaps_matter() const { return behaviours_.gaps_matter(); }
  // Returns a history that realises a solution: in each group of the program, as many units have
  // each outcome as `counts` says. If clusters enter, some of their parts may be missing. Throws
  // BudgetExceeded.
  std::vector<HistoryStep> history(const OutcomeProgram& program, const Counts& counts);

 private:
  struct Sm {
    OneSm contents;
    int32_t state;
    int32_t role;
    int32_t successors;
  };
  class Replay;

  // Returns whether a unit is a TPC; else it is an SM.
  bool units_are_tpcs() const;
  // Returns whether a launch of the query has clusters, so that what it takes on an SM of a domain
  // depends on the other SMs there.
  bool clusters_tie_sms() const;

  const Device& device_;
  const LaunchPlaces& places_;
  const Query& query_;
  SmStates& states_;
  Behaviours behaviours_;
  OutcomeExplorer explorer_;
  std::vector<Sm> sms_;
};

}  // namespace tbsched
