#include "tbsched/engine/together/gpcs/each_gpc.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <ranges>
#include <utility>

#include "tbsched/engine/together/gpcs/sums.h"
#include "tbsched/hardware/sm/units.h"

namespace tbsched {
namespace {

constexpr int32_t kMostTurns = 4;  // in which it is tried how clusters enter
constexpr int32_t kMostBlocks = std::numeric_limits<int16_t>::max();  // that shares count

}  // namespace

// What matters of an SM.
struct EachGpc::SmKey {
  bool is_quiet;
  Multiset blocks;              // that are there
  std::vector<bool> takes;      // blocks of those that come
  std::vector<bool> is_before;  // the places where they may end, if as much room

  auto operator<=>(const SmKey&) const = default;
};

EachGpc::EachGpc(const Model& model, const std::vector<Launch>& launches, const Demands& demands,
                 const std::vector<int32_t>& group, const Resident& resident,
                 const Arrived& arrived, std::array<SmStates, 2>& known, Effort& effort,
                 const std::function<void()>& interrupted)
    : device_(model.device()),
      launches_(launches),
      demands_(demands),
      resident_(resident),
      arrived_(arrived),
      all_known_(known),
      effort_(effort),
      interrupted_(interrupted),
      places_(model, demands) {
  for (int32_t launch = 0; std::cmp_less(launch, launches.size()); ++launch) {
    if (std::ranges::find(group, launch) == group.end()) asked_.leaving.push_back(launch);
  }
  for (size_t k = 0; k < arrived.order.size(); ++k) {
    if (arrived.waiting[k] == 0) continue;
    ++waiting_;
    asked_.waiting = arrived.order[k];
    asked_.most_enter = arrived.waiting[k];
    asked_.enter_together = demands_[asked_.waiting].cluster;
  }
  find_quiet_sms();
}

// Blocks that wait have no room. So none enter where nothing can leave: an SM, or for clusters a
// GPC. Of a launch that is placed at once some have.
void EachGpc::find_quiet_sms() {
  const auto may_leave = [&](const int32_t sm) {
    return std::ranges::any_of(
        asked_.leaving, [&](const int32_t launch) { return resident_.on_sm[sm][launch] > 0; });
  };
  quiet_.assign(resident_.on_sm.size(), false);
  if (waiting_ == 0 || demands_[asked_.waiting].at_once) return;
  for (const ClusterDomain& domain : device_.cluster_domains) {
    const auto sms = domain.tpcs | std::views::join;
    const bool some_leave = std::ranges::any_of(sms, may_leave);
    const bool is_single = asked_.enter_together == 1;
    for (const int32_t sm : sms) quiet_[sm] = is_single ? !may_leave(sm) : !some_leave;
  }
}

bool EachGpc::finds_room(const std::vector<int32_t>& coming, const int32_t last,
                         const std::vector<bool>& held) {
  const auto has_places = [&](const int32_t launch) { return places_.way(launch) != Way::other; };
  const auto is_counted = [&](const int32_t launch) {
    return launches_[launch].blocks <= kMostBlocks;
  };
  if (waiting_ > 1 || asked_.most_enter > kMostBlocks || coming.size() + waiting_ > kMostComing ||
      !std::ranges::all_of(coming, has_places) || !has_places(last) ||
      !std::ranges::all_of(coming, is_counted) ||
      device_.spec.sms * device_.spec.blocks_per_sm > kMostBlocks) {
    return false;
  }
  asked_.coming = coming;
  asked_.last = last;
  asked_.leave_before_last = waiting_ > 0 || !only_gains(device_, demands_[last]);
  // Blocks wait until some of these have come, and then no more: so those are held, and not the
  // others.
  std::vector<bool> until(held.size());
  if (!finds_room_while_held(until)) return false;
  for (size_t k = 0; k < held.size(); ++k) {
    until[k] = held[k];
    if (held[k] && !finds_room_while_held(until)) return false;
  }
  return true;
}

bool EachGpc::finds_room_while_held(const std::vector<bool>& held) {
  held_ = held;
  try {
    return finds_room_with(Gaps::counted);
  } catch (const GapsMatter&) {
    return finds_room_with(Gaps::looked_at);
  }
}

bool EachGpc::finds_room_with(const Gaps gaps) {
  asked_.places.clear();
  for (const int32_t launch : asked_.coming) asked_.places.push_back(places_.all(launch));
  known_ = &all_known_[static_cast<size_t>(gaps)];
  known_->forget_if_many();
  sms_.clear();
  for (const Multiset& blocks : resident_.on_sm) {
    OneSm& sm = sms_.emplace_back(device_, demands_.all(), gaps);
    for (const int32_t launch : arrived_.order) {
      for (int32_t block = 0; block < blocks[launch]; ++block) sm.commit(launch);
    }
    if (waiting_ > 0) sm.reserve(asked_.waiting, asked_.most_enter);
  }
  return finds_room_in_ranges();
}

// Wherever in its range the last place of each launch is.
bool EachGpc::finds_room_in_ranges() {
  interrupted_();
  choose_exact();
  try {
    if (is_proved()) return true;
  } catch (const TooManyWays&) {
    if (asked_.is_one_place() || effort_.left < 0) return false;
  }
  return !asked_.is_one_place() && finds_room_in_halves(widest());
}

bool EachGpc::finds_room_in_halves(const size_t launch) {
  const PlaceRange whole = asked_.places[launch];
  const int32_t middle = std::midpoint(whole.first, whole.last);
  asked_.places[launch] = {whole.first, middle};
  bool found = finds_room_in_ranges();
  asked_.places[launch] = {middle + 1, whole.last};
  found = found && finds_room_in_ranges();
  asked_.places[launch] = whole;
  return found;
}

size_t EachGpc::widest() const {
  const auto width = [](const PlaceRange& range) { return range.last - range.first; };
  return std::ranges::max_element(asked_.places, {}, width) - asked_.places.begin();
}

// Of clusters, at one level.
void EachGpc::choose_exact() {
  asked_.exact = -1;
  for (size_t k = 0; k < asked_.coming.size() && asked_.exact < 0; ++k) {
    const int32_t launch = asked_.coming[k];
    if (places_.way(launch) == Way::single) continue;
    if (places_.is_one_level(launch, asked_.places[k])) asked_.exact = static_cast<int32_t>(k);
  }
}

bool EachGpc::is_proved() {
  const int32_t wanted = launches_[asked_.last].blocks / demands_[asked_.last].cluster;
  const BlocksOfEach blocks = all_blocks();
  KnownShares known_shares;
  std::vector<std::vector<Part>> parts;
  std::vector<Gpc> gpcs;
  for (size_t domain = 0; domain < device_.cluster_domains.size(); ++domain) {
    parts.push_back(parts_of(device_.cluster_domains[domain], known_shares));
    gpcs.push_back(gpc_of(domain, parts.back()));
  }
  // Those that come have all their blocks; of the one that waits there may be fewer.
  const Total total{.blocks = blocks, .exact = asked_.coming.size()};
  if (surely_fits(places_, asked_.last, gpcs, total, wanted, effort_)) return true;
  std::map<Gpc, Columns> known;
  std::vector<const Columns*> each;
  for (const Gpc& gpc : gpcs) {
    const auto [at, is_new] = known.try_emplace(gpc);
    if (is_new) at->second = columns(places_, asked_, gpc, blocks, wanted, effort_);
    each.push_back(&at->second);
  }
  if (surely_fits(each, total, wanted)) return true;
  if (!asked_.is_one_place()) return false;
  const auto found = too_little_room(each, total, wanted, effort_);
  if (found) doubt(parts, *found);
  return !found;
}

BlocksOfEach EachGpc::all_blocks() const {
  BlocksOfEach blocks = {};
  for (size_t k = 0; k < asked_.coming.size(); ++k) {
    blocks[k] = static_cast<int16_t>(launches_[asked_.coming[k]].blocks);
  }
  if (waiting_ > 0) blocks[asked_.coming.size()] = static_cast<int16_t>(asked_.most_enter);
  return blocks;
}

bool EachGpc::by_tpc() const {
  const auto takes_tpcs = [&](const int32_t launch) {
    return places_.way(launch) == Way::whole_tpcs;
  };
  return takes_tpcs(asked_.last) || std::ranges::any_of(asked_.coming, takes_tpcs) ||
         (waiting_ > 0 && takes_tpcs(asked_.waiting));
}

EachGpc::SmKey EachGpc::key_of(const int32_t sm) const {
  SmKey key{.is_quiet = quiet_[sm], .blocks = resident_.on_sm[sm], .takes = {}, .is_before = {}};
  const bool is_held = waiting_ > 0 && demands_.holds(asked_.waiting, sm);
  const auto takes = [&](const int32_t launch, const bool held) {
    return demands_.may_be_on(launch, sm) && !(held && is_held);
  };
  for (size_t k = 0; k < asked_.coming.size(); ++k) {
    const int32_t launch = asked_.coming[k];
    key.takes.push_back(takes(launch, held_[k]));
    if (places_.way(launch) != Way::single) continue;
    for (const int32_t place : {asked_.places[k].first, asked_.places[k].last}) {
      key.is_before.push_back(places_.is_preferred(place, launch, sm));
    }
  }
  key.takes.push_back(takes(asked_.last, held_.back()));
  key.takes.push_back(waiting_ > 0 && takes(asked_.waiting, false));
  return key;
}

// In which order the SMs of a TPC are does not matter.
EachGpc::Part EachGpc::part_of(std::vector<int32_t> sms, KnownShares& known) {
  std::ranges::sort(sms, {}, [&](const int32_t sm) { return key_of(sm); });
  std::vector<SmKey> keys;
  for (const int32_t sm : sms) keys.push_back(key_of(sm));
  const auto [at, is_new] = known.try_emplace(keys);
  if (is_new) {
    std::vector<ShareOfSm> own;
    for (size_t k = 0; k < sms.size(); ++k) {
      own.push_back({sms[k], known_->of(sms_[sms[k]]), keys[k].is_quiet, keys[k].takes});
    }
    at->second = shares(places_, asked_, own, *known_, effort_);
  }
  return {&at->second, std::move(sms)};
}

std::vector<EachGpc::Part> EachGpc::parts_of(const ClusterDomain& domain, KnownShares& known) {
  std::vector<Part> parts;
  for (const std::vector<int32_t>& tpc : domain.tpcs) {
    if (by_tpc()) {
      parts.push_back(part_of(tpc, known));
      continue;
    }
    for (const int32_t sm : tpc) parts.push_back(part_of({sm}, known));
  }
  return parts;
}

Gpc EachGpc::gpc_of(const size_t domain, const std::vector<Part>& parts) const {
  Gpc gpc;
  for (const Part& part : parts) gpc.shares.push_back(part.shares);
  if (asked_.exact >= 0) {
    const int32_t launch = asked_.coming[asked_.exact];
    const PlaceRange& range = asked_.places[asked_.exact];
    gpc.least_passes = places_.passes(range.first, launch, domain);
    gpc.most_passes = places_.passes(range.last, launch, domain);
  }
  return gpc;
}

void EachGpc::doubt(const std::vector<std::vector<Part>>& parts,
                    const std::vector<const Column*>& columns) {
  for (int32_t turn = 0; turn < (asked_.enter_together > 1 ? kMostTurns : 1); ++turn) {
    std::vector<Arrival> history;
    for (const int32_t launch : asked_.coming) history.push_back({{}, launch});
    history.push_back({{}, asked_.last});
    for (size_t k = 0; k < parts.size(); ++k) add(parts[k], *columns[k], turn, history);
    doubtful_.push_back(std::move(history));
  }
}

// Clusters enter whole, where single blocks were counted. So more blocks leave, for each that is
// missing one: from the TPCs on which nothing else happens, in turn.
void EachGpc::add(const std::vector<Part>& parts, const Column& column, const int32_t turn,
                  std::vector<Arrival>& history) const {
  int32_t entered = 0;
  size_t stage = 0;  // in which the last one entered
  std::vector<bool> is_unchanged(parts.size(), true);
  int32_t at = column.choice;
  for (size_t part = parts.size(); part-- > 0;) {
    const Choice& choice = (*column.choices)[at];
    for (const Act& act : choice.share->second.acts) {
      if (act.what != Act::What::comes) is_unchanged[part] = false;
      if (act.what != Act::What::enters) continue;
      ++entered;
      stage = static_cast<size_t>(act.before);
    }
    add(choice.share->second.acts, parts[part].sms, history);
    at = choice.before;
  }
  int32_t missing = ceil_div(entered, asked_.enter_together) * asked_.enter_together - entered;
  const size_t first = parts.size() * static_cast<size_t>(turn) / kMostTurns;
  for (size_t part = 0; part < parts.size(); ++part) {
    const size_t own = (first + part) % parts.size();
    if (!is_unchanged[own]) continue;
    for (const int32_t sm : parts[own].sms) {
      if (missing == 0 || resident_.on_sm[sm][asked_.waiting] == 0) continue;
      history[stage].leaving.push_back({asked_.waiting, sm, 0});
      --missing;
    }
  }
}

// The same once more, to know which block is which.
void EachGpc::add(const std::vector<Act>& acts, const std::vector<int32_t>& sms,
                  std::vector<Arrival>& history) const {
  std::vector<OneSm> own;
  for (const int32_t sm : sms) own.push_back(sms_[sm]);
  for (const Act& act : acts) {
    OneSm& sm = own[act.sm];
    if (act.what == Act::What::leaves) {
      const int32_t number = sm.distinct(act.launch)[act.which];
      history[act.before].leaving.push_back({act.launch, sms[act.sm], number});
      sm.leave(act.launch, number);
    } else if (act.what == Act::What::enters) {
      sm.enter(act.launch, sm.may_enter(act.launch)[act.which]);
    } else {
      for (int32_t k = 0; k < act.which; ++k) sm.commit(act.launch);
    }
  }
}

}  // namespace tbsched
