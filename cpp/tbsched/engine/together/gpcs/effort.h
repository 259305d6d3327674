// How much may be looked at before a proof gives up.
#pragma once

#include <cstdint>
#include <functional>

namespace tbsched {

// There are too many ways to look at all.
struct TooManyWays {};

// How much may still be looked at, in about 100 ns each.
class Effort {
 public:
  // It asks now and then whether it is interrupted, and ends with what that throws, which outlives
  // it.
  Effort(const int64_t looks, const std::function<void()>& interrupted)
      : left_(looks), interrupted_(interrupted) {}

  int64_t left() const { return left_; }
  bool is_spent() const { return left_ < 0; }
  void spend(const int64_t looks) {
    left_ -= looks;
    unasked_ += looks;
    if (unasked_ > kLooksBetween) {
      unasked_ = 0;
      interrupted_();
    }
    if (is_spent()) throw TooManyWays{};
  }

 private:
  static constexpr int64_t kLooksBetween = 100'000;

  int64_t left_;
  int64_t unasked_ = 0;
  const std::function<void()>& interrupted_;
};

}  // namespace tbsched
