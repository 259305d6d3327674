// Sequences that run one after another on a thread of their own, so that the GPU has work while the
// caller prepares more and reads results.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "launcher/run/gpu.h"
#include "launcher/run/run.h"
#include "tbsched/program/event.h"
#include "tbsched/program/trace.h"

namespace tbsched::cuda {

class Batch {
 public:
  struct Result {
    Observation observation;
    std::exception_ptr error;  // what Gpu::observe has thrown; null: nothing
  };

  explicit Batch(std::shared_ptr<Gpu> gpu);
  // Drops sequences that have not begun and ends the running one: its blocks are released first.
  ~Batch() = default;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Adds a sequence to those to be observed. `options.interrupted` is not called: the destructor
  // ends a batch.
  void add(Sequence sequence, const RunOptions& options);
  // Returns the next result, in the order of add(); none: it is not there after `patience`.
  std::optional<Result> next(std::chrono::nanoseconds patience);

 private:
  struct Job {
    Sequence sequence;
    RunOptions options;
  };

  // Thread: observes the sequences in order, until it is stopped. observe() catches every error.
  void run_jobs(const std::stop_token& stop);

  const std::shared_ptr<Gpu> gpu_;
  std::mutex mutex_;
  std::condition_variable_any added_;
  std::condition_variable_any done_;
  std::deque<Job> jobs_;
  std::deque<Result> results_;
  std::jthread thread_;  // the last member: it ends before the others are destroyed
};

}  // namespace tbsched::cuda
