#include "tbsched/engine/held/chance.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tbsched {
namespace {

// Measured, in nanoseconds. The first block of a launch learns from the host that it may leave, and
// tells the others. Those in the farther GPCs learn it later.
constexpr double kOthersNs = 300;
constexpr double kFartherNs = 90;
// Seldom all learn it at once, or those in the nearer half later: that depends on where the word
// is.
constexpr double kAtOnce = 0.2;
constexpr double kNearerLater = 0.1;
constexpr std::array kFarther = {false, true, true, true, false, false, false, true};
// How far apart the others leave.
constexpr double kSpreadNs = 100;
// From when a block is placed until it can leave.
constexpr double kStartNs = 5000;

// Fitted: how long the scheduler takes to look at launches, and to place a block or a cluster; and
// by which power of 2 that may be off.
constexpr double kPassNs = 20;
constexpr double kBlockNs = 1;
constexpr double kClusterNs = 100;
constexpr double kSlownessBits = 2;

bool is_farther(const int32_t gpc) {
  return gpc >= 0 && gpc < static_cast<int32_t>(kFarther.size()) && kFarther[gpc];
}

bool later(const auto& a, const auto& b) { return a.leaves_ns > b.leaves_ns; }

}  // namespace

Chance::Chance(const Topology& topology, const uint64_t seed)
    : topology_(topology), random_(seed), slowness_(std::exp2(kSlownessBits * (below(2) - 1))) {}

// From 0 up to, but not with, the limit.
double Chance::below(const double limit) {
  return limit * static_cast<double>(random_() >> 11) * 0x1p-53;
}

void Chance::tell(const std::span<const Leaver> leavers, const bool have_started) {
  const double where = below(1);
  const double far_ns = where < kAtOnce ? 0 : kFartherNs;
  const bool late_half = where < 1 - kNearerLater;
  for (const Leaver& leaver : leavers) {
    double leaves_ns = now_ns_ + (have_started ? 0 : kStartNs);
    if (&leaver != &leavers.front()) {
      leaves_ns += below(kSpreadNs);
      if (have_started) leaves_ns += kOthersNs;
      const int32_t gpc = topology_.gpc_of_sm[leaver.footprint.sm];
      if (have_started && is_farther(gpc) == late_half) leaves_ns += far_ns;
    }
    waiting_.push_back({leaves_ns, leaver});
    std::ranges::push_heap(waiting_, later<Timed, Timed>);
  }
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
  now_ns_ += slowness_ * kPassNs;
  return leaving;
}

void Chance::placed(const size_t blocks, const int32_t cluster) {
  const double each_ns = cluster > 1 ? kClusterNs / cluster : kBlockNs;
  now_ns_ += slowness_ * each_ns * static_cast<double>(blocks);
  mattered_ = mattered_ || !waiting_.empty();
}

}  // namespace tbsched
