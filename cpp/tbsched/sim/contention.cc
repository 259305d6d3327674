#include "tbsched/sim/contention.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tbsched {
namespace {

constexpr int kMaxRounds = 200;
constexpr double kSettled = 1e-7;  // largest relative change of a solution
constexpr double kMaxWait = 1e6;
constexpr size_t kMaxKnown = 1 << 16;
// A resource that is fully used is measured at less than its capacity, and so are waits.
constexpr double kMaxUse = 0.97;
constexpr double kMaxPartOfTime = 0.95;

}  // namespace

Contention::Contention(std::vector<Needs> kernels, const Sharing sharing, const int32_t sms)
    : kernels_(std::move(kernels)), sharing_(sharing), sms_(sms) {}

// Corrects the measured needs of a kernel. Its own blocks, on the SMs `alone`, have queued for each
// other. A wait for memory was measured with that queue, so it is divided by 1 + d.
void Contention::correct_for_own_blocks(const int32_t kernel,
                                        const std::span<const EqualSms> alone) {
  Needs& needs = kernels_[kernel];
  double blocks = 0, sms = 0;
  for (const EqualSms& equal : alone) {
    for (const auto& [resident, count] : equal.contents)
      blocks += static_cast<double>(equal.sms) * count;
    sms += equal.sms;
  }
  double queued = 0;
  for (size_t r = 0; r < kResources; ++r) {
    const double used = needs.shares[r] * blocks / (r < kInside ? sms : sms_);
    const double limited = std::min(used, kMaxUse);
    if (used > 0) needs.shares[r] *= limited / used;
    const double longer = sharing_.softness * limited / (1 - limited);
    if (r >= kInside) needs.waits[r] /= 1 + longer;
    queued += needs.waits[r] * longer;
  }
  const double slowed = 1 / (1 - std::min(queued, kMaxPartOfTime));
  for (size_t r = 0; r < kResources; ++r) {
    needs.shares[r] *= slowed;
    needs.waits[r] *= slowed;
  }
  known_.clear();
}

const std::vector<double>& Contention::times(const std::span<const EqualSms> alike) {
  std::vector<int32_t> key;
  for (const EqualSms& equal : alike) {
    key.push_back(-equal.sms);
    for (const auto& [kernel, count] : equal.contents) key.insert(key.end(), {kernel, count});
  }
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  waits_.assign(alike.size(), Waits{});
  for (int round = 0; round < kMaxRounds; ++round) {
    double change = solve_outside(alike);
    for (size_t row = 0; row < alike.size(); ++row) {
      change = std::max(change, solve_inside(alike[row], waits_[row]));
    }
    if (change < kSettled) break;
  }
  std::vector<double> factors;
  for (size_t row = 0; row < alike.size(); ++row) {
    for (const auto& [kernel, count] : alike[row].contents) {
      factors.push_back(time_factor(kernel, waits_[row]));
    }
  }
  if (known_.size() >= kMaxKnown) known_.clear();
  return known_.emplace(std::move(key), std::move(factors)).first->second;
}

double Contention::time_factor(const int32_t kernel, const Waits& waits) const {
  double sum = 1;
  for (size_t r = 0; r < kResources; ++r) sum += kernels_[kernel].waits[r] * waits[r];
  return sum;
}

double Contention::use(const SmContents& contents, const size_t resource,
                       const Waits& waits) const {
  double sum = 0;
  for (const auto& [kernel, count] : contents) {
    const double share = kernels_[kernel].shares[resource];
    if (share > 0) sum += count * share / time_factor(kernel, waits);
  }
  return sum;
}

// Sets `wait` to the d that agrees with the u that use() returns for it, by bisection.
template <typename Use>
void Contention::solve_wait(double& wait, const Use& use) const {
  const auto excess = [&](const double tried) {
    wait = tried;
    return use() - tried / (tried + sharing_.softness);
  };
  if (excess(0) <= 0) {
    wait = 0;
    return;
  }
  double low = 0, high = 1;
  while (excess(high) > 0 && high < kMaxWait) low = std::exchange(high, 4 * high);
  for (int k = 0; k < 60 && high - low > kSettled * high / 4; ++k) {
    const double middle = (low + high) / 2;
    (excess(middle) > 0 ? low : high) = middle;
  }
  wait = (low + high) / 2;
}

double Contention::solve_inside(const EqualSms& alike, Waits& waits) const {
  double change = 0;
  for (size_t r = 0; r < kInside; ++r) {
    const double before = waits[r];
    solve_wait(waits[r], [&] { return use(alike.contents, r, waits); });
    change = std::max(change, std::abs(waits[r] - before) / (1 + before));
  }
  return change;
}

double Contention::solve_outside(const std::span<const EqualSms> alike) {
  double change = 0;
  for (size_t r = kInside; r < kResources; ++r) {
    double wait = waits_.empty() ? 0 : waits_[0][r];
    const double before = wait;
    solve_wait(wait, [&] {
      double sum = 0;
      for (size_t row = 0; row < alike.size(); ++row) {
        waits_[row][r] = wait;
        sum += alike[row].sms * use(alike[row].contents, r, waits_[row]);
      }
      return sum / sms_;
    });
    for (Waits& waits : waits_) waits[r] = wait;
    change = std::max(change, std::abs(wait - before) / (1 + before));
  }
  return change;
}

}  // namespace tbsched
