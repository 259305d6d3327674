// What can become of an SM: each state that comes up, once.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "tbsched/engine/together/gpcs/effort.h"
#include "tbsched/engine/together/gpcs/one_sm.h"

namespace tbsched {

// A block leaves, or one comes that waited.
struct Move {
  int32_t launch;
  int32_t kind;  // which of OneSm::distinct, or of OneSm::may_enter
  bool enters;
};

// A state after some moves. As few blocks have entered as can be.
struct Reached {
  int32_t state;
  int32_t entered = 0;
  int32_t before = -1;  // which of those that are reached; none: there is no move
  Move move = {};
};

// The functions that look at new states throw TooManyWays.
class SmStates {
 public:
  // Blocks of these launches may leave. All outlive it.
  SmStates(const std::vector<int32_t>& leaving, Effort& effort)
      : leaving_(leaving), effort_(effort) {}

  // Between two questions: numbers of states are void then.
  void forget_if_many();
  int32_t of(const OneSm& sm);
  bool idle(const int32_t state) const { return nodes_[state].sm.idle(); }
  // Throws GapsMatter.
  int32_t room(int32_t state, int32_t launch);
  // One block, for which there is room.
  int32_t with_one_more(int32_t state, int32_t launch);
  // Every state that is reached if blocks leave, and up to so many blocks of a launch that waits,
  // or of none, enter; those with fewer of these first.
  const std::vector<Reached>& reached(int32_t state, int32_t waiting, int32_t most_enter);

 private:
  struct Node {
    OneSm sm;
    std::vector<int32_t> room;  // for each launch, or kUnknown
    std::vector<int32_t> with_one_more;
  };
  static constexpr int32_t kUnknown = -1;
  std::vector<Reached> look(int32_t state, int32_t waiting, int32_t most_enter);

  const std::vector<int32_t>& leaving_;
  Effort& effort_;
  std::deque<Node> nodes_;
  std::map<std::vector<int32_t>, int32_t> known_;  // by their keys
  std::map<std::array<int32_t, 3>, std::vector<Reached>> reached_;
};

}  // namespace tbsched
