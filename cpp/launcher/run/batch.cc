#include "launcher/run/batch.h"

#include <utility>

namespace tbsched::cuda {
namespace {

struct Ended {};  // the batch, while a sequence ran

// Observes a sequence. Returns what that throws as an error.
Batch::Result observe(Gpu& gpu, const Sequence& sequence, const RunOptions& options) {
  try {
    return {.observation = gpu.observe(sequence, options), .error = nullptr};
  } catch (...) {
    return {.observation = {}, .error = std::current_exception()};
  }
}

}  // namespace

Batch::Batch(std::shared_ptr<Gpu> gpu)
    : gpu_(std::move(gpu)), thread_([this](const std::stop_token& stop) { run_jobs(stop); }) {}

void Batch::add(Sequence sequence, const RunOptions& options) {
  {
    const std::scoped_lock lock(mutex_);
    jobs_.push_back({std::move(sequence), options});
  }
  added_.notify_one();
}

std::optional<Batch::Result> Batch::next(const std::chrono::nanoseconds patience) {
  std::unique_lock lock(mutex_);
  if (!done_.wait_for(lock, patience, [this] { return !results_.empty(); })) return std::nullopt;
  Result result = std::move(results_.front());
  results_.pop_front();
  return result;
}

void Batch::run_jobs(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (added_.wait(lock, stop, [this] { return !jobs_.empty(); }) && !stop.stop_requested()) {
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job.options.interrupted = [&stop] {
      if (stop.stop_requested()) throw Ended();
    };
    Result result = observe(*gpu_, job.sequence, job.options);
    lock.lock();
    results_.push_back(std::move(result));
    done_.notify_one();
  }
}

}  // namespace tbsched::cuda
