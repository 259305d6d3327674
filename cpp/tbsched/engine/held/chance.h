// One of the orders of leaving that chance brings about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "tbsched/engine/held/race.h"

namespace tbsched {

// The same seed gives the same order.
class Chance final : public Race {
 public:
  explicit Chance(const uint64_t seed) : random_(seed) {}

  void tell(const Leaver& leaver, bool has_started) override;
  // Those that left while the scheduler was busy.
  std::vector<Leaver> next() override;
  bool over() const override { return waiting_.empty(); }
  void placed(size_t blocks) override;

  // Whether blocks were placed while others were about to leave.
  bool mattered() const { return mattered_; }

 private:
  struct Timed {
    double leaves_ns;
    Leaver leaver;
  };

  std::mt19937_64 random_;
  std::vector<Timed> waiting_;  // a heap, the first to leave in front
  double now_ns_ = 0;           // when the scheduler looks next
  bool mattered_ = false;
};

}  // namespace tbsched
