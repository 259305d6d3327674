#include "tbsched/engine/held/chance.h"

#include <algorithm>

namespace tbsched {
namespace {

// How far apart blocks of a launch see that they may leave.
constexpr double kLooksNs = 1000;
// From when a block is placed until it can leave.
constexpr double kStartNs = 5000;
// How long the scheduler takes to look at launches, and to place a block.
constexpr double kPassNs = 20;
constexpr double kBlockNs = 5;

// From 0 up to, but not with, 1.
double fraction(const uint64_t random) { return static_cast<double>(random >> 11) * 0x1p-53; }

bool later(const auto& a, const auto& b) { return a.leaves_ns > b.leaves_ns; }

}  // namespace

void Chance::tell(const Leaver& leaver, const bool has_started) {
  const double after = (has_started ? 0 : kStartNs) + kLooksNs * fraction(random_());
  waiting_.push_back({now_ns_ + after, leaver});
  std::ranges::push_heap(waiting_, later<Timed, Timed>);
}

std::vector<Leaver> Chance::next() {
  std::vector<Leaver> leaving;
  if (waiting_.empty()) return leaving;
  now_ns_ = std::max(now_ns_, waiting_.front().leaves_ns);
  while (!waiting_.empty() && waiting_.front().leaves_ns <= now_ns_) {
    std::ranges::pop_heap(waiting_, later<Timed, Timed>);
    leaving.push_back(waiting_.back().leaver);
    waiting_.pop_back();
  }
  now_ns_ += kPassNs;
  return leaving;
}

void Chance::placed(const size_t blocks) {
  now_ns_ += kBlockNs * static_cast<double>(blocks);
  mattered_ = mattered_ || !waiting_.empty();
}

}  // namespace tbsched
