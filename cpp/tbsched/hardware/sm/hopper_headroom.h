// The shared memory that the driver asks for on Hopper (compute capability 9.0), beyond what the
// blocks that fit an SM need. Found with 1,815 launches on an idle GPU: tests/traces/h200/
// configurations.json, docs/explanation/hopper.md.
#pragma once

#include <cstdint>

namespace tbsched::hopper_headroom {

// Bytes per SM for a launch without a carveout. `shared_memory`: bytes per block with the reserve;
// `blocks`: how many fit an SM.
int64_t without_carveout(int32_t shared_memory, int32_t warps, int32_t blocks);

// For an explicit carveout of so many bytes: those of the blocks that it holds with their reserve.
// `own`: bytes per block without it, at least one.
int64_t with_carveout(int64_t carveout, int32_t own, int32_t shared_memory);

// At least so much, with or without a carveout, where blocks use none themselves.
int32_t without_shared_memory(int32_t warps, int32_t blocks);

}  // namespace tbsched::hopper_headroom
