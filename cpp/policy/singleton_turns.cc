#include "policy/singleton_turns.h"

#include <algorithm>

namespace tbsched {

std::vector<int32_t> SingletonTurns::ask_all(const std::vector<bool>& wants, const bool opening) {
  std::vector<bool> pair_wants(pairs());
  for (int32_t tpc = 0; tpc < tpcs_; ++tpc) {
    if (wants[tpc]) pair_wants[pair_of(tpc)] = true;
  }
  const bool alone = std::ranges::count(pair_wants, true) == 1;
  return opening ? open(wants, pair_wants, alone) : go_on(wants, pair_wants, alone);
}

// The lost turn turns the pointer to the other TPC of its pair. From there each TPC is asked once.
std::vector<int32_t> SingletonTurns::open(const std::vector<bool>& wants,
                                          const std::vector<bool>& pair_wants, const bool alone) {
  const auto wants_from = [&](const int32_t tpc) {
    return wants[tpc] || (!is_second(tpc) && pair_wants[pair_of(tpc)]);
  };
  while (!wants_from(next_)) next_ = after(next_);
  if (!alone) next_ = std::min(next_ ^ 1, tpcs_ - 1);

  std::vector<int32_t> unasked(pairs());
  for (int32_t tpc = 0; tpc < tpcs_; ++tpc) ++unasked[pair_of(tpc)];
  std::vector<int32_t> last_asked(pairs());
  std::vector<int32_t> order;
  for (int32_t asked = 0; asked < tpcs_; ++asked) {
    const int32_t tpc = (next_ + asked) % tpcs_;
    const int32_t pair = pair_of(tpc);
    if (wants[tpc]) last_asked[pair] = tpc;
    if (--unasked[pair] == 0 && pair_wants[pair]) order.push_back(pair);
  }
  next_ = after(last_asked[order.back()]);
  return order;
}

// The first TPC of a pair that wants it asks for both. The second one does if the pointer is there
// and no other pair wants a turn.
std::vector<int32_t> SingletonTurns::go_on(const std::vector<bool>& wants,
                                           std::vector<bool> pair_wants, const bool alone) {
  std::vector<int32_t> order;
  if (alone && is_second(next_) && wants[next_]) {
    order.push_back(pair_of(next_));
    next_ = after(next_);
    return order;
  }
  while (std::ranges::count(pair_wants, true) > 0) {
    while (is_second(next_) || !pair_wants[pair_of(next_)]) next_ = after(next_);
    const int32_t pair = pair_of(next_);
    pair_wants[pair] = false;
    order.push_back(pair);
    if (!wants[next_]) next_ = after(next_);
    next_ = after(next_);
  }
  return order;
}

}  // namespace tbsched
