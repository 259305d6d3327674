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
// time. An SM is full for a launch if it has no room for one more block of it. In the comments
// below, a launch waits if not all its blocks find room when it arrives.
class FullSmsProof {
 public:
  // `awaited`: launches whose blocks must not wait for ever. All arguments outlive it.
  FullSmsProof(const Model& model, const std::vector<Launch>& launches, const Demands& demands,
               const std::vector<int32_t>& group, const std::vector<bool>& awaited,
               const Resident& resident);

  // Returns, for each launch that has not arrived, how many SMs can be full and how many must be,
  // if that proves that no awaited launch waits, in any order of arrival; nothing: it does not.
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

  // Returns whether the proof is valid for the device and the launches.
  bool applies() const;
  // Returns whether `launch` must wait as long as `holder` does: directly, or as a launch of
  // `between` (by launch) must, for which it waits.
  bool holds_up_through(size_t holder, size_t launch, const std::vector<bool>& between) const;
  // Returns the launches that must not wait for ever, but would if this one did: itself, if it is
  // one of these, and those that it holds up.
  std::vector<size_t> stranded_by(size_t launch) const;
  // Returns whether waiting launches may reserve SMs when this one arrives, so that it spreads over
  // the other SMs.
  bool may_be_held_up(size_t launch) const;
  // Returns, by SM, how many blocks of the launch fit at least, as long as no blocks have arrived
  // there besides the resident ones.
  Multiset room_before(size_t launch) const;
  // Returns what may have arrived before this launch if all others may have.
  PendingLaunches all_coming(size_t launch) const;
  // Returns the kinds of SMs that a launch may use.
  std::vector<SmKind> kinds(size_t launch, const PendingLaunches& coming) const;
  // Returns an upper bound of the number of SMs that can be full for a launch at once, after
  // `coming`; nothing: there are too many sets of blocks that fill an SM.
  std::optional<double> max_full(size_t launch, const PendingLaunches& coming) const;
  // Returns, by SM, how many blocks of the launch fit at least, whatever blocks of `coming` have
  // arrived there; nothing: there are too many sets of blocks that fill an SM.
  std::optional<Multiset> least_rooms(size_t launch, const PendingLaunches& coming) const;
  // Returns whether the launch is proved to find room, as blocks of `coming` can fill too few SMs.
  bool has_too_few(size_t launch, const PendingLaunches& coming) const;
  // Returns whether no awaited launch waits after these arrivals, in whatever order the others
  // follow.
  bool is_safe_after(const History& history) const;
  // Returns the history with one more arrival.
  History after(const History& history, size_t launch, bool finds_room) const;
  // Returns whether a launch is proved to find room for all its blocks if it arrives next.
  bool finds_room(size_t launch, const History& history) const;
  // Returns whether a launch finds room for all its blocks, given the launches before it and the
  // SMs that are reserved for others.
  bool finds_room(size_t launch, const PendingLaunches& coming, const std::vector<bool>& reserved,
                  const std::function<bool()>& goes_on) const;
  // Returns whether a launch finds room for all its blocks by FindsRoom, in each case: each launch
  // before it that may wait does, or does not.
  bool finds_room_in_each_case(size_t launch, const History& history) const;
  // Returns, by SM, whether launches that may wait before this one reserve it; nothing: they
  // reserve all SMs.
  std::optional<std::vector<bool>> reserved_before(size_t launch, const History& history) const;

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
