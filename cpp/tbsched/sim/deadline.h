// A limit of the time that long work takes.
#pragma once

#include <chrono>
#include <optional>

namespace tbsched {

// The time at which work ends without a result, or with a part of it; by default never.
class Deadline {
 public:
  Deadline() = default;
  // Ends after this time from now. Infinity stands for never.
  explicit Deadline(const double seconds) {
    using Clock = std::chrono::steady_clock;
    constexpr double kYear = 365.0 * 86400;
    if (seconds >= kYear) return;
    at_ = Clock::now() +
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }

  bool is_over() const { return at_ && std::chrono::steady_clock::now() >= *at_; }

 private:
  std::optional<std::chrono::steady_clock::time_point> at_;
};

}  // namespace tbsched
