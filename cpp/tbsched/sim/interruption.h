// Long work can be interrupted: it polls now and then, and what its caller has set for the thread
// may throw.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace tbsched {

// Sets for its lifetime what polls of this thread call.
class Interruptible {
 public:
  using Check = std::function<void()>;

  explicit Interruptible(Check check) : before_(std::exchange(check_, std::move(check))) {}
  ~Interruptible() { check_ = std::move(before_); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

  // Returns what polls of this thread call now; empty: nothing.
  static const Check& check() { return check_; }
  // Calls what is set for this thread, at some of the calls. Work calls it at every step, of which
  // each takes less than a millisecond or so.
  static void poll() {
    if (++steps_ % kStepsBetween == 0 && check_) check_();
  }

 private:
  static constexpr uint32_t kStepsBetween = 16;

  inline static thread_local Check check_;
  inline static thread_local uint32_t steps_ = 0;

  Check before_;
};

}  // namespace tbsched
