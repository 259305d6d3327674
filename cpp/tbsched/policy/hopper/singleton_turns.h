// The turns of the TPCs of no GPC ("singletons").
//
// They are polled one by one, round and round, from a pointer that no launch resets. A cluster of 2
// takes one of them. Single blocks take them in pairs: a pair hands out its blocks in one turn.
// Source: traces h200/cl, clusters, spointer.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tbsched {

inline constexpr int32_t kTpcsPerPair = 2;

class SingletonTurns {
 public:
  // `first`: the TPC that is polled first, counted among the singletons.
  SingletonTurns(int32_t tpcs, int32_t first) : tpcs_(tpcs), next_(first) {}

  int32_t pairs() const { return (tpcs_ + kTpcsPerPair - 1) / kTpcsPerPair; }

  // Polls every TPC once for the blocks of a level. Returns the pairs in the order of their turns:
  // a pair has its turn when both of its TPCs have been polled. `blocks_of_tpc`: a TPC with blocks
  // wants a turn. `opening`: whether the launch begins with these turns. The result is valid until
  // the next call.
  std::span<const int32_t> poll_all(std::span<const int32_t> blocks_of_tpc, bool opening);

  // Moves the pointer on behind the next TPC for which wants(tpc) is true, and returns this TPC;
  // there must be one.
  template <typename Wants>
  int32_t poll_one(const Wants& wants) {
    while (!wants(next_)) next_ = after(next_);
    return std::exchange(next_, after(next_));
  }

 private:
  static int32_t pair_of(const int32_t tpc) { return tpc / kTpcsPerPair; }
  static bool is_second(const int32_t tpc) { return tpc % kTpcsPerPair != 0; }
  // Returns the TPC that is polled after this one.
  int32_t after(const int32_t tpc) const { return (tpc + 1) % tpcs_; }
  // Polls the TPCs for the first level of a launch that begins with them: appends pairs to order_.
  // `alone`: whether only one pair wants a turn.
  void open(std::span<const int32_t> blocks_of_tpc, bool alone);
  // Polls the TPCs for a later level: appends pairs to order_.
  void resume(std::span<const int32_t> blocks_of_tpc, bool alone);

  int32_t tpcs_;  // number of singletons
  int32_t next_;  // the pointer: the TPC that is polled next

  // Temporary values of poll_all(), by pair.
  std::vector<uint8_t> pair_wants_;
  std::vector<int32_t> unpolled_;
  std::vector<int32_t> last_polled_;
  std::vector<int32_t> order_;
};

}  // namespace tbsched
