// The limit of a proof: a number of steps, and a deadline.
#pragma once

#include <cstdint>
#include <functional>

#include "tbsched/sim/deadline.h"

namespace tbsched {

// Thrown when a proof has used all of its steps or its time.
struct BudgetExceeded {};

// The remaining steps of a proof, of about 100 ns each.
class Budget {
 public:
  // `interrupted` is called now and then, may throw to end the proof, and outlives the budget.
  Budget(const int64_t steps, const Deadline deadline, const std::function<void()>& interrupted)
      : remaining_steps_(steps), deadline_(deadline), interrupted_(interrupted) {}

  // Takes steps from the remaining ones. Throws BudgetExceeded if there are not so many, or if the
  // deadline is over.
  void spend(const int64_t steps) {
    remaining_steps_ -= steps;
    steps_since_interrupt_check_ += steps;
    if (steps_since_interrupt_check_ > kStepsBetweenChecks) {
      steps_since_interrupt_check_ = 0;
      interrupted_();
      if (deadline_.is_over()) remaining_steps_ = -1;
    }
    if (remaining_steps_ < 0) throw BudgetExceeded{};
  }

 private:
  static constexpr int64_t kStepsBetweenChecks = 100'000;

  int64_t remaining_steps_;
  const Deadline deadline_;
  int64_t steps_since_interrupt_check_ = 0;
  const std::function<void()>& interrupted_;
};

}  // namespace tbsched
