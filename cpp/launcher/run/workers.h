// The host threads that make launch calls: one for each that a sequence names, kept from run to
// run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "launcher/run/launch_worker.h"

namespace tbsched::cuda {

class Workers {
 public:
  // Returns the worker of a host thread, which is started if there is none.
  LaunchWorker& of(const int32_t host) { return workers_[host]; }

  // As LaunchWorker::cancel(), for all of them.
  void cancel() {
    for (auto& [host, worker] : workers_) worker.cancel();
  }
  // Returns whether a call of any worker has not returned yet.
  bool is_busy() const {
    return std::ranges::any_of(workers_, [](const auto& each) { return each.second.is_busy(); });
  }
  // Returns the number of calls that have returned.
  uint64_t returned() const {
    uint64_t sum = 0;
    for (const auto& [host, worker] : workers_) sum += worker.returned();
    return sum;
  }
  // As LaunchWorker::rethrow(), for all of them.
  void rethrow() {
    for (auto& [host, worker] : workers_) worker.rethrow();
  }

 private:
  std::map<int32_t, LaunchWorker> workers_;
};

}  // namespace tbsched::cuda
