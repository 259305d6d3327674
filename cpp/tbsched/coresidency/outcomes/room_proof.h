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

// It is valid where FullSmsProof is, see there.
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
  using Held = std::vector<std::vector<bool>>;
  enum class Result : uint8_t { proved, failed, gaps_matter };

  bool is_counted(const std::vector<Arrival>& coming, int32_t last) const;
  void ask(const std::vector<Arrival>& coming, int32_t last);
  void add_entering(int32_t launch, int32_t waiting, size_t from, size_t place);
  bool finds_room_while_some_wait(Held held);
  bool could_arrive_later(const WaitingLaunch& own, const std::vector<bool>& held,
                          size_t stage) const;
  Result finds_room_with(Gaps gaps);
  OutcomeProgram::Stage stage_of(int32_t launch, bool waits) const;
  bool is_quiet(int32_t sm) const;
  bool is_taken(int32_t sm, size_t stage) const;
  std::vector<int32_t> moving_together(int32_t sm) const;
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
  Held held_;
  std::vector<std::vector<HistoryStep>> candidates_;
};

}  // namespace tbsched
