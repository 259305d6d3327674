// NVIDIA H200, written by `tbsched devices --cpp`.
// clang-format off
#pragma once

#include "tbsched/hardware/device_spec.h"

inline tbsched::DeviceSpec h200() {
  return {
      .name = "h200",
      .topology = {
          .tpc_of_sm = {
              0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12,
              13, 13, 14, 14, 15, 15, 16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 21, 21, 22, 22, 23,
              23, 24, 24, 25, 25, 26, 26, 27, 27, 28, 28, 29, 29, 30, 30, 31, 31, 32, 32, 33, 33,
              34, 34, 35, 35, 36, 36, 37, 37, 38, 38, 39, 39, 40, 40, 41, 41, 42, 42, 43, 43, 44,
              44, 45, 45, 46, 46, 47, 47, 48, 48, 49, 49, 50, 50, 51, 51, 52, 52, 53, 53, 54, 54,
              55, 55, 56, 56, 57, 57, 58, 58, 59, 59, 60, 60, 61, 61, 62, 62, 63, 63, 64, 64, 65, 65
          },
          .gpc_of_sm = {
              0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6,
              6, 7, 7, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4,
              5, 5, 6, 6, 7, 7, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 1, 1, 2, 2, 3, 3, 4, 4, 5,
              5, 6, 6, 7, 7, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5,
              6, 6, 7, 7, 6, 6, 7, 7, -1, -1, -1, -1, -1, -1, -1, -1
          },
          .sm_preference = {
              124, 126, 128, 130, 125, 127, 129, 131, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24,
              26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62, 64, 66,
              68, 70, 72, 74, 76, 78, 80, 82, 84, 86, 88, 90, 92, 94, 96, 98, 100, 102, 104, 106,
              108, 110, 112, 114, 116, 118, 120, 122, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25,
              27, 29, 31, 33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63, 65, 67,
              69, 71, 73, 75, 77, 79, 81, 83, 85, 87, 89, 91, 93, 95, 97, 99, 101, 103, 105, 107,
              109, 111, 113, 115, 117, 119, 121, 123
          },
      },
      .processing_blocks = 4,
      .blocks_per_sm = 32,
      .cluster_blocks_per_sm = 8,
      .warps_per_sm = 64,
      .registers_per_sm = 65536,
      .register_unit = 256,
      .threads_per_block = 1024,
      .registers_per_thread = 255,
      .shared_memory_unit = 128,
      .shared_memory_reserve = 1024,
      .shared_memory_per_block = 232448,
      .shared_memory_configurations = {
          8192, 16384, 32768, 65536, 102400, 135168, 167936, 200704, 233472
      },
      .local_memory_initial = 1024,
      .local_memory_unit = 16,
      .max_cluster = 16,
      .mechanisms = {
          .strict_round_robin = true,
          .warp_skip = true,
          .registers = tbsched::Layout::pooled,
          .shared_memory = tbsched::Layout::circular,
          .shared_memory_configuration = true,
          .configuration_per_tpc = false,
          .configuration_headroom = true,
          .explicit_carveout_is_upper_bound = true,
          .local_memory_configuration = true,
          .clusters_seek_idle_sms = true,
          .clusters_take_whole_tpcs = true,
      },
      .policy = "hopper",
      .launch_order = "leftover",
      .hardware_queues = 8,
      .resident_grids = 128,
      .launch_latency_ns = 7000,
      .completion_latency_ns = 1450,
      .exit_latency_ns = 450,
      .event_latency_ns = 100,
      .legacy_latency_ns = 2500,
      .launch_switch_ns = 180,
  };
}
