// Behaviours of SMs: what can happen to an SM, as far as it matters to arriving launches. SMs that
// behave alike are explored once, whatever is on them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tbsched/coresidency/budget.h"
#include "tbsched/coresidency/outcomes/places.h"
#include "tbsched/coresidency/outcomes/query.h"
#include "tbsched/coresidency/sm/fewest_entered.h"
#include "tbsched/coresidency/sm/sm_states.h"

namespace tbsched {

// The waiting launches of which none has entered an SM and none may: a bit for each, by its place.
using Barred = uint8_t;
static_assert(kMostCounted <= 8);
inline Barred bit_of(const size_t place) { return static_cast<Barred>(1U << place); }
inline bool is_barred(const Barred barred, const size_t place) {
  return (barred & bit_of(place)) != 0;
}

// How launches may use an SM.
struct SmRole {
  std::vector<bool> takes;  // by arrival, the last launch's included: whether it takes blocks
  std::vector<bool>
      leaves;  // by arrival: whether blocks may leave just before it; else they leave later
  std::vector<bool> enters;  // by waiting launch
  bool is_quiet = false;     // nothing enters before the first arrival

  auto operator<=>(const SmRole&) const = default;
};

// The state of an SM when a launch arrives, after blocks have left and waiting blocks have entered.
struct Ready {
  int32_t room = 0;
  bool idle = false;  // set only where it matters
  std::vector<int32_t>
      then;  // numbers of successors, by the launch's number of blocks; empty for the last launch

  auto operator<=>(const Ready&) const = default;
};

// A Ready that an SM may reach if at least this many waiting blocks have entered, but none of those
// that are barred. Clusters of whole TPCs enter on both SMs, so `barred` matters for them.
struct Transition {
  int32_t ready = 0;
  BlocksOfEach entered = {};
  Barred barred = 0;

  auto operator<=>(const Transition&) const = default;
};
using Successors = std::vector<Transition>;

// Numbers distinct values.
template <typename Value>
class Numbered {
 public:
  int32_t of(Value value) {
    const auto next = static_cast<int32_t>(all_.size());
    const auto [at, is_new] = known_.try_emplace(std::move(value), next);
    if (is_new) all_.push_back(&at->first);
    return at->second;
  }
  const Value& operator[](const int32_t number) const { return *all_[number]; }

 private:
  std::map<Value, int32_t> known_;
  std::vector<const Value*> all_;
};

// The behaviours of one query's SMs. Functions that explore new states throw BudgetExceeded.
class Behaviours {
 public:
  // The arguments outlive it.
  Behaviours(const Device& device, const Demands& demands, const LaunchPlaces& places,
             const Query& query, SmStates& states, Budget& budget);

  int32_t role(SmRole role) { return roles_.of(std::move(role)); }
  // Returns the successors of an SM in a state, before blocks leave for the arrival of a stage.
  int32_t successors(int32_t state, size_t stage, int32_t role);
  const Successors& transitions(const int32_t successors) const {
    return all_successors_[successors];
  }
  const Ready& ready(const int32_t number) const { return readies_[number]; }
  // Whether more states were explored than can occur, because gaps were only counted.
  bool gaps_matter() const { return gaps_matter_; }
  // The moves to a transition, and the state after them.
  struct Moved {
    std::vector<Move> moves;
    int32_t state;
  };
  Moved moves(int32_t state, size_t stage, int32_t role, const Transition& transition);

 private:
  using Key = uint64_t;  // packs a state, stage and role
  static Key key(int32_t state, size_t stage, int32_t role);
  bool may_be_taken(size_t stage, const SmRole& role) const;
  bool may_leave(size_t stage, const SmRole& role) const;
  std::vector<const WaitingLaunch*> entering(size_t stage, const SmRole& role) const;
  Successors explore(int32_t state, size_t stage, int32_t role);
  Successors now(int32_t state, size_t stage, int32_t role, Barred barred);
  Barred barred_anyway(size_t stage, const SmRole& role) const;
  Successors explore_entering(int32_t state, size_t stage, int32_t role,
                              const std::vector<const WaitingLaunch*>& entering);
  Successors explore_last_stage(int32_t state, size_t stage, int32_t role,
                                const std::vector<const WaitingLaunch*>& entering);
  const std::vector<int32_t>& readies_of(int32_t state, size_t stage, int32_t role);
  RoomRange rooms(int32_t state, int32_t launch);

  const Demands& demands_;
  const LaunchPlaces& places_;
  const Query& query_;
  SmStates& states_;
  Budget& budget_;
  bool room_falls_only_when_idle_;  // room for the last launch falls only when the SM becomes idle
  int32_t room_when_idle_;          // for the last launch
  Numbered<SmRole> roles_;
  Numbered<Successors> all_successors_;
  Numbered<Ready> readies_;
  std::unordered_map<Key, int32_t> known_successors_;
  std::unordered_map<Key, std::vector<int32_t>> known_readies_;
  std::map<int32_t, FewestEntered> last_stage_;  // by role
  bool gaps_matter_ = false;
};

}  // namespace tbsched
