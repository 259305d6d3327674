// The SMs of Algorithm 1, with block indices handed out in runs per GPC.
//
// The scheduler works in two stages. One chooses the SMs level by level, as Algorithm 1 does. The
// other grants turns to the GPCs: a turn hands out all blocks of one level in one GPC, in the order
// of its SMs. Turns go round. TPCs of no GPC form pairs that have a round of their own and go
// before the GPCs. The first turn of a launch is lost. A level is ready as many turns after the one
// before it as there are GPCs; if a run of an earlier level still waits then, its GPC hands out the
// newer one first. A last level that takes only some of the SMs in question is searched for one by
// one, which takes longer, and waits behind the others.
//
// Clusters go one a turn, in the same rounds but without a lost turn. There each TPC of no GPC has
// turns of its own; a pair of them takes those of its first. A pass over the GPCs is ready as many
// turns after the one before it as there are GPCs.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "policy/cluster_levels.h"
#include "policy/levels.h"

namespace tbsched {
namespace {

constexpr int32_t kTpcsPerSingletonGroup = 2;

// Blocks of one level in one GPC: a range of the SMs of a launch.
struct Run {
  size_t begin;
  size_t end;
};

// Groups that take turns, each with its runs, the next one last.
class Round {
 public:
  Round(const int32_t groups, const int32_t first) : next_(first), runs_(groups) {}

  bool empty() const { return waiting_ == 0; }
  void add(const int32_t group, const Run run, const bool goes_first) {
    auto& runs = runs_[group];
    runs.insert(goes_first ? runs.end() : runs.begin(), run);
    ++waiting_;
  }

  // The next group with anything to hand out has the turn.
  int32_t turn() {
    while (runs_[next_].empty()) next_ = (next_ + 1) % groups();
    const int32_t group = next_;
    next_ = (next_ + 1) % groups();
    return group;
  }
  Run take(const int32_t group) {
    const Run run = runs_[group].back();
    runs_[group].pop_back();
    --waiting_;
    return run;
  }

 private:
  int32_t groups() const { return static_cast<int32_t>(runs_.size()); }

  int32_t next_;
  int32_t waiting_ = 0;
  std::vector<std::vector<Run>> runs_;
};

class Hopper final : public Policy {
 public:
  Hopper(const DeviceSpec& spec, const InitialState state)
      : gpcs_(std::ranges::max(spec.topology.gpc_of_sm) + 1),
        group_of_sm_(groups(spec.topology)),
        search_turns_(search_turns(spec.topology, gpcs_)),
        gpc_round_(gpcs_, state.first_gpc),
        cluster_domains_(cluster_domains(spec.topology)),
        singleton_round_(singleton_tpcs(), turn_before(state.first_singleton)) {}

  std::vector<int32_t> place(const Demand& demand, const int32_t blocks, const GpuState& gpu,
                             const Commit& commit) override {
    if (demand.cluster == 1) return hand_out(fill_levels(demand, blocks, gpu, commit));
    const int32_t clusters = blocks / demand.cluster;
    return hand_out(fill_cluster_levels(cluster_domains_, demand, clusters, gpu, commit));
  }

 private:
  // GPCs keep their number; TPCs of no GPC follow in pairs.
  static std::vector<int32_t> groups(const Topology& topology) {
    std::vector<int32_t> group = topology.gpc_of_sm;
    const int32_t gpcs = std::ranges::max(group) + 1;
    int32_t singletons = -1;
    int32_t last_tpc = -1;
    for (int32_t sm = 0; sm < topology.sms(); ++sm) {
      if (group[sm] >= 0) continue;
      if (topology.tpc_of_sm[sm] != last_tpc) ++singletons;
      last_tpc = topology.tpc_of_sm[sm];
      group[sm] = gpcs + singletons - singletons % kTpcsPerSingletonGroup;
    }
    return group;
  }

  int32_t singleton_tpcs() const { return static_cast<int32_t>(cluster_domains_.size()) - gpcs_; }
  // The first turn of the first launch is lost to the group before the one that is to be first.
  int32_t turn_before(const int32_t first_singleton) const {
    const int32_t count = std::max(1, singleton_tpcs());
    return (first_singleton + count - std::min(count, kTpcsPerSingletonGroup)) % count;
  }

  std::vector<int32_t> hand_out(Levels levels) {
    const std::vector<int64_t> ready = ready_turns(levels);
    std::vector<int32_t> order;
    order.reserve(levels.sms.size());
    size_t next_level = 0;
    bool first = true;
    for (int64_t turn = 0; order.size() < levels.sms.size();) {
      for (; next_level < ready.size() && ready[next_level] <= turn; ++next_level) {
        add_level(levels, next_level);
      }
      Round& round = singleton_round_.empty() ? gpc_round_ : singleton_round_;
      if (round.empty()) {
        turn = ready[next_level];
        continue;
      }
      const int32_t group = round.turn();
      ++turn;
      if (std::exchange(first, false)) continue;
      const Run run = round.take(group);
      order.insert(order.end(), levels.sms.begin() + static_cast<std::ptrdiff_t>(run.begin),
                   levels.sms.begin() + static_cast<std::ptrdiff_t>(run.end));
    }
    return order;
  }

  // One cluster a turn, none of them lost.
  std::vector<int32_t> hand_out(const ClusterPasses& passes) {
    std::vector<PlacedCluster> added;
    std::vector<int32_t> order;
    size_t next_pass = 0;
    for (int64_t turn = 0;; ++turn) {
      for (; next_pass < passes.size() && ready_turn(next_pass) <= turn; ++next_pass) {
        for (const PlacedCluster& cluster : passes[next_pass]) {
          add_cluster(cluster_domains_[cluster.domain].gpc, cluster, added.size());
          added.push_back(cluster);
        }
      }
      Round& round = singleton_round_.empty() ? gpc_round_ : singleton_round_;
      if (round.empty() && next_pass == passes.size()) return order;
      if (round.empty()) continue;
      const auto& sms = added[round.take(round.turn()).begin].sms;
      order.insert(order.end(), sms.begin(), sms.end());
    }
  }
  int64_t ready_turn(const size_t pass) const { return static_cast<int64_t>(pass) * gpcs_; }
  void add_cluster(const int32_t gpc, const PlacedCluster& cluster, const size_t index) {
    const Run run{index, index + 1};
    if (gpc < 0) {
      singleton_round_.add(static_cast<int32_t>(cluster.domain), run, false);
    } else {
      gpc_round_.add(gpc, run, false);
    }
  }

  static bool is_whole(const Levels& levels, const size_t level) {
    return level + 1 < levels.ends.size() || levels.last_is_whole;
  }

  // The turn from which each level can be handed out.
  std::vector<int64_t> ready_turns(const Levels& levels) const {
    std::vector<int64_t> ready(levels.ends.size());
    for (size_t level = 1; level < ready.size(); ++level) {
      const bool whole = is_whole(levels, level);
      // SMs were chosen in order of preference: the last one says how far the search went.
      const int32_t last_chosen = levels.sms[levels.ends[level] - 1];
      ready[level] = ready[level - 1] + (whole ? gpcs_ : search_turns_[last_chosen]);
    }
    return ready;
  }

  // How long a search that ends at each SM takes. Even SMs come before odd ones, and among them SMs
  // of no GPC before the others. Those of the GPCs are looked at row by row, a row being the n-th
  // TPC of each GPC, three to a turn.
  static std::vector<int32_t> search_turns(const Topology& topology, const int32_t gpcs) {
    constexpr std::array<int32_t, 8> kSingletons = {12, 13, 14, 14, 17, 18, 19, 20};
    constexpr int32_t kFirstOfGpcs = 21;
    constexpr int32_t kPerTurn = 3;
    std::vector<int32_t> rank(topology.sms());
    std::vector<int32_t> tpcs_seen(gpcs);
    int32_t last_tpc = -1;
    for (int32_t sm = 0; sm < topology.sms(); ++sm) {
      const int32_t gpc = topology.gpc_of_sm[sm];
      if (gpc < 0) continue;
      tpcs_seen[gpc] += topology.tpc_of_sm[sm] != last_tpc ? 1 : 0;
      last_tpc = topology.tpc_of_sm[sm];
      rank[sm] = tpcs_seen[gpc] - 1;
    }
    const int32_t rows = gpcs == 0 ? 0 : std::ranges::max(tpcs_seen);
    std::vector<int32_t> turns(topology.sms());
    size_t singletons = 0;
    for (const int32_t sm : topology.sm_preference) {
      const int32_t gpc = topology.gpc_of_sm[sm];
      if (gpc < 0) {
        turns[sm] = kSingletons[std::min(singletons++, kSingletons.size() - 1)];
      } else {
        const int32_t looked_at = (sm % 2 * rows + rank[sm]) * gpcs + gpc;
        turns[sm] = kFirstOfGpcs + (looked_at + kPerTurn - 1) / kPerTurn;
      }
    }
    return turns;
  }

  void add_level(Levels& levels, const size_t level) {
    const size_t begin = level == 0 ? 0 : levels.ends[level - 1];
    const size_t end = levels.ends[level];
    const bool whole = is_whole(levels, level);
    const auto at = [&](const size_t i) {
      return levels.sms.begin() + static_cast<std::ptrdiff_t>(i);
    };
    std::sort(at(begin), at(end), [&](const int32_t a, const int32_t b) {
      return std::pair(group_of_sm_[a], a) < std::pair(group_of_sm_[b], b);
    });
    for (size_t i = begin; i < end;) {
      const int32_t group = group_of_sm_[levels.sms[i]];
      size_t last = i;
      while (last < end && group_of_sm_[levels.sms[last]] == group) ++last;
      if (group < gpcs_) {
        gpc_round_.add(group, {i, last}, whole);
      } else {
        singleton_round_.add(group - gpcs_, {i, last}, whole);
      }
      i = last;
    }
  }

  int32_t gpcs_;
  std::vector<int32_t> group_of_sm_;
  std::vector<int32_t> search_turns_;
  Round gpc_round_;
  std::vector<ClusterDomain> cluster_domains_;
  Round singleton_round_;
};

}  // namespace

std::unique_ptr<Policy> make_hopper(const DeviceSpec& spec, const InitialState state) {
  return std::make_unique<Hopper>(spec, state);
}

}  // namespace tbsched
