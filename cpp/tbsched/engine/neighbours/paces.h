// How fast the blocks on each SM go on, beside those that are there with them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tbsched/engine/neighbours/contention.h"

namespace tbsched {

// What is known of the launches of a sequence.
struct Neighbours {
  std::vector<Needs> kernels;      // as measured of launches that had the GPU for themselves
  std::vector<int32_t> of_launch;  // its kernel, or -1: it slows nobody, and nobody slows it
  Sharing sharing;
};

class Paces {
 public:
  Paces(const Neighbours& neighbours, int32_t sms);

  // Before any blocks come: where those of a launch are when it has the GPU for itself. Needs and
  // durations are of that.
  void expect(int32_t launch, std::span<const Alike> alone);
  void come(int32_t launch, int32_t sm) { change(launch, sm, 1); }
  void leave(int32_t launch, int32_t sm) { change(launch, sm, -1); }

  // Whether any came or left since settle().
  bool changed() const { return changed_; }
  void settle();
  // As settle() found it: 1 is as fast as alone.
  double pace(int32_t launch, int32_t sm) const;
  int32_t kernel(int32_t launch) const;
  size_t kernels() const { return contention_.kernels(); }

 private:
  void change(int32_t launch, int32_t sm, int32_t by);

  std::vector<int32_t> of_launch_;
  Contention contention_;
  std::vector<bool> expected_;  // by kernel
  std::vector<double> alone_;   // by kernel: how many times as long as with nobody beside a block
  std::vector<std::vector<int32_t>> blocks_;  // by SM and kernel
  std::vector<size_t> rows_;                  // by SM: of times_
  std::vector<double> times_;
  bool changed_ = false;
};

}  // namespace tbsched
