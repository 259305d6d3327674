// One run of a sequence on the GPU. Whatever happens, its blocks have been told to leave when it
// ends. That they have left is what `idle` says.
#pragma once

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
#include "launcher/run/workers.h"

namespace tbsched::cuda {

// How often whoever waits asks whether it should go on.
inline constexpr auto kBetweenInterrupts = std::chrono::milliseconds(5);

struct RunOptions {
  bool warp_slots = false;
  std::chrono::nanoseconds deadline = std::chrono::seconds(10);
  // With blocks held and nothing new for so long, what has not started waits for room. An eighth
  // is enough where every launch has started.
  std::chrono::nanoseconds settle = std::chrono::milliseconds(3);
  // The worker makes all launch calls, not only those that may block, as in a timed sequence. Its
  // first call after a while is slow, so one before tells more about when launches are issued.
  bool by_worker = false;
  // Whatever latent state the GPU starts from will do, and so will any that it ends in: no time
  // goes into letting blocks leave in order.
  bool any_state = false;
  // The blocks of each group wait for each other.
  Groups groups;
  // Of a timed sequence with groups: when each launch is called, from the first call on. Empty: as
  // fast as the host can.
  std::vector<std::chrono::nanoseconds> issue_times;
  // Called every few milliseconds; throws to end the run.
  std::function<void()> interrupted = [] {};
};

// How long a block stays at most, whatever happens to this process: longer than any deadline.
std::chrono::nanoseconds longest_hold(std::chrono::nanoseconds deadline);

// Calls `done` now and then until it is true. False: it was not for so long.
bool comes_true(std::chrono::nanoseconds patience, const std::function<bool()>& done);
// How long to wait for blocks that were told to leave: a thousand times what they take.
inline constexpr auto kUntilLeft = std::chrono::milliseconds(400);

// Whether the GPU has done all that the plan's streams hold, and the workers all their calls. While
// it has not, blocks may use whatever was laid out for them. The context is current.
bool all_done(const Driver& driver, const Workers& workers, const Plan& plan);

class Run {
 public:
  // `idle` is false from the first launch until the GPU is known to hold none of our blocks.
  Run(const Context& context, Workers& workers, Plan& plan, const RunOptions& options, bool& idle,
      TimeSpent& spent);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // Throws CudaFailure, DeadlineExceeded or what options.interrupted throws.
  void perform(const Sequence& sequence);
  // Of each group, whether all its blocks were there at the same time before the clean-up.
  const std::vector<bool>& met() const { return met_; }
  // Whether blocks left launch by launch, which takes the GPU back to its usual state.
  bool in_order() const { return !timed_ && !left_at_once_; }

 private:
  using Clock = std::chrono::steady_clock;

  // How far one launch has come, as its records show.
  struct Progress {
    size_t started = 0;
    size_t started_prefix = 0;
    size_t ended = 0;
    size_t ended_prefix = 0;
    bool submitted = false;
    bool released = false;  // or ends by itself
  };

  // The same for all together.
  struct Count {
    size_t waiting = 0;  // launched, not started
    size_t unseen = 0;   // launches of which no block has started
    size_t held = 0;     // started, not released
    size_t leaving = 0;  // started and released, not ended
    uint64_t returned = 0;
    size_t met = 0;  // groups
    bool operator==(const Count&) const = default;
  };

  void play(const Sequence& sequence);
  void submit(size_t number);
  void record(const PlannedMark& mark);
  void wait_for(const PlannedMark& mark);
  void synchronize(const PlannedMark& mark);
  void issue(const PlannedTransfer& planned);
  template <typename Call>
  void by_worker(const Call& call);
  void hold_workers(const Sequence& sequence);
  void launch(size_t number);
  void launch(const PlannedGraph& graph);
  void release(size_t number);
  void await_meetings();
  size_t complete() const;
  void clean_up();
  // False: it gave up, since blocks are held and nothing has moved for long enough.
  template <typename Done>
  bool wait(const Done& done);
  bool patience_over(const Count& count, Clock::duration still) const;
  // Of whatever may be blocked in a call, or not.
  Clock::duration patience() const;
  Count look();
  void let_go(size_t number);
  void synchronise();
  void abandon() noexcept;
  void ask();
  std::string where_it_stands() const;

  const Context& context_;
  Workers& workers_;
  const Plan& plan_;
  const bool timed_;
  const std::span<PlannedLaunch> launches_;
  const std::span<const PlannedMark> marks_;
  const std::span<const PlannedGraph> graphs_;
  const std::span<const PlannedTransfer> transfers_;
  const std::span<PlannedCall> calls_;
  const RunOptions& options_;
  bool& idle_;
  TimeSpent& spent_;
  const Clock::time_point deadline_;
  std::vector<Progress> progress_;
  size_t event_ = 0;  // of the sequence, whose call is next
  int32_t host_ = 0;  // that makes it
  // Where there are several host threads: whether they may begin.
  const std::shared_ptr<std::atomic<bool>> may_begin_ = std::make_shared<std::atomic<bool>>(false);
  // When the host makes its calls, where times for them are given.
  struct Pace {
    // Until then, or until nobody cares any more.
    void wait_until(Clock::time_point time);

    std::atomic<bool> is_waiting = false;
    std::atomic<bool> given_up = false;
  };
  const std::shared_ptr<Pace> pace_ = std::make_shared<Pace>();
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point asked_ = Clock::now();
  Clock::time_point room_free_{};  // that the last release made
  std::vector<bool> met_;
  bool left_at_once_ = false;
  bool abandoned_ = false;
};

}  // namespace tbsched::cuda
