#include "tbsched/hardware/sm/configuration_demand.h"

#include <algorithm>

#include "tbsched/hardware/sm/hopper_headroom.h"
#include "tbsched/hardware/sm/units.h"

namespace tbsched {
namespace {

// The sizes in bytes to which an SM can be configured.
class Sizes {
 public:
  explicit Sizes(const DeviceSpec& spec) : sizes_(spec.shared_memory_configurations) {}

  int32_t largest() const { return sizes_.back(); }
  // Returns the smallest size that holds so many bytes; the largest if none does.
  int32_t that_holds(const int64_t bytes) const {
    const auto size = std::lower_bound(sizes_.begin(), sizes_.end(), bytes);
    return size == sizes_.end() ? sizes_.back() : *size;
  }

 private:
  const std::vector<int32_t>& sizes_;
};

}  // namespace

ConfigurationDemand configuration_demand(const Launch& launch, const DeviceSpec& spec,
                                         const int32_t shared_memory, const int32_t blocks_per_sm) {
  const Sizes sizes(spec);
  const int32_t warps = ceil_div(launch.threads, kWarpThreads);
  const int32_t own_bytes = round_up(launch.shared_memory, spec.shared_memory_unit);
  const bool has_headroom = spec.mechanisms.configuration_headroom;
  const bool uses_none = launch.shared_memory == 0;
  // A block of the driver leaves all memory of an idle SM to the cache; then no other block finds
  // shared memory there.
  if (!launch.has_runtime) return {0, sizes.largest(), 0};
  if (!launch.carveout) {
    const int64_t needed = int64_t{shared_memory} * blocks_per_sm;
    int64_t requested = needed;
    if (has_headroom && uses_none) {
      requested = hopper_headroom::bytes_without_shared_memory(warps, blocks_per_sm);
    } else if (has_headroom) {
      requested = hopper_headroom::bytes_without_carveout(shared_memory, warps, blocks_per_sm);
    }
    return {sizes.that_holds(needed), sizes.largest(),
            sizes.that_holds(std::max(needed, requested))};
  }

  // The carveout counts the memory that blocks use themselves; the reserve for as many blocks as
  // that holds is added. The launch may enter an SM where as many of its blocks fit as in the
  // requested size.
  const int64_t carveout = int64_t{sizes.largest()} * *launch.carveout / 100;
  const int32_t plain = sizes.that_holds(std::max(int64_t{shared_memory}, carveout));
  int64_t requested = plain;
  if (has_headroom && uses_none) {
    requested = hopper_headroom::bytes_without_shared_memory(warps, blocks_per_sm);
  } else if (has_headroom) {
    requested = hopper_headroom::bytes_with_carveout(carveout, own_bytes, shared_memory);
  }
  const int32_t target = sizes.that_holds(std::max(int64_t{plain}, requested));
  const int64_t blocks = std::min(blocks_per_sm, plain / std::max(shared_memory, 1));
  const int32_t minimum =
      spec.mechanisms.carveout_counts_blocks ? sizes.that_holds(blocks * shared_memory) : plain;
  const bool bounded = spec.mechanisms.explicit_carveout_is_upper_bound;
  return {minimum, bounded ? target : sizes.largest(), target};
}

}  // namespace tbsched
