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

constexpr size_t kMostTurns = 4;
constexpr int32_t kMostHelp = 4;  // per launch of clusters and GPC

// A block of a launch on an SM.
using OnSm = std::pair<int32_t, int32_t>;
using ToDo = std::map<int32_t, std::deque<MoveOnSm>>;  // by SM
using Blocks = std::map<int32_t, std::set<int32_t>>;   // by launch
// How often clusters of a launch were helped in a domain.
using Helped = std::map<std::pair<int32_t, size_t>, int32_t>;

struct Attempt {
  size_t turn;       // below kMostTurns: where the search for room for clusters begins
  bool others_wait;  // SMs where none enter come last, when all have entered elsewhere
  bool room_helps;   // clusters also use SMs with room, so that fewer others leave for them
};

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

  void arrive(const int32_t launch) {
    number_.emplace(launch, static_cast<int32_t>(number_.size()));
    engine_.step(events_[launch]);
    steps_.push_back({launch});
  }

  // Adds steps that realise the moves before an arrival, as nearly as possible.
  void move(const std::vector<MoveOnSm>& moves) {
    ToDo first;
    ToDo others;
    std::map<OnSm, int32_t> wanted;  // where blocks enter: how many are there at the end
    for (const MoveOnSm& each : moves) {
      first[each.sm].push_back(each);
      if (!each.enters) continue;
      const OnSm where(each.launch, each.sm);
      wanted.try_emplace(where, static_cast<int32_t>(all_there(where).size()));
    }
    for (const MoveOnSm& each : moves) {
      const auto found = wanted.find({each.launch, each.sm});
      if (found != wanted.end()) found->second += each.enters ? 1 : -1;
    }
    if (attempt_.others_wait) {
      std::erase_if(first, [&](const auto& each) {
        if (std::ranges::any_of(each.second, &MoveOnSm::enters)) return false;
        others.insert(each);
        return true;
      });
    }
    play(std::move(first));
    if (!attempt_.others_wait) return;
    pass_through(others);
    let_leave(more_than(wanted));
    play(std::move(others));
  }

  std::vector<Step> steps() && { return std::move(steps_); }

 private:
  // Repeatedly lets all blocks leave that may leave before others enter, until nothing is left to
  // do.
  void play(ToDo to_do) {
    Helped helped;
    while (!to_do.empty()) {
      Blocks leaving = next_to_leave(to_do);
      if (leaving.empty()) leaving = helping(to_do, helped);
      const bool is_stuck = leaving.empty();
      std::map<OnSm, int32_t> before;
      for (const auto& [sm, rest] : to_do) before[next(sm, rest)] = count(next(sm, rest));
      let_leave(leaving);
      for (auto& [sm, rest] : to_do) {
        const OnSm own = next(sm, rest);
        int32_t entered = is_stuck ? 1 : count(own) - before.at(own);
        for (; entered > 0 && !rest.empty() && rest.front().enters; --entered) rest.pop_front();
      }
      forget_done(to_do);
    }
  }

  // While blocks of background kernels wait, makes room for them on one SM after the other. They
  // leave again.
  void pass_through(ToDo& to_do) {
    std::map<int32_t, size_t> arrived;  // blocks of each background kernel that have been placed
    for (const auto& [launch, number] : number_) {
      if (!in_group_[launch]) arrived[launch] = sms_of(launch).size();
    }
    const auto waits = [&](const auto& each) {
      return occupancy_.launches()[number_.at(each.first)].waiting > 0;
    };
    while (!to_do.empty() && std::ranges::any_of(arrived, waits)) {
      ToDo one;
      one.insert(to_do.extract(to_do.begin()));
      play(std::move(one));
      for (auto& [launch, blocks] : arrived) {
        while (blocks < sms_of(launch).size()) {
          Blocks leaving;
          for (; blocks < sms_of(launch).size(); ++blocks) {
            leaving[launch].insert(static_cast<int32_t>(blocks));
          }
          let_leave(leaving);
        }
      }
    }
  }

  const std::vector<int32_t>& sms_of(const int32_t launch) const {
    return occupancy_.launches()[number_.at(launch)].sms;
  }
  int32_t count(const OnSm& each) const {
    return static_cast<int32_t>(std::ranges::count(sms_of(each.first), each.second));
  }

  static OnSm next(const int32_t sm, const std::deque<MoveOnSm>& rest) {
    return {rest.front().launch, sm};
  }
  static void forget_done(ToDo& to_do) {
    std::erase_if(to_do, [](const auto& each) { return each.second.empty(); });
  }

  // Returns the blocks that leave next, and removes their moves; those that enter stay.
  Blocks next_to_leave(ToDo& to_do) const {
    Blocks found;
    for (auto& [sm, rest] : to_do) {
      for (; !rest.empty() && !rest.front().enters; rest.pop_front()) {
        const std::vector<int32_t> blocks = blocks_on({rest.front().launch, sm});
        const auto number = static_cast<size_t>(rest.front().number);
        if (number < blocks.size() && is_there(rest.front().launch, blocks[number])) {
          found[rest.front().launch].insert(blocks[number]);
        }
      }
    }
    forget_done(to_do);
    return found;
  }

  // Returns all blocks that were ever placed there, in order.
  std::vector<int32_t> blocks_on(const OnSm& where) const {
    std::vector<int32_t> found;
    const std::vector<int32_t>& sms = sms_of(where.first);
    for (size_t block = 0; block < sms.size(); ++block) {
      if (sms[block] == where.second) found.push_back(static_cast<int32_t>(block));
    }
    return found;
  }

  void let_leave(const Blocks& leaving) {
    for (const auto& [launch, blocks] : leaving) {
      for (const int32_t block : blocks) {
        engine_.let_leave(number_.at(launch), block);
        left_[launch].insert(block);
      }
      steps_.push_back({launch, {blocks.begin(), blocks.end()}});
    }
  }

  // Returns blocks that leave to help clusters: if a launch of clusters should enter on too few
  // TPCs or SMs for a whole one, its blocks on others of the GPC leave.
  Blocks helping(ToDo& to_do, Helped& helped) const {
    Blocks found;
    std::set<int32_t> launches;
    for (const auto& [sm, rest] : to_do) launches.insert(rest.front().launch);
    for (const int32_t launch : launches) {
      for (size_t domain = 0; domain < domains_.size(); ++domain) {
        if (helped[{launch, domain}]++ >= kMostHelp) continue;
        help(launch, domains_[domain], to_do, found);
      }
    }
    return found;
  }

  // Adds the blocks on one GPC that leave so that a whole cluster enters: to `leaving` the blocks,
  // to `to_do` the entries on their SMs.
  void help(const int32_t launch, const ClusterDomain& domain, ToDo& to_do, Blocks& leaving) const {
    const auto enters_at = [&](const int32_t sm) {
      const auto at = to_do.find(sm);
      return at != to_do.end() && at->second.front().launch == launch;
    };
    const auto has_room = [&](const int32_t sm) {
      return attempt_.room_helps && occupancy_.gpu()->room(sm, demands_[launch]).blocks > 0;
    };
    std::vector<std::vector<int32_t>> others;  // TPCs, or SMs
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
      const auto& sms = others[(others.size() * attempt_.turn / kMostTurns + k) % others.size()];
      std::vector<int32_t> blocks;
      for (const int32_t sm : sms) {
        if (const auto block = one_on({launch, sm})) blocks.push_back(*block);
      }
      if (blocks.size() < sms.size()) continue;
      leaving[launch].insert(blocks.begin(), blocks.end());
      for (const int32_t sm : sms) to_do[sm].push_front({launch, sm, -1, true});
      --missing;
    }
  }

  std::vector<std::vector<int32_t>> units(const int32_t launch, const ClusterDomain& domain) const {
    if (places_.way(launch) == Way::whole_tpcs) return domain.tpcs;
    std::vector<std::vector<int32_t>> found;
    for (const int32_t sm : domain.tpcs | std::views::join) found.push_back({sm});
    return found;
  }

  // Returns the blocks of a launch on an SM that the candidate does not have leave.
  std::vector<int32_t> all_there(const OnSm& where) const {
    std::vector<int32_t> blocks = blocks_on(where);
    std::erase_if(blocks, [&](const int32_t block) { return !is_there(where.first, block); });
    return blocks;
  }
  std::optional<int32_t> one_on(const OnSm& where) const {
    const std::vector<int32_t> blocks = all_there(where);
    if (blocks.empty()) return {};
    return blocks[blocks.size() * attempt_.turn / kMostTurns];
  }
  // Returns the last blocks where more have entered than are wanted.
  Blocks more_than(const std::map<OnSm, int32_t>& wanted) const {
    Blocks found;
    for (const auto& [where, most] : wanted) {
      const std::vector<int32_t> blocks = all_there(where);
      if (in_group_[where.first] || std::cmp_less_equal(blocks.size(), most)) continue;
      found[where.first].insert(blocks.begin() + std::max(0, most), blocks.end());
    }
    return found;
  }
  bool is_there(const int32_t launch, const int32_t block) const {
    const auto left = left_.find(launch);
    return left == left_.end() || !left->second.contains(block);
  }

  const std::vector<ClusterDomain>& domains_;
  const Demands& demands_;
  const LaunchPlaces& places_;
  const std::vector<Event>& events_;
  const std::vector<bool>& in_group_;
  const Attempt attempt_;
  OccupancyObserver occupancy_;
  HeldEngine engine_;
  std::map<int32_t, int32_t> number_;  // by launch, its number in the order of arrival
  Blocks left_;
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
  for (size_t turn = 0; turn < (has_turns ? kMostTurns : 1); ++turn) {
    for (const bool others_wait : {false, true}) {
      attempts.push_back({turn, others_wait, false});
      if (has_turns) attempts.push_back({turn, others_wait, true});
    }
  }
  std::vector<std::vector<Step>> found;
  for (const Attempt& attempt : attempts) {
    Planner planner(model, demands, places, events, in_group, state, attempt);
    for (const int32_t launch : order) planner.arrive(launch);
    for (const HistoryStep& arrival : then) {
      planner.move(arrival.moves);
      planner.arrive(arrival.launch);
    }
    found.push_back(std::move(planner).steps());
  }
  return found;
}

}  // namespace tbsched
