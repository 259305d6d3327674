#include "tbsched/sim/driver_kernels.h"

#include <algorithm>

#include "tbsched/hardware/sm/units.h"

namespace tbsched {
namespace {

constexpr int32_t kThreads = 512;
constexpr int32_t kRegisters = 16;
constexpr int32_t kMaxBlocks = 1 << 16;
constexpr int32_t kDeciderRegisters = 32;
constexpr int32_t kDeciderBytes = 1024;  // of shared memory

// A copy or memset for which the driver runs a kernel.
struct Work {
  int64_t bytes;
  std::optional<int64_t> duration_ns;
  std::optional<int32_t> stream;
  bool non_blocking;
  int64_t block_ns;   // minimum of the duration
  int64_t bandwidth;  // bytes per microsecond; 0: it is not known
};

// Returns the driver's kernel for a copy or memset. If it fills the GPU, its blocks share the
// bandwidth.
Launch kernel_of(const DeviceSpec& spec, const Work& work) {
  const int64_t bytes = std::max<int64_t>(spec.copy_block_bytes, work.bytes / kMaxBlocks + 1);
  const int64_t blocks = (work.bytes + bytes - 1) / bytes;
  const int64_t at_once = int64_t{spec.sms} * (spec.warps_per_sm * kWarpThreads / kThreads);
  const int64_t shared_ns = move_ns(std::min(blocks, at_once) * bytes, work.bandwidth);
  Launch kernel{.blocks = static_cast<int32_t>(blocks),
                .threads = kThreads,
                .registers = kRegisters,
                .stream = work.stream,
                .duration_ns = {std::max(work.block_ns, shared_ns)},
                .non_blocking = work.non_blocking,
                .has_runtime = false};
  if (work.duration_ns) {
    kernel.blocks = std::min(kernel.blocks, spec.sms);
    kernel.duration_ns = {*work.duration_ns};
  }
  return kernel;
}

}  // namespace

bool is_kernel(const DeviceSpec& spec, const Copy& copy) {
  return copy.kind == CopyKind::d2d && spec.mechanisms.copy_kernels;
}

bool is_kernel(const DeviceSpec& spec, const Memset& memset) {
  return memset.bytes > spec.small_memset_bytes && spec.mechanisms.copy_kernels;
}

Launch decider(const DeviceSpec& spec) {
  const int64_t around_ns = spec.exit_latency_ns + spec.node_latency_ns;
  return {.threads = kWarpThreads,
          .registers = kDeciderRegisters,
          .shared_memory = kDeciderBytes,
          .priority = 1 - spec.priority_levels,
          .duration_ns = {std::max<int64_t>(spec.conditional_ns - around_ns, 0)}};
}

std::optional<Launch> driver_kernel(const DeviceSpec& spec, const Copy& copy) {
  if (!is_kernel(spec, copy)) return std::nullopt;
  return kernel_of(spec, {copy.bytes, copy.duration_ns, copy.stream, copy.non_blocking,
                          spec.device_copy_latency_ns, spec.device_copy_bandwidth});
}

std::optional<Launch> driver_kernel(const DeviceSpec& spec, const Memset& memset) {
  if (!is_kernel(spec, memset)) return std::nullopt;
  return kernel_of(spec, {memset.bytes, memset.duration_ns, memset.stream, memset.non_blocking,
                          spec.memset_latency_ns, spec.memset_bandwidth});
}

}  // namespace tbsched
