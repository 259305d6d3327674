#include "tbsched/engine/held/chance.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tbsched {
namespace {

// Measured, in nanoseconds. The first block of a launch learns from the host that it may leave, and
// notifies the others. Blocks in the farther GPCs learn it later, or all at the same time: that
// depends on where the word is. So does which half of the GPCs on each side is a little late.
constexpr double kOthersNs = 300;
constexpr double kFartherNs = 80;
constexpr double kAtOnce = 0.2;
constexpr double kLateNs = 15;
constexpr double kSpreadNs = 40;
struct Side {
  bool farther;
  bool first_half;
};
constexpr std::array<Side, 8> kSides{{
    {false, false},
    {true, true},
    {true, true},
    {true, false},
    {false, true},
    {false, true},
    {false, false},
    {true, false},
}};
// A block leaves when it sees the global timer advance. The timer advances in steps.
constexpr double kStepNs = 32;
constexpr double kSeesStepNs = 20;
// Time from when a block is placed until it can leave.
constexpr double kStartNs = 5000;

// Fitted: how long the scheduler takes to find the SMs with room, to give each of them one block,
// to find room for clusters, and to place a cluster.
constexpr double kLookNs = 8;
constexpr double kLevelNs = 5;
constexpr double kClusterLookNs = 30;
constexpr double kClusterNs = 3;

// Returns whether block a leaves later than block b: the heap's next block is the one that leaves
// first.
bool leaves_later(const auto& a, const auto& b) { return a.leaves_ns > b.leaves_ns; }

}  // namespace

Chance::Chance(const Device& device, const uint64_t seed)
    : device_(device),
      random_(seed),
      far_ns_(below(1) < kAtOnce ? 0 : kFartherNs),
      first_half_is_late_(below(2) < 1),
      blocks_of_sm_(device.spec.sms) {}

double Chance::below(const double limit) {
  return limit * static_cast<double>(random_() >> 11) * 0x1p-53;
}

void Chance::schedule_exit(const double leaves_ns, const LeavingBlock& leaver) {
  waiting_.push_back({leaves_ns, leaver});
  std::ranges::push_heap(waiting_, leaves_later<Timed, Timed>);
}

double Chance::notice_delay_ns(const int32_t sm) {
  const int32_t gpc = device_.topology.gpc_of_sm[sm];
  const double ns = below(kSpreadNs);
  if (gpc < 0 || gpc >= static_cast<int32_t>(kSides.size())) return ns;
  const Side& side = kSides[gpc];
  return ns + (side.farther ? far_ns_ : 0) + (side.first_half == first_half_is_late_ ? kLateNs : 0);
}

// Schedules the exit of each block, at a random time.
void Chance::release_blocks(const std::span<const LeavingBlock> leavers, const bool have_started) {
  if (have_started) now_ns_ = std::max(now_ns_, turn_ns_);  // the host takes its time
  const double phase_ns = below(kStepNs);
  for (const LeavingBlock& leaver : leavers) {
    double leaves_ns = now_ns_;
    if (!have_started) {
      leaves_ns += kStartNs;
    } else if (&leaver != &leavers.front()) {
      const double steps = std::ceil((notice_delay_ns(leaver.footprint.sm) + phase_ns) / kStepNs);
      leaves_ns += kOthersNs + steps * kStepNs + below(kSeesStepNs);
    }
    schedule_exit(leaves_ns, leaver);
  }
}

std::vector<LeavingBlock> Chance::take_exits() {
  std::vector<LeavingBlock> leaving;
  if (is_over()) return leaving;
  const double leaves_ns = waiting_.empty() ? turn_ns_ : waiting_.front().leaves_ns;
  now_ns_ = std::max(now_ns_, wants_to_turn_ ? std::min(leaves_ns, turn_ns_) : leaves_ns);
  wants_to_turn_ = false;
  while (!waiting_.empty() && waiting_.front().leaves_ns <= now_ns_) {
    std::ranges::pop_heap(waiting_, leaves_later<Timed, Timed>);
    leaving.push_back(waiting_.back().leaver);
    waiting_.pop_back();
  }
  now_ns_ += kLookNs;
  return leaving;
}

// Returns whether the scheduler may turn to another launch now.
bool Chance::may_turn() {
  wants_to_turn_ = now_ns_ < turn_ns_;
  return !wants_to_turn_;
}

double Chance::max_blocks_on_an_sm(const std::span<const int32_t> sms) {
  int32_t max_blocks = 0;
  for (const int32_t sm : sms) max_blocks = std::max(max_blocks, ++blocks_of_sm_[sm]);
  for (const int32_t sm : sms) blocks_of_sm_[sm] = 0;
  return max_blocks;
}

// Advances the time by how long the scheduler takes to place the blocks.
void Chance::note_placed(const std::span<const int32_t> sms, const int32_t cluster) {
  turn_ns_ = now_ns_ + static_cast<double>(device_.spec.launch_switch_ns);
  now_ns_ += cluster > 1 ? kClusterLookNs + kClusterNs * static_cast<double>(sms.size()) / cluster
                         : kLevelNs * max_blocks_on_an_sm(sms);
  mattered_ = mattered_ || !waiting_.empty();
}

}  // namespace tbsched
