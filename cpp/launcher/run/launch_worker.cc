#include "launcher/run/launch_worker.h"

#include <chrono>
#include <utility>

namespace tbsched::cuda {
namespace {

constexpr auto kMaxSpin = std::chrono::microseconds(200);

}  // namespace

LaunchWorker::LaunchWorker() : thread_([this](const std::stop_token& stop) { make_calls(stop); }) {}

LaunchWorker::~LaunchWorker() { cancel(); }

void LaunchWorker::submit(std::function<void()> call) {
  {
    const std::scoped_lock lock(mutex_);
    calls_.push_back(std::move(call));
    called_.store(true, std::memory_order_release);
  }
  wake_.notify_one();
}

void LaunchWorker::cancel() {
  const std::scoped_lock lock(mutex_);
  calls_.clear();
  error_ = nullptr;
}

bool LaunchWorker::is_busy() const {
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

void LaunchWorker::make_calls(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return !calls_.empty(); })) {
    called_.store(false, std::memory_order_relaxed);
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
    if (!calls_.empty()) continue;
    lock.unlock();
    spin_for_call();
    lock.lock();
  }
}

void LaunchWorker::spin_for_call() const {
  const auto until = std::chrono::steady_clock::now() + kMaxSpin;
  while (!called_.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
}

}  // namespace tbsched::cuda
