#include "cuda/launch_worker.h"

#include <utility>

namespace tbsched::cuda {

LaunchWorker::LaunchWorker() : thread_([this](const std::stop_token& stop) { work(stop); }) {}

LaunchWorker::~LaunchWorker() { cancel(); }

void LaunchWorker::submit(std::function<void()> call) {
  {
    const std::scoped_lock lock(mutex_);
    calls_.push_back(std::move(call));
  }
  wake_.notify_one();
}

void LaunchWorker::cancel() {
  const std::scoped_lock lock(mutex_);
  calls_.clear();
  error_ = nullptr;
}

bool LaunchWorker::busy() const {
  const std::scoped_lock lock(mutex_);
  return calling_ || !calls_.empty();
}

uint64_t LaunchWorker::returned() const {
  const std::scoped_lock lock(mutex_);
  return returned_;
}

void LaunchWorker::rethrow() {
  std::exception_ptr error;
  {
    const std::scoped_lock lock(mutex_);
    error = std::exchange(error_, nullptr);
  }
  if (error) std::rethrow_exception(error);
}

void LaunchWorker::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return !calls_.empty(); })) {
    const std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    calling_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      call();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    calling_ = false;
    ++returned_;
    if (error && !error_) {
      error_ = error;
      calls_.clear();  // later launches of the sequence make no sense without this one
    }
  }
}

}  // namespace tbsched::cuda
