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

// Components and settings that all cores share.
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
  bool perfect_l1;               // every access hits L1
};

// A core with its L1. A warp is named by its number in the core, a block by its place there.
class Core {
 public:
  Core(const CoreShape& shape, const Chip& chip, std::unique_ptr<Scheduler> scheduler);

  // Starts the next block for this core, if there is one, in a free place.
  void start_block(int64_t tick, int32_t place);

  // Issues the instructions of the slot that begins at `tick`.
  void issue(int64_t tick);

  // Receives sectors of a line that loads have missed.
  void fill(int64_t tick, Part part);

  // Frees the room of a store: L2 has taken a line that this core wrote.
  void free_store(int64_t tick);

  // Completes the statistics after the last block has ended.
  void finish(int64_t tick);

  // Returns whether nothing is in progress.
  bool idle() const {
    return resident_ == 0 && mshrs_.empty() && free_stores_ == chip_.config.store_entries;
  }

 private:
  struct Warp {
    int64_t row;                 // of the workload, that it executes
    int64_t end;                 // behind its last row
    int32_t remaining_computes;  // instructions to issue before the row's access
    int32_t missing_lines;       // lines on their way that it waits for
    int64_t stall_order;         // position of its last stall among all stalls of the core
    int64_t ready_since;         // tick; -1: it cannot issue; kept only while warps are logged
  };

  // The slot in which L1 is free for a warp that waits for it.
  struct Turn {
    int64_t slot;
    int32_t warp;
  };

  // Makes the warps ready that leave the pipeline in a slot, or retires them; makes those ready
  // whose turn at L1 has come.
  void drain_pipeline(int64_t slot);
  // Issues the next instruction of a ready warp: one that computes, a barrier, or an access. Puts
  // the warp into the pipeline, unless it waits.
  void execute(int64_t tick, int32_t warp_id);
  // Accesses the lines of a warp's instruction one after the other. If one must be repeated later,
  // the warp stalls, and issues the instruction again. Returns the kind of the instruction.
  Access access(int64_t tick, int32_t warp_id);
  // Puts warps into the pipeline, which they leave in that slot.
  void enter_pipeline_until(int64_t slot, Warps warps);
  // Opens the barrier of a block if all of its warps that have not ended are at it.
  void open_barrier(int64_t slot, int32_t place);
  // Returns for how many slots the warp's next instruction occupies L1.
  int64_t l1_slots_of(const Warp& warp) const;
  // Reserves L1 for an instruction that occupies it for `slots`. Returns false if the warp must
  // wait for its turn, in which it issues the instruction again.
  bool reserve_l1(int64_t tick, int32_t warp_id, int64_t slots);
  // Accesses one line. Returns false if the access must be repeated later.
  bool access_line(int64_t tick, int32_t warp_id, Access kind, Part part);
  // Loads sectors of a line, asks L2 for those that miss, and adds the warp to those that wait.
  // Returns false if no MSHR is free.
  bool load(int64_t tick, int32_t warp_id, Part part);
  // Stores the part of an access that is in one line. Returns false if no store can be issued yet.
  // The warp does not wait for it. Whole sectors are written, so none must be read.
  bool store(int64_t tick, Part part);
  // Sends written sectors to L2.
  void send_write(int64_t tick, Part part);
  // Adds sectors to L1, and writes back the line that they evict.
  void fill_l1(int64_t tick, Part part);
  // Returns the line and sectors that a row accesses.
  Part part_of(int64_t row) const;
  Access kind_of(int64_t row) const {
    return static_cast<Access>(chip_.workload.access[static_cast<size_t>(row)]);
  }
  // Moves a warp to its next row.
  void advance_row(Warp& warp) const;
  // Makes the warp wait for room, to issue the same instruction again.
  void stall(int64_t tick, int32_t warp_id, Access kind);
  // Logs that these warps can issue from `tick` on.
  void wake(int64_t tick, Warps warps);
  // Logs that these warps cannot issue from `tick` on; some could not before.
  void sleep(int64_t tick, Warps warps);
  // Returns the stalled warps that try again, now that there is room for one: all, or the one that
  // has waited longest.
  Warps next_to_replay(Warps stalled) const;
  // Makes waiting warps ready, and has them issue from the next slot on.
  void make_ready(int64_t tick, Warps warps);
  // Ends warps, and starts a block in the place of one whose last warp has ended.
  void retire(int64_t tick, Warps warps);
  // Schedules the next slot in which something can happen; none if all warps wait.
  void schedule_next_issue(int64_t tick);
  // Schedules an issue in that slot or the first free one after it, unless one is scheduled before.
  void schedule_issue(int64_t slot);
  // Counts the time since the last call as idle, if the core is idle.
  void count_idle(int64_t tick);

  Chip chip_;
  CoreShape shape_;
  std::unique_ptr<Scheduler> scheduler_;
  Cache l1_;
  Sectors all_sectors_;
  Mshrs<Warps> mshrs_;
  std::array<Warp, 64> warps_{};
  std::vector<int32_t> remaining_warps_;  // warps that have not ended, by place
  std::vector<int32_t> block_at_;         // by place; -1: none yet
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
  int64_t l1_free_slot_ = 0;     // from which on L1 is free
  std::vector<Warps> pipeline_;  // warps that leave the pipeline in each slot, modulo its length
  int64_t next_slot_ = -1;       // slot of its pending issue event
  int64_t last_slot_ = -1;       // slot of its last issue
  int64_t idle_since_ = 0;       // tick; -1: a warp is ready or in the pipeline
  int64_t blocked_ticks_ = 0;    // ticks in which it was idle while its warps waited
  int64_t empty_ticks_ = 0;      // ticks in which it had no warp
  int64_t stalls_ = 0;           // so far
  int32_t free_stores_;          // lines that the core may still write
};

}  // namespace tbsched::sm_sim
