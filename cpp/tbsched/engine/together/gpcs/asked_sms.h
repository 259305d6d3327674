// The SMs of a question: what may become of them, SM by SM or TPC by TPC; and which blocks leave in
// a way that was found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/engine/together/demands.h"
#include "tbsched/engine/together/gpcs/asked.h"
#include "tbsched/engine/together/gpcs/columns.h"
#include "tbsched/engine/together/gpcs/effort.h"
#include "tbsched/engine/together/gpcs/places.h"
#include "tbsched/engine/together/gpcs/shares.h"
#include "tbsched/engine/together/gpcs/sm/behaviours.h"
#include "tbsched/engine/together/gpcs/sm/one_sm.h"
#include "tbsched/engine/together/gpcs/sm/sm_states.h"
#include "tbsched/hardware/gpu/cluster_domains.h"
#include "tbsched/hardware/gpu/device.h"

namespace tbsched {

// A block on an SM leaves, or one that waited enters. Those of a launch are numbered as they came.
struct MoveOnSm {
  int32_t launch;
  int32_t sm;
  int32_t number;
  bool enters;
};

// A launch comes, just after these. Those on one SM are in order.
struct Arrival {
  std::vector<MoveOnSm> moves;
  int32_t launch;
};

// The SMs of a share, in its order.
struct Part {
  const Shares* shares;
  std::vector<int32_t> sms;
  std::vector<ShareOfSm> own;
};

// The functions that look throw TooManyWays.
class AskedSms {
 public:
  // All outlive it.
  AskedSms(const Device& device, const Demands& demands, const LaunchPlaces& places,
           const Asked& asked, SmStates& states, Effort& effort);
  // Its parts know each other.
  AskedSms(const AskedSms&) = delete;
  AskedSms& operator=(const AskedSms&) = delete;

  // The next one, as it is before anything leaves.
  void add(OneSm first, SmRole role);
  // Of a GPC, for the places where the launches may end now. They remain until all are forgotten.
  std::vector<Part> parts_of(const ClusterDomain& domain);
  bool gaps_matter() const { return behaviours_.gaps_matter(); }
  bool are_many() const { return shares_.are_many(); }
  void forget() { shares_.forget(); }
  // How it comes to columns, one for the parts of each GPC. Of clusters that enter there may be too
  // few parts.
  std::vector<Arrival> history(const std::vector<std::vector<Part>>& parts,
                               const std::vector<const Column*>& columns);

 private:
  struct Sm {
    OneSm first;
    int32_t state;
    int32_t role;
    int32_t outlook;
  };
  class Replay;

  bool by_tpc() const;
  uint32_t preferred(int32_t sm) const;
  Part part_of(const std::vector<int32_t>& sms);

  const LaunchPlaces& places_;
  const Asked& asked_;
  SmStates& states_;
  Behaviours behaviours_;
  AllShares shares_;
  std::vector<Sm> sms_;
};

}  // namespace tbsched
