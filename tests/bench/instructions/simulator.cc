#include "simulator.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "tbsched/sm_sim/simulate.h"

namespace {

namespace sm = tbsched::sm_sim;

struct Kernel {
  std::vector<int64_t> rows;
  std::vector<int32_t> compute;
  std::vector<uint8_t> access;
  std::vector<uint64_t> address;
};

// As many warps as fit the cores at once, of `rows` rows each.
Kernel kernel_of(const int64_t rows, const int32_t compute, const sm::Access access) {
  Kernel kernel;
  for (int64_t warp = 0; warp <= 28 * 32; ++warp) kernel.rows.push_back(warp * rows);
  kernel.compute.assign(kernel.rows.back(), compute);
  kernel.access.assign(kernel.rows.back(), static_cast<uint8_t>(access));
  // Lines all over the memory, none of them twice.
  for (uint64_t line = 0; line < kernel.compute.size(); ++line) {
    kernel.address.push_back(line * 7919 % (1 << 20) * 64);
  }
  return kernel;
}

}  // namespace

std::optional<std::function<void()>> simulation_named(const std::string& name) {
  if (name != "computing" && name != "missing") return {};
  const auto kernel = std::make_shared<const Kernel>(
      name == "computing" ? kernel_of(1, 60, sm::Access::none) : kernel_of(6, 1, sm::Access::load));
  return [kernel] {
    const sm::Workload workload{
        4, 8, kernel->rows, kernel->compute, kernel->access, kernel->address};
    const sm::Config config{.l1_line_cycles = 0, .channel_interleave = 256};
    simulate(workload, config, {.scheduler = sm::scheduler_named("round_robin")});
  };
}
