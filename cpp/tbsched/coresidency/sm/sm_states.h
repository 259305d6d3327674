// What can become of an SM: each state that comes up, once.
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

// A block leaves, or one comes that waited.
struct Move {
  int32_t launch;
  int32_t kind;  // which of OneSm::distinct, or of OneSm::may_enter
  bool enters;
};

// A launch that waits, of which so many blocks may enter.
struct Entrant {
  int32_t launch;
  int32_t most;
  bool in_tpcs;  // in clusters that take whole ones: so it matters whether any has entered

  auto operator<=>(const Entrant&) const = default;
};
constexpr size_t kMostEntrants = 3;
using Entrants = std::vector<Entrant>;
// Whether an SM may bar them: then it is told apart whether one has entered.
inline bool may_be_barred(const Entrants& entrants) {
  return entrants.size() == 1 && entrants.front().in_tpcs;
}

// A state after some moves. Of each entrant as few blocks have entered as can be: not always of all
// in the same way. Of one Entrant::in_tpcs a state may be there twice: where none has entered, too.
struct Reached {
  int32_t state;
  bool is_barred = false;  // none has come, and none finds room in the end: see may_be_barred
  std::array<int16_t, kMostEntrants> entered = {};
  int32_t before = -1;  // which of those that are reached; none: there is no move
  Move move = {};
};

// The functions that look at new states throw BudgetExceeded.
class SmStates {
 public:
  // Blocks of these launches may leave. All outlive it.
  SmStates(const std::vector<int32_t>& leaving, Budget& budget)
      : leaving_(leaving), budget_(budget) {}

  // Between two questions: numbers of states are void then.
  void forget_if_many();
  int32_t of(const OneSm& sm);
  bool idle(const int32_t state) const { return nodes_[state].sm.idle(); }
  RoomRange rooms(int32_t state, int32_t launch);
  // One block, for which there may be room.
  int32_t with_one_more(int32_t state, int32_t launch);
  // Each state that is reached if one more block leaves, and how.
  const std::vector<int32_t>& after_leaving(int32_t state);
  const std::vector<Move>& moves_of_leaving(int32_t state);
  // The same if a block of a launch enters, in each way of OneSm::may_enter.
  const std::vector<int32_t>& after_entering(int32_t state, int32_t launch);
  // Whether a block of the launch is there, or may enter.
  bool admits(const int32_t state, const int32_t launch) const {
    return nodes_[state].sm.admits(launch);
  }
  // Whether all that is there may leave.
  bool may_become_idle(int32_t state) const;
  // Every state that is reached if blocks leave and some enter; those with fewer of the first
  // entrant come first. More than kMostEntrants are too many ways.
  using AllReached = std::shared_ptr<const std::vector<Reached>>;
  AllReached reached(int32_t state, const Entrants& entrants);

 private:
  struct Node {
    OneSm sm;
    std::vector<std::optional<RoomRange>> rooms;  // for each launch, where known
    std::vector<int32_t> with_one_more;
    bool has_left = false;  // whether these are known:
    std::vector<int32_t> after_leaving = {};
    std::vector<Move> moves_of_leaving = {};
    std::map<int32_t, std::vector<int32_t>> after_entering = {};  // by the launch, where known
  };
  static constexpr int32_t kUnknown = -1;
  const Node& left(int32_t state);
  std::vector<Reached> look(int32_t state, const Entrants& entrants, size_t counted);

  const std::vector<int32_t>& leaving_;
  Budget& budget_;
  std::deque<Node> nodes_;
  std::map<std::vector<int32_t>, int32_t> known_;               // by their keys
  std::map<std::pair<int32_t, Entrants>, AllReached> reached_;  // unless they are many
};

}  // namespace tbsched
