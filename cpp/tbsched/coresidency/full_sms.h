// A proof that no block is stranded, whatever the policy: a minimum number of SMs must be full
// before a block finds no room, and all blocks together cannot fill that many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tbsched/coresidency/any_sm.h"
#include "tbsched/coresidency/blocking_order.h"
#include "tbsched/coresidency/demands.h"
#include "tbsched/coresidency/outcomes/query.h"
#include "tbsched/coresidency/pending_launches.h"
#include "tbsched/coresidency/question.h"
#include "tbsched/coresidency/sm_kinds.h"
#include "tbsched/policy/model.h"

namespace tbsched {

// Some launches may be resident already. Blocks of resident background kernels may leave at any
// time.
class FullSmsProof {
 public:
  // `awaited`: launches whose blocks must not wait for ever. All arguments outlive it.
  FullSmsProof(const Model& model, const std::vector<Launch>& launches, const Demands& demands,
               const std::vector<int32_t>& group, const std::vector<bool>& awaited,
               const Resident& resident);

  // Returns a row for each launch that has not arrived, if none can wait in any order; else
  // nothing.
  std::optional<std::vector<FullSms>> in_any_order() const;
  // Decides whether a launch finds room after these arrivals, if this proof cannot. Some of the
  // arrivals may have to wait.
  using FindsRoom = std::function<bool(const std::vector<Arrival>& coming, int32_t launch)>;
  // Returns whether no block waits for ever in any order, checking each order separately.
  // `finds_room_next`: launches that find room if they arrive next. `goes_on` is called before each
  // check; once it returns false, nothing more is proved.
  bool in_each_order(const std::vector<bool>& finds_room_next, const std::function<bool()>& goes_on,
                     const FindsRoom& finds_room_exactly) const;

 private:
  struct History;

  bool applies() const;
  bool holds_up(size_t holder, size_t launch, const std::vector<bool>& between) const;
  std::vector<size_t> stranded_by(size_t launch) const;
  bool may_be_held_up(size_t launch) const;
  Multiset room_before(size_t launch) const;
  PendingLaunches all_coming(size_t launch) const;
  std::vector<SmKind> kinds(size_t launch, const PendingLaunches& coming) const;
  std::optional<double> most_full(size_t launch, const PendingLaunches& coming) const;
  std::optional<Multiset> least_rooms(size_t launch, const PendingLaunches& coming) const;
  bool has_too_few(size_t launch, const PendingLaunches& coming) const;
  bool is_safe_after(const History& history) const;
  History after(const History& history, size_t launch, bool finds_room) const;
  bool finds_room(size_t launch, const History& history) const;
  bool finds_room(size_t launch, const PendingLaunches& coming, const std::vector<bool>& held,
                  const std::function<bool()>& goes_on) const;
  bool finds_room_in_each_case(size_t launch, const History& history) const;
  std::optional<std::vector<bool>> held_before(size_t launch, const History& history) const;

  const Model& model_;
  const DeviceSpec& spec_;
  const std::vector<Launch>& launches_;
  const Demands& demands_;
  const std::vector<bool>& awaited_;
  const Resident& resident_;
  const BlockingOrder blocking_order_;
  std::vector<bool> may_leave_;
  AnySm sm_;
};

}  // namespace tbsched
