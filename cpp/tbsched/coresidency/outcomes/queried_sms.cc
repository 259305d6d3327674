#include "tbsched/coresidency/outcomes/queried_sms.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "tbsched/hardware/sm/units.h"

namespace tbsched {

QueriedSms::QueriedSms(const Device& device, const Demands& demands, const LaunchPlaces& places,
                       const Query& query, SmStates& states, Budget& budget)
    : device_(device),
      places_(places),
      query_(query),
      states_(states),
      behaviours_(device, demands, places, query, states, budget),
      explorer_(demands, places, query, behaviours_, budget) {}

void QueriedSms::add(OneSm sm, SmRole role) {
  const int32_t state = states_.state_of(sm);
  const int32_t role_index = behaviours_.role(std::move(role));
  const int32_t successors = behaviours_.successors(state, 0, role_index);
  sms_.push_back({std::move(sm), state, role_index, successors});
}

bool QueriedSms::units_are_tpcs() const {
  const auto takes_tpcs = [&](const int32_t launch) {
    return places_.way(launch) == Way::whole_tpcs;
  };
  return takes_tpcs(query_.last) ||
         std::ranges::any_of(query_.coming, takes_tpcs, &Arrival::launch) ||
         std::ranges::any_of(query_.entering, takes_tpcs, &WaitingLaunch::launch);
}

bool QueriedSms::clusters_tie_sms() const {
  const auto is_cluster = [&](const int32_t launch) { return places_.way(launch) != Way::single; };
  return is_cluster(query_.last) ||
         std::ranges::any_of(query_.coming, is_cluster, &Arrival::launch) ||
         std::ranges::any_of(query_.entering, is_cluster, &WaitingLaunch::launch);
}

// Adds outcomes and groups to a program: groups the SMs of each domain, or its TPCs, that are in
// equal states. If clusters do not tie them, all domains are one.
void QueriedSms::add_to(OutcomeProgram& program) {
  std::map<std::pair<int32_t, Unit>, OutcomeProgram::Group> groups;
  int32_t domain_index = 0;
  std::vector<int32_t> position(sms_.size());  // of each SM in its domain
  for (const ClusterDomain& domain : device_.cluster_domains) {
    int32_t next = 0;
    for (const std::vector<int32_t>& tpc : domain.tpcs) {
      for (const int32_t sm : tpc) position[sm] = next++;
      std::vector<std::vector<int32_t>> units;
      if (units_are_tpcs()) {
        units.push_back(tpc);
      } else {
        for (const int32_t sm : tpc) units.push_back({sm});
      }
      for (std::vector<int32_t>& sms : units) {
        std::ranges::sort(sms, {}, [&](const int32_t sm) {
          return std::pair(sms_[sm].successors, device_.rank_of_sm[sm]);
        });
        Unit unit;
        for (const int32_t sm : sms) unit.push_back(sms_[sm].successors);
        OutcomeProgram::Group& group = groups[{domain_index, unit}];
        group.domain = domain_index;
        group.units.push_back(std::move(sms));
      }
    }
    domain_index += clusters_tie_sms() ? 1 : 0;
  }
  std::map<const SmOutcomes*, size_t> index_of_outcomes;
  for (auto& [key, group] : groups) {
    const SmOutcomes& outcomes = explorer_.of(key.second);
    const auto [entry, is_new] = index_of_outcomes.try_emplace(&outcomes, program.outcomes.size());
    if (is_new) program.outcomes.push_back(&outcomes);
    group.outcomes = entry->second;
    const bool is_by_rank =
        query_.coming.empty() || places_.way(query_.coming.front().launch) == Way::single;
    const std::vector<int32_t>& order = is_by_rank ? device_.rank_of_sm : position;
    std::ranges::sort(group.units, {},
                      [&](const std::vector<int32_t>& sms) { return order[sms.front()]; });
    for (const std::vector<int32_t>& sms : group.units) {
      for (const int32_t sm : sms) {
        group.ranks.push_back(device_.rank_of_sm[sm]);
        group.positions.push_back(position[sm]);
      }
    }
    program.groups.push_back(std::move(group));
  }
}

// Replays outcomes on SMs to find out which block each move concerns.
class QueriedSms::Replay {
 public:
  // Adds moves to `history`, which has a step for each stage. The arguments outlive it.
  Replay(QueriedSms& queried, std::vector<HistoryStep>& history)
      : queried_(queried), history_(history), entered_(history.size()) {}

  // Replays the way to the least room on the SMs of a unit.
  void play(const std::vector<int32_t>& sms, const LeastRoom& least) {
    for (const int32_t sm : sms) now_.emplace(sm, queried_.sms_[sm]);
    play(0, sms, least);
  }

  // Lets blocks leave for others to enter on each SM on which fewer blocks have entered than on
  // another SM of its TPC: clusters of whole TPCs enter on all SMs of a TPC.
  void make_whole(const std::vector<std::vector<int32_t>>& units) {
    for (const WaitingLaunch& waiting : queried_.query_.entering) {
      if (!waiting.in_tpcs()) continue;
      for (size_t stage = 0; stage < entered_.size(); ++stage) {
        for (const Sms& sms : units) make_whole(stage, waiting, sms);
      }
    }
  }

 private:
  using Sms = std::vector<int32_t>;

  // Replays a way from a stage on.
  void play(const size_t stage, const Sms& sms, const LeastRoom& least) {
    for (size_t k = 0; k < least.of_each.size(); ++k) play(stage, {sms[k]}, *least.of_each[k]);
    for (size_t k = 0; k < least.turns.size(); ++k) play(stage, sms[k], least.turns[k]);
    if (least.then == nullptr) return;
    Sms sorted;
    for (const size_t k : queried_.explorer_.order_after(least.turns)) sorted.push_back(sms[k]);
    play(stage + 1, sorted, *least.then);
  }

  // Replays the moves on one SM before the arrival of a stage, and the blocks that it takes there.
  void play(const size_t stage, const int32_t sm_index, const LeastRoom::Turn& turn) {
    Sm& sm = now_.at(sm_index);
    const auto [moves, state] =
        queried_.behaviours_.moves(sm.state, stage, sm.role, turn.transition);
    for (const auto& [launch, kind, enters] : moves) {
      if (enters) {
        enter(stage, sm_index, launch, kind);
      } else {
        leave(stage, sm_index, launch, kind);
      }
    }
    sm.state = state;
    const int32_t launch = queried_.query_.launch_at(stage);
    for (int32_t block = 0; block < turn.taken; ++block) {
      sm.contents.commit(launch);
      sm.state = queried_.states_.with_one_more(sm.state, launch);
    }
  }

  // Adds the move of a block that leaves an SM before a stage. `kind`: as Move::kind.
  void leave(const size_t stage, const int32_t sm_index, const int32_t launch, const size_t kind) {
    OneSm& sm = now_.at(sm_index).contents;
    const int32_t block = sm.distinct_blocks(launch)[kind];
    history_[stage].moves.push_back({launch, sm_index, block, false});
    sm.leave(launch, block);
  }

  // Adds the move of a block that enters an SM before a stage.
  void enter(const size_t stage, const int32_t sm_index, const int32_t launch, const size_t kind) {
    OneSm& sm = now_.at(sm_index).contents;
    history_[stage].moves.push_back({launch, sm_index, -1, true});
    sm.enter(launch, sm.entry_configurations(launch)[kind]);
    ++entered_[stage][{launch, sm_index}];
  }

  // Returns how many blocks of a launch have entered an SM before a stage, and after the one
  // before.
  int32_t entered(const size_t stage, const int32_t launch, const int32_t sm) const {
    const auto count = entered_[stage].find({launch, sm});
    return count == entered_[stage].end() ? 0 : count->second;
  }

  // Lets blocks of one launch enter on the SMs of a TPC on which fewer of them have entered, in the
  // place of others that leave.
  void make_whole(const size_t stage, const WaitingLaunch& waiting, const Sms& tpc) {
    int32_t max_entered = 0;
    for (const int32_t sm : tpc) {
      max_entered = std::max(max_entered, entered(stage, waiting.launch, sm));
    }
    for (const int32_t sm : tpc) {
      for (int32_t k = entered(stage, waiting.launch, sm); k < max_entered; ++k) {
        replace_block(stage, waiting, sm);
      }
    }
  }

  // Lets one block leave and another one of the same launch enter, so that the SM returns to its
  // state if possible.
  void replace_block(const size_t stage, const WaitingLaunch& waiting, const int32_t sm_index) {
    const OneSm& sm = now_.at(sm_index).contents;
    const std::vector<int32_t> kinds = sm.distinct_blocks(waiting.launch);
    const auto returns_to_its_state = [&](const int32_t block) {
      OneSm after = sm;
      after.leave(waiting.launch, block);
      const std::vector<int32_t> configurations = after.entry_configurations(waiting.launch);
      if (configurations.empty()) return false;
      after.enter(waiting.launch, configurations.front());
      return after.key() == sm.key();
    };
    if (kinds.empty()) return;
    const auto kind = std::ranges::find_if(kinds, returns_to_its_state);
    leave(stage, sm_index, waiting.launch, kind == kinds.end() ? 0 : kind - kinds.begin());
    if (!sm.entry_configurations(waiting.launch).empty()) {
      enter(stage, sm_index, waiting.launch, 0);
    }
  }

  QueriedSms& queried_;
  std::vector<HistoryStep>& history_;
  // How many blocks have entered, by stage, launch and SM.
  std::vector<std::map<std::pair<int32_t, int32_t>, int32_t>> entered_;
  std::map<int32_t, Sm> now_;  // the SMs after the moves so far
};

std::vector<HistoryStep> QueriedSms::history(const OutcomeProgram& program, const Counts& counts) {
  std::vector<HistoryStep> history;
  for (const Arrival& arrival : query_.coming) history.push_back({{}, arrival.launch});
  history.push_back({{}, query_.last});
  Replay replay(*this, history);
  for (size_t k = 0; k < program.groups.size(); ++k) {
    const OutcomeProgram::Group& group = program.groups[k];
    auto sms = group.units.begin();
    for (const auto& [outcome, units] : counts[k]) {
      const SmOutcomes& outcomes = *program.outcomes[group.outcomes];
      const LeastRoom& least = std::next(outcomes.begin(), outcome)->second;
      for (int32_t unit = 0; unit < units; ++unit) replay.play(*sms++, least);
    }
    replay.make_whole(group.units);
  }
  return history;
}

}  // namespace tbsched
