// A warp scheduler of one's own on the simulated GPU of OWL's authors, beside theirs.
#include <bit>
#include <cstdint>
#include <iostream>
#include <memory>
#include <vector>

#include "tbsched/sm_sim/simulate.h"

namespace sm = tbsched::sm_sim;

namespace {

// The warp with the lowest number that is ready.
class Lowest final : public sm::Scheduler {
 public:
  int32_t pick(const sm::Situation& now) override { return std::countr_zero(now.ready); }
};

}  // namespace

int main() {
  // 448 blocks of four warps, each of which reads 20 lines of its own twice. All lines do not fit
  // the L1, so it matters which warps go on.
  constexpr int32_t kWarps = 448 * 4, kLoads = 40, kLines = 20;
  std::vector<int64_t> rows;
  for (int64_t warp = 0; warp <= kWarps; ++warp) rows.push_back(warp * kLoads);
  const std::vector<int32_t> compute(kWarps * kLoads, 5);
  const std::vector<uint8_t> access(kWarps * kLoads, static_cast<uint8_t>(sm::Access::load));
  std::vector<uint64_t> address;
  for (uint64_t load = 0; load < kWarps * kLoads; ++load) {
    address.push_back((load / kLoads * kLines + load % kLines) * 128);
  }
  const sm::Workload workload{4, 8, rows, compute, access, address};

  for (const char* const name : {"round_robin", "locality"}) {
    const sm::Simulation found =
        simulate(workload, sm::Config{}, {.scheduler = sm::scheduler_named(name)});
    std::cout << name << ": " << found.statistics.cycles << " cycles\n";
  }
  const auto make = [](const sm::Config&, const sm::CoreShape&) {
    return std::make_unique<Lowest>();
  };
  const sm::Simulation found = simulate(
      workload, sm::Config{}, {.scheduler = sm::scheduler_named("round_robin"), .make = make});
  std::cout << "lowest: " << found.statistics.cycles << " cycles\n";
}
