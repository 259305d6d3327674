// The work of warps: instructions that compute, and accesses to memory.
#pragma once

#include <cstdint>
#include <span>

namespace tbsched::sm_sim {

enum class Access : uint8_t {
  load,
  store,
  same_instruction,  // one more line of the previous row's instruction
  none,              // computes only
  barrier,           // waits until all warps of the block that have not ended are at a barrier
};

// The warps of block b begin at b * warps_per_block. A warp executes its rows in order. A row is a
// number of instructions that compute, then an access. The arrays are borrowed.
struct Workload {
  int32_t warps_per_block;
  int32_t blocks_per_core;                // limit of resident blocks, from a block's needs
  std::span<const int64_t> rows;          // (warps + 1,): the first row of each warp, and the end
  std::span<const int32_t> compute;       // (rows,)
  std::span<const uint8_t> access;        // (rows,): an Access
  std::span<const uint64_t> address;      // (rows,): in bytes
  std::span<const uint8_t> sectors = {};  // (rows,): sectors of the line, a bit each; empty: all

  int64_t warps() const { return static_cast<int64_t>(rows.size()) - 1; }
  int32_t blocks() const { return static_cast<int32_t>(warps() / warps_per_block); }
};

// Throws std::invalid_argument that names the error and where it is, if the workload is not valid.
void check(const Workload& workload);

}  // namespace tbsched::sm_sim
