// A proof that no block is stranded, whatever the policy: before a block finds no room, so many SMs
// must be full for it, and all blocks together cannot fill as many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tbsched/engine/together/any_sm.h"
#include "tbsched/engine/together/coming.h"
#include "tbsched/engine/together/demands.h"
#include "tbsched/engine/together/gpcs/asked.h"
#include "tbsched/engine/together/held_up.h"
#include "tbsched/engine/together/question.h"
#include "tbsched/engine/together/sm_kinds.h"
#include "tbsched/policy/model.h"

namespace tbsched {

// Of launches of which some are resident. Whatever the resident outsiders do: any of their blocks
// may leave at any time.
class FullSmsProof {
 public:
  // `awaited`: launches of which no block may wait for ever. All outlive it.
  FullSmsProof(const Model& model, const std::vector<Launch>& launches, const Demands& demands,
               const std::vector<int32_t>& group, const std::vector<bool>& awaited,
               const Resident& resident);

  // Of each launch that is to come, if each of them has fewer full SMs than it takes, in any order;
  // else nothing.
  std::optional<std::vector<FullSms>> in_any_order() const;
  // What is asked of a launch of which this proof does not see that it finds room: whether it does,
  // after these have come. Some of them may have found too little.
  using FindsRoom = std::function<bool(const std::vector<Comer>& coming, int32_t launch)>;
  // Whether no block waits for ever in each order by itself. Given are the launches that surely
  // find room if they come next. It asks before each look for room whether to go on, and sees
  // nothing if not.
  bool in_each_order(const std::vector<bool>& finds_room_next, const std::function<bool()>& goes_on,
                     const FindsRoom& otherwise) const;

 private:
  struct History;

  bool applies() const;
  bool holds_up(size_t holder, size_t launch, const std::vector<bool>& between) const;
  std::vector<size_t> stranded_by(size_t launch) const;
  bool may_be_held_up(size_t launch) const;
  Multiset room_before(size_t launch) const;
  Coming all_coming(size_t launch) const;
  std::vector<SmKind> kinds(size_t launch, const Coming& coming) const;
  std::optional<double> most_full(size_t launch, const Coming& coming) const;
  std::optional<Multiset> least_rooms(size_t launch, const Coming& coming) const;
  bool has_too_few(size_t launch, const Coming& coming) const;
  bool is_safe_after(const History& history) const;
  History after(const History& history, size_t launch, bool finds_room) const;
  bool finds_room(size_t launch, const History& history) const;
  bool finds_room(size_t launch, const Coming& coming, const std::vector<bool>& held,
                  const std::function<bool()>& goes_on) const;
  bool finds_room_in_each_way(size_t launch, const History& history) const;
  std::optional<std::vector<bool>> held_before(size_t launch, const History& history) const;

  const Model& model_;
  const DeviceSpec& spec_;
  const std::vector<Launch>& launches_;
  const Demands& demands_;
  const std::vector<bool>& awaited_;
  const Resident& resident_;
  const HeldUp held_up_;
  std::vector<bool> may_leave_;
  AnySm sm_;
};

}  // namespace tbsched
