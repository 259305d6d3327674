// The blocks on SMs: when each ends, and when it leaves.
//
// Each block that was placed and has not left is in one batch of blocks that leave together. A
// batch leaves at one event of the queue, or it waits: for the memory of the work before its
// launch, or for blocks that it meets. If blocks slow each other, their ends change whenever blocks
// are placed or leave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "tbsched/hardware/device_spec.h"
#include "tbsched/program/event.h"
#include "tbsched/program/timeline.h"
#include "tbsched/sim/between_gpus.h"
#include "tbsched/sim/block_scheduler.h"
#include "tbsched/sim/clock.h"
#include "tbsched/sim/event_queue.h"
#include "tbsched/sim/gpu_work.h"
#include "tbsched/sim/paces.h"
#include "tbsched/sim/snapshot.h"

namespace tbsched {

class RunningBlocks {
 public:
  // The arguments outlive it.
  RunningBlocks(const DeviceSpec& spec, const Clock& clock, EventQueue& events,
                BlockScheduler& scheduler, GpuWork& work, BetweenGpus& between)
      : spec_(spec),
        clock_(clock),
        events_(events),
        scheduler_(scheduler),
        work_(work),
        between_(between) {}

  // Makes blocks of these launches slow each other. Call it before any launch is added.
  void slow(const Neighbours& neighbours) { paces_.emplace(neighbours, spec_.sms); }
  // Returns how blocks of a launch that are placed at once leave.
  BlockScheduler::Leaving leaving(const Launch& launch) const {
    return leave_together(launch) ? BlockScheduler::Leaving::together
                                  : BlockScheduler::Leaving::one_by_one;
  }
  // Adds the next launch of the scheduler. The launch outlives this object. `name`: its number in
  // the whole program; -1: it is hidden. `meeting`: the number of its group in Meetings, if its
  // blocks meet others.
  void add(const Launch& launch, int32_t name, std::optional<int32_t> meeting);

  // Starts blocks that have been placed now.
  void place(const PlacedBlocks& placed);
  // Ends the memory waits of a launch's blocks: all work before it in its stream has left.
  void end_memory_waits(int32_t launch);
  // Ends the wait of a launch's blocks: all blocks of its group are resident.
  void meet(int32_t launch);
  struct Exit {
    int32_t launch;
    bool is_last;  // whether all blocks of the launch have left
  };
  // Removes the next batch of blocks that has ended by now, and returns its launch; none: there is
  // no such batch.
  std::optional<Exit> exit_next();
  // Updates the paces after blocks were placed or left.
  void update_paces();

  // Returns a launch of the scheduler.
  const Launch& launch(const int32_t launch) const { return *launches_[launch].launch; }
  // Returns the timeline's rows of a launch's blocks, or its only row.
  std::span<BlockTime> rows(const int32_t launch) const {
    const LaunchState& state = launches_[launch];
    return std::span(between_.blocks).subspan(state.first_row, state.row_count());
  }
  // Returns whether blocks of the launch have not left.
  bool has_unfinished(const int32_t launch) const { return launches_[launch].unfinished > 0; }
  // Returns whether the blocks of a launch wait for others that they meet.
  bool meets(const int32_t launch) const {
    const std::optional<int32_t> meeting = launches_[launch].meeting;
    return meeting && between_.meetings.waits(*meeting);
  }
  // Sets the rows of blocks that never started: no SM, and no time.
  void mark_never_started();
  // Returns how many batches of blocks have started.
  int64_t starts() const { return starts_; }
  // Returns the first start of launches that are not hidden, by the process's own clock; kNever:
  // none has started.
  int64_t first_start_ns() const { return first_start_ns_; }
  // Returns the last known end of launches that are not hidden, by the process's own clock; 0: none
  // has started.
  int64_t last_end_ns() const { return last_end_ns_; }
  // Returns the duration of a block. Throws std::invalid_argument where time overflows.
  int64_t duration_ns(int32_t launch, size_t block) const;
  // Returns a time before which a launch neither ends nor completes a group of blocks that meet, if
  // none of its blocks is placed before `from_ns` and no other launch ends.
  int64_t busy_until_ns(int32_t launch, int64_t from_ns) const;
  // Returns whether launches may start when blocks of others trigger.
  bool any_programmatic() const { return any_programmatic_; }
  // Returns the resident blocks of launches that are not hidden.
  std::vector<ResidentBlocks> resident_blocks() const;

 private:
  struct LaunchState {
    const Launch* launch;
    int32_t name;                         // see add()
    size_t first_row;                     // of its blocks in the timeline
    bool has_one_row;                     // for all of its blocks
    int32_t unfinished;                   // blocks that have not left
    int32_t untriggered;                  // blocks whose trigger time is not known
    std::optional<int32_t> meeting = {};  // see add()
    int64_t triggered_ns = 0;             // the latest known trigger of its blocks
    int64_t end_ns = 0;                   // the latest known end of its blocks

    size_t row_count() const { return has_one_row ? 1 : static_cast<size_t>(launch->blocks); }
  };
  // Blocks of a launch that started together and leave together.
  struct Batch {
    int32_t launch;
    int32_t first_block;
    int32_t blocks;
    int32_t first_footprint;  // index into footprints_
    int64_t start_ns;
    int64_t duration_ns;
  };
  // A footprint, and the index of the next one of the same batch, or -1.
  struct StoredFootprint {
    Footprint footprint;
    int32_t next;
  };
  // Progress of a block that others may slow.
  struct Pace {
    double rest_ns = 0;    // until its end, at a pace of 1
    double pace = 1;       // 1 is as fast as alone
    int64_t since_ns = 0;  // when rest_ns and pace were set
  };

  // Returns whether blocks of a launch that are placed at once leave at the same time.
  bool leave_together(const Launch& launch) const {
    return launch.duration_ns.size() == 1 && !paces_;
  }
  bool is_hidden(const int32_t launch) const { return launches_[launch].name < 0; }
  // Starts blocks: schedules their exit, or makes them wait.
  void start(const Batch& batch);
  // Returns the timeline's rows of these blocks.
  std::span<BlockTime> rows(const Batch& batch) const;
  // Schedules the exit of blocks that end at `end_ns`.
  void schedule_exit(const Batch& batch, int64_t end_ns);
  // Notes when blocks trigger, and schedules the trigger of their launch once all are known.
  // `end_ns`: their end if they do not wait between their trigger and their end.
  void note_trigger(const Batch& batch, int64_t end_ns);
  // Sets the end of blocks in the timeline, by the GPU's clock, which may have advanced while the
  // process was stopped.
  void note_end(const Batch& batch, int64_t own_end_ns);
  // Tells the paces how the launch is spread when it is alone: evenly over the SMs that it may use.
  void set_alone_spread(int32_t launch);
  // Throws std::invalid_argument if a duration from now on is beyond the range of time.
  void check_time(int32_t launch, int64_t duration_ns) const;
  // Stores a footprint before the one at `next`, or -1, of its batch. Returns its index.
  int32_t store_footprint(const Footprint& footprint, int32_t next);

  const DeviceSpec& spec_;
  const Clock& clock_;
  EventQueue& events_;
  BlockScheduler& scheduler_;
  GpuWork& work_;
  BetweenGpus& between_;
  std::vector<LaunchState> launches_;
  bool any_programmatic_ = false;
  std::vector<Batch> batches_;                               // by the subject of their events
  std::vector<int32_t> free_batches_;                        // unused entries of batches_
  int64_t starts_ = 0;                                       // see starts()
  std::unordered_map<int32_t, std::vector<Batch>> waiting_;  // by launch
  std::vector<StoredFootprint> footprints_;
  int32_t free_footprint_ = -1;  // first unused entry of footprints_
  std::optional<Paces> paces_;
  std::vector<Pace> running_;  // with paces, by batch
  int64_t first_start_ns_ = kNever;
  int64_t last_end_ns_ = 0;
};

}  // namespace tbsched
