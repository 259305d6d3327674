#include "tbsched/engine/together/gpcs/asked_sms.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tbsched/hardware/sm/units.h"

namespace tbsched {

AskedSms::AskedSms(const Device& device, const Demands& demands, const LaunchPlaces& places,
                   const Asked& asked, SmStates& states, Effort& effort)
    : places_(places),
      asked_(asked),
      states_(states),
      behaviours_(device, demands, places, asked, states, effort),
      shares_(demands, places, asked, behaviours_, effort) {}

void AskedSms::add(OneSm first, SmRole role) {
  const int32_t state = states_.of(first);
  const int32_t number = behaviours_.role(std::move(role));
  const int32_t outlook = behaviours_.outlook(state, 0, number);
  sms_.push_back({std::move(first), state, number, outlook});
}

bool AskedSms::by_tpc() const {
  const auto takes_tpcs = [&](const int32_t launch) {
    return places_.way(launch) == Way::whole_tpcs;
  };
  return takes_tpcs(asked_.last) ||
         std::ranges::any_of(asked_.coming, takes_tpcs, &Comer::launch) ||
         std::ranges::any_of(asked_.entering, takes_tpcs, &Entering::launch);
}

uint32_t AskedSms::preferred(const int32_t sm) const {
  uint32_t found = 0;
  for (size_t k = 0; k < asked_.coming.size(); ++k) {
    const int32_t launch = asked_.coming[k].launch;
    if (places_.way(launch) != Way::single) continue;
    const auto& [first, last] = asked_.places[k];
    if (places_.is_preferred(first, launch, sm)) found |= 1U << (2 * k);
    if (places_.is_preferred(last, launch, sm)) found |= 2U << (2 * k);
  }
  return found;
}

// In which order the SMs of a TPC are does not matter.
Part AskedSms::part_of(const std::vector<int32_t>& sms) {
  std::vector<std::pair<ShareOfSm, int32_t>> sorted;
  for (const int32_t sm : sms) {
    sorted.emplace_back(ShareOfSm{sms_[sm].outlook, preferred(sm)}, sm);
  }
  std::ranges::sort(sorted);
  Part part;
  for (const auto& [own, sm] : sorted) {
    part.own.push_back(own);
    part.sms.push_back(sm);
  }
  part.shares = &shares_.of(part.own);
  return part;
}

std::vector<Part> AskedSms::parts_of(const ClusterDomain& domain) {
  std::vector<Part> parts;
  for (const std::vector<int32_t>& tpc : domain.tpcs) {
    if (by_tpc()) {
      parts.push_back(part_of(tpc));
      continue;
    }
    for (const int32_t sm : tpc) parts.push_back(part_of({sm}));
  }
  return parts;
}

// What happens on the SMs of a GPC, once more, to know which block is which.
class AskedSms::Replay {
 public:
  Replay(AskedSms& all, std::vector<Arrival>& history)
      : all_(all), history_(history), entered_(history.size()) {}

  void play(const Part& part, const LeastRoom& least) {
    for (const int32_t sm : part.sms) now_.emplace(sm, all_.sms_[sm]);
    play(0, part.sms, part.own, least);
  }

  // Those that take whole TPCs enter on all SMs of these. So where fewer have entered, blocks leave
  // for others to enter.
  void make_whole(const std::vector<Part>& parts) {
    for (const Entering& what : all_.asked_.entering) {
      if (!what.in_tpcs()) continue;
      for (size_t stage = 0; stage < entered_.size(); ++stage) {
        for (const Part& part : parts) make_whole(stage, what, part.sms);
      }
    }
  }

 private:
  using Sms = std::vector<int32_t>;

  void play(const size_t stage, const Sms& sms, const std::vector<ShareOfSm>& own,
            const LeastRoom& least) {
    for (size_t k = 0; k < least.of_each.size(); ++k) {
      play(stage, {sms[k]}, {own[k]}, *least.of_each[k]);
    }
    for (size_t k = 0; k < least.turns.size(); ++k) play(stage, sms[k], least.turns[k]);
    if (least.then == nullptr) return;
    Sms sorted;
    for (const size_t k : all_.shares_.order_after(own, least.turns)) sorted.push_back(sms[k]);
    play(stage + 1, sorted, all_.shares_.after(own, least.turns), *least.then);
  }

  void play(const size_t stage, const int32_t number, const LeastRoom::Turn& turn) {
    Sm& sm = now_.at(number);
    const auto [moves, state] = all_.behaviours_.moves(sm.state, stage, sm.role, turn.prospect);
    for (const auto& [launch, kind, enters] : moves) {
      if (enters) {
        enter(stage, number, launch, kind);
      } else {
        leave(stage, number, launch, kind);
      }
    }
    sm.state = state;
    const int32_t launch = all_.asked_.launch_at(stage);
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

  void make_whole(const size_t stage, const Entering& what, const Sms& tpc) {
    int32_t most = 0;
    for (const int32_t sm : tpc) most = std::max(most, entered(stage, what.launch, sm));
    for (const int32_t sm : tpc) {
      for (int32_t k = entered(stage, what.launch, sm); k < most; ++k) swap(stage, what, sm);
    }
  }

  // One block leaves, and another one of the same launch enters: after which the SM is as it was,
  // if that can be.
  void swap(const size_t stage, const Entering& what, const int32_t number) {
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

  AskedSms& all_;
  std::vector<Arrival>& history_;
  // Of each launch on each SM, how many of its blocks have entered; before each that comes.
  std::vector<std::map<std::pair<int32_t, int32_t>, int32_t>> entered_;
  std::map<int32_t, Sm> now_;
};

std::vector<Arrival> AskedSms::history(const std::vector<std::vector<Part>>& parts,
                                       const std::vector<const Column*>& columns) {
  std::vector<Arrival> found;
  for (const Comer& comer : asked_.coming) found.push_back({{}, comer.launch});
  found.push_back({{}, asked_.last});
  for (size_t gpc = 0; gpc < parts.size(); ++gpc) {
    Replay replay(*this, found);
    for (size_t part = 0; part < parts[gpc].size(); ++part) {
      replay.play(parts[gpc][part], columns[gpc]->shares[part]->second);
    }
    replay.make_whole(parts[gpc]);
  }
  return found;
}

}  // namespace tbsched
