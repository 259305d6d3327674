// How long a simulator waits for the scheduler when one block ends and the next takes its place on
// a full H200: prints, round by round, the literal Algorithm 1's time over that of the device's
// policy.
#include <chrono>
#include <cstdint>
#include <deque>
#include <iostream>
#include <string_view>

#include "h200.h"
#include "tbsched/sim/block_scheduler.h"

namespace {

using tbsched::BlockScheduler;

constexpr int32_t kRounds = 5;
constexpr int32_t kBlocks = 20'000;

struct Resident final : tbsched::Observer {
  void on_place(const tbsched::PlacedBlocks& placed) override {
    footprints.insert(footprints.end(), placed.footprints.begin(), placed.footprints.end());
  }
  std::deque<tbsched::Footprint> footprints;
};

double seconds(const tbsched::DeviceSpec& spec, const std::string_view policy) {
  const tbsched::Model model(spec, policy);
  BlockScheduler scheduler(model, {});
  Resident resident;
  const tbsched::Launch grid{.blocks = 100'000, .threads = 64, .registers = 16, .carveout = 100};
  const int32_t launch = scheduler.add(grid, BlockScheduler::Leaving::one_by_one);
  scheduler.enqueue(launch);
  scheduler.place(resident);
  const auto begin = std::chrono::steady_clock::now();
  for (int32_t block = 0; block < kBlocks; ++block) {
    scheduler.leave(launch, resident.footprints.front());
    resident.footprints.pop_front();
    scheduler.place(resident);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main() {
  const tbsched::DeviceSpec spec = h200();
  for (int32_t round = 0; round < kRounds; ++round) {
    const double literal = seconds(spec, "algorithm1");
    std::cout << literal / seconds(spec, spec.policy) << '\n';
  }
}
