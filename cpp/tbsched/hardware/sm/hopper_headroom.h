// The shared memory that the driver requests on Hopper (compute capability 9.0), beyond the needs
// of the blocks that fit an SM. Fitted to 1,815 launches on an idle GPU: tests/traces/h200/
// configurations.json, docs/explanation/hopper.md.
#pragma once

#include <cstdint>

namespace tbsched::hopper_headroom {

// Returns the bytes per SM that a launch without a carveout requests. `shared_memory`: bytes per
// block with the reserve; `warps`: of a block; `blocks`: the most that fit an SM.
int64_t bytes_without_carveout(int32_t shared_memory, int32_t warps, int32_t blocks);

// Returns the bytes per SM that an explicit carveout in bytes requests: for as many blocks as it
// holds, with their reserve. `own_bytes`: per block without the reserve, at least one.
int64_t bytes_with_carveout(int64_t carveout, int32_t own_bytes, int32_t shared_memory);

// Returns the least bytes per SM that blocks request which use no shared memory, with or without a
// carveout.
int32_t bytes_without_shared_memory(int32_t warps, int32_t blocks);

}  // namespace tbsched::hopper_headroom
