// The states of an SM that occur, each stored once, and the moves between them.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tbsched/coresidency/budget.h"
#include "tbsched/coresidency/sm/one_sm.h"

namespace tbsched {

// A block leaves, or a waiting block enters.
struct Move {
  int32_t launch;
  int32_t kind;  // index into OneSm::distinct_blocks if it leaves, else entry_configurations
  bool enters;
};

// A waiting launch, and the most of its blocks that may enter.
struct Entrant {
  int32_t launch;
  int32_t max_blocks;
  bool in_tpcs;  // its clusters take whole TPCs: so it matters whether any has entered

  auto operator<=>(const Entrant&) const = default;
};
constexpr size_t kMaxEntrants = 3;
using Entrants = std::vector<Entrant>;
// Returns whether it matters that an SM is barred: that no block of the only entrant, whose
// clusters take whole TPCs, has entered it, and none finds room there in the end. Then states are
// distinguished by whether one has entered.
inline bool may_be_barred(const Entrants& entrants) {
  return entrants.size() == 1 && entrants.front().in_tpcs;
}

// A state after some moves, with the fewest entered blocks of each entrant; the minima may belong
// to different histories. With an Entrant::in_tpcs a state may occur twice: also with none entered.
struct ReachedState {
  int32_t state;
  bool is_barred = false;  // none has entered, and none finds room at the end: see may_be_barred
  std::array<int16_t, kMaxEntrants> entered = {};
  int32_t before = -1;  // index of the predecessor; -1: there was no move
  Move move = {};
};

// Functions that explore new states throw BudgetExceeded.
class SmStates {
 public:
  // `leaving`: launches whose blocks may leave. The arguments outlive it.
  SmStates(const std::vector<int32_t>& leaving, Budget& budget)
      : leaving_(leaving), budget_(budget) {}

  // Forgets all states if there are many. Indices of states become invalid.
  void forget_if_many();
  // Returns the index of the state of an SM, which is stored if it is new. Throws BudgetExceeded.
  int32_t state_of(const OneSm& sm);
  bool idle(const int32_t state) const { return nodes_[state].sm.idle(); }
  // Returns for how many more blocks of a launch there is room in a state.
  RoomRange rooms(int32_t state, int32_t launch);
  // Returns the state after one more block of an arriving launch, for which there may be room.
  int32_t with_one_more(int32_t state, int32_t launch);
  // Returns each state that is reached if one more block leaves.
  const std::vector<int32_t>& after_leaving(int32_t state);
  // Returns the move to each of these states.
  const std::vector<Move>& moves_of_leaving(int32_t state);
  // Returns the states after a block of a launch enters, one for each way of
  // OneSm::entry_configurations.
  const std::vector<int32_t>& after_entering(int32_t state, int32_t launch);
  // Returns whether a block of the launch is there or may enter.
  bool admits(const int32_t state, const int32_t launch) const {
    return nodes_[state].sm.admits(launch);
  }
  // Returns whether all blocks that are there may leave.
  bool may_become_idle(int32_t state) const;
  using AllReached = std::shared_ptr<const std::vector<ReachedState>>;
  // Returns every state that is reached if blocks leave and enter, sorted by the number of entered
  // blocks of the first entrant. Throws for more than kMaxEntrants entrants.
  AllReached reached(int32_t state, const Entrants& entrants);

 private:
  struct Node {
    OneSm sm;
    std::vector<std::optional<RoomRange>> rooms;  // by launch, where known
    std::vector<int32_t> with_one_more;           // by launch, kUnknown where not known
    bool knows_leaving = false;                   // whether the next two are known
    std::vector<int32_t> after_leaving = {};
    std::vector<Move> moves_of_leaving = {};
    std::map<int32_t, std::vector<int32_t>> after_entering = {};  // by launch, where known
  };
  static constexpr int32_t kUnknown = -1;
  // Returns the node of a state, in which the moves of leaving blocks are known.
  const Node& node_with_leaving(int32_t state);
  // Returns the states reached if blocks leave and enter, with the fewest entered blocks of the
  // entrant `counted`: 0-1 breadth-first search, in which only its entering blocks cost 1.
  std::vector<ReachedState> explore(int32_t state, const Entrants& entrants, size_t counted);

  const std::vector<int32_t>& leaving_;
  Budget& budget_;
  std::deque<Node> nodes_;
  std::map<std::vector<int32_t>, int32_t> known_;               // states by OneSm::key()
  std::map<std::pair<int32_t, Entrants>, AllReached> reached_;  // except large results
};

}  // namespace tbsched
