// How much longer blocks take beside others.
//
// Where the queue of each resource makes its waits longer by a part d, a block takes
//   t = 1 + sum over resources of waits * d
// times as long as with nobody beside it. A resource is used to
//   u = sum over blocks of shares / t
// of what there is, and d = softness * u / (1 - u). What agrees with all of that is found for all
// resources at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tbsched/sim/needs.h"

namespace tbsched {

// What an SM holds: kernels in ascending order, and how many blocks of each.
using Held = std::vector<std::pair<int32_t, int32_t>>;
// SMs that hold the same.
struct Alike {
  Held held;
  int32_t sms;
};

class Contention {
 public:
  // What kernels need while nothing slows them.
  Contention(std::vector<Needs> kernels, Sharing sharing, int32_t sms);

  // What the kernel needs is what was measured of a launch that had the GPU for itself.
  void measured_alone(int32_t kernel, std::span<const Alike> alone);
  // How many times as long blocks take on these SMs as with nobody beside them: for all that the
  // first SMs hold, then the second. SMs that are not named are idle. Valid until the next call.
  const std::vector<double>& times(std::span<const Alike> alike);

 private:
  using Waits = PerResource;

  double time(int32_t kernel, const Waits& waits) const;
  double use(const Held& held, size_t resource, const Waits& waits) const;
  template <typename Use>
  void settle(double& wait, const Use& use) const;
  double settle_inside(const Alike& alike, Waits& waits) const;
  double settle_outside(std::span<const Alike> alike);

  std::vector<Needs> kernels_;
  Sharing sharing_;
  double sms_;
  std::vector<Waits> waits_;                                   // by row
  std::map<std::vector<int32_t>, std::vector<double>> known_;  // what was asked before
};

}  // namespace tbsched
