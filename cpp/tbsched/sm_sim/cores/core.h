// A core: issues instructions of its warps, one per slot, and does not issue a warp while it waits
// for an L1 miss.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "tbsched/sm_sim/caches/cache.h"
#include "tbsched/sm_sim/caches/mshrs.h"
#include "tbsched/sm_sim/clocks.h"
#include "tbsched/sm_sim/config.h"
#include "tbsched/sm_sim/cores/blocks.h"
#include "tbsched/sm_sim/dram/address_map.h"
#include "tbsched/sm_sim/event_queue.h"
#include "tbsched/sm_sim/network.h"
#include "tbsched/sm_sim/schedulers/scheduler.h"
#include "tbsched/sm_sim/statistics.h"
#include "tbsched/sm_sim/workload.h"

namespace tbsched::sm_sim {

// Components and settings shared by all cores.
struct Chip {
  const Config& config;
  const Clocks& clocks;
  const Workload& workload;
  const AddressMap& map;
  EventQueue& events;
  Network& requests;
  Blocks& blocks;
  Statistics& statistics;
  std::vector<BlockTime>& times;
  std::vector<WarpTime>* warps;  // nullptr: not logged
  bool perfect_l1;
};

class Core {
 public:
  Core(const CoreShape& shape, const Chip& chip, std::unique_ptr<Scheduler> scheduler);

  // Starts a block in a free place, if there is one for this core.
  void start_block(int64_t tick, int32_t place);

  // Issues an instruction in this slot.
  void issue(int64_t tick);

  // Receives sectors of a line.
  void fill(int64_t tick, Part part);

  // Notes that L2 has taken a line that this core wrote.
  void written(int64_t tick);

  // Completes the statistics after the last block has ended.
  void finish(int64_t tick);

  // Whether nothing is in progress.
  bool idle() const {
    return resident_ == 0 && missing_.empty() && stores_ == chip_.config.store_entries;
  }

 private:
  struct Warp {
    int64_t row;
    int64_t end;
    int32_t compute;  // instructions before the row's access
    int32_t missing;  // lines that it waits for
    int64_t stalled;  // order of the last stall among all
    int64_t awake;    // tick since when it can issue; -1: it cannot
  };

  struct Turn {
    int64_t slot;
    int32_t warp;
  };

  void emerge(int64_t slot);
  void execute(int64_t tick, int32_t warp);
  Access access(int64_t tick, int32_t warp);
  void leave_at(int64_t slot, Warps warps);
  void open_barrier(int64_t slot, int32_t place);
  int64_t lines_of(const Warp& warp) const;
  bool take_l1(int64_t tick, int32_t number, int64_t slots);
  bool access_line(int64_t tick, int32_t warp, Access kind, Part part);
  bool load(int64_t tick, int32_t warp, Part part);
  bool store(int64_t tick, Part part);
  void send_write(int64_t tick, Part part);
  void fill_l1(int64_t tick, Part part);
  Part part_of(int64_t row) const;
  Access kind_of(int64_t row) const {
    return static_cast<Access>(chip_.workload.access[static_cast<size_t>(row)]);
  }
  void to_next_row(Warp& warp) const;
  void stall(int64_t tick, int32_t warp, Access kind);
  void wake(int64_t tick, Warps warps);
  void sleep(int64_t tick, Warps warps);
  Warps to_replay(Warps stalled) const;
  void make_ready(int64_t tick, Warps warps);
  void retire(int64_t tick, Warps warps);
  void schedule_next_issue(int64_t tick);
  void ask_for(int64_t slot);
  void count_idle(int64_t tick);

  Chip chip_;
  CoreShape shape_;
  std::unique_ptr<Scheduler> scheduler_;
  Cache l1_;
  Sectors all_sectors_;
  Mshrs<Warps> missing_;
  std::array<Warp, 64> warps_{};
  std::vector<int32_t> left_;    // by place: warps that have not ended
  std::vector<int32_t> blocks_;  // by place
  // Every resident warp is ready, in the pipeline, or waits: for memory, a barrier, or L1.
  Warps ready_ = 0;
  Warps waiting_ = 0;
  Warps resident_ = 0;
  Warps at_barrier_ = 0;
  Warps has_turn_ = 0;           // has the turn at L1
  Warps stalled_loads_ = 0;      // waiting warps that need an MSHR
  Warps stalled_stores_ = 0;     // waiting warps that need room for a store
  Warps done_ = 0;               // have issued their last instruction
  std::deque<Turn> turns_;       // waiting for L1
  int64_t l1_free_ = 0;          // slot in which L1 is free
  std::vector<Warps> pipeline_;  // warps that leave the pipeline in each slot, modulo its length
  int64_t next_slot_ = -1;       // slot of its pending issue event
  int64_t last_slot_ = -1;       // slot of its last issue
  int64_t idle_since_ = 0;       // -1: a warp is ready or in the pipeline
  int64_t blocked_ = 0;          // ticks in which it was idle while its warps waited
  int64_t empty_ = 0;            // ticks in which it had no warp
  int64_t stalls_ = 0;
  int32_t stores_;  // lines that it may still write
};

}  // namespace tbsched::sm_sim
