// The SMs of Algorithm 1, with block indices handed out in runs per GPC.
//
// The scheduler works in two stages. One chooses the SMs level by level, as Algorithm 1 does. The
// other grants turns to the GPCs: a turn hands out all blocks of one level in one GPC, in the order
// of its SMs. Turns go round. TPCs of no GPC form pairs that have a round of their own and go
// before the GPCs. The first turn of a launch is lost. A level is ready as many turns after the one
// before it as there are GPCs; if runs of earlier levels still wait then, a GPC hands out its
// newest run first. A last level that takes only some of the SMs in question takes longer to
// choose.
#include <algorithm>
#include <utility>
#include <vector>

#include "policy/levels.h"

namespace tbsched {
namespace {

constexpr int32_t kTpcsPerSingletonGroup = 2;

// Blocks of one level in one GPC: a range of the SMs of a launch.
struct Run {
  size_t begin;
  size_t end;
};

// Groups that take turns, each with its runs, newest last.
class Round {
 public:
  Round(const int32_t groups, const int32_t first) : next_(first), runs_(groups) {}

  bool empty() const { return waiting_ == 0; }
  void add(const int32_t group, const Run run) {
    runs_[group].push_back(run);
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
        gpc_round_(gpcs_, state.first_gpc),
        singleton_round_(singleton_groups(), turn_before(state.first_singleton)) {}

  std::vector<int32_t> place(const Demand& demand, const int32_t blocks, const GpuState& gpu,
                             const Commit& commit) override {
    return hand_out(fill_levels(demand, blocks, gpu, commit));
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
      group[sm] = gpcs + singletons / kTpcsPerSingletonGroup;
    }
    return group;
  }

  int32_t singleton_groups() const {
    return std::max(0, std::ranges::max(group_of_sm_) + 1 - gpcs_);
  }
  // The first turn of the first launch is lost to the group before the one that is to be first.
  int32_t turn_before(const int32_t first_singleton) const {
    const int32_t count = std::max(1, singleton_groups());
    return (first_singleton / kTpcsPerSingletonGroup + count - 1) % count;
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

  // The turn from which each level can be handed out.
  std::vector<int64_t> ready_turns(const Levels& levels) const {
    std::vector<int64_t> ready(levels.ends.size());
    for (size_t level = 1; level < ready.size(); ++level) {
      const bool whole = level + 1 < ready.size() || levels.last_is_whole;
      const auto blocks = static_cast<int64_t>(levels.ends[level] - levels.ends[level - 1]);
      ready[level] = ready[level - 1] + gpcs_ + (whole ? 0 : 4 + (blocks + 1) / 2);
    }
    return ready;
  }

  void add_level(Levels& levels, const size_t level) {
    const size_t begin = level == 0 ? 0 : levels.ends[level - 1];
    const size_t end = levels.ends[level];
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
        gpc_round_.add(group, {i, last});
      } else {
        singleton_round_.add(group - gpcs_, {i, last});
      }
      i = last;
    }
  }

  int32_t gpcs_;
  std::vector<int32_t> group_of_sm_;
  Round gpc_round_;
  Round singleton_round_;
};

}  // namespace

std::unique_ptr<Policy> make_hopper(const DeviceSpec& spec, const InitialState state) {
  return std::make_unique<Hopper>(spec, state);
}

}  // namespace tbsched
