// Whether a launch finds room, GPC by GPC; and if not, what may leave it too little.
//
// How far a launch has come in its order of places says what it has taken in a GPC, whatever is in
// the others. So what blocks that leave do to later launches is looked at in each GPC by itself.
// Only the sizes of the launches tie the GPCs together.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "tbsched/engine/together/demands.h"
#include "tbsched/engine/together/gpcs/columns.h"
#include "tbsched/engine/together/gpcs/one_sm.h"
#include "tbsched/engine/together/gpcs/places.h"
#include "tbsched/engine/together/gpcs/shares.h"
#include "tbsched/engine/together/gpcs/sm_states.h"
#include "tbsched/engine/together/sm_kinds.h"
#include "tbsched/policy/model.h"

namespace tbsched {

// The launches that are resident, in the order in which they came. No block has left. Of one launch
// some blocks may wait.
struct Arrived {
  std::vector<int32_t> order;
  std::vector<int32_t> waiting;
};

// Of the blocks of a launch on an SM, by number, as they came.
struct BlockOnSm {
  int32_t launch;
  int32_t sm;
  int32_t number;
};

// A launch comes, just after these blocks have left.
struct Arrival {
  std::vector<BlockOnSm> leaving;
  int32_t launch;
};

// It holds where FullSmsProof does, see there.
class EachGpc {
 public:
  // All outlive it. `known`: one for each of Gaps, for these demands and outsiders. Without effort
  // left it proves nothing. `interrupted` may throw.
  EachGpc(const Model& model, const std::vector<Launch>& launches, const Demands& demands,
          const std::vector<int32_t>& group, const Resident& resident, const Arrived& arrived,
          std::array<SmStates, 2>& known, Effort& effort, const std::function<void()>& interrupted);

  // Whether the last launch surely finds room, if these come before it, one after the other, and
  // find room; whatever blocks of outsiders leave, and when. `held`: which of all these get no SM
  // that a launch holds of which blocks wait.
  bool finds_room(const std::vector<int32_t>& coming, int32_t last, const std::vector<bool>& held);
  // Of each launch that may not, a history in which it may wait: to know, that must be played.
  const std::vector<std::vector<Arrival>>& doubtful() const { return doubtful_; }

 private:
  struct SmKey;
  // The SMs of a share.
  struct Part {
    const Shares* shares;
    std::vector<int32_t> sms;
  };
  using KnownShares = std::map<std::vector<SmKey>, Shares>;

  void find_quiet_sms();
  bool finds_room_while_held(const std::vector<bool>& held);
  bool finds_room_with(Gaps gaps);
  bool finds_room_in_ranges();
  bool finds_room_in_halves(size_t launch);
  size_t widest() const;
  bool is_proved();
  void choose_exact();
  BlocksOfEach all_blocks() const;
  bool by_tpc() const;
  SmKey key_of(int32_t sm) const;
  Part part_of(std::vector<int32_t> sms, KnownShares& known);
  Gpc gpc_of(size_t domain, const std::vector<Part>& parts) const;
  std::vector<Part> parts_of(const ClusterDomain& domain, KnownShares& known);
  void doubt(const std::vector<std::vector<Part>>& parts,
             const std::vector<const Column*>& columns);
  void add(const std::vector<Part>& parts, const Column& column, int32_t turn,
           std::vector<Arrival>& history) const;
  void add(const std::vector<Act>& acts, const std::vector<int32_t>& sms,
           std::vector<Arrival>& history) const;

  const Device& device_;
  const std::vector<Launch>& launches_;
  const Demands& demands_;
  const Resident& resident_;
  const Arrived& arrived_;
  std::array<SmStates, 2>& all_known_;
  SmStates* known_ = nullptr;
  Effort& effort_;
  const std::function<void()>& interrupted_;
  const LaunchPlaces places_;
  std::vector<OneSm> sms_;
  Asked asked_;
  size_t waiting_ = 0;       // launches
  std::vector<bool> quiet_;  // see find_quiet_sms
  std::vector<bool> held_;   // those that come, and the last: they get no SM that is held
  std::vector<std::vector<Arrival>> doubtful_;
};

}  // namespace tbsched
