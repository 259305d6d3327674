// NVIDIA GeForce RTX 3090, written by `tbsched devices --cpp`.
// clang-format off
#pragma once

#include "tbsched/hardware/device_spec.h"

inline tbsched::DeviceSpec rtx3090() {
  return {
      .name = "rtx3090",
      .title = "NVIDIA GeForce RTX 3090",
      .compute_capability = "8.6",
      .sms = 82,
      .sms_per_tpc = 2,
      .gpcs = {},
      .sm_preference = {
          0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46,
          48, 50, 52, 54, 56, 58, 60, 62, 64, 66, 68, 70, 72, 74, 76, 78, 80, 1, 3, 5, 7, 9, 11, 13,
          15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57,
          59, 61, 63, 65, 67, 69, 71, 73, 75, 77, 79, 81
      },
      .processing_blocks = 4,
      .blocks_per_sm = 16,
      .cluster_blocks_per_sm = 32,
      .warps_per_sm = 48,
      .registers_per_sm = 65536,
      .threads_per_block = 1024,
      .registers_per_thread = 255,
      .max_cluster = 1,
      .coscheduled_sms = 0,
      .register_unit = 256,
      .shared_memory_unit = 128,
      .shared_memory_reserve = 1024,
      .shared_memory_per_block = 101376,
      .shared_memory_configurations = {8192, 16384, 32768, 65536, 102400},
      .local_memory_initial = 1024,
      .local_memory_unit = 16,
      .mechanisms = {
          .strict_round_robin = true,
          .warp_skip = true,
          .registers = tbsched::Layout::pooled,
          .shared_memory = tbsched::Layout::contiguous,
          .lowest_gap_first = true,
          .shared_memory_configuration = true,
          .configuration_per_tpc = true,
          .configuration_headroom = false,
          .explicit_carveout_is_upper_bound = false,
          .carveout_counts_blocks = true,
          .local_memory_configuration = true,
          .clusters_seek_idle_sms = true,
          .clusters_take_whole_tpcs = true,
          .clusters_use_singletons = true,
          .clusters_balance = true,
          .blocks_turn_singletons = true,
      },
      .policy = "ampere",
      .launch_order = "leftover",
      .hardware_queues = 8,
      .resident_grids = 128,
      .launch_latency_ns = 0,
      .completion_latency_ns = 0,
      .exit_latency_ns = 0,
      .event_latency_ns = 0,
      .legacy_latency_ns = 0,
      .launch_switch_ns = 0,
  };
}
