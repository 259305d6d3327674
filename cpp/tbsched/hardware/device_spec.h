// A device as data, fully resolved and validated before it gets here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tbsched/hardware/topology.h"

namespace tbsched {

inline constexpr int32_t kMaxProcessingBlocks = 4;
inline constexpr int32_t kMaxWarpsPerSm = 64;
inline constexpr int32_t kWarpThreads = 32;

// How a memory is given out: in one piece, in one piece that may wrap around the end, or in any
// pieces.
enum class Layout : uint8_t { contiguous, circular, pooled };

// Which mechanisms act. Switching one off is how an ablation is written.
struct Mechanisms {
  bool strict_round_robin =
      true;               // 2.1: a warp waits for the processing block that is next in turn
  bool warp_skip = true;  // 2.2: one more is skipped after a multiple of processing_blocks warps
  Layout registers = Layout::pooled;        // 4
  Layout shared_memory = Layout::pooled;    // 4
  bool shared_memory_configuration = true;  // 3
  bool configuration_per_tpc = true;        // both SMs of a TPC share one; else each SM has its own
  bool configuration_headroom = false;  // the driver asks for more than the blocks that fit need
  bool explicit_carveout_is_upper_bound =
      false;  // an SM configured larger than an explicit carveout refuses
  bool local_memory_configuration = true;
  bool clusters_seek_idle_sms = true;    // an idle SM comes before one with as much room
  bool clusters_take_whole_tpcs = true;  // as far as the size of the cluster allows
};

struct DeviceSpec {
  std::string name;
  Topology topology;
  int32_t processing_blocks = 4;       // per SM
  int32_t blocks_per_sm = 32;          // slots
  int32_t cluster_blocks_per_sm = 32;  // how many of the slots blocks of clusters may have
  int32_t warps_per_sm = 64;
  int32_t registers_per_sm = 65536;  // 32-bit
  int32_t register_unit = 256;       // registers, allocated per warp
  int32_t threads_per_block = 1024;
  int32_t registers_per_thread = 255;
  int32_t shared_memory_unit = 128;                   // bytes
  int32_t shared_memory_reserve = 1024;               // bytes the runtime keeps per block
  int32_t shared_memory_per_block = 0;                // bytes, the most that a block may ask for
  std::vector<int32_t> shared_memory_configurations;  // bytes per SM, ascending
  int32_t local_memory_initial = 1024;  // bytes per thread that the device is set up for at first
  int32_t local_memory_unit = 16;       // bytes per thread
  int32_t max_cluster = 1;
  Mechanisms mechanisms;
  std::string policy;
  std::string launch_order = "leftover";  // a row of policy/launch_order
  int32_t hardware_queues = 8;
  int32_t resident_grids = 128;
  int64_t launch_latency_ns = 0;      // from the launch call until the launch has reached the GPU
  int64_t completion_latency_ns = 0;  // from a launch's last exit until its successor may start
  int64_t exit_latency_ns = 0;        // from a block's end until its room is there for another
  int64_t event_latency_ns = 0;       // on top of it, for what waits for an event
  int64_t legacy_latency_ns = 0;      // on top of it, to and from the legacy stream
  int64_t launch_switch_ns = 0;  // from a launch's first block until another launch is considered
};

}  // namespace tbsched
