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

// The waiting launches that are barred from an SM: no block of them has entered it, and none finds
// room there in the end. A bit for each, by WaitingLaunch::index.
using Barred = uint8_t;
static_assert(kMaxCounted <= 8);
inline Barred bit_of(const size_t index) { return static_cast<Barred>(1U << index); }
inline bool is_barred(const Barred barred, const size_t index) {
  return (barred & bit_of(index)) != 0;
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

// What an arriving launch finds on an SM, after blocks have left and waiting blocks have entered.
struct Ready {
  int32_t room = 0;   // number of its blocks that fit
  bool idle = false;  // set only where it matters
  // Successors of the SM, by how many blocks the launch takes there; empty for the last launch.
  std::vector<int32_t> then;

  auto operator<=>(const Ready&) const = default;
};

// A Ready that an SM may reach if at least this many waiting blocks have entered, but none of the
// launches that are barred. Clusters of whole TPCs enter on both SMs, so `barred` matters for them.
struct Transition {
  int32_t ready = 0;  // index of the Ready
  BlocksOfEach entered = {};
  Barred barred = 0;

  auto operator<=>(const Transition&) const = default;
};
using Successors = std::vector<Transition>;

// Stores each distinct value once, and gives it an index.
template <typename Value>
class Numbered {
 public:
  // Returns the index of a value, which is stored if it is new.
  int32_t index_of(Value value) {
    const auto next = static_cast<int32_t>(all_.size());
    const auto [entry, is_new] = index_of_value_.try_emplace(std::move(value), next);
    if (is_new) all_.push_back(&entry->first);
    return entry->second;
  }
  const Value& operator[](const int32_t index) const { return *all_[index]; }

 private:
  std::map<Value, int32_t> index_of_value_;
  std::vector<const Value*> all_;  // by index
};

// The behaviours of one query's SMs. Functions that explore new states throw BudgetExceeded.
//
// Their parameters are indices:
//   state: what is on the SM (SmStates)
//   stage: the arrival of a launch (Query); the last stage is that of the last launch
//   role: which launches may take the SM, leave it and enter it (SmRole)
//   ready: what the launch of the stage finds on the SM (Ready)
// The successors of a state at a stage are all Transitions: each is a Ready that the SM may reach,
// and the waiting blocks that must have entered for it.
class Behaviours {
 public:
  // The arguments outlive it.
  Behaviours(const Device& device, const Demands& demands, const LaunchPlaces& places,
             const Query& query, SmStates& states, Budget& budget);

  // Returns the index of a role.
  int32_t role(SmRole role) { return roles_.index_of(std::move(role)); }
  // Returns the index of the successors of an SM in this state, before any block leaves for the
  // arrival of this stage. Explores them at the first call. For transitions().
  int32_t successors(int32_t state, size_t stage, int32_t role);
  // Returns the successors of this index.
  const Successors& transitions(const int32_t successors) const {
    return all_successors_[successors];
  }
  const Ready& ready(const int32_t index) const { return readies_[index]; }
  // Returns whether more states were explored than can occur, because gaps were only counted.
  bool gaps_matter() const { return gaps_matter_; }
  struct Moved {
    std::vector<Move> moves;
    int32_t state;
  };
  // Returns which blocks leave and enter, in order, so that a transition comes about from this
  // state, and the state after that.
  Moved moves(int32_t state, size_t stage, int32_t role, const Transition& transition);

 private:
  using Key = uint64_t;  // of a map: packs a state, stage and role
  // Returns the key of a state, stage and role.
  static Key key(int32_t state, size_t stage, int32_t role);
  // Returns whether the launch that arrives at this stage, or a later one, may take the SM.
  bool may_be_taken(size_t stage, const SmRole& role) const;
  // Returns whether blocks may leave the SM just before the launch of this stage arrives.
  bool may_leave(size_t stage, const SmRole& role) const;
  // Returns the waiting launches whose blocks may enter the SM before the launch of this stage
  // arrives.
  std::vector<const WaitingLaunch*> entering(size_t stage, const SmRole& role) const;
  // Returns what successors() stores: all transitions of an SM from this state, before any block
  // leaves for the arrival of this stage.
  Successors explore(int32_t state, size_t stage, int32_t role);
  // Returns the transitions of an SM if no block leaves or enters before the arrival of this stage:
  // one for each Ready of this state, with these launches barred.
  Successors unchanged(int32_t state, size_t stage, int32_t role, Barred barred);
  // Returns the waiting launches that are barred at this stage whatever is on the SM.
  Barred barred_in_any_state(size_t stage, const SmRole& role) const;
  // Returns the transitions of an SM if blocks leave and blocks of `entering` enter before the
  // arrival of this stage.
  Successors explore_entering(int32_t state, size_t stage, int32_t role,
                              const std::vector<const WaitingLaunch*>& entering);
  // Returns the same for the last stage, faster: a search backwards from each possible Ready, of
  // which there are few (FewestEntered), to the many states that lead to it.
  Successors explore_last_stage(int32_t state, size_t stage, int32_t role,
                                const std::vector<const WaitingLaunch*>& entering);
  // Returns, as indices, what the launch that arrives at this stage may find on an SM in this
  // state: a Ready for each number of blocks that may fit; for the last launch only for the least.
  const std::vector<int32_t>& readies_of(int32_t state, size_t stage, int32_t role);
  // Returns the least and the greatest number of a launch's blocks that fit an SM in this state.
  // Sets gaps_matter_ if the two differ.
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
