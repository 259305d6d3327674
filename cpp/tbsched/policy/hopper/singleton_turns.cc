#include "tbsched/policy/hopper/singleton_turns.h"

#include <algorithm>

namespace tbsched {

std::span<const int32_t> SingletonTurns::poll_all(const std::span<const int32_t> blocks_of_tpc,
                                                  const bool opening) {
  order_.clear();
  pair_wants_.assign(pairs(), 0);
  for (int32_t tpc = 0; tpc < tpcs_; ++tpc) {
    if (blocks_of_tpc[tpc] > 0) pair_wants_[pair_of(tpc)] = 1;
  }
  const bool alone = std::ranges::count(pair_wants_, 1) == 1;
  if (opening) {
    open(blocks_of_tpc, alone);
  } else {
    resume(blocks_of_tpc, alone);
  }
  return order_;
}

void SingletonTurns::open(const std::span<const int32_t> blocks_of_tpc, const bool alone) {
  // A launch that begins with these turns loses one, which moves the pointer to the other TPC of
  // its pair. From there each TPC is polled once.
  const auto wants_from = [&](const int32_t tpc) {
    return blocks_of_tpc[tpc] > 0 || (!is_second(tpc) && pair_wants_[pair_of(tpc)] != 0);
  };
  while (!wants_from(next_)) next_ = after(next_);
  if (!alone) next_ = std::min(next_ ^ 1, tpcs_ - 1);

  unpolled_.assign(pairs(), 0);
  for (int32_t tpc = 0; tpc < tpcs_; ++tpc) ++unpolled_[pair_of(tpc)];
  last_polled_.assign(pairs(), 0);
  for (int32_t polled = 0; polled < tpcs_; ++polled) {
    const int32_t tpc = (next_ + polled) % tpcs_;
    const int32_t pair = pair_of(tpc);
    if (blocks_of_tpc[tpc] > 0) last_polled_[pair] = tpc;
    if (--unpolled_[pair] == 0 && pair_wants_[pair] != 0) order_.push_back(pair);
  }
  next_ = after(last_polled_[order_.back()]);
}

void SingletonTurns::resume(const std::span<const int32_t> blocks_of_tpc, const bool alone) {
  // In later polls the first TPC of a pair takes a turn for both. The second one does if the
  // pointer is there and no other pair wants a turn.
  if (alone && is_second(next_) && blocks_of_tpc[next_] > 0) {
    order_.push_back(pair_of(next_));
    next_ = after(next_);
    return;
  }
  for (auto wanted = std::ranges::count(pair_wants_, 1); wanted > 0; --wanted) {
    while (is_second(next_) || pair_wants_[pair_of(next_)] == 0) next_ = after(next_);
    const int32_t pair = pair_of(next_);
    pair_wants_[pair] = 0;
    order_.push_back(pair);
    if (blocks_of_tpc[next_] <= 0) next_ = after(next_);
    next_ = after(next_);
  }
}

}  // namespace tbsched
