// One run of a sequence on the GPU. However the run ends, its blocks have been released then;
// `idle` says whether they have left.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "launcher/driver/context.h"
#include "launcher/plan/plan.h"
#include "launcher/run/time_spent.h"
#include "launcher/run/together.h"
#include "launcher/run/workers.h"

namespace tbsched::cuda {

// Interval at which waiting functions call `interrupted`.
inline constexpr auto kBetweenInterrupts = std::chrono::milliseconds(5);

// Runs of a sequence that may be doubtful before observing it fails.
inline constexpr int kAttempts = 3;
// Pauses before each further run, if another process spoils them: its turn is over after some
// milliseconds, and perhaps all its work.
inline constexpr std::array kPausesWhileShared = {
    std::chrono::milliseconds(0), std::chrono::milliseconds(3), std::chrono::milliseconds(10),
    std::chrono::milliseconds(30), std::chrono::milliseconds(100)};

struct RunOptions {
  bool warp_slots = false;
  std::chrono::nanoseconds deadline = std::chrono::seconds(10);
  // How long nothing must happen, with blocks held, until launches that have not started are taken
  // to wait for room. An eighth is enough if every launch has started.
  std::chrono::nanoseconds settle = std::chrono::milliseconds(3);
  // Lets the worker make all launch calls, as in a timed sequence, not only those that may block.
  // Its first call after a while is slow, so an earlier one makes issue times more accurate.
  bool by_worker = false;
  // Accepts any latent state at the start and at the end: blocks need not leave in order, which
  // saves time.
  bool any_state = false;
  // The blocks of each group wait for each other.
  Groups groups;
  // When each launch of a timed sequence with groups is called, from the first call on. Empty: as
  // fast as possible.
  std::vector<std::chrono::nanoseconds> issue_times;
  // What it shares with runs on other GPUs, and its number among them; nullptr: it runs alone.
  std::shared_ptr<Together> together;
  size_t part = 0;
  // Called every few milliseconds; throws to end the run.
  std::function<void()> interrupted = [] {};
};

// Returns how long a block stays at most, whatever happens to this process: longer than any
// deadline.
std::chrono::nanoseconds longest_hold(std::chrono::nanoseconds deadline);

// Calls `done` repeatedly until it returns true. Returns false if it did not within `patience`.
bool poll_until(std::chrono::nanoseconds patience, const std::function<bool()>& done);
// Time to wait for released blocks to leave: a thousand times what they take.
inline constexpr auto kUntilLeft = std::chrono::milliseconds(400);

// Returns whether the GPU has done all work in the plan's streams, and the workers have made all
// their calls. Until then blocks may use the memory laid out for them. The context must be current.
bool all_done(const Driver& driver, const Workers& workers, const Plan& plan);

class Run {
 public:
  // `idle` is false from the first launch until the GPU is known to hold none of our blocks.
  Run(const Context& context, Workers& workers, Plan& plan, const RunOptions& options, bool& idle,
      TimeSpent& spent);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Runs the sequence to its end. Throws CudaFailure, DeadlineExceeded or what options.interrupted
  // throws.
  void perform(const Sequence& sequence);
  // Returns for each group whether all its blocks were there at the same time before the clean-up.
  const std::vector<bool>& met() const { return met_; }
  // Returns whether blocks left launch by launch. That returns the GPU to its usual state.
  bool in_order() const { return !timed_ && !released_at_once_; }

 private:
  using Clock = std::chrono::steady_clock;

  // Progress of one launch, according to its records.
  struct Progress {
    size_t started = 0;         // blocks
    size_t started_prefix = 0;  // first blocks that are known to have started
    size_t ended = 0;           // blocks
    size_t ended_prefix = 0;    // first blocks that are known to have ended
    bool submitted = false;
    bool released = false;  // or ends by itself
  };

  // Progress of all launches together.
  struct Count {
    size_t pending = 0;             // blocks launched, not started
    size_t unstarted_launches = 0;  // launches without a started block
    size_t held = 0;                // blocks started, not released
    size_t leaving = 0;             // blocks started and released, not ended
    uint64_t returned = 0;          // calls of the workers
    size_t met_groups = 0;
    bool operator==(const Count&) const = default;
  };

  // Issues the events in order; in a held sequence it waits after each launch and release until
  // nothing changes any more.
  void issue_events(const Sequence& sequence);
  // Makes the call of a launch, or lets a worker make it if it may block.
  void submit(size_t launch_index);
  // Each of these lets the worker of the current host make one call.
  void record_event(const PlannedMark& mark);
  void wait_event(const PlannedMark& mark);
  void synchronize(const PlannedMark& mark);
  void make_host_call(const HostCall& call, const PlannedMark& mark);
  // Issues a copy, memset, host function or value.
  template <typename Planned>
  void issue(const Planned& planned);
  // Lets the worker of the current host make a call of the driver, and note when.
  template <typename Call>
  void submit_call(const Call& call);
  // Holds workers until all of them have their calls, so that they begin together.
  void hold_workers(const Sequence& sequence);
  // Launches, and waits until its blocks are placed or wait for room.
  void launch(size_t launch_index);
  // Launches a graph, by the worker of the current host.
  void launch(const PlannedGraph& graph);
  // Releases the blocks of a launch, and waits until they have left and others have taken their
  // room.
  void release(size_t launch_index);
  // Waits for groups to meet. Blocks learn within microseconds that the last of them has arrived.
  // In a held sequence a group with blocks that wait for room hangs: then the wait ends. In a timed
  // one the wait has just begun, and blocks that are still there at its end are released.
  void await_meetings();
  // Notes whether all blocks of this run have left by themselves. Returns whether those of all GPUs
  // have, or no GPU waits any longer.
  bool all_have_ended(const Count& count);
  // Returns the number of groups all of whose blocks have started.
  size_t count_complete_groups() const;
  // Releases launch by launch, waiting for each, so that the GPU starts the next sequence from the
  // same state. Releases all at once if blocks have waited for room, which prevents that, or if any
  // state will do.
  void clean_up();
  // Waits until done(count) is true. Returns false if nothing has changed for so long that pending
  // blocks are taken to wait for room. Throws as perform().
  template <typename Done>
  bool wait_until(const Done& done);
  // Returns whether nothing has changed for long enough to give up. `unchanged`: for how long.
  bool is_patience_over(const Count& count, Clock::duration unchanged) const;
  // Returns how long to wait for calls that may be blocked.
  Clock::duration patience() const;
  // Reads the blocks' records, and returns what has happened so far.
  Count count_progress();
  // Tells the blocks of a launch to leave.
  void release_launch(size_t launch_index);
  // Waits until the driver knows that all work is done. Throws what a worker or the driver reports.
  void synchronise();
  // Cleans up after an error: releases everything at once, and makes no driver call before the
  // workers have returned from theirs.
  void abandon() noexcept;
  // Calls options.interrupted if it is time.
  void call_interrupted();
  // Returns the text of an exceeded deadline: which launches have not started.
  std::string describe_progress() const;

  const Context& context_;
  Workers& workers_;
  const Plan& plan_;
  const bool timed_;
  const std::span<PlannedLaunch> launches_;
  const std::span<const PlannedMark> marks_;
  const std::span<const PlannedGraph> graphs_;
  const std::span<const PlannedTransfer> transfers_;
  const std::span<const PlannedValue> values_;
  const std::span<PlannedCall> calls_;
  const RunOptions& options_;
  bool& idle_;
  TimeSpent& spent_;
  const Clock::time_point deadline_;
  std::vector<Progress> progress_;
  size_t event_ = 0;  // the event of the next call
  int32_t host_ = 0;  // the thread of that call
  // Lets several host threads begin at the same time.
  const std::shared_ptr<std::atomic<bool>> may_begin_ = std::make_shared<std::atomic<bool>>(false);
  // When the host makes its calls, if their times are given.
  struct Pace {
    // Waits until `time`, or until the run is abandoned.
    void wait_until(Clock::time_point time);

    std::atomic<bool> is_waiting = false;
    std::atomic<bool> given_up = false;
  };
  const std::shared_ptr<Pace> pace_ = std::make_shared<Pace>();
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point interrupted_called_ = Clock::now();
  Clock::time_point room_free_at_{};  // when the last release made room
  std::vector<bool> met_;
  bool released_at_once_ = false;
  bool abandoned_ = false;
};

}  // namespace tbsched::cuda
