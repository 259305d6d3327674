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
  // a pair has its turn when both of its TPCs have been polled. `left`: how many blocks each TPC
  // has; a TPC with blocks wants a turn. `opening`: whether the launch begins with these turns. The
  // result is valid until the next call.
  std::span<const int32_t> poll_all(std::span<const int32_t> left, bool opening);

  // Returns the next TPC that wants a cluster; one must.
  template <typename Wants>
  int32_t poll_one(const Wants& wants) {
    while (!wants(next_)) next_ = after(next_);
    return std::exchange(next_, after(next_));
  }

 private:
  static int32_t pair_of(const int32_t tpc) { return tpc / kTpcsPerPair; }
  static bool is_second(const int32_t tpc) { return tpc % kTpcsPerPair != 0; }
  int32_t after(const int32_t tpc) const { return (tpc + 1) % tpcs_; }
  void open(std::span<const int32_t> left, bool alone);
  void resume(std::span<const int32_t> left, bool alone);

  int32_t tpcs_;
  int32_t next_;

  // Temporary values of poll_all(), by pair.
  std::vector<uint8_t> pair_wants_;
  std::vector<int32_t> unpolled_;
  std::vector<int32_t> last_polled_;
  std::vector<int32_t> order_;
};

}  // namespace tbsched
