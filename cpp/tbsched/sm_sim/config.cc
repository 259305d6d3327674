#include "tbsched/sm_sim/config.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tbsched::sm_sim {
namespace {

constexpr int32_t kMany = 1 << 20;
constexpr int32_t kLong = 1 << 30;

// A name begins with its section's letters where it would not be clear alone.
constexpr std::array kParameters = {
    Parameter{"core", "cores", &Config::cores, 1, 1024, "cores, each with an L1 cache"},
    Parameter{"core", "core_mhz", &Config::core_mhz, 1, 100'000, "clock of the cores, MHz"},
    Parameter{"core", "issue_cycles", &Config::issue_cycles, 1, 64,
              "core cycles from one issue slot to the next"},
    Parameter{"core", "issue_width", &Config::issue_width, 1, 8,
              "warp instructions that a slot issues, each of another warp"},
    Parameter{"core", "pipeline_stages", &Config::pipeline_stages, 1, 64,
              "slots from an instruction of a warp to its next one"},
    Parameter{"core", "hit_stages", &Config::hit_stages, 1, 256,
              "slots from a load that hits L1 to the warp's next instruction"},
    Parameter{"core", "warps_per_core", &Config::warps_per_core, 1, 64, "resident warps at most"},
    Parameter{"core", "blocks_per_core", &Config::blocks_per_core, 1, 64,
              "resident blocks at most"},
    Parameter{"core", "store_entries", &Config::store_entries, 1, 1024,
              "written lines of a core on their way to L2, beyond which stores wait"},
    Parameter{"scheduling", "group_warps", &Config::group_warps, 1, 64,
              "warps that a group has at least"},
    Parameter{"scheduling", "strict_groups", &Config::strict_groups, 0, 1,
              "a slot stays empty rather than to go to another group, unless all warps of the "
              "group wait for memory"},
    Parameter{"scheduling", "refill_to_back", &Config::refill_to_back, 0, 1,
              "a group that only has new blocks comes last; else it keeps its priority"},
    Parameter{"scheduling", "own_blocks", &Config::own_blocks, 0, 1,
              "block b runs on core b modulo cores; else on the core that has room first"},
    Parameter{"scheduling", "fair_cycles", &Config::fair_cycles, 1, kLong,
              "core cycles for which the fair scheduler prefers a group"},
    Parameter{"l1", "line_bytes", &Config::line_bytes, 16, 512, "bytes of a line of both caches"},
    Parameter{"l1", "line_sectors", &Config::line_sectors, 1, 4,
              "sectors of a line, each of which is fetched alone"},
    Parameter{"l1", "hash_sets", &Config::hash_sets, 0, 1,
              "the set of a line depends on its whole number, in both caches"},
    Parameter{"l1", "l1_bytes", &Config::l1_bytes, 16, kLong, "size of an L1 cache"},
    Parameter{"l1", "l1_ways", &Config::l1_ways, 1, 64, "lines of a set"},
    Parameter{"l1", "l1_replacement", &Config::l1_replacement, 0, 2,
              "which line of a set leaves: 0 the one used least recently, 1 the one that came "
              "first, 2 any"},
    Parameter{"l1", "l1_mshrs", &Config::l1_mshrs, 1, 4096,
              "missing lines of a core at once; loads of more wait, and are replayed"},
    Parameter{"l1", "l1_write_back", &Config::l1_write_back, 0, 1,
              "stores stay in L1 until evicted; else each goes to L2 at once"},
    Parameter{"l1", "l1_store_allocates", &Config::l1_store_allocates, 0, 1,
              "stores that go to L2 at once put their line into L1, too"},
    Parameter{"l1", "l1_miss_allocates", &Config::l1_miss_allocates, 0, 1,
              "a line has its place from its miss on, and what comes once it has lost that is not "
              "kept; else it gets a place when it comes"},
    Parameter{"l1", "l1_line_cycles", &Config::l1_line_cycles, 0, 64,
              "core cycles that L1 takes for each line of an instruction, one after the other; 0: "
              "all at once"},
    Parameter{"l1", "replay_all", &Config::replay_all, 0, 1,
              "once an MSHR is free, all that need one try again; else the one that waits longest"},
    Parameter{"network", "crossbar", &Config::crossbar, 0, 1, "a crossbar takes the mesh's place"},
    Parameter{"network", "mesh_width", &Config::mesh_width, 1, 64, "nodes of a row"},
    Parameter{"network", "mesh_height", &Config::mesh_height, 1, 64, "rows of nodes"},
    Parameter{"network", "controllers_at_edges", &Config::controllers_at_edges, 0, 1,
              "controllers are in the first and the last row; else spread evenly"},
    Parameter{"network", "network_mhz", &Config::network_mhz, 1, 100'000,
              "clock of the network and of L2, MHz"},
    Parameter{"network", "channel_bytes", &Config::channel_bytes, 1, 1024,
              "bytes that a link carries in a cycle"},
    Parameter{"network", "router_cycles", &Config::router_cycles, 1, 100,
              "network cycles from router to router"},
    Parameter{"l2", "controllers", &Config::controllers, 1, 256,
              "memory controllers, each with a slice of L2"},
    Parameter{"l2", "l2_bytes", &Config::l2_bytes, 16, kLong, "size of a slice"},
    Parameter{"l2", "l2_ways", &Config::l2_ways, 1, 64, "lines of a set"},
    Parameter{"l2", "l2_replacement", &Config::l2_replacement, 0, 2, "as l1_replacement"},
    Parameter{"l2", "l2_fetch_sectors", &Config::l2_fetch_sectors, 1, 4,
              "sectors that L2 fetches together, in one access of the DRAM"},
    Parameter{"l2", "l2_mshrs", &Config::l2_mshrs, 1, 4096, "missing lines of a slice at once"},
    Parameter{"l2", "l2_cycles", &Config::l2_cycles, 0, 10'000,
              "core cycles that a slice adds to every read"},
    Parameter{"address", "channel_interleave", &Config::channel_interleave, 16, kMany,
              "bytes in a row that go to one controller"},
    Parameter{"address", "bank_interleave", &Config::bank_interleave, 16, kMany,
              "bytes in a row, of those of a controller, that go to one bank"},
    Parameter{"address", "hash_banks", &Config::hash_banks, 0, 1,
              "the bank depends on the row's number, too"},
    Parameter{"dram", "dram_mhz", &Config::dram_mhz, 1, 100'000, "clock of the memory, MHz"},
    Parameter{"dram", "banks", &Config::banks, 1, 64, "banks of a controller"},
    Parameter{"dram", "row_bytes", &Config::row_bytes, 64, 1 << 15, "bytes of a row"},
    Parameter{"dram", "dram_queue", &Config::dram_queue, 1, 4096,
              "requests that a controller holds before it takes no more"},
    Parameter{"dram", "bus_bytes", &Config::bus_bytes, 1, 256,
              "width of a controller's data bus; it moves twice that in a cycle"},
    Parameter{"dram", "t_cl", &Config::t_cl, 1, 200, "read to its data"},
    Parameter{"dram", "t_wl", &Config::t_wl, 1, 200, "write to its data"},
    Parameter{"dram", "t_rcd", &Config::t_rcd, 1, 200, "activate to read or write"},
    Parameter{"dram", "t_ras", &Config::t_ras, 1, 200, "activate to precharge"},
    Parameter{"dram", "t_rp", &Config::t_rp, 1, 200, "precharge to activate"},
    Parameter{"dram", "t_rc", &Config::t_rc, 1, 400, "activate to activate of one bank"},
    Parameter{"dram", "t_rrd", &Config::t_rrd, 1, 200, "activate to activate of another bank"},
    Parameter{"dram", "t_faw", &Config::t_faw, 0, 400,
              "activate to the fourth activate after it; 0: no limit"},
    Parameter{"dram", "t_ccd", &Config::t_ccd, 1, 200, "read to read, or write to write"},
    Parameter{"dram", "t_rtp", &Config::t_rtp, 1, 200, "read to precharge"},
    Parameter{"dram", "t_rtw", &Config::t_rtw, 1, 200, "read to write"},
    Parameter{"dram", "t_cdlr", &Config::t_cdlr, 1, 200, "last data of a write to read"},
    Parameter{"dram", "t_wr", &Config::t_wr, 1, 200, "last data of a write to precharge"},
    Parameter{"prefetch", "prefetch_stop", &Config::prefetch_stop, 0, 2,
              "what stops the prefetching of an open row: 0 so many lines, once another row of its "
              "bank is asked for; 1 the first request for another row of its bank, 2 of its "
              "controller"},
    Parameter{"prefetch", "prefetch_lower", &Config::prefetch_lower, 0, 512,
              "lines of an open row that are prefetched although another row is asked for, where "
              "prefetch_stop is 0"},
    Parameter{"prefetch", "prefetch_higher", &Config::prefetch_higher, 0, 512,
              "as many instead while few requests wait"},
    Parameter{"prefetch", "prefetch_threshold", &Config::prefetch_threshold, -1, kMany,
              "how many requests are few: less than this; -1: less than their mean"},
    Parameter{"prefetch", "queue_mean_shift", &Config::queue_mean_shift, 0, 20,
              "the mean is over about 2 to this power arrivals"},
    Parameter{"prefetch", "prefetch_absent", &Config::prefetch_absent, 0, 1,
              "lines that L2 has are not prefetched"},
};

// Returns the value of a parameter as text.
std::string value_of(const Config& config, const std::string_view name) {
  const auto parameter = std::ranges::find(kParameters, name, &Parameter::name);
  return std::to_string(config.*parameter->member);
}

// Throws std::invalid_argument that names the parameter and its value if a condition does not hold.
// `what`: the rest of the sentence.
void require(const Config& config, const bool holds, const std::string_view name,
             const std::string& what) {
  if (holds) return;
  throw std::invalid_argument("config." + std::string(name) + ": " + value_of(config, name) + " " +
                              what);
}

// Throws std::invalid_argument if sizes do not divide each other as they must.
void check_sizes(const Config& config) {
  const auto is_multiple = [](const int32_t all, const int32_t part) { return all % part == 0; };
  const auto product = [](const int32_t a, const int32_t b) { return std::to_string(a * b); };
  const auto require_multiple = [&](const std::string_view name, const int32_t value,
                                    const std::string_view of, const int32_t part) {
    require(config, is_multiple(value, part), name,
            "is no multiple of " + std::string(of) + ", " + value_of(config, of));
  };
  require(config, is_multiple(config.l1_bytes, config.line_bytes * config.l1_ways), "l1_bytes",
          "is no multiple of line_bytes * l1_ways, " + product(config.line_bytes, config.l1_ways));
  require(config, is_multiple(config.l2_bytes, config.line_bytes * config.l2_ways), "l2_bytes",
          "is no multiple of line_bytes * l2_ways, " + product(config.line_bytes, config.l2_ways));
  require_multiple("channel_interleave", config.channel_interleave, "line_bytes",
                   config.line_bytes);
  require_multiple("bank_interleave", config.bank_interleave, "line_bytes", config.line_bytes);
  require_multiple("row_bytes", config.row_bytes, "bank_interleave", config.bank_interleave);
  require(config, config.line_sectors != 3, "line_sectors", "is not 1, 2 or 4");
  require_multiple("line_bytes", config.line_bytes, "line_sectors", config.line_sectors);
  require_multiple("line_sectors", config.line_sectors, "l2_fetch_sectors",
                   config.l2_fetch_sectors);
  require(config, config.row_bytes / config.access_bytes() <= 512, "row_bytes",
          "has more than 512 accesses of " + std::to_string(config.access_bytes()) + " bytes");
  require(config, config.burst() > 0 && is_multiple(config.access_bytes(), 2 * config.bus_bytes),
          "l2_fetch_sectors",
          "of line_bytes are no multiple of 2 * bus_bytes, " + product(2, config.bus_bytes));
}

}  // namespace

std::span<const Parameter> parameters() { return kParameters; }

void check(const Config& config) {
  for (const Parameter& parameter : kParameters) {
    const int32_t value = config.*parameter.member;
    if (value < parameter.least || value > parameter.greatest) {
      throw std::invalid_argument(
          "config." + std::string(parameter.name) + ": " + std::to_string(value) + " is outside " +
          std::to_string(parameter.least) + ".." + std::to_string(parameter.greatest));
    }
  }
  check_sizes(config);
  const int32_t nodes = config.mesh_width * config.mesh_height;
  require(config, config.crossbar != 0 || config.cores + config.controllers <= nodes, "cores",
          "and controllers, " + value_of(config, "controllers") +
              ", are more than the mesh has nodes, " + std::to_string(nodes));
  require(config,
          config.crossbar != 0 || config.controllers_at_edges == 0 ||
              config.controllers <= 2 * config.mesh_width,
          "controllers",
          "at the edges are more than two rows of the mesh have nodes, " +
              std::to_string(2 * config.mesh_width));
}

}  // namespace tbsched::sm_sim
