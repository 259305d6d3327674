// How much longer blocks take when they share the GPU.
//
// If the queue of each resource lengthens its waits by a part d, a block takes
//   t = 1 + sum over resources of waits * d
// times as long as without any other block. The use of a resource is
//   u = sum over blocks of shares / t
// of its capacity, and d = softness * u / (1 - u). The class solves these equations for all
// resources together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "tbsched/sim/needs.h"

namespace tbsched {

// Contents of an SM: kernels in ascending order, and the number of blocks of each.
using SmContents = std::vector<std::pair<int32_t, int32_t>>;
// A number of SMs with the same contents.
struct EqualSms {
  SmContents contents;
  int32_t sms;
};

class Contention {
 public:
  // `kernels`: what each kernel needs when no other block slows it.
  Contention(std::vector<Needs> kernels, Sharing sharing, int32_t sms);

  // Corrects the needs of a kernel, which were measured while it had the GPU for itself, on the SMs
  // `alone`, for how its own blocks slowed each other.
  void correct_for_own_blocks(int32_t kernel, std::span<const EqualSms> alone);
  // Returns how many times as long blocks take on these SMs as without any other block: one number
  // for each entry of the first SMs' contents, then of the second ones'. All other SMs are idle.
  // Valid until the next call.
  const std::vector<double>& times(std::span<const EqualSms> alike);

 private:
  using Waits = PerResource;  // d of each resource

  // Returns t for a kernel: how many times as long a block takes, given each d.
  double time_factor(int32_t kernel, const Waits& waits) const;
  // Returns u for a resource of an SM with these contents, given each d.
  double use(const SmContents& contents, size_t resource, const Waits& waits) const;
  template <typename Use>
  void solve_wait(double& wait, const Use& use) const;
  // Sets d of each resource of an SM, the part by which its queue lengthens waits, given d of the
  // others. Returns the largest relative change.
  double solve_inside(const EqualSms& alike, Waits& waits) const;
  // Sets d of each resource that all SMs share, the part by which its queue lengthens waits, given
  // d of the others. Returns the largest relative change.
  double solve_outside(std::span<const EqualSms> alike);

  std::vector<Needs> kernels_;
  Sharing sharing_;
  double sms_;
  std::vector<Waits> waits_;                                   // by row
  std::map<std::vector<int32_t>, std::vector<double>> known_;  // results of earlier calls
};

}  // namespace tbsched
