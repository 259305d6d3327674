// Runs of a sequence on several GPUs at once: their blocks meet, and they end together.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "launcher/plan/plan.h"
#include "tbsched/program/event.h"

namespace tbsched::cuda {

class Context;
class Gpu;
struct Observation;
struct RunOptions;

// Thrown in a run because another of the runs has failed.
struct OtherRunFailed {};

// What the runs of one sequence share. Each run has its own thread. All functions are thread-safe.
// A run that waits notes here what moves on its GPU, so that all runs give up at the same time.
class Together {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Together(size_t runs) : runs_(runs) {}

  // Lets blocks of all runs meet in the memory of the first run's GPU, and waits until all runs are
  // ready to begin. `run`: number of this run; `plan`: laid out in `memory`. Returns the memory in
  // which blocks meet, if it is another run's: keep it until the blocks of this run have left.
  // Throws OtherRunFailed.
  std::shared_ptr<RunMemory> join(size_t run, Plan& plan, const Context& context,
                                  const std::shared_ptr<RunMemory>& memory);

  // Waits until all runs have called this once more. Throws OtherRunFailed.
  void arrive_and_wait();

  // Notes that something has changed on some GPU.
  void note_move(Clock::time_point now);
  // Returns when something last changed on any GPU.
  Clock::time_point last_move() const;
  // Notes whether a host thread of a run is in a call.
  void note_calling(size_t run, bool calling);
  bool any_is_calling() const { return calling_ != 0; }
  // Notes that all work of a run is done.
  void note_done(size_t run);
  bool all_done() const { return done_ == runs_; }
  // Ends all runs: nothing has moved anywhere for long enough.
  void give_up() { given_up_ = true; }
  bool given_up() const { return given_up_; }

  // Lets all other runs fail, too.
  void fail();
  // Throws OtherRunFailed if one has failed.
  void throw_if_failed() const;

 private:
  const size_t runs_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t arrived_ = 0;  // runs, in this round
  uint64_t round_ = 0;  // of arrive_and_wait()
  const Context* first_context_ = nullptr;
  std::shared_ptr<RunMemory> first_memory_;
  std::vector<Meeting> meetings_;  // of the first run, with the blocks of all
  std::vector<uint32_t*> met_;     // where the first run's GPU notes that a group has met
  std::vector<bool> is_done_ = std::vector<bool>(runs_);
  std::vector<bool> is_calling_ = std::vector<bool>(runs_);
  std::atomic<size_t> calling_ = 0;
  std::atomic<size_t> done_ = 0;
  std::atomic<bool> given_up_ = false;
  std::atomic<bool> failed_ = false;
  std::atomic<Clock::rep> last_move_ = Clock::now().time_since_epoch().count();
};

// A part of a sequence for one GPU.
struct Part {
  std::shared_ptr<Gpu> gpu;
  Sequence sequence;
  // The launches of this part in each group of the whole sequence; empty where it has none.
  Groups groups;
};

// Runs all parts at once, and again if a run means nothing. Throws as Gpu::observe, and
// std::invalid_argument where a GPU cannot reach the memory of the first one, or has no native
// atomics on it.
std::vector<Observation> observe_together(const std::vector<Part>& parts,
                                          const RunOptions& options);

}  // namespace tbsched::cuda
