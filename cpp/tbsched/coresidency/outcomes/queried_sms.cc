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

void QueriedSms::add(OneSm first, SmRole role) {
  const int32_t state = states_.of(first);
  const int32_t number = behaviours_.role(std::move(role));
  const int32_t successors = behaviours_.successors(state, 0, number);
  sms_.push_back({std::move(first), state, number, successors});
}

bool QueriedSms::by_tpc() const {
  const auto takes_tpcs = [&](const int32_t launch) {
    return places_.way(launch) == Way::whole_tpcs;
  };
  return takes_tpcs(query_.last) ||
         std::ranges::any_of(query_.coming, takes_tpcs, &Arrival::launch) ||
         std::ranges::any_of(query_.entering, takes_tpcs, &WaitingLaunch::launch);
}

// Returns whether clusters tie the SMs of a domain.
bool QueriedSms::are_tied() const {
  const auto is_cluster = [&](const int32_t launch) { return places_.way(launch) != Way::single; };
  return is_cluster(query_.last) ||
         std::ranges::any_of(query_.coming, is_cluster, &Arrival::launch) ||
         std::ranges::any_of(query_.entering, is_cluster, &WaitingLaunch::launch);
}

// Groups the SMs of each domain, or its TPCs, that are in equal states. If clusters do not tie
// them, all domains are one.
void QueriedSms::add_to(OutcomeProgram& program) {
  std::map<std::pair<int32_t, Unit>, OutcomeProgram::Group> groups;
  int32_t number = 0;
  std::vector<int32_t> position(sms_.size());  // of each SM in its domain
  for (const ClusterDomain& domain : device_.cluster_domains) {
    int32_t next = 0;
    for (const std::vector<int32_t>& tpc : domain.tpcs) {
      for (const int32_t sm : tpc) position[sm] = next++;
      std::vector<std::vector<int32_t>> units;
      if (by_tpc()) {
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
        OutcomeProgram::Group& group = groups[{number, unit}];
        group.domain = number;
        group.units.push_back(std::move(sms));
      }
    }
    number += are_tied() ? 1 : 0;
  }
  std::map<const SmOutcomes*, size_t> known;
  for (auto& [key, group] : groups) {
    const SmOutcomes& outcomes = explorer_.of(key.second);
    const auto [at, is_new] = known.try_emplace(&outcomes, program.outcomes.size());
    if (is_new) program.outcomes.push_back(&outcomes);
    group.outcomes = at->second;
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
  Replay(QueriedSms& all, std::vector<HistoryStep>& history)
      : all_(all), history_(history), entered_(history.size()) {}

  void play(const std::vector<int32_t>& sms, const LeastRoom& least) {
    for (const int32_t sm : sms) now_.emplace(sm, all_.sms_[sm]);
    play(0, sms, least);
  }

  // Clusters of whole TPCs enter on all SMs of a TPC. Where fewer blocks have entered on an SM,
  // lets blocks leave for others to enter.
  void make_whole(const std::vector<std::vector<int32_t>>& units) {
    for (const WaitingLaunch& what : all_.query_.entering) {
      if (!what.in_tpcs()) continue;
      for (size_t stage = 0; stage < entered_.size(); ++stage) {
        for (const Sms& sms : units) make_whole(stage, what, sms);
      }
    }
  }

 private:
  using Sms = std::vector<int32_t>;

  void play(const size_t stage, const Sms& sms, const LeastRoom& least) {
    for (size_t k = 0; k < least.of_each.size(); ++k) play(stage, {sms[k]}, *least.of_each[k]);
    for (size_t k = 0; k < least.turns.size(); ++k) play(stage, sms[k], least.turns[k]);
    if (least.then == nullptr) return;
    Sms sorted;
    for (const size_t k : all_.explorer_.order_after(least.turns)) sorted.push_back(sms[k]);
    play(stage + 1, sorted, *least.then);
  }

  void play(const size_t stage, const int32_t number, const LeastRoom::Turn& turn) {
    Sm& sm = now_.at(number);
    const auto [moves, state] = all_.behaviours_.moves(sm.state, stage, sm.role, turn.transition);
    for (const auto& [launch, kind, enters] : moves) {
      if (enters) {
        enter(stage, number, launch, kind);
      } else {
        leave(stage, number, launch, kind);
      }
    }
    sm.state = state;
    const int32_t launch = all_.query_.launch_at(stage);
    for (int32_t block = 0; block < turn.taken; ++block) {
      sm.first.commit(launch);
      sm.state = all_.states_.with_one_more(sm.state, launch);
    }
  }

  void leave(const size_t stage, const int32_t number, const int32_t launch, const size_t kind) {
    OneSm& sm = now_.at(number).first;
    const int32_t block = sm.distinct(launch)[kind];
    history_[stage].moves.push_back({launch, number, block, false});
    sm.leave(launch, block);
  }

  void enter(const size_t stage, const int32_t number, const int32_t launch, const size_t kind) {
    OneSm& sm = now_.at(number).first;
    history_[stage].moves.push_back({launch, number, -1, true});
    sm.enter(launch, sm.may_enter(launch)[kind]);
    ++entered_[stage][{launch, number}];
  }

  int32_t entered(const size_t stage, const int32_t launch, const int32_t sm) const {
    const auto found = entered_[stage].find({launch, sm});
    return found == entered_[stage].end() ? 0 : found->second;
  }

  void make_whole(const size_t stage, const WaitingLaunch& what, const Sms& tpc) {
    int32_t most = 0;
    for (const int32_t sm : tpc) most = std::max(most, entered(stage, what.launch, sm));
    for (const int32_t sm : tpc) {
      for (int32_t k = entered(stage, what.launch, sm); k < most; ++k) swap(stage, what, sm);
    }
  }

  // Lets one block leave and another one of the same launch enter, so that the SM returns to its
  // state if possible.
  void swap(const size_t stage, const WaitingLaunch& what, const int32_t number) {
    const OneSm& sm = now_.at(number).first;
    const std::vector<int32_t> kinds = sm.distinct(what.launch);
    const auto as_it_was = [&](const int32_t block) {
      OneSm then = sm;
      then.leave(what.launch, block);
      const std::vector<int32_t> ways = then.may_enter(what.launch);
      if (ways.empty()) return false;
      then.enter(what.launch, ways.front());
      return then.key() == sm.key();
    };
    if (kinds.empty()) return;
    const auto found = std::ranges::find_if(kinds, as_it_was);
    leave(stage, number, what.launch, found == kinds.end() ? 0 : found - kinds.begin());
    if (!sm.may_enter(what.launch).empty()) enter(stage, number, what.launch, 0);
  }

  QueriedSms& all_;
  std::vector<HistoryStep>& history_;
  // How many blocks have entered, by stage, launch and SM.
  std::vector<std::map<std::pair<int32_t, int32_t>, int32_t>> entered_;
  std::map<int32_t, Sm> now_;
};

std::vector<HistoryStep> QueriedSms::history(const OutcomeProgram& program, const Counts& counts) {
  std::vector<HistoryStep> found;
  for (const Arrival& arrival : query_.coming) found.push_back({{}, arrival.launch});
  found.push_back({{}, query_.last});
  Replay replay(*this, found);
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
  return found;
}

}  // namespace tbsched
