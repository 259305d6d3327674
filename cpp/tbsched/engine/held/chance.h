// One of the orders of leaving that chance brings about, as seen on an H200 and an H100 whose
// blocks wait for a word in memory (the launcher's do).
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "tbsched/engine/held/race.h"
#include "tbsched/hardware/topology.h"

namespace tbsched {

class Chance final : public Race {
 public:
  // The same seed gives the same order. The topology outlives it.
  Chance(const Topology& topology, uint64_t seed);

  void tell(std::span<const Leaver> leavers, bool have_started) override;
  // Those that left while the scheduler was busy.
  std::vector<Leaver> next() override;
  bool over() const override { return waiting_.empty(); }
  void placed(size_t blocks, int32_t cluster) override;

  // Whether blocks were placed while others were about to leave.
  bool mattered() const { return mattered_; }

 private:
  struct Timed {
    double leaves_ns;
    Leaver leaver;
  };

  double below(double limit);

  const Topology& topology_;
  std::mt19937_64 random_;
  double slowness_;             // of the scheduler
  std::vector<Timed> waiting_;  // a heap, the first to leave in front
  double now_ns_ = 0;           // when the scheduler looks next
  bool mattered_ = false;
};

}  // namespace tbsched
