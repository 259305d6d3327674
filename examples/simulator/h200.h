// NVIDIA H200, written by `tbsched devices --cpp`.
// clang-format off
#pragma once

#include "tbsched/hardware/device_spec.h"

inline tbsched::DeviceSpec h200() {
  return {
      .name = "h200",
      .title = "NVIDIA H200",
      .compute_capability = "9.0",
      .sms = 132,
      .sms_per_tpc = 2,
      .gpcs = {
          {0, 8, 16, 24}, {1, 9, 17, 25, 32, 39, 46, 53}, {2, 10, 18, 26, 33, 40, 47, 54}, {3, 11,
          19, 27, 34, 41, 48, 55}, {4, 12, 20, 28, 35, 42, 49, 56}, {5, 13, 21, 29, 36, 43, 50, 57},
          {6, 14, 22, 30, 37, 44, 51, 58, 60}, {7, 15, 23, 31, 38, 45, 52, 59, 61}
      },
      .sm_preference = {
          124, 126, 128, 130, 125, 127, 129, 131, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,
          28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62, 64, 66, 68, 70,
          72, 74, 76, 78, 80, 82, 84, 86, 88, 90, 92, 94, 96, 98, 100, 102, 104, 106, 108, 110, 112,
          114, 116, 118, 120, 122, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33,
          35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63, 65, 67, 69, 71, 73, 75, 77,
          79, 81, 83, 85, 87, 89, 91, 93, 95, 97, 99, 101, 103, 105, 107, 109, 111, 113, 115, 117,
          119, 121, 123
      },
      .processing_blocks = 4,
      .blocks_per_sm = 32,
      .cluster_blocks_per_sm = 8,
      .warps_per_sm = 64,
      .registers_per_sm = 65536,
      .threads_per_block = 1024,
      .registers_per_thread = 255,
      .max_cluster = 16,
      .coscheduled_sms = 8,
      .register_unit = 256,
      .shared_memory_unit = 128,
      .shared_memory_reserve = 1024,
      .shared_memory_per_block = 232448,
      .shared_memory_configurations = {
          8192, 16384, 32768, 65536, 102400, 135168, 167936, 200704, 233472
      },
      .local_memory_initial = 1024,
      .local_memory_unit = 16,
      .mechanisms = {
          .strict_round_robin = true,
          .warp_skip = true,
          .registers = tbsched::Layout::pooled,
          .shared_memory = tbsched::Layout::circular,
          .lowest_gap_first = true,
          .shared_memory_configuration = true,
          .configuration_per_tpc = false,
          .configuration_headroom = true,
          .explicit_carveout_is_upper_bound = true,
          .carveout_counts_blocks = true,
          .local_memory_configuration = true,
          .clusters_seek_idle_sms = true,
          .graph_branches = true,
          .clusters_take_whole_tpcs = true,
          .clusters_use_singletons = true,
          .clusters_balance = true,
          .blocks_turn_singletons = true,
      },
      .policy = "hopper",
      .launch_order = "leftover",
      .priority_levels = 6,
      .hardware_queues = 8,
      .resident_grids = 128,
      .launch_latency_ns = 7000,
      .completion_latency_ns = 1450,
      .exit_latency_ns = 450,
      .event_latency_ns = 100,
      .watched_queues = 2,
      .queue_watch_ns = 2400,
      .trigger_latency_ns = 700,
      .launch_completion_latency_ns = 550,
      .node_latency_ns = 510,
      .node_place_ns = 290,
      .node_places = 6,
      .relay_ns = 170,
      .graph_latency_ns = 4500,
      .node_interval_ns = 1100,
      .launch_switch_ns = 180,
  };
}
