// The SMs of Algorithm 1, with block indices handed out in runs per GPC.
//
// The scheduler works in two stages. One chooses the SMs level by level, as Algorithm 1 does. The
// other grants turns to the GPCs: in a turn, each SM of the GPC that has been chosen for a block
// gets one. Turns go round. TPCs of no GPC have turns of their own, by pairs, and go before the
// GPCs. The first turn of a launch is lost. The blocks of a level are there as many turns after
// those of the one before it as there are GPCs. A last level that takes only some of the SMs in
// question is searched for one by one, which takes longer.
//
// Clusters go one a turn, in the same rounds but without a lost turn, pass by pass over the GPCs.
#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "policy/cluster_levels.h"
#include "policy/levels.h"
#include "policy/search.h"
#include "policy/singleton_turns.h"

namespace tbsched {
namespace {

int32_t gpcs_of(const Topology& topology) { return std::ranges::max(topology.gpc_of_sm) + 1; }

class Hopper final : public Policy {
 public:
  Hopper(const DeviceSpec& spec, const InitialState state)
      : gpcs_(gpcs_of(spec.topology)),
        cluster_domains_(cluster_domains(spec.topology)),
        singletons_(static_cast<int32_t>(cluster_domains_.size()) - gpcs_),
        group_of_sm_(spec.topology.gpc_of_sm),
        singleton_of_sm_(spec.topology.sms(), -1),
        search_turns_(search_turns(spec.topology)),
        next_gpc_(state.first_gpc),
        singleton_turns_(singletons_, first_asked(state.first_singleton)),
        sms_of_group_(gpcs_ + singleton_turns_.pairs()),
        blocks_of_sm_(spec.topology.sms()),
        blocks_of_group_(sms_of_group_.size()) {
    for (int32_t tpc = 0; tpc < singletons_; ++tpc) {
      for (const int32_t sm : cluster_domains_[tpc].tpcs.front()) singleton_of_sm_[sm] = tpc;
    }
    for (int32_t sm = 0; sm < spec.topology.sms(); ++sm) {
      if (singleton_of_sm_[sm] >= 0) group_of_sm_[sm] = gpcs_ + singleton_of_sm_[sm] / kTpcsPerPair;
      sms_of_group_[group_of_sm_[sm]].push_back(sm);
    }
  }

  std::vector<int32_t> place(const Demand& demand, const int32_t blocks, const GpuState& gpu,
                             const Commit& commit) override {
    if (demand.cluster == 1) return hand_out(fill_levels(demand, blocks, gpu, commit));
    const int32_t clusters = blocks / demand.cluster;
    return hand_out(fill_cluster_levels(cluster_domains_, demand, clusters, gpu, commit));
  }

 private:
  std::vector<int32_t> hand_out(const Levels& levels) {
    std::vector<int32_t> order;
    if (levels.sms.empty()) return order;
    order.reserve(levels.sms.size());
    const std::vector<int64_t> ready = ready_turns(levels);
    size_t level = 0;
    choose(levels, level++);
    if (pair_turns_.empty()) next_gpc();
    for (int64_t turn = 1; order.size() < levels.sms.size();) {
      while (level < ready.size() && ready[level] <= turn) choose(levels, level++);
      if (order.size() == levels.ends[level - 1]) {
        turn = ready[level];
        continue;
      }
      take_turn(pair_turns_.empty() ? next_gpc() : next_pair(), order);
      ++turn;
    }
    return order;
  }

  // A pass over the GPCs at a time, one cluster a turn.
  std::vector<int32_t> hand_out(const ClusterPasses& passes) {
    std::vector<int32_t> order;
    for (const std::vector<PlacedCluster>& pass : passes) {
      std::vector<const PlacedCluster*> of_domain(cluster_domains_.size());
      for (const PlacedCluster& cluster : pass) of_domain[cluster.domain] = &cluster;
      const auto wants = [&](const int32_t domain) { return of_domain[domain] != nullptr; };
      for (const PlacedCluster& cluster : pass) {
        const bool single = std::cmp_less(cluster.domain, singletons_);
        const int32_t domain = single ? singleton_turns_.ask_one(wants)
                                      : singletons_ + next_gpc([&](const int32_t gpc) {
                                          return wants(singletons_ + gpc);
                                        });
        std::ranges::copy(std::exchange(of_domain[domain], nullptr)->sms,
                          std::back_inserter(order));
      }
    }
    return order;
  }

  // The state names the TPC whose pair hands out first, the turn of the other pair being lost.
  int32_t first_asked(const int32_t first_to_hand_out) const {
    return singletons_ == 0 ? 0 : (first_to_hand_out + kTpcsPerPair) % singletons_;
  }

  void choose(const Levels& levels, const size_t level) {
    const size_t begin = level == 0 ? 0 : levels.ends[level - 1];
    std::vector<int32_t> turns(singletons_);  // that each TPC needs, a block per SM and turn
    int32_t of_this_sm = 0;
    for (size_t i = begin; i < levels.ends[level]; ++i) {
      const int32_t sm = levels.sms[i];
      of_this_sm = i > begin && levels.sms[i - 1] == sm ? of_this_sm + 1 : 1;
      ++blocks_of_sm_[sm];
      ++blocks_of_group_[group_of_sm_[sm]];
      if (const int32_t tpc = singleton_of_sm_[sm]; tpc >= 0) {
        turns[tpc] = std::max(turns[tpc], of_this_sm);
      }
    }
    std::vector<bool> wants(turns.size());
    const auto any_left = [&] { return std::ranges::any_of(turns, std::identity{}); };
    for (bool opening = level == 0; any_left(); opening = false) {
      std::transform(turns.begin(), turns.end(), wants.begin(),
                     [](const int32_t left) { return left > 0; });
      std::ranges::copy(singleton_turns_.ask_all(wants, opening), std::back_inserter(pair_turns_));
      for (int32_t& left : turns) left = std::max(0, left - 1);
    }
  }

  // Each SM of the group that has been chosen hands out one block.
  void take_turn(const int32_t group, std::vector<int32_t>& order) {
    for (const int32_t sm : sms_of_group_[group]) {
      if (blocks_of_sm_[sm] == 0) continue;
      --blocks_of_sm_[sm];
      --blocks_of_group_[group];
      order.push_back(sm);
    }
  }

  int32_t next_pair() {
    const int32_t pair = pair_turns_.front();
    pair_turns_.pop_front();
    return gpcs_ + pair;
  }
  int32_t next_gpc() {
    return next_gpc([&](const int32_t gpc) { return blocks_of_group_[gpc] > 0; });
  }
  template <typename Wants>
  int32_t next_gpc(const Wants& wants) {
    while (!wants(next_gpc_)) next_gpc_ = (next_gpc_ + 1) % gpcs_;
    return std::exchange(next_gpc_, (next_gpc_ + 1) % gpcs_);
  }

  // The turn from which the blocks of each level are there.
  std::vector<int64_t> ready_turns(const Levels& levels) const {
    std::vector<int64_t> ready(levels.ends.size());
    for (size_t level = 1; level < ready.size(); ++level) {
      const bool whole = level + 1 < levels.ends.size() || levels.last_is_whole;
      // SMs were chosen in order of preference: the last one says how far the search went.
      const int32_t last_chosen = levels.sms[levels.ends[level] - 1];
      ready[level] = ready[level - 1] + (whole ? gpcs_ : search_turns_[last_chosen]);
    }
    return ready;
  }

  int32_t gpcs_;
  std::vector<ClusterDomain> cluster_domains_;  // the singletons first
  int32_t singletons_;
  std::vector<int32_t> group_of_sm_;  // GPCs keep their number, pairs of singletons follow
  std::vector<int32_t> singleton_of_sm_;
  std::vector<int32_t> search_turns_;
  int32_t next_gpc_;
  SingletonTurns singleton_turns_;

  // Within a launch: blocks that SMs have been chosen for and that are not handed out yet.
  std::vector<std::vector<int32_t>> sms_of_group_;
  std::vector<int32_t> blocks_of_sm_;
  std::vector<int32_t> blocks_of_group_;
  std::deque<int32_t> pair_turns_;
};

}  // namespace

std::unique_ptr<Policy> make_hopper(const DeviceSpec& spec, const InitialState state) {
  return std::make_unique<Hopper>(spec, state);
}

}  // namespace tbsched
