// How much longer blocks take beside others.
//
// Where the queue of each resource makes its waits longer by a part d, a block takes
//   t = 1 + sum over resources of waits * d
// times as long as with nobody beside it. A resource is used to
//   u = sum over blocks of shares / t
// of what there is, and d = softness * u / (1 - u). What agrees with all of that is found for all
// resources at once.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tbsched/engine/neighbours/needs.h"

namespace tbsched {

// SMs that hold the same: blocks of each kernel.
struct Alike {
  std::vector<int32_t> blocks;  // by kernel
  int32_t sms;
};

class Contention {
 public:
  // What kernels need while nothing slows them.
  Contention(std::vector<Needs> kernels, Sharing sharing, int32_t sms);

  size_t kernels() const { return kernels_.size(); }
  // What the kernel needs is what was measured of a launch that had the GPU for itself.
  void measured_alone(size_t kernel, std::span<const Alike> alone);
  // For each of these SMs, how many times as long each kernel's blocks take there, as they would
  // without anybody. A row per kind of SM, a column per kernel; 1 where there is no block of it.
  // SMs that are not named are idle.
  const std::vector<double>& times(std::span<const Alike> alike);

 private:
  using Waits = PerResource;

  double time(const Needs& needs, const Waits& waits) const;
  double use(std::span<const int32_t> blocks, size_t resource, const Waits& waits) const;
  template <typename Use>
  void settle(double& wait, const Use& use) const;
  double settle_inside(const Alike& alike, Waits& waits) const;
  double settle_outside(std::span<const Alike> alike);

  std::vector<Needs> kernels_;
  Sharing sharing_;
  double sms_;
  std::vector<Waits> waits_;  // by row
  std::vector<double> times_;
  // What was asked before.
  std::map<std::vector<int32_t>, std::vector<double>> known_;
};

}  // namespace tbsched
