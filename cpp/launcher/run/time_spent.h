// How the host spends its time while sequences are observed.
#pragma once

#include <chrono>
#include <cstdint>

namespace tbsched::cuda {

struct TimeSpent {
  using Duration = std::chrono::steady_clock::duration;

  uint64_t runs = 0;
  Duration plan{};         // checks, kernels loaded, memory laid out
  Duration launch{};       // from each launch call until its blocks started or were given up
  Duration release{};      // the same for releases, until blocks left
  Duration clean_up{};     // behind the last event
  Duration synchronise{};  // until the driver knows
  Duration judge{};
  Duration settle{};  // within launch and release: waiting while nothing changed
};

// Adds the time of its scope.
class Stopwatch {
 public:
  explicit Stopwatch(TimeSpent::Duration& total) : total_(total) {}
  ~Stopwatch() { total_ += std::chrono::steady_clock::now() - begin_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  TimeSpent::Duration& total_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace tbsched::cuda
