// A proof that a launch finds room, by outcomes of SMs and a solver; or candidates for histories in
// which it does not.
//
// A launch's level says what it has taken on an SM, whatever is on the others. So the effect of
// blocks that leave on later launches is found SM by SM. Only the sizes of launches tie SMs
// together, and clusters tie those of a GPC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/coresidency/blocking_order.h"
#include "tbsched/coresidency/budget.h"
#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/outcomes/outcome_program.h"
#include "tbsched/coresidency/outcomes/places.h"
#include "tbsched/coresidency/outcomes/queried_sms.h"
#include "tbsched/coresidency/outcomes/query.h"
#include "tbsched/coresidency/sm/one_sm.h"
#include "tbsched/coresidency/sm/sm_states.h"
#include "tbsched/coresidency/sm_kinds.h"
#include "tbsched/policy/model.h"

namespace tbsched {

// The resident launches in the order of arrival. No block has left. `waiting`: how many blocks of
// each wait.
struct ArrivedLaunches {
  std::vector<int32_t> order;
  std::vector<int32_t> waiting;
};

// The proof is valid where FullSmsProof is.
class RoomProof {
 public:
  // All arguments outlive it. `known`: for each of Gaps, states for these demands and background
  // kernels. Without steps left in the budget, or a solver, it proves nothing.
  RoomProof(const Model& model, const std::vector<Launch>& launches, const Demands& demands,
            const std::vector<int32_t>& group, const Resident& resident,
            const ArrivedLaunches& arrived, std::array<SmStates, 2>& known, Budget& budget,
            const Solver& solver);

  // Returns whether the last launch is proved to find room after these arrivals, whichever blocks
  // of background kernels leave, and when.
  bool finds_room(const std::vector<Arrival>& coming, int32_t last);
  // Returns histories in which a launch may wait. They must be played to know.
  const std::vector<std::vector<HistoryStep>>& candidates() const { return candidates_; }

 private:
  // By waiting launch, whether it holds up each arriving launch, the last one included.
  using HeldUp = std::vector<std::vector<bool>>;
  enum class Result : uint8_t { proved, failed, gaps_matter };

  // Returns whether the proof can be tried: there are few enough launches and blocks, and it is
  // known how each launch chooses its SMs.
  bool is_counted(const std::vector<Arrival>& coming, int32_t last) const;
  // Sets query_ to these arrivals.
  void set_query(const std::vector<Arrival>& coming, int32_t last);
  // Adds a launch to query_ of which `waiting` blocks wait from `first_stage` on.
  void add_entering(int32_t launch, int32_t waiting, size_t first_stage, size_t index);
  // Returns whether query_ is proved for every choice of which arrivals each waiting launch holds
  // up. `held_up`: the choices for the first waiting launches.
  bool finds_room_for_each_held_up(HeldUp held_up);
  // Returns whether the launches that arrive before this stage, and that a waiting launch holds up,
  // take no SM until then: so that they might as well arrive later.
  bool could_arrive_later(const WaitingLaunch& waiting, const std::vector<bool>& held_up,
                          size_t stage) const;
  // Tries to prove query_ with held_up_. Adds a candidate if the solver finds a history without
  // room.
  Result finds_room_with(Gaps gaps);
  // Returns the stage of a launch in an outcome program.
  OutcomeProgram::Stage stage_of(int32_t launch, bool waits) const;
  // Returns whether no waiting block enters the SM before the first arrival.
  bool is_quiet(int32_t sm) const;
  // Returns whether the launch of a stage may take the SM: no waiting launch holds it up there.
  bool may_take(int32_t sm, size_t stage) const;
  // Returns the SMs, this one among them, that blocks must leave, if at all, at the same stages.
  std::vector<int32_t> moving_together(int32_t sm) const;
  // Returns how the launches of query_ may use the SM.
  SmRole role_of(int32_t sm) const;

  const Model& model_;
  const Device& device_;
  const std::vector<Launch>& launches_;
  const Demands& demands_;
  const Resident& resident_;
  const ArrivedLaunches& arrived_;
  std::array<SmStates, 2>& all_states_;
  Budget& budget_;
  const Solver& solver_;
  const LaunchPlaces places_;
  Query query_;
  const BlockingOrder blocking_order_;
  HeldUp held_up_;
  std::vector<std::vector<HistoryStep>> candidates_;
};

}  // namespace tbsched
