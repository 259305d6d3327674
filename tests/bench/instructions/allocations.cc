// Fills the model of an H200 with launches and drains it, twice, and prints how often memory was
// allocated the second time: see tests/bench/test_allocations.py.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "h200.h"
#include "tbsched/sim/block_scheduler.h"

namespace {

int64_t allocations = 0;

using tbsched::BlockScheduler;
using tbsched::Footprint;
using tbsched::Launch;

// Each holds up those behind it until blocks before it leave.
std::vector<Launch> launches(const int32_t cluster) {
  return {
      {.blocks = 3000, .threads = 64, .registers = 16, .carveout = 100, .cluster = cluster},
      {.blocks = 500, .threads = 96, .registers = 40, .shared_memory = 5000, .cluster = cluster},
      {.blocks = 700, .threads = 128, .shared_memory = 9000, .carveout = 100, .cluster = cluster},
      {.blocks = 1200, .threads = 256, .registers = 64, .cluster = cluster},
      {.blocks = 100, .threads = 1024, .registers = 32, .cluster = cluster},
      {.blocks = 4000, .threads = 32, .shared_memory = 100, .carveout = 50, .cluster = cluster},
  };
}

class Run final : private tbsched::Observer {
 public:
  Run(const tbsched::Model& model, const int32_t cluster, const BlockScheduler::Leaving leaving)
      : scheduler_(model, {}), launches_(launches(cluster)) {
    size_t blocks = 0;
    for (const Launch& launch : launches_) blocks += static_cast<size_t>(launch.blocks);
    resident_.reserve(blocks);
    for (int32_t round = 0; round < kRounds; ++round) {
      for (const Launch& launch : launches_) scheduler_.add(launch, leaving);
    }
  }

  // Places all blocks of a round's launches, letting those of the first of them that are resident
  // leave whenever no more fit.
  void fill_and_drain(const int32_t round) {
    const auto count = static_cast<int32_t>(launches_.size());
    const int32_t first = round * count;
    for (int32_t k = first; k < first + count; ++k) {
      scheduler_.enqueue(k);
      scheduler_.place(*this);
    }
    while (!resident_.empty()) {
      const int32_t oldest = resident_.front().first;
      std::erase_if(resident_, [&](const auto& held) {
        if (held.first == oldest) scheduler_.leave(oldest, held.second);
        return held.first == oldest;
      });
      scheduler_.place(*this);
    }
    for (int32_t k = first; k < first + count; ++k) {
      if (!scheduler_.placed_whole(k)) throw std::logic_error("blocks are left");
    }
  }

  static constexpr int32_t kRounds = 2;

 private:
  void on_place(const tbsched::PlacedBlocks& placed) override {
    for (const Footprint& footprint : placed.footprints) {
      resident_.emplace_back(placed.launch, footprint);
    }
  }

  BlockScheduler scheduler_;
  std::vector<Launch> launches_;
  std::vector<std::pair<int32_t, Footprint>> resident_;  // with their launches
};

}  // namespace

void* operator new(const size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* const memory) noexcept { std::free(memory); }
void operator delete(void* const memory, size_t) noexcept { std::free(memory); }

int main() {
  for (const auto& [policy, cluster] : {std::pair("ampere", 1), {"hopper", 1}, {"hopper", 4}}) {
    const tbsched::Model model(h200(), policy);
    for (const auto leaving :
         {BlockScheduler::Leaving::together, BlockScheduler::Leaving::one_by_one}) {
      Run run(model, cluster, leaving);
      run.fill_and_drain(0);
      const int64_t before = std::exchange(allocations, 0);
      run.fill_and_drain(1);
      std::cout << before << ' ' << allocations << ' ' << policy << ", clusters of " << cluster
                << '\n';
    }
  }
}
