#include "tbsched/coresidency/search/candidate.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <utility>

#include "tbsched/coresidency/outcomes/places.h"
#include "tbsched/coresidency/search/occupancy_observer.h"
#include "tbsched/engine/held/held_engine.h"

namespace tbsched {
namespace {

constexpr size_t kMaxTurns = 4;
constexpr int32_t kMaxHelps = 4;  // per launch of clusters and domain

using LaunchOnSm = std::pair<int32_t, int32_t>;             // a launch, and an SM
using MovesBySm = std::map<int32_t, std::deque<MoveOnSm>>;  // the moves to be made, in order
using BlocksByLaunch = std::map<int32_t, std::set<int32_t>>;
// How often clusters of a launch were helped in a domain.
using HelpCounts = std::map<std::pair<int32_t, size_t>, int32_t>;

// How a planner chooses where the history leaves a choice.
struct Attempt {
  size_t turn;       // below kMaxTurns: where the search for room for clusters begins
  bool others_wait;  // SMs where none enter come last, when all have entered elsewhere
  bool room_helps;   // clusters also use SMs with room, so that fewer others leave for them
};

// Plays a history, and notes the steps that realise it.
class Planner {
 public:
  // The arguments outlive it.
  Planner(const Model& model, const Demands& demands, const LaunchPlaces& places,
          const std::vector<Event>& events, const std::vector<bool>& in_group,
          const InitialState& state, const Attempt& attempt)
      : domains_(model.device().cluster_domains),
        demands_(demands),
        places_(places),
        events_(events),
        in_group_(in_group),
        attempt_(attempt),
        engine_(model, state, {&occupancy_}, {.leaving = BlockScheduler::Leaving::one_by_one}) {}

  // Adds the arrival of a launch.
  void arrive(const int32_t launch) {
    index_in_play_.emplace(launch, static_cast<int32_t>(index_in_play_.size()));
    engine_.step(events_[launch]);
    steps_.push_back({launch});
  }

  // Adds steps that realise the moves before an arrival, as nearly as possible.
  void realise(const std::vector<MoveOnSm>& moves) {
    MovesBySm first;
    MovesBySm others;                      // on SMs where no block enters
    std::map<LaunchOnSm, int32_t> wanted;  // where blocks enter: how many are resident at the end
    for (const MoveOnSm& move : moves) {
      first[move.sm].push_back(move);
      if (!move.enters) continue;
      const LaunchOnSm where(move.launch, move.sm);
      wanted.try_emplace(where, static_cast<int32_t>(resident_on(where).size()));
    }
    for (const MoveOnSm& move : moves) {
      const auto entry = wanted.find({move.launch, move.sm});
      if (entry != wanted.end()) entry->second += move.enters ? 1 : -1;
    }
    if (attempt_.others_wait) {
      std::erase_if(first, [&](const auto& on_sm) {
        if (std::ranges::any_of(on_sm.second, &MoveOnSm::enters)) return false;
        others.insert(on_sm);
        return true;
      });
    }
    play(std::move(first));
    if (!attempt_.others_wait) return;
    pass_through(others);
    exit_blocks(surplus_over(wanted));
    play(std::move(others));
  }

  std::vector<Step> steps() && { return std::move(steps_); }

 private:
  // Repeatedly lets all blocks leave that may leave before others enter, until nothing is left to
  // do.
  void play(MovesBySm to_do) {
    HelpCounts helped;
    while (!to_do.empty()) {
      BlocksByLaunch leaving = take_next_to_leave(to_do);
      if (leaving.empty()) leaving = add_helping_exits(to_do, helped);
      const bool is_stuck = leaving.empty();
      std::map<LaunchOnSm, int32_t> before;
      for (const auto& [sm, rest] : to_do) before[next(sm, rest)] = count_ever_on(next(sm, rest));
      exit_blocks(leaving);
      for (auto& [sm, rest] : to_do) {
        const LaunchOnSm where = next(sm, rest);
        int32_t entered = is_stuck ? 1 : count_ever_on(where) - before.at(where);
        for (; entered > 0 && !rest.empty() && rest.front().enters; --entered) rest.pop_front();
      }
      forget_done(to_do);
    }
  }

  // While blocks of background kernels wait, makes room for them on one SM after the other. They
  // leave again.
  void pass_through(MovesBySm& to_do) {
    std::map<int32_t, size_t> arrived;  // blocks of each background kernel that have been placed
    for (const auto& [launch, index] : index_in_play_) {
      if (!in_group_[launch]) arrived[launch] = sms_of(launch).size();
    }
    const auto waits = [&](const auto& of_launch) {
      return occupancy_.launches()[index_in_play_.at(of_launch.first)].waiting > 0;
    };
    while (!to_do.empty() && std::ranges::any_of(arrived, waits)) {
      MovesBySm on_one_sm;
      on_one_sm.insert(to_do.extract(to_do.begin()));
      play(std::move(on_one_sm));
      for (auto& [launch, blocks] : arrived) {
        while (blocks < sms_of(launch).size()) {
          BlocksByLaunch leaving;
          for (; blocks < sms_of(launch).size(); ++blocks) {
            leaving[launch].insert(static_cast<int32_t>(blocks));
          }
          exit_blocks(leaving);
        }
      }
    }
  }

  // Returns the SMs of all blocks of a launch that were ever placed, in order.
  const std::vector<int32_t>& sms_of(const int32_t launch) const {
    return occupancy_.launches()[index_in_play_.at(launch)].sms;
  }
  // Returns how many blocks of a launch were ever placed on an SM.
  int32_t count_ever_on(const LaunchOnSm& where) const {
    return static_cast<int32_t>(std::ranges::count(sms_of(where.first), where.second));
  }

  // Returns the launch and SM of the next move.
  static LaunchOnSm next(const int32_t sm, const std::deque<MoveOnSm>& rest) {
    return {rest.front().launch, sm};
  }
  static void forget_done(MovesBySm& to_do) {
    std::erase_if(to_do, [](const auto& on_sm) { return on_sm.second.empty(); });
  }

  // Returns the blocks that leave on each SM before the next one enters, and removes their moves.
  BlocksByLaunch take_next_to_leave(MovesBySm& to_do) const {
    BlocksByLaunch leaving;
    for (auto& [sm, rest] : to_do) {
      for (; !rest.empty() && !rest.front().enters; rest.pop_front()) {
        const std::vector<int32_t> blocks = blocks_ever_on({rest.front().launch, sm});
        const auto number = static_cast<size_t>(rest.front().number);
        if (number < blocks.size() && is_resident(rest.front().launch, blocks[number])) {
          leaving[rest.front().launch].insert(blocks[number]);
        }
      }
    }
    forget_done(to_do);
    return leaving;
  }

  // Returns all blocks of a launch that were ever placed on an SM, in order.
  std::vector<int32_t> blocks_ever_on(const LaunchOnSm& where) const {
    std::vector<int32_t> blocks;
    const std::vector<int32_t>& sms = sms_of(where.first);
    for (size_t block = 0; block < sms.size(); ++block) {
      if (sms[block] == where.second) blocks.push_back(static_cast<int32_t>(block));
    }
    return blocks;
  }

  // Adds a step for each launch, in which its blocks leave.
  void exit_blocks(const BlocksByLaunch& leaving) {
    for (const auto& [launch, blocks] : leaving) {
      for (const int32_t block : blocks) {
        engine_.exit_block(index_in_play_.at(launch), block);
        exited_[launch].insert(block);
      }
      steps_.push_back({launch, {blocks.begin(), blocks.end()}});
    }
  }

  // Returns blocks that leave to help clusters: if a launch of clusters should enter on too few
  // TPCs or SMs for a whole one, its blocks on others of the GPC leave. Adds moves to `to_do` by
  // which others enter there.
  BlocksByLaunch add_helping_exits(MovesBySm& to_do, HelpCounts& helped) const {
    BlocksByLaunch leaving;
    std::set<int32_t> launches;
    for (const auto& [sm, rest] : to_do) launches.insert(rest.front().launch);
    for (const int32_t launch : launches) {
      for (size_t domain = 0; domain < domains_.size(); ++domain) {
        if (helped[{launch, domain}]++ >= kMaxHelps) continue;
        help(launch, domains_[domain], to_do, leaving);
      }
    }
    return leaving;
  }

  // Adds the blocks on one GPC that leave so that a whole cluster enters: to `leaving` the blocks,
  // to `to_do` the entries on their SMs.
  void help(const int32_t launch, const ClusterDomain& domain, MovesBySm& to_do,
            BlocksByLaunch& leaving) const {
    const auto enters_at = [&](const int32_t sm) {
      const auto at = to_do.find(sm);
      return at != to_do.end() && at->second.front().launch == launch;
    };
    const auto has_room = [&](const int32_t sm) {
      return attempt_.room_helps && occupancy_.gpu()->room(sm, demands_[launch]).blocks > 0;
    };
    // Units, that is TPCs or SMs: those on which blocks enter, that have room, and the others.
    std::vector<std::vector<int32_t>> others;
    int32_t entering = 0;
    int32_t free = 0;
    for (const std::vector<int32_t>& sms : units(launch, domain)) {
      if (std::ranges::any_of(sms, enters_at)) {
        ++entering;
      } else if (std::ranges::all_of(sms, has_room)) {
        ++free;
      } else {
        others.push_back(sms);
      }
    }
    const int32_t parts = places_.parts(launch);
    int32_t missing = (parts - entering % parts) % parts - free;
    for (size_t k = 0; k < others.size() && missing > 0; ++k) {
      const auto& sms = others[(others.size() * attempt_.turn / kMaxTurns + k) % others.size()];
      std::vector<int32_t> blocks;
      for (const int32_t sm : sms) {
        if (const auto block = one_resident_on({launch, sm})) blocks.push_back(*block);
      }
      if (blocks.size() < sms.size()) continue;
      leaving[launch].insert(blocks.begin(), blocks.end());
      for (const int32_t sm : sms) to_do[sm].push_front({launch, sm, -1, true});
      --missing;
    }
  }

  // Returns the units on each of which a cluster has a part: the TPCs of a domain, or its SMs.
  std::vector<std::vector<int32_t>> units(const int32_t launch, const ClusterDomain& domain) const {
    if (places_.way(launch) == Way::whole_tpcs) return domain.tpcs;
    std::vector<std::vector<int32_t>> sms;
    for (const int32_t sm : domain.tpcs | std::views::join) sms.push_back({sm});
    return sms;
  }

  // Returns the blocks of a launch that are resident on an SM.
  std::vector<int32_t> resident_on(const LaunchOnSm& where) const {
    std::vector<int32_t> blocks = blocks_ever_on(where);
    std::erase_if(blocks, [&](const int32_t block) { return !is_resident(where.first, block); });
    return blocks;
  }
  // Returns one of these blocks, which the attempt chooses; nothing: there is none.
  std::optional<int32_t> one_resident_on(const LaunchOnSm& where) const {
    const std::vector<int32_t> blocks = resident_on(where);
    if (blocks.empty()) return {};
    return blocks[blocks.size() * attempt_.turn / kMaxTurns];
  }
  // Returns the last blocks of background kernels where more have entered than are wanted.
  BlocksByLaunch surplus_over(const std::map<LaunchOnSm, int32_t>& wanted) const {
    BlocksByLaunch surplus;
    for (const auto& [where, count] : wanted) {
      const std::vector<int32_t> blocks = resident_on(where);
      if (in_group_[where.first] || std::cmp_less_equal(blocks.size(), count)) continue;
      surplus[where.first].insert(blocks.begin() + std::max(0, count), blocks.end());
    }
    return surplus;
  }
  // Returns whether a block that was placed has not left.
  bool is_resident(const int32_t launch, const int32_t block) const {
    const auto exited = exited_.find(launch);
    return exited == exited_.end() || !exited->second.contains(block);
  }

  const std::vector<ClusterDomain>& domains_;
  const Demands& demands_;
  const LaunchPlaces& places_;
  const std::vector<Event>& events_;
  const std::vector<bool>& in_group_;
  const Attempt attempt_;
  OccupancyObserver occupancy_;
  HeldEngine engine_;
  std::map<int32_t, int32_t> index_in_play_;  // by launch, its index in the order of arrival
  BlocksByLaunch exited_;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<std::vector<Step>> steps_of(const Model& model, const Demands& demands,
                                        const std::vector<Event>& events,
                                        const std::vector<bool>& in_group,
                                        const InitialState& state,
                                        const std::vector<int32_t>& order,
                                        const std::vector<HistoryStep>& then) {
  const LaunchPlaces places(model, demands);
  const auto enters_in_clusters = [&](const MoveOnSm& move) {
    return move.enters && demands[move.launch].cluster > 1;
  };
  const bool has_turns = std::ranges::any_of(then, [&](const HistoryStep& arrival) {
    return std::ranges::any_of(arrival.moves, enters_in_clusters);
  });
  std::vector<Attempt> attempts;
  for (size_t turn = 0; turn < (has_turns ? kMaxTurns : 1); ++turn) {
    for (const bool others_wait : {false, true}) {
      attempts.push_back({turn, others_wait, false});
      if (has_turns) attempts.push_back({turn, others_wait, true});
    }
  }
  std::vector<std::vector<Step>> sequences;
  for (const Attempt& attempt : attempts) {
    Planner planner(model, demands, places, events, in_group, state, attempt);
    for (const int32_t launch : order) planner.arrive(launch);
    for (const HistoryStep& arrival : then) {
      planner.realise(arrival.moves);
      planner.arrive(arrival.launch);
    }
    sequences.push_back(std::move(planner).steps());
  }
  return sequences;
}

}  // namespace tbsched
