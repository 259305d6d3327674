#include "tbsched/coresidency/search/find_deadlock.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "tbsched/coresidency/full_sms.h"
#include "tbsched/coresidency/outcomes/room_proof.h"
#include "tbsched/coresidency/search/candidate.h"
#include "tbsched/coresidency/search/occupancy_observer.h"
#include "tbsched/coresidency/search/proof_cache.h"
#include "tbsched/coresidency/sm/sm_states.h"
#include "tbsched/engine/held/held_engine.h"

namespace tbsched {
namespace {

// A background kernel with more blocks lets only these sets leave: all, the first one, and the
// first ones or the others at each of kCuts cuts. More sets strand hardly any more groups.
constexpr size_t kMostToChoose = 8;
constexpr size_t kCuts = 16;
// Limit of checks for room in orders of arrival; six launches take some hundreds.
constexpr int32_t kMostSearches = 5'000;
// Limit of steps of the proofs by outcomes of SMs: some minutes.
constexpr int64_t kMostSteps = 300'000'000;
// A search without these proofs plays this many histories first.
constexpr int64_t kPlaysBefore = 10'000;

// Returns sets of the blocks that a launch still has, to leave at once.
std::vector<std::vector<int32_t>> leaving_sets(const std::vector<int32_t>& there) {
  std::vector<std::vector<int32_t>> sets = {there};
  const size_t count = there.size();
  if (count <= kMostToChoose) {
    for (uint32_t chosen = (1U << count) - 2; chosen > 0; --chosen) {
      std::vector<int32_t>& set = sets.emplace_back();
      for (size_t k = 0; k < count; ++k) {
        if ((chosen >> k & 1U) != 0) set.push_back(there[k]);
      }
    }
    return sets;
  }
  sets.push_back({there.front()});
  const size_t cuts = std::min(kCuts, count);
  for (size_t cut = 1; cut < cuts; ++cut) {
    const auto middle = there.begin() + static_cast<std::ptrdiff_t>(count * cut / cuts);
    sets.emplace_back(there.begin(), middle);
    sets.emplace_back(middle, there.end());
  }
  return sets;
}

class Search {
 public:
  Search(const Model& model, const TogetherQuestion& question, const Demands& demands,
         const std::vector<int32_t>& group, const int64_t most_plays, const Solver& solver,
         const Deadline deadline, const std::function<void()>& interrupted)
      : model_(model),
        launches_(question.launches),
        demands_(demands),
        group_(group),
        after_(question.after),
        most_plays_(most_plays),
        solver_(solver),
        deadline_(deadline),
        only_to_prove_(question.only_to_prove),
        interrupted_(interrupted),
        partners_(launches_.size()),
        in_group_(launches_.size()),
        strands_(awaited_by(question, group)),
        arrived_(launches_.size()),
        there_(launches_.size()),
        budget_(kMostSteps, deadline, interrupted) {
    for (const std::vector<int32_t>& each : question.groups) {
      for (const int32_t launch : each) partners_[launch] = each;
    }
    for (const int32_t launch : group) in_group_[launch] = true;
    for (int32_t k = 0; std::cmp_less(k, launches_.size()); ++k) {
      if (!in_group_[k]) background_.push_back(k);
    }
    for (size_t k = 0; k < launches_.size(); ++k) {
      events_.emplace_back(launches_[k]);
      is_monotone_.push_back(is_monotone(model.device(), demands[k]));
    }
  }

  WitnessSearch run() {
    // Between two arrivals each background kernel lets blocks leave at most once.
    const size_t background = launches_.size() - group_.size();
    const size_t longest = launches_.size() + background * (launches_.size() - 1);
    for (size_t length = 1; length <= longest && !over(); ++length) {
      // An idle GPU has the same room for one launch in every state. In other states the blocks of
      // an SM have other numbers: so other sets leave, or the same sets in another order.
      const auto states = model_.states_that_choose();
      for (size_t k = 0; k < (length == 1 ? 1 : states.size()) && !over(); ++k) {
        state_ = states[k];
        extend(length);
      }
      play_candidates(length);
    }
    // Candidates in which entering blocks leave one after the other take more steps.
    for (size_t length = longest + 1; length <= longest_candidate(); ++length)
      play_candidates(length);
    return {std::move(found_), all_sets_ && !given_up(), plays_};
  }

 private:
  bool given_up() const {
    return plays_ >= most_plays_ || (only_to_prove_ && !all_sets_) || deadline_.is_over();
  }
  bool over() const { return found_.has_value() || given_up(); }

  void extend(const size_t length) {
    if (steps_.size() == length) {
      all_sets_ = all_sets_ && chosen_sets_ == 0;
      if (!over()) play();
      return;
    }
    if (!may_strand_later()) return;
    // A last step in which blocks leave strands nobody. With only one arrival or two steps left,
    // the arrival comes just after blocks have left, which must be worth a play.
    const size_t rest = length - steps_.size();
    const bool is_near_end = rest == 2 || std::ranges::count(arrived_, false) == 1;
    const bool may_leave_now = rest > 1 && (!is_near_end || any_may_be_stranded_after_leaving());
    for (size_t launch = 0; launch < launches_.size() && !over(); ++launch) {
      if (may_arrive(launch) && (rest > 1 || may_be_stranded(launch, some_have_just_left()))) {
        arrive(launch, length);
      }
      if (may_leave_now && may_leave(launch) && leaving_may_strand()) leave(launch, length);
    }
  }

  bool some_have_just_left() const { return !steps_.empty() && !steps_.back().leaving.empty(); }

  void arrive(const size_t launch, const size_t length) {
    arrived_[launch] = true;
    if (!in_group_[launch]) there_[launch] = first_blocks(launches_[launch].blocks);
    steps_.push_back({static_cast<int32_t>(launch)});
    extend(length);
    steps_.pop_back();
    there_[launch].clear();
    arrived_[launch] = false;
  }

  // Returns at most as many blocks as the GPU holds: the others of a larger grid are not resident
  // before these.
  std::vector<int32_t> first_blocks(const int32_t blocks) const {
    const DeviceSpec& spec = model_.device().spec;
    std::vector<int32_t> there(std::min(blocks, spec.sms * spec.blocks_per_sm));
    std::iota(there.begin(), there.end(), 0);
    return there;
  }

  void leave(const size_t launch, const size_t length) {
    const std::vector<int32_t> there = there_[launch];
    const bool has_all_sets = there.size() <= kMostToChoose;
    chosen_sets_ += has_all_sets ? 0 : 1;
    for (std::vector<int32_t>& set : leaving_sets(there)) {
      if (over()) break;
      there_[launch].clear();
      std::ranges::set_difference(there, set, std::back_inserter(there_[launch]));
      steps_.push_back({static_cast<int32_t>(launch), std::move(set)});
      extend(length);
      steps_.pop_back();
    }
    there_[launch] = there;
    chosen_sets_ -= has_all_sets ? 0 : 1;
  }

  // Returns whether blocks of a background launch may leave in the next step: it has some, all that
  // it waits for have arrived, and launches leave in ascending order between two arrivals.
  bool may_leave(const size_t launch) const {
    if (in_group_[launch] || there_[launch].empty()) return false;
    const auto has_arrived = [&](const int32_t partner) { return arrived_[partner]; };
    if (!std::ranges::all_of(partners_[launch], has_arrived)) return false;
    return steps_.back().leaving.empty() || std::cmp_less(steps_.back().launch, launch);
  }

  // Equal launches arrive in ascending order.
  bool may_arrive(const size_t launch) const {
    if (arrived_[launch]) return false;
    for (size_t other = 0; other < launch; ++other) {
      if (!arrived_[other] && are_equal(other, launch)) return false;
    }
    return std::ranges::all_of(after_, [&](const auto& pair) {
      return std::cmp_not_equal(pair[1], launch) || arrived_[pair[0]];
    });
  }

  bool are_equal(const size_t a, const size_t b) const {
    const auto tied = [&](const size_t launch) {
      return std::ranges::any_of(after_, [&](const auto& pair) {
        return std::cmp_equal(pair[0], launch) || std::cmp_equal(pair[1], launch);
      });
    };
    return partners_[a] == partners_[b] && !tied(a) && !tied(b) &&
           is_same(launches_[a], launches_[b]);
  }

  static bool is_same(const Launch& a, const Launch& b) {
    const auto is_same_partition = [](const auto& one, const auto& other) {
      return one == other || (one && other && *one == *other);
    };
    return a.blocks == b.blocks && a.threads == b.threads && a.registers == b.registers &&
           a.shared_memory == b.shared_memory && a.local_memory == b.local_memory &&
           a.carveout == b.carveout && a.cluster == b.cluster && !a.stream && !b.stream &&
           a.priority == b.priority && is_same_partition(a.partition, b.partition) &&
           a.cooperative == b.cooperative && a.has_runtime == b.has_runtime;
  }

  // Returns whether a play is worthwhile in which this launch arrives now and is stranded. If it
  // only gains by the blocks that have just left, it was stranded without that: such a history was
  // played before. This does not hold if blocks waited and took the place of those that left.
  bool may_be_stranded(const size_t launch, const bool some_have_just_left) const {
    if (!strands_[launch]) return false;
    return !some_have_just_left || !is_monotone_[launch] || waiting_.contains(arrivals());
  }

  bool any_may_be_stranded_after_leaving() const {
    for (size_t launch = 0; launch < launches_.size(); ++launch) {
      if (!arrived_[launch] && may_be_stranded(launch, true)) return true;
    }
    return false;
  }

  // Returns whether blocks that leave now may strand a later launch. They cannot if too few SMs can
  // be full, whichever blocks stay.
  bool leaving_may_strand() {
    if (!std::ranges::all_of(steps_, [](const Step& step) { return step.leaving.empty(); })) {
      return true;
    }
    const std::vector<int32_t> order = arrivals();
    const auto known = safe_after_.find(order);
    if (known != safe_after_.end()) return !known->second;
    const bool is_safe = std::ranges::all_of(
        model_.states_that_choose(),
        [&](const InitialState& state) { return nobody_waits_after(order, state); });
    safe_after_.emplace(order, is_safe);
    return !is_safe;
  }

  // Returns whether a proof finds that no launch waits after these arrivals. Waiting blocks count
  // as one more launch, which has not arrived.
  bool nobody_waits_after(const std::vector<int32_t>& order, const InitialState& state) {
    OccupancyObserver occupancy;
    HeldEngine engine(model_, state, {&occupancy});
    for (const int32_t launch : order) engine.step(events_[launch]);
    std::vector<Launch> launches = launches_;
    std::vector<bool> awaited = strands_;
    for (size_t k = 0; k < order.size(); ++k) {
      const int32_t waiting = occupancy.launches()[k].waiting;
      if (waiting == 0) continue;
      Launch& rest = launches.emplace_back(launches_[order[k]]);
      rest.blocks = waiting;
      awaited.push_back(strands_[order[k]]);
    }
    const Demands demands(model_.device(), launches);
    Resident resident(model_.device(), demands);
    for (size_t k = 0; k < order.size(); ++k) {
      resident.is_there[order[k]] = true;
      for (const int32_t sm : occupancy.launches()[k].sms) ++resident.on_sm[sm][order[k]];
    }
    std::fill(resident.waits.begin() + std::ssize(launches_), resident.waits.end(), true);
    for (size_t sm = 0; sm < resident.room_on_sm.size(); ++sm) {
      resident.taken_on_sm[sm] = occupancy.gpu()->most_taken(static_cast<int32_t>(sm));
      resident.configured_on_sm[sm] = occupancy.gpu()->configured(static_cast<int32_t>(sm));
      for (size_t k = 0; k < launches.size(); ++k) {
        resident.room_on_sm[sm][k] =
            demands.may_be_on(k, static_cast<int32_t>(sm))
                ? occupancy.gpu()->room(static_cast<int32_t>(sm), demands[k]).blocks
                : 0;
      }
    }
    const FullSmsProof proof(model_, launches, demands, group_, awaited, resident);
    if (proof.in_any_order()) return true;
    std::vector<bool> finds_room_next(launches.size());
    for (size_t k = 0; k < launches_.size(); ++k) {
      finds_room_next[k] = is_monotone_[k] && strands_[k];
    }
    ArrivedLaunches arrived{order, {}};
    for (const OccupancyObserver::Launch& launch : occupancy.launches()) {
      arrived.waiting.push_back(launch.waiting);
    }
    RoomProof room_proof(model_, launches_, demands_, group_, resident, arrived, known_sms_,
                         budget_, solver_);
    const bool holds = proof.in_each_order(
        finds_room_next,
        [&] {
          interrupted_();
          return --steps_left_ >= 0 && !deadline_.is_over();
        },
        [&](const std::vector<Arrival>& coming, const int32_t launch) {
          return !is_allowed_order(order, coming, launch) ||
                 proof_cache_.finds_room(state, arrived, coming, launch,
                                         [&] { return room_proof.finds_room(coming, launch); });
        });
    if (holds) return true;
    for (const std::vector<HistoryStep>& history : room_proof.candidates()) {
      if (!strands_[history.back().launch]) continue;
      for (auto& steps : steps_of(model_, demands_, events_, in_group_, state, order, history)) {
        Candidate candidate{state, std::move(steps)};
        if (std::ranges::find(candidates_, candidate) != candidates_.end()) continue;
        candidates_.push_back(std::move(candidate));
      }
    }
    return false;
  }

  // Returns whether the program may launch them in this order.
  bool is_allowed_order(const std::vector<int32_t>& order, const std::vector<Arrival>& coming,
                        const int32_t last) const {
    std::vector<int32_t> all = order;
    std::ranges::transform(coming, std::back_inserter(all), &Arrival::launch);
    all.push_back(last);
    return std::ranges::all_of(after_, [&](const auto& pair) {
      const auto second = std::ranges::find(all, pair[1]);
      return second == all.end() || std::find(all.begin(), second, pair[0]) != second;
    });
  }

  // Plays the candidates of this length.
  void play_candidates(const size_t length) {
    for (const Candidate& candidate : candidates_) {
      if (over() || candidate.steps.size() != length) continue;
      state_ = candidate.state;
      steps_ = candidate.steps;
      play();
      steps_.clear();
    }
  }

  size_t longest_candidate() const {
    size_t longest = 0;
    for (const Candidate& each : candidates_) longest = std::max(longest, each.steps.size());
    return longest;
  }

  std::vector<int32_t> arrivals() const {
    std::vector<int32_t> order;
    for (const Step& step : steps_) {
      if (step.leaving.empty()) order.push_back(step.launch);
    }
    return order;
  }

  // Returns whether a launch has not arrived that strands the group if it waits.
  bool may_strand_later() const {
    for (size_t launch = 0; launch < launches_.size(); ++launch) {
      if (strands_[launch] && !arrived_[launch]) return true;
    }
    return false;
  }

  void play() {
    const bool some_leave = std::ranges::any_of(
        steps_, [&](const Step& step) { return !step.leaving.empty() && !all_leave(step); });
    interrupted_();
    ++plays_;
    OccupancyObserver occupancy;
    using Leaving = BlockScheduler::Leaving;
    HeldEngine engine(model_, state_, {&occupancy},
                      {.leaving = some_leave ? Leaving::one_by_one : Leaving::together});
    std::vector<int32_t> number(launches_.size(), -1);  // among those of the play
    std::vector<int32_t> launch_of;
    for (const Step& step : steps_) {
      if (!step.leaving.empty()) {
        const int32_t waiting = occupancy.launches()[number[step.launch]].waiting;
        if (step.leaving.back() >= launches_[step.launch].blocks - waiting) return;
        if (!all_resident(partners_[step.launch], number, occupancy)) return;
        // Waiting blocks take the room of the blocks that leave first, which may be any. Only a
        // proof by outcomes of SMs rules that out.
        if (!occupancy.all_resident()) all_sets_ = false;
        if (some_leave) {
          for (const int32_t block : step.leaving) engine.let_leave(number[step.launch], block);
        } else {
          engine.step(Release{number[step.launch]});
        }
        continue;
      }
      if (!predecessors_resident(step.launch, number, occupancy)) return;
      if (!occupancy.all_resident()) waiting_.insert(launch_of);
      number[step.launch] = static_cast<int32_t>(launch_of.size());
      launch_of.push_back(step.launch);
      engine.step(events_[step.launch]);
    }
    const OccupancyObserver::Launch& last = occupancy.launches().back();
    if (last.waiting == 0) return;
    found_ = {steps_, state_, launch_of.back(), last.cause,
              last.behind < 0 ? -1 : launch_of[last.behind]};
  }

  bool all_leave(const Step& step) const {
    return std::cmp_equal(step.leaving.size(), launches_[step.launch].blocks);
  }

  static bool all_resident(const std::vector<int32_t>& launches, const std::vector<int32_t>& number,
                           const OccupancyObserver& occupancy) {
    return std::ranges::all_of(launches, [&](const int32_t launch) {
      return number[launch] >= 0 && occupancy.launches()[number[launch]].waiting == 0;
    });
  }

  bool predecessors_resident(const int32_t launch, const std::vector<int32_t>& number,
                             const OccupancyObserver& occupancy) const {
    return std::ranges::all_of(after_, [&](const auto& pair) {
      return pair[1] != launch || occupancy.launches()[number[pair[0]]].waiting == 0;
    });
  }

  const Model& model_;
  const std::vector<Launch>& launches_;
  const Demands& demands_;
  const std::vector<int32_t>& group_;
  const std::vector<std::array<int32_t, 2>>& after_;
  const int64_t most_plays_;
  const Solver& solver_;
  const Deadline deadline_;
  const bool only_to_prove_;
  const std::function<void()>& interrupted_;
  std::vector<Event> events_;
  std::vector<std::vector<int32_t>> partners_;  // by launch: its group, itself included; or empty
  std::vector<bool> in_group_;                  // whether it is in the group of the question
  std::vector<bool>
      strands_;  // by launch: whether the group is stranded if it waits; see awaited_by
  std::vector<bool> is_monotone_;  // see is_monotone
  InitialState state_{};           // initial state of the steps
  std::vector<Step> steps_;
  std::vector<bool> arrived_;
  std::vector<std::vector<int32_t>> there_;          // by launch that has arrived: its blocks
  std::map<std::vector<int32_t>, bool> safe_after_;  // by order of arrival
  std::set<std::vector<int32_t>>
      waiting_;              // orders of arrival after which a block waited in some play
  int32_t chosen_sets_ = 0;  // steps in which only some sets of blocks leave
  bool all_sets_ = true;     // all sets of blocks were played
  int64_t plays_ = 0;
  ProofCache proof_cache_;
  std::vector<Candidate> candidates_;
  int32_t steps_left_ = kMostSearches;
  Budget budget_;
  std::vector<int32_t> background_;
  std::array<SmStates, 2> known_sms_ = {SmStates{background_, budget_},
                                        SmStates{background_, budget_}};
  std::optional<Stranding> found_;
};

}  // namespace

WitnessSearch find_deadlock(const Model& model, const TogetherQuestion& question,
                            const Demands& demands, const std::vector<int32_t>& group,
                            const int64_t most_plays, const Solver& solver, const Deadline deadline,
                            const std::function<void()>& interrupted) {
  const auto search = [&](const int64_t plays, const Solver& own) {
    return Search(model, question, demands, group, plays, own, deadline, interrupted).run();
  };
  WitnessSearch found = search(solver ? std::min(kPlaysBefore, most_plays) : most_plays, nullptr);
  if (!solver || found.found || found.complete) return found;
  WitnessSearch proved = search(most_plays - found.plays, solver);
  proved.plays += found.plays;
  return proved;
}

}  // namespace tbsched
