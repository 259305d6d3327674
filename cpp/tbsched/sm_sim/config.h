// A simulated GPU: cores, caches, network and memory. Every parameter is a whole number.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tbsched::sm_sim {

// The defaults are the configuration owl-table1. config.cc explains each parameter.
// What each parameter means: see parameters().
struct Config {
  int32_t cores = 28;
  int32_t core_mhz = 1300;
  int32_t issue_cycles = 4;
  int32_t issue_width = 1;
  int32_t pipeline_stages = 5;
  int32_t hit_stages = 5;
  int32_t warps_per_core = 32;
  int32_t blocks_per_core = 8;
  int32_t store_entries = 32;

  int32_t group_warps = 8;
  int32_t strict_groups = 0;
  int32_t refill_to_back = 1;
  int32_t own_blocks = 0;
  int32_t fair_cycles = 10'000;

  int32_t line_bytes = 64;
  int32_t line_sectors = 1;
  int32_t hash_sets = 0;
  int32_t l1_bytes = 32 * 1024;
  int32_t l1_ways = 8;
  int32_t l1_replacement = 0;
  int32_t l1_mshrs = 32;
  int32_t l1_write_back = 1;
  int32_t l1_store_allocates = 0;
  int32_t l1_miss_allocates = 0;
  int32_t l1_line_cycles = 1;
  int32_t replay_all = 0;

  int32_t crossbar = 0;
  int32_t mesh_width = 6;
  int32_t mesh_height = 6;
  int32_t controllers_at_edges = 0;
  int32_t network_mhz = 650;
  int32_t channel_bytes = 32;
  int32_t router_cycles = 1;

  int32_t controllers = 8;
  int32_t l2_bytes = 512 * 1024;
  int32_t l2_ways = 16;
  int32_t l2_replacement = 0;
  int32_t l2_fetch_sectors = 1;
  int32_t l2_mshrs = 128;
  int32_t l2_cycles = 62;

  int32_t channel_interleave = 2048;
  int32_t bank_interleave = 2048;
  int32_t hash_banks = 0;

  int32_t dram_mhz = 800;
  int32_t banks = 4;
  int32_t row_bytes = 2048;
  int32_t dram_queue = 128;
  int32_t bus_bytes = 8;
  int32_t t_cl = 10;
  int32_t t_wl = 7;
  int32_t t_rcd = 12;
  int32_t t_ras = 25;
  int32_t t_rp = 10;
  int32_t t_rc = 35;
  int32_t t_rrd = 8;
  int32_t t_faw = 0;
  int32_t t_ccd = 2;
  int32_t t_rtp = 2;
  int32_t t_rtw = 9;
  int32_t t_cdlr = 6;
  int32_t t_wr = 11;

  int32_t prefetch_stop = 0;
  int32_t prefetch_lower = 8;
  int32_t prefetch_higher = 16;
  int32_t prefetch_threshold = -1;
  int32_t queue_mean_shift = 10;
  int32_t prefetch_absent = 0;

  int32_t sector_bytes() const { return line_bytes / line_sectors; }
  // Bytes of one DRAM access.
  int32_t access_bytes() const { return sector_bytes() * l2_fetch_sectors; }
  // DRAM cycles for which an access occupies the data bus: two transfers a cycle.
  int32_t burst() const { return access_bytes() / (2 * bus_bytes); }
};

// A parameter with its limits and what it means.
struct Parameter {
  std::string_view section;
  std::string_view name;
  int32_t Config::* member;
  int32_t least;  // the value is in least..greatest
  int32_t greatest;
  std::string_view doc;
};

// Returns all parameters, in the order of Config.
std::span<const Parameter> parameters();

// Throws std::invalid_argument that names the parameter, its value and the limit, if the config is
// not valid.
void check(const Config& config);

}  // namespace tbsched::sm_sim
