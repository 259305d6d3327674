// Limits of a search: a deadline and a number of steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>

namespace tbsched {

// The time at which a search ends without a result; by default never.
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

// Thrown when a proof has used all of its steps or its time.
struct BudgetExceeded {};

// The remaining steps of a proof, of about 100 ns each.
class Budget {
 public:
  // `interrupted` is called now and then, may throw to end the proof, and outlives the budget.
  Budget(const int64_t steps, const Deadline deadline, const std::function<void()>& interrupted)
      : left_(steps), deadline_(deadline), interrupted_(interrupted) {}

  void spend(const int64_t steps) {
    left_ -= steps;
    steps_since_interrupt_check_ += steps;
    if (steps_since_interrupt_check_ > kStepsBetween) {
      steps_since_interrupt_check_ = 0;
      interrupted_();
      if (deadline_.is_over()) left_ = -1;
    }
    if (left_ < 0) throw BudgetExceeded{};
  }

 private:
  static constexpr int64_t kStepsBetween = 100'000;

  int64_t left_;
  const Deadline deadline_;
  int64_t steps_since_interrupt_check_ = 0;
  const std::function<void()>& interrupted_;
};

}  // namespace tbsched
