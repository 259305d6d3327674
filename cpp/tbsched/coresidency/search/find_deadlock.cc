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
constexpr size_t kMaxToChoose = 8;
constexpr size_t kCuts = 16;
// Limit of checks for room in orders of arrival; six launches take some hundreds.
constexpr int32_t kMaxChecks = 5'000;
// Limit of steps of the proofs by outcomes of SMs: some minutes.
constexpr int64_t kMaxSteps = 300'000'000;
// A search without these proofs plays this many histories first.
constexpr int64_t kPlaysBefore = 10'000;

// Returns sets of the blocks that a launch still has, to leave at once.
std::vector<std::vector<int32_t>> leaving_sets(const std::vector<int32_t>& resident) {
  std::vector<std::vector<int32_t>> sets = {resident};
  const size_t count = resident.size();
  if (count <= kMaxToChoose) {
    for (uint32_t chosen = (1U << count) - 2; chosen > 0; --chosen) {
      std::vector<int32_t>& set = sets.emplace_back();
      for (size_t k = 0; k < count; ++k) {
        if ((chosen >> k & 1U) != 0) set.push_back(resident[k]);
      }
    }
    return sets;
  }
  sets.push_back({resident.front()});
  const size_t cuts = std::min(kCuts, count);
  for (size_t cut = 1; cut < cuts; ++cut) {
    const auto middle = resident.begin() + static_cast<std::ptrdiff_t>(count * cut / cuts);
    sets.emplace_back(resident.begin(), middle);
    sets.emplace_back(middle, resident.end());
  }
  return sets;
}

// The search for one group: iterative deepening over sequences of steps.
class Search {
 public:
  Search(const Model& model, const TogetherQuestion& question, const Demands& demands,
         const std::vector<int32_t>& group, const int64_t max_plays, const Solver& solver,
         const Deadline deadline, const std::function<void()>& interrupted)
      : model_(model),
        launches_(question.launches),
        demands_(demands),
        group_(group),
        after_(question.after),
        max_plays_(max_plays),
        solver_(solver),
        deadline_(deadline),
        only_to_prove_(question.only_to_prove),
        interrupted_(interrupted),
        group_of_launch_(launches_.size()),
        in_group_(launches_.size()),
        strands_(awaited_by(question, group)),
        arrived_(launches_.size()),
        resident_blocks_(launches_.size()),
        budget_(kMaxSteps, deadline, interrupted) {
    for (const std::vector<int32_t>& other : question.groups) {
      for (const int32_t launch : other) group_of_launch_[launch] = other;
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

  // Returns a shortest stranding, if any was found.
  WitnessSearch run() {
    // Between two arrivals each background kernel lets blocks leave at most once.
    const size_t background = launches_.size() - group_.size();
    const size_t longest = launches_.size() + background * (launches_.size() - 1);
    for (size_t length = 1; length <= longest && !is_over(); ++length) {
      // An idle GPU has the same room for one launch in every state. In other states the blocks of
      // an SM have other numbers: so other sets leave, or the same sets in another order.
      const auto states = model_.states_that_choose();
      for (size_t k = 0; k < (length == 1 ? 1 : states.size()) && !is_over(); ++k) {
        state_ = states[k];
        extend(length);
      }
      play_candidates(length);
    }
    // Candidates in which entering blocks leave one after the other take more steps.
    for (size_t length = longest + 1; length <= longest_candidate(); ++length)
      play_candidates(length);
    return {std::move(stranding_), all_sets_ && !has_given_up(), plays_};
  }

 private:
  // Returns whether the limits of the question end the search.
  bool has_given_up() const {
    return plays_ >= max_plays_ || (only_to_prove_ && !all_sets_) || deadline_.is_over();
  }
  bool is_over() const { return stranding_.has_value() || has_given_up(); }

  // Plays every extension of steps_ to `length` steps that may strand the group: depth-first
  // search.
  void extend(const size_t length) {
    if (steps_.size() == length) {
      all_sets_ = all_sets_ && chosen_sets_ == 0;
      if (!is_over()) play();
      return;
    }
    if (!may_strand_later()) return;
    // A last step in which blocks leave strands nobody. With only one arrival or two steps left,
    // the arrival comes just after blocks have left, which must be worth a play.
    const size_t rest = length - steps_.size();
    const bool is_near_end = rest == 2 || std::ranges::count(arrived_, false) == 1;
    const bool may_leave_now = rest > 1 && (!is_near_end || any_may_be_stranded_after_leaving());
    for (size_t launch = 0; launch < launches_.size() && !is_over(); ++launch) {
      if (may_arrive(launch) && (rest > 1 || may_be_stranded(launch, some_have_just_left()))) {
        arrive(launch, length);
      }
      if (may_leave_now && may_leave(launch) && leaving_may_strand()) leave(launch, length);
    }
  }

  // Returns whether blocks left in the last step.
  bool some_have_just_left() const { return !steps_.empty() && !steps_.back().leaving.empty(); }

  // Extends the steps by the arrival of a launch.
  void arrive(const size_t launch, const size_t length) {
    arrived_[launch] = true;
    if (!in_group_[launch]) resident_blocks_[launch] = first_blocks(launches_[launch].blocks);
    steps_.push_back({static_cast<int32_t>(launch)});
    extend(length);
    steps_.pop_back();
    resident_blocks_[launch].clear();
    arrived_[launch] = false;
  }

  // Returns the blocks of a grid that can be resident at first: at most as many as the GPU holds.
  // The others of a larger grid are not resident before these.
  std::vector<int32_t> first_blocks(const int32_t blocks) const {
    const DeviceSpec& spec = model_.device().spec;
    std::vector<int32_t> resident(std::min(blocks, spec.sms * spec.blocks_per_sm));
    std::iota(resident.begin(), resident.end(), 0);
    return resident;
  }

  // Extends the steps by a set of a launch's blocks that leave, for each set.
  void leave(const size_t launch, const size_t length) {
    const std::vector<int32_t> resident = resident_blocks_[launch];
    const bool has_all_sets = resident.size() <= kMaxToChoose;
    chosen_sets_ += has_all_sets ? 0 : 1;
    for (std::vector<int32_t>& set : leaving_sets(resident)) {
      if (is_over()) break;
      resident_blocks_[launch].clear();
      std::ranges::set_difference(resident, set, std::back_inserter(resident_blocks_[launch]));
      steps_.push_back({static_cast<int32_t>(launch), std::move(set)});
      extend(length);
      steps_.pop_back();
    }
    resident_blocks_[launch] = resident;
    chosen_sets_ -= has_all_sets ? 0 : 1;
  }

  // Returns whether blocks of a background launch may leave in the next step: it has some, all that
  // it waits for have arrived, and launches leave in ascending order between two arrivals.
  bool may_leave(const size_t launch) const {
    if (in_group_[launch] || resident_blocks_[launch].empty()) return false;
    const auto has_arrived = [&](const int32_t partner) { return arrived_[partner]; };
    if (!std::ranges::all_of(group_of_launch_[launch], has_arrived)) return false;
    return steps_.back().leaving.empty() || std::cmp_less(steps_.back().launch, launch);
  }

  // Returns whether a launch may arrive next: after those of `after`, and equal launches in
  // ascending order.
  bool may_arrive(const size_t launch) const {
    if (arrived_[launch]) return false;
    for (size_t other = 0; other < launch; ++other) {
      if (!arrived_[other] && are_equal(other, launch)) return false;
    }
    return std::ranges::all_of(after_, [&](const auto& pair) {
      return std::cmp_not_equal(pair[1], launch) || arrived_[pair[0]];
    });
  }

  // Returns whether two launches can be exchanged in every history.
  bool are_equal(const size_t a, const size_t b) const {
    const auto has_order = [&](const size_t launch) {
      return std::ranges::any_of(after_, [&](const auto& pair) {
        return std::cmp_equal(pair[0], launch) || std::cmp_equal(pair[1], launch);
      });
    };
    return group_of_launch_[a] == group_of_launch_[b] && !has_order(a) && !has_order(b) &&
           is_same(launches_[a], launches_[b]);
  }

  // Returns whether two launches in no stream have equal fields.
  static bool is_same(const Launch& a, const Launch& b) {
    const auto is_same_partition = [](const auto& first, const auto& second) {
      return first == second || (first && second && *first == *second);
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

  // Returns whether a play is worthwhile in which any launch arrives now and is stranded, if blocks
  // have just left.
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

  // Returns whether it is proved that no awaited launch waits after these arrivals, whichever
  // blocks leave then. Waiting blocks count as one more launch, which has not arrived. If it is not
  // proved, adds candidates for histories in which one may wait.
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
      resident.is_resident[order[k]] = true;
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
    const bool is_proved = proof.in_each_order(
        finds_room_next,
        [&] {
          interrupted_();
          return --remaining_checks_ >= 0 && !deadline_.is_over();
        },
        [&](const std::vector<Arrival>& coming, const int32_t launch) {
          return !is_allowed_order(order, coming, launch) ||
                 proof_cache_.finds_room(state, arrived, coming, launch,
                                         [&] { return room_proof.finds_room(coming, launch); });
        });
    if (is_proved) return true;
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

  // Returns whether the program may launch in this order: `order`, `coming`, `last`.
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
      if (is_over() || candidate.steps.size() != length) continue;
      state_ = candidate.state;
      steps_ = candidate.steps;
      play();
      steps_.clear();
    }
  }

  // Returns the number of steps of the longest candidate.
  size_t longest_candidate() const {
    size_t longest = 0;
    for (const Candidate& candidate : candidates_) {
      longest = std::max(longest, candidate.steps.size());
    }
    return longest;
  }

  // Returns the launches that arrive in the steps, in order.
  std::vector<int32_t> arrivals() const {
    std::vector<int32_t> order;
    for (const Step& step : steps_) {
      if (step.leaving.empty()) order.push_back(step.launch);
    }
    return order;
  }

  // Returns whether a launch that strands the group if it waits has not arrived.
  bool may_strand_later() const {
    for (size_t launch = 0; launch < launches_.size(); ++launch) {
      if (strands_[launch] && !arrived_[launch]) return true;
    }
    return false;
  }

  // Plays the steps. Notes the stranding if the last launch waits. Does nothing if the program
  // could not do the steps: if a group lets blocks leave or a launch arrives too early.
  void play() {
    const bool some_leave = std::ranges::any_of(
        steps_, [&](const Step& step) { return !step.leaving.empty() && !all_leave(step); });
    interrupted_();
    ++plays_;
    OccupancyObserver occupancy;
    using Leaving = BlockScheduler::Leaving;
    HeldEngine engine(model_, state_, {&occupancy},
                      {.leaving = some_leave ? Leaving::one_by_one : Leaving::together});
    std::vector<int32_t> index_in_play(launches_.size(), -1);  // by launch; -1: not arrived
    std::vector<int32_t> launch_of;                            // by index in the play
    for (const Step& step : steps_) {
      if (!step.leaving.empty()) {
        const int32_t waiting = occupancy.launches()[index_in_play[step.launch]].waiting;
        if (step.leaving.back() >= launches_[step.launch].blocks - waiting) return;
        if (!all_resident(group_of_launch_[step.launch], index_in_play, occupancy)) return;
        // Waiting blocks take the room of the blocks that leave first, which may be any. Only a
        // proof by outcomes of SMs rules that out.
        if (!occupancy.all_resident()) all_sets_ = false;
        if (some_leave) {
          for (const int32_t block : step.leaving)
            engine.exit_block(index_in_play[step.launch], block);
        } else {
          engine.step(Release{index_in_play[step.launch]});
        }
        continue;
      }
      if (!predecessors_resident(step.launch, index_in_play, occupancy)) return;
      if (!occupancy.all_resident()) waiting_.insert(launch_of);
      index_in_play[step.launch] = static_cast<int32_t>(launch_of.size());
      launch_of.push_back(step.launch);
      engine.step(events_[step.launch]);
    }
    const OccupancyObserver::Launch& last = occupancy.launches().back();
    if (last.waiting == 0) return;
    stranding_ = {steps_, state_, launch_of.back(), last.cause,
                  last.behind < 0 ? -1 : launch_of[last.behind]};
  }

  // Returns whether all blocks of a launch leave in a step.
  bool all_leave(const Step& step) const {
    return std::cmp_equal(step.leaving.size(), launches_[step.launch].blocks);
  }

  // Returns whether all blocks of these launches are resident.
  static bool all_resident(const std::vector<int32_t>& launches,
                           const std::vector<int32_t>& index_in_play,
                           const OccupancyObserver& occupancy) {
    return std::ranges::all_of(launches, [&](const int32_t launch) {
      return index_in_play[launch] >= 0 && occupancy.launches()[index_in_play[launch]].waiting == 0;
    });
  }

  // Returns whether all blocks of the launches after which this one arrives are resident.
  bool predecessors_resident(const int32_t launch, const std::vector<int32_t>& index_in_play,
                             const OccupancyObserver& occupancy) const {
    return std::ranges::all_of(after_, [&](const auto& pair) {
      return pair[1] != launch || occupancy.launches()[index_in_play[pair[0]]].waiting == 0;
    });
  }

  const Model& model_;
  const std::vector<Launch>& launches_;
  const Demands& demands_;
  const std::vector<int32_t>& group_;
  const std::vector<std::array<int32_t, 2>>& after_;
  const int64_t max_plays_;
  const Solver& solver_;
  const Deadline deadline_;
  const bool only_to_prove_;
  const std::function<void()>& interrupted_;
  std::vector<Event> events_;
  std::vector<std::vector<int32_t>>
      group_of_launch_;         // by launch: its group, itself included; or empty
  std::vector<bool> in_group_;  // whether it is in the group of the question
  std::vector<bool>
      strands_;  // by launch: whether the group is stranded if it waits; see awaited_by
  std::vector<bool> is_monotone_;  // see is_monotone
  InitialState state_{};           // initial state of the steps
  std::vector<Step> steps_;
  std::vector<bool> arrived_;
  // By background kernel that has arrived: the blocks that may be resident.
  std::vector<std::vector<int32_t>> resident_blocks_;
  std::map<std::vector<int32_t>, bool> safe_after_;  // by order of arrival
  std::set<std::vector<int32_t>>
      waiting_;              // orders of arrival after which a block waited in some play
  int32_t chosen_sets_ = 0;  // steps of launches of which only some sets of blocks are tried
  bool all_sets_ = true;     // all sets of blocks were played
  int64_t plays_ = 0;
  ProofCache proof_cache_;
  std::vector<Candidate> candidates_;
  int32_t remaining_checks_ = kMaxChecks;
  Budget budget_;
  std::vector<int32_t> background_;
  std::array<SmStates, 2> known_sms_ = {SmStates{background_, budget_},
                                        SmStates{background_, budget_}};
  std::optional<Stranding> stranding_;
};

}  // namespace

WitnessSearch find_deadlock(const Model& model, const TogetherQuestion& question,
                            const Demands& demands, const std::vector<int32_t>& group,
                            const int64_t max_plays, const Solver& solver, const Deadline deadline,
                            const std::function<void()>& interrupted) {
  const auto search = [&](const int64_t plays, const Solver& used_solver) {
    return Search(model, question, demands, group, plays, used_solver, deadline, interrupted).run();
  };
  WitnessSearch first = search(solver ? std::min(kPlaysBefore, max_plays) : max_plays, nullptr);
  if (!solver || first.stranding || first.complete) return first;
  WitnessSearch second = search(max_plays - first.plays, solver);
  second.plays += first.plays;
  return second;
}

}  // namespace tbsched
