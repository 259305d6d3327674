// The SMs of Algorithm 1, with block indices handed out in runs per GPC.
//
// The scheduler works in two stages. One chooses the SMs level by level, as Algorithm 1 does. The
// other grants turns to the GPCs: in a turn, each SM of the GPC that has been chosen for a
// block gets one. Turns go round. TPCs of no GPC have turns of their own, by pairs, before the
// GPCs. The first turn of a launch is lost. The blocks of a level are available as many turns after
// those of the previous level as there are GPCs. A last level that takes only some of the SMs with
// that room is searched SM by SM, which takes longer.
//
// Clusters go one a turn, in the same rounds but without a lost turn, pass by pass over the GPCs.
//
// All SMs of a cooperative launch are chosen before the first block is handed out. Its singleton
// TPCs have turns one by one, as with clusters of 2, and all of them before the GPCs. Source:
// traces ways/cooperative.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tbsched/policy/cluster_levels.h"
#include "tbsched/policy/hopper/search.h"
#include "tbsched/policy/hopper/singleton_turns.h"
#include "tbsched/policy/levels.h"

namespace tbsched {
namespace {

// The SMs that take their turns together: the GPCs by number, then pairs of singleton TPCs.
struct TurnGroups {
  explicit TurnGroups(const Topology& topology) {
    const int32_t sms = topology.sms();
    gpcs = std::ranges::max(topology.gpc_of_sm) + 1;
    group_of_sm = topology.gpc_of_sm;
    std::vector<int32_t> singleton_of_sm(sms, -1);
    int32_t last_tpc = -1;
    for (int32_t sm = 0; sm < sms; ++sm) {
      if (topology.gpc_of_sm[sm] >= 0) continue;
      singletons += topology.tpc_of_sm[sm] != last_tpc ? 1 : 0;
      last_tpc = topology.tpc_of_sm[sm];
      singleton_of_sm[sm] = singletons - 1;
      group_of_sm[sm] = gpcs + singleton_of_sm[sm] / kTpcsPerPair;
    }
    const int32_t pairs = (singletons + kTpcsPerPair - 1) / kTpcsPerPair;
    begins.assign(gpcs + pairs + 1, 0);
    for (const int32_t group : group_of_sm) ++begins[group + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    positions.resize(sms);
    std::vector<int32_t> next(begins);
    for (int32_t sm = 0; sm < sms; ++sm) positions[next[group_of_sm[sm]]++] = sm;
    for (int32_t position = begins[gpcs]; position < sms; ++position) {
      singleton_of_position.push_back(singleton_of_sm[positions[position]]);
    }
  }

  int32_t gpcs = 0;        // number of GPCs
  int32_t singletons = 0;  // number of TPCs of no GPC
  std::vector<int32_t> group_of_sm;
  std::vector<int32_t> positions;              // the SMs, group by group
  std::vector<int32_t> begins;                 // of each group in `positions`, and the end
  std::vector<int32_t> singleton_of_position;  // from begins[gpcs] on
};

// The components of a latent state.
enum : size_t {
  kFirstGpc,       // the GPC at or after which the first one hands out blocks
  kFirstSingleton  // the singleton TPC at or after which the pair begins that hands out first
};

constexpr size_t kMaxStates = 65536;

// Tables that depend on the device alone.
struct Tables {
  explicit Tables(const Device& device)
      : groups(device.topology),
        search_turns(tbsched::search_turns(device.topology, device.spec.sm_preference)),
        shares_turns(device.spec.mechanisms.blocks_turn_singletons) {
    for (const int32_t sm : groups.positions) ranks.push_back(device.rank_of_sm[sm]);
  }

  TurnGroups groups;
  std::vector<int32_t> ranks;         // of preference, by position
  std::vector<int32_t> search_turns;  // by SM
  bool shares_turns;  // clusters share turns with single blocks, among the singletons
};

// Returns whether no number is zero. Has no early exit, so that it can be vectorised.
bool none_is_zero(const std::span<const uint8_t> numbers) {
  uint8_t least = 1;
  for (const uint8_t number : numbers) least = std::min(least, number);
  return least != 0;
}

class Hopper final : public Policy {
 public:
  Hopper(const Tables& tables, const InitialState state)
      : groups_(tables.groups),
        gpcs_(groups_.gpcs),
        search_turns_(tables.search_turns),
        levels_(tables.ranks),
        next_gpc_(state.components[kFirstGpc]),
        singleton_turns_(groups_.singletons, first_polled(state.components[kFirstSingleton])),
        turns_of_clusters_alone_(singleton_turns_),
        shares_turns_(tables.shares_turns),
        begins_of_few_(groups_.begins.size()),
        chosen_of_group_(groups_.begins.size() - 1),
        turns_of_singleton_(groups_.singletons) {}

  size_t place(const Demand& demand, const GpuState& gpu, Rooms& rooms, const Commit& commit,
               const std::span<int32_t> sms) override {
    const auto blocks = static_cast<int32_t>(sms.size());
    if (demand.cluster == 1) {
      rooms.update(gpu, demand);
      const int32_t sm = demand.at_once ? kNoSm : only_sm(blocks, gpu, rooms);
      if (sm != kNoSm && try_hand_out_one(sm)) {
        commit(sm, 1);
        sms[0] = sm;
        return 1;
      }
      levels_.fill(demand, blocks, gpu, rooms, commit);
      list_candidates();
      const std::span<int32_t> placed = sms.first(levels_.blocks());
      if (demand.at_once) {
        hand_out_at_once(placed);
      } else {
        hand_out(placed);
      }
      return placed.size();
    }
    cluster_levels_.fill(demand, blocks / demand.cluster, gpu, commit);
    cluster_of_domain_.resize(gpu.device().cluster_domains.size());
    return hand_out_clusters(sms);
  }
  // The turns of singletons do not show in where blocks are.
  void note_placed(const std::span<const int32_t> sms) override {
    const auto in_gpc = [&](const int32_t sm) { return groups_.group_of_sm[sm] < gpcs_; };
    const auto last = std::find_if(sms.rbegin(), sms.rend(), in_gpc);
    if (last != sms.rend()) next_gpc_ = gpc_after(groups_.group_of_sm[*last]);
  }

 private:
  using Cluster = ClusterLevels::Cluster;

  // Sets the candidates to the SMs that levels are about, by group.
  void list_candidates() {
    const std::span<const int32_t> positions = levels_.positions();
    candidates_ = groups_.positions;
    begins_ = groups_.begins;
    if (positions.size() < groups_.positions.size()) list_few(positions);
    chosen_.assign(candidates_.size(), 0);
  }

  // Sets the candidates to the SMs at these positions of the groups, which are ascending.
  void list_few(const std::span<const int32_t> positions) {
    few_.resize(positions.size());
    size_t group = 0;
    for (size_t i = 0; i < positions.size(); ++i) {
      few_[i] = groups_.positions[positions[i]];
      while (positions[i] >= groups_.begins[group + 1]) {
        begins_of_few_[++group] = static_cast<int32_t>(i);
      }
    }
    while (++group < begins_of_few_.size()) {
      begins_of_few_[group] = static_cast<int32_t>(positions.size());
    }
    candidates_ = few_;
    begins_ = begins_of_few_;
  }

  // Returns the values of one group, out of a value for each candidate.
  template <typename Value>
  std::span<Value> part(const std::span<Value> values, const size_t group) const {
    const auto begin = static_cast<size_t>(begins_[group]);
    return values.subspan(begin, static_cast<size_t>(begins_[group + 1]) - begin);
  }

  // Takes the turns of a launch of one block on an SM of a GPC, where all other turns are lost.
  // Returns false, and does nothing, if the SM is in no GPC or other turns come first.
  bool try_hand_out_one(const int32_t sm) {
    const int32_t group = groups_.group_of_sm[sm];
    if (group >= gpcs_ || pair_has_turn()) return false;
    next_gpc_ = gpc_after(group);
    return true;
  }

  // Writes the SMs of the launch's blocks, in the order of their numbers: each level is chosen
  // while blocks of those before it are handed out.
  void hand_out(const std::span<int32_t> sms) {
    if (sms.empty()) return;
    const size_t levels = levels_.count();
    size_t chosen_blocks = choose(0);
    size_t level = 1;
    int64_t ready_turn = turns_before(level);  // the turn from which the level is available
    size_t done = 0;
    if (!pair_has_turn()) next_gpc();
    for (int64_t turn = 1; done < sms.size(); ++turn) {
      while (level < levels && (ready_turn <= turn || done == chosen_blocks)) {
        turn = std::max(turn, ready_turn);  // with nothing to hand out, turns pass
        chosen_blocks += choose(level);
        ready_turn += turns_before(++level);
      }
      done = take_turn(pair_has_turn() ? next_pair() : next_gpc(), sms, done);
    }
  }

  // Writes the SMs of a cooperative launch's blocks, in the order of their numbers: all levels are
  // chosen before.
  void hand_out_at_once(const std::span<int32_t> sms) {
    if (sms.empty()) return;
    for (size_t k = 0; k < levels_.count(); ++k) choose_sms(levels_.level(k));
    const auto singles = std::span<const uint8_t>(chosen_).subspan(begins_[gpcs_]);
    set_turns_of_singletons(singles);
    const auto wants = [&](const int32_t tpc) { return turns_of_singleton_[tpc] > 0; };
    if (any_singleton_wants_turn()) {
      singleton_turns_.poll_one(wants);  // the first turn is lost
    } else {
      next_gpc();
    }
    size_t done = 0;
    while (any_singleton_wants_turn()) {
      const int32_t tpc = singleton_turns_.poll_one(wants);
      --turns_of_singleton_[tpc];
      for (size_t i = 0; i < singles.size(); ++i) {
        if (singleton(i) != tpc || singles[i] == 0) continue;
        const size_t candidate = begins_[gpcs_] + i;
        --chosen_[candidate];
        --chosen_of_group_[gpcs_ + tpc / kTpcsPerPair];
        sms[done++] = candidates_[candidate];
      }
    }
    while (done < sms.size()) done = take_turn(next_gpc(), sms, done);
  }

  // Writes the SMs of the chosen clusters, pass by pass over the GPCs, one cluster a turn. Returns
  // the number of their blocks.
  size_t hand_out_clusters(const std::span<int32_t> sms) {
    auto next = sms.begin();
    const auto wants = [&](const int32_t domain) { return cluster_of_domain_[domain] != nullptr; };
    for (size_t k = 0; k < cluster_levels_.passes(); ++k) {
      const auto pass = cluster_levels_.pass(k);
      for (const Cluster& cluster : pass) cluster_of_domain_[cluster.domain] = &cluster;
      for (const Cluster& cluster : pass) {
        const bool single = std::cmp_less(cluster.domain, groups_.singletons);
        const int32_t domain = single ? cluster_turns().poll_one(wants)
                                      : groups_.singletons + next_gpc([&](const int32_t gpc) {
                                          return wants(groups_.singletons + gpc);
                                        });
        const Cluster& taken = *std::exchange(cluster_of_domain_[domain], nullptr);
        next = std::ranges::copy(cluster_levels_.sms(taken), next).out;
      }
    }
    return static_cast<size_t>(next - sms.begin());
  }

  // Returns the turns that clusters take on singletons.
  SingletonTurns& cluster_turns() {
    return shares_turns_ ? singleton_turns_ : turns_of_clusters_alone_;
  }

  // Returns the TPC that is polled first. The state names the TPC whose pair hands out first; the
  // turn of the other pair is lost.
  int32_t first_polled(const int32_t first_to_hand_out) const {
    const int32_t tpcs = groups_.singletons;
    return tpcs == 0 ? 0 : (first_to_hand_out + kTpcsPerPair) % tpcs;
  }

  // Returns how many turns a level is available after the previous one.
  int64_t turns_before(const size_t level) const {
    const bool searched = level + 1 == levels_.count() && !levels_.last_is_whole();
    // SMs were chosen in order of preference: the search ended at the last one.
    return searched ? search_turns_[levels_.last_sm()] : gpcs_;
  }

  // Adds the SMs of a level to the chosen ones. Returns the number of its blocks.
  size_t choose_sms(const std::span<const uint8_t> level) {
    std::transform(level.begin(), level.end(), chosen_.begin(), chosen_.begin(), std::plus{});
    size_t blocks = 0;
    for (size_t group = 0; group < chosen_of_group_.size(); ++group) {
      const auto of_group = part(level, group);
      const int32_t sum = std::accumulate(of_group.begin(), of_group.end(), 0);
      chosen_of_group_[group] += sum;
      blocks += static_cast<size_t>(sum);
    }
    return blocks;
  }

  // Sets how many turns each singleton TPC needs: one for each block of its SMs.
  void set_turns_of_singletons(const std::span<const uint8_t> singles) {
    std::ranges::fill(turns_of_singleton_, 0);
    for (size_t i = 0; i < singles.size(); ++i) {
      int32_t& turns = turns_of_singleton_[singleton(i)];
      turns = std::max<int32_t>(turns, singles[i]);
    }
  }
  // Returns the singleton TPC of the i-th candidate that is in no GPC.
  int32_t singleton(const size_t i) const {
    const int32_t position = levels_.positions()[begins_[gpcs_] + i];
    return groups_.singleton_of_position[position - groups_.begins[gpcs_]];
  }
  // Returns whether blocks of a singleton TPC have no turn yet.
  bool any_singleton_wants_turn() const {
    return std::ranges::any_of(turns_of_singleton_, std::identity{});
  }

  // Chooses the SMs of level k, and queues the turns of the pairs of singletons for them. Returns
  // the number of the level's blocks.
  size_t choose(const size_t k) {
    const std::span<const uint8_t> level = levels_.level(k);
    const size_t blocks = choose_sms(level);
    set_turns_of_singletons(level.subspan(begins_[gpcs_]));
    for (bool opening = k == 0; any_singleton_wants_turn(); opening = false) {
      std::ranges::copy(singleton_turns_.poll_all(turns_of_singleton_, opening),
                        std::back_inserter(pair_turns_));
      for (int32_t& turns : turns_of_singleton_) turns = std::max(0, turns - 1);
    }
    return blocks;
  }

  // Hands out one block on each chosen SM of the group, after the `done` blocks that have been
  // handed out. Returns how many have been then.
  size_t take_turn(const int32_t group, const std::span<int32_t> sms, const size_t done) {
    const auto chosen = part(std::span(chosen_), group);
    const auto candidates = part(candidates_, group);
    auto next = sms.begin() + static_cast<std::ptrdiff_t>(done);
    if (none_is_zero(chosen)) {
      for (uint8_t& blocks : chosen) --blocks;
      next = std::ranges::copy(candidates, next).out;
    } else {
      for (size_t i = 0; i < chosen.size(); ++i) {
        if (chosen[i] == 0) continue;
        --chosen[i];
        *next++ = candidates[i];
      }
    }
    const auto now_done = static_cast<size_t>(next - sms.begin());
    chosen_of_group_[group] -= static_cast<int32_t>(now_done - done);
    return now_done;
  }

  // Returns whether a pair of singletons has its turn now, before the GPCs.
  bool pair_has_turn() const { return pairs_done_ < pair_turns_.size(); }
  // Ends the turn of the pair that has it. Returns the group of the pair.
  int32_t next_pair() {
    const int32_t pair = pair_turns_[pairs_done_++];
    if (!pair_has_turn()) {
      pair_turns_.clear();
      pairs_done_ = 0;
    }
    return gpcs_ + pair;
  }
  // Moves the turn on behind the next GPC that has a chosen block, or that wants a turn. Returns
  // this GPC; there must be one.
  int32_t next_gpc() {
    return next_gpc([&](const int32_t gpc) { return chosen_of_group_[gpc] > 0; });
  }
  template <typename Wants>
  int32_t next_gpc(const Wants& wants) {
    while (!wants(next_gpc_)) next_gpc_ = gpc_after(next_gpc_);
    return std::exchange(next_gpc_, gpc_after(next_gpc_));
  }
  // Returns the GPC whose turn follows. Avoids a division, which took a fifth of a prediction when
  // blocks leave one at a time.
  int32_t gpc_after(const int32_t gpc) const { return gpc + 1 < gpcs_ ? gpc + 1 : 0; }

  const TurnGroups& groups_;
  int32_t gpcs_;
  std::span<const int32_t> search_turns_;  // by SM
  Levels levels_;
  ClusterLevels cluster_levels_;
  int32_t next_gpc_;  // the GPC whose turn it is
  SingletonTurns singleton_turns_;
  SingletonTurns turns_of_clusters_alone_;
  bool shares_turns_;

  // Blocks of the current launch whose SMs have been chosen and that are not handed out yet.
  std::span<const int32_t> candidates_;  // SMs that levels are about, group by group
  std::span<const int32_t> begins_;      // of each group in candidates_, and the end
  std::vector<int32_t> few_;             // for candidates_ and begins_, unless they are all SMs
  std::vector<int32_t> begins_of_few_;
  std::vector<uint8_t> chosen_;              // number of blocks, by candidate
  std::vector<int32_t> chosen_of_group_;     // the same, by group
  std::vector<int32_t> turns_of_singleton_;  // that it needs and does not have yet
  std::vector<int32_t> pair_turns_;          // pairs of singletons in the order of their turns
  size_t pairs_done_ = 0;                    // number of these turns that are over
  std::vector<const Cluster*> cluster_of_domain_;  // of a pass, those not handed out yet
};

// Returns the possible values of kFirstGpc, the GPC that may hand out blocks first on an idle GPU:
// the GPCs that have SMs. For the first of these the value is 0: the first GPC with SMs from 0 on.
std::vector<int32_t> first_gpcs(const TurnGroups& groups) {
  std::vector<int32_t> gpcs;
  for (int32_t gpc = 0; gpc < groups.gpcs; ++gpc) {
    if (groups.begins[gpc] < groups.begins[gpc + 1]) gpcs.push_back(gpc);
  }
  gpcs.front() = 0;
  return gpcs;
}

// Returns the possible values of kFirstSingleton, the singleton (TPC of no GPC) that may be polled
// first on an idle GPU; {0} if there are no singletons. They take turns in pairs. So these are the
// first ones of all pairs, and with `clusters`, which take single TPCs, then the second ones.
std::vector<int32_t> first_singletons(const TurnGroups& groups, const bool clusters) {
  std::vector<int32_t> tpcs;
  for (int32_t of_pair = 0; of_pair < (clusters ? kTpcsPerPair : 1); ++of_pair) {
    for (int32_t tpc = of_pair; tpc < groups.singletons; tpc += kTpcsPerPair) tpcs.push_back(tpc);
  }
  return tpcs.empty() ? std::vector{0} : tpcs;
}

}  // namespace

// Returns the initial states: every combination of a GPC and a singleton. All 32 of an H200 occur:
// each is the only one that explains some sequence of trace h200/mixed. The second TPC of a pair
// differs from the first one only for clusters of 2: trace h200/cl.
//
// Without GPCs, all states are equal.
std::vector<InitialState> hopper_states(const Device& device) {
  const TurnGroups groups(device.topology);
  if (groups.gpcs == 0) return one_state(device);
  const std::vector<int32_t> gpcs = first_gpcs(groups);
  const std::vector<int32_t> singletons = first_singletons(groups, device.spec.max_cluster > 1);
  if (gpcs.size() * singletons.size() > kMaxStates) {
    throw std::invalid_argument("gpcs: " + std::to_string(gpcs.size()) + " with TPCs, and " +
                                std::to_string(groups.singletons) +
                                " TPCs of none, are more than " + std::to_string(kMaxStates) +
                                " initial states");
  }
  std::vector<InitialState> states;
  for (const int32_t gpc : gpcs) {
    for (const int32_t singleton : singletons) {
      InitialState& state = states.emplace_back();
      state.components[kFirstGpc] = gpc;
      state.components[kFirstSingleton] = singleton;
    }
  }
  return states;
}

// Returns a policy whose instances share the tables of the device.
StartPolicy make_hopper(const Device& device) {
  return [tables = std::make_shared<const Tables>(device)](const InitialState state) {
    return std::make_unique<Hopper>(*tables, state);
  };
}

}  // namespace tbsched
