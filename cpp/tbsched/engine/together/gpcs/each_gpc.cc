#include "tbsched/engine/together/gpcs/each_gpc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <ranges>
#include <tuple>
#include <utility>

#include "tbsched/engine/together/gpcs/sums.h"

namespace tbsched {
namespace {

constexpr int32_t kMostBlocks = std::numeric_limits<int16_t>::max();  // that shares count
constexpr size_t kMostLooked = 10'000;
constexpr int64_t kLooksOfSm = 2;  // to find its shares, if these are known
constexpr int32_t kMostInVain = 30;
constexpr int64_t kTimesWider = 4;  // than the widest range of places that was proved
// In a range of places, at one GPC; and for each of these places, if they are many. Where some were
// looked at one by one, a range may take as long as its places.
constexpr int64_t kRoughLooks = 30'000;
constexpr int64_t kRoughLooksOfPlace = 6'000;
constexpr int64_t kMostRoughLooks = 1'200'000;
constexpr int64_t kMostLooksForPlaces = 12'000'000;
constexpr double kLeastPrice = 0.01;  // what a range of places matters at least

}  // namespace

struct EachGpc::Known {
  Known(const EachGpc& own, SmStates& states)
      : sms(own.device_, own.demands_, own.places_, own.asked_, states, own.effort_),
        market(own.places_, own.asked_, own.effort_) {}

  AskedSms sms;
  Market market;
  // For an allowance, of a GPC, and whether it is of one place.
  using KeyOfColumns = std::tuple<const Allowance*, Gpc, bool>;
  struct UpToCost {
    double most_cost;
    Columns columns;
  };
  std::map<KeyOfColumns, UpToCost> columns;
  const Allowance* of_shares = nullptr;
  // Looks at levels of several launches in ranges: how many since one was a proof, and the most
  // places of one that was.
  int32_t in_vain = 0;
  int64_t widest = 1;
  // Columns of one place: how many, and what they took.
  int64_t of_place = 0;
  int64_t looks_of_place = 0;
  std::map<std::vector<Gpc>, std::optional<Allowance>> by_shares;
  std::map<std::pair<std::vector<Gpc>, bool>, Looked> looked;

  void forget() {
    looked.clear();
    by_shares.clear();
    columns.clear();
    of_shares = nullptr;
    market.forget();
    sms.forget();
  }
};

EachGpc::EachGpc(const Model& model, const std::vector<Launch>& launches, const Demands& demands,
                 const std::vector<int32_t>& group, const Resident& resident,
                 const Arrived& arrived, std::array<SmStates, 2>& known, Effort& effort)
    : model_(model),
      device_(model.device()),
      launches_(launches),
      demands_(demands),
      resident_(resident),
      arrived_(arrived),
      all_states_(known),
      effort_(effort),
      places_(model, demands),
      held_up_(model, launches, demands) {
  for (int32_t launch = 0; std::cmp_less(launch, launches.size()); ++launch) {
    if (std::ranges::find(group, launch) == group.end()) asked_.leaving.push_back(launch);
  }
}

EachGpc::~EachGpc() = default;

bool EachGpc::finds_room(const std::vector<Comer>& coming, const int32_t last) {
  if (!is_counted(coming, last)) return false;
  ask(coming, last);
  return finds_room_while_some_wait({});
}

// Whether its places and blocks can be counted.
bool EachGpc::is_counted(const std::vector<Comer>& coming, const int32_t last) const {
  const auto waiting = static_cast<size_t>(
      std::ranges::count_if(arrived_.waiting, [](const int32_t blocks) { return blocks > 0; }));
  const bool few_wait = std::ranges::all_of(
      arrived_.waiting, [](const int32_t blocks) { return blocks <= kMostBlocks; });
  const auto may_come = [&](const Comer& comer) {
    return places_.way(comer.launch) != Way::other && launches_[comer.launch].blocks <= kMostBlocks;
  };
  return coming.size() + waiting <= kMostCounted && few_wait &&
         std::ranges::all_of(coming, may_come) && places_.way(last) != Way::other &&
         device_.spec.sms * device_.spec.blocks_per_sm <= kMostBlocks;
}

void EachGpc::ask(const std::vector<Comer>& coming, const int32_t last) {
  asked_.coming = coming;
  asked_.last = last;
  asked_.entering.clear();
  for (size_t k = 0; k < coming.size(); ++k) {
    if (coming[k].waits)
      add_entering(coming[k].launch, launches_[coming[k].launch].blocks, k + 1, k);
  }
  size_t place = coming.size();
  for (size_t k = 0; k < arrived_.order.size(); ++k) {
    if (arrived_.waiting[k] == 0) continue;
    add_entering(arrived_.order[k], arrived_.waiting[k], 0, place++);
  }
  asked_.leave_before_last = !asked_.entering.empty() || !only_gains(device_, demands_[last]);
}

void EachGpc::add_entering(const int32_t launch, const int32_t waiting, const size_t from,
                           const size_t place) {
  const bool in_tpcs = places_.way(launch) == Way::whole_tpcs;
  asked_.entering.push_back({.launch = launch,
                             .most = waiting,
                             .together = demands_[launch].cluster,
                             .on_tpc = in_tpcs ? device_.spec.sms_per_tpc : 1,
                             .from = from,
                             .place = place});
}

// Blocks of each wait until some of the others have come, and then no more: so those are held up,
// and not the ones behind them.
bool EachGpc::finds_room_while_some_wait(Held held) {
  const size_t stages = asked_.coming.size() + 1;
  if (held.size() == asked_.entering.size()) {
    const bool any = std::ranges::any_of(
        held, [](const auto& each) { return std::ranges::find(each, true) != each.end(); });
    if (any && !model_.order().on_own_sms) return false;
    held_ = std::move(held);
    if (finds_room_with(Gaps::counted)) return true;
    return known_->sms.gaps_matter() && finds_room_with(Gaps::looked_at);
  }
  const Entering& own = asked_.entering[held.size()];
  held.emplace_back(stages);
  if (!finds_room_while_some_wait(held)) return false;
  for (size_t stage = own.from; stage < stages; ++stage) {
    if (!held_up_.is_behind(own.launch, asked_.launch_at(stage))) continue;
    held.back()[stage] = true;
    if (come_later(own, held.back(), stage)) continue;
    if (!finds_room_while_some_wait(held)) return false;
  }
  return true;
}

// Whether those that are held up, up to this one, take nothing until then: so they might as well
// come when they are not held up any more, maybe after others, or never. That is asked, too.
bool EachGpc::come_later(const Entering& own, const std::vector<bool>& held,
                         const size_t stage) const {
  if (asked_.is_last(stage)) return false;
  for (size_t k = 0; k <= stage; ++k) {
    if (!held[k]) continue;
    for (int32_t sm = 0; sm < device_.spec.sms; ++sm) {
      const bool is_free = !demands_.holds(own.launch, sm);
      if (is_free && demands_.holds(asked_.launch_at(k), sm)) return false;
    }
  }
  return true;
}

bool EachGpc::finds_room_with(const Gaps gaps) {
  asked_.places.clear();
  for (const auto& [launch, waits] : asked_.coming) {
    const PlaceRange all = places_.all(launch);
    asked_.places.push_back(waits ? PlaceRange{all.last, all.last} : all);
  }
  SmStates& states = all_states_[static_cast<size_t>(gaps)];
  states.forget_if_many();
  known_ = std::make_unique<Known>(*this, states);
  try {
    for (int32_t sm = 0; sm < device_.spec.sms; ++sm) {
      OneSm first(device_, demands_.all(), gaps);
      for (const int32_t launch : arrived_.order) {
        for (int32_t k = 0; k < resident_.on_sm[sm][launch]; ++k) first.commit(launch);
      }
      for (const Entering& each : asked_.entering) first.reserve(each.launch, each.most_on_sm());
      known_->sms.add(std::move(first), role_of(sm));
    }
  } catch (const TooManyWays&) {
    return false;
  }
  return finds_room_in_ranges({});
}

bool EachGpc::is_taken(const int32_t sm, const size_t stage) const {
  for (size_t k = 0; k < asked_.entering.size(); ++k) {
    if (held_[k][stage] && demands_.holds(asked_.entering[k].launch, sm)) return false;
  }
  return demands_.may_be_on(asked_.launch_at(stage), sm);
}

// What leaves before a launch comes that does not use the SM may as well leave later. But clusters
// that take whole TPCs enter on all SMs of these before the same launch.
std::vector<int32_t> EachGpc::moving_together(const int32_t sm) const {
  if (std::ranges::none_of(asked_.entering, &Entering::in_tpcs)) {
    return {sm};
  }
  const std::vector<int32_t>& tpc_of_sm = device_.topology.tpc_of_sm;
  const auto same = std::ranges::equal_range(tpc_of_sm, tpc_of_sm[sm]);
  std::vector<int32_t> sms(same.size());
  std::iota(sms.begin(), sms.end(), static_cast<int32_t>(same.begin() - tpc_of_sm.begin()));
  return sms;
}

SmRole EachGpc::role_of(const int32_t sm) const {
  SmRole role{.takes = {}, .leaves = {}, .enters = {}, .is_quiet = is_quiet(sm)};
  const std::vector<int32_t> together = moving_together(sm);
  for (size_t stage = 0; stage <= asked_.coming.size(); ++stage) {
    role.takes.push_back(is_taken(sm, stage));
    role.leaves.push_back(
        std::ranges::any_of(together, [&](const int32_t each) { return is_taken(each, stage); }));
  }
  for (const Entering& each : asked_.entering) {
    role.enters.push_back(demands_.may_be_on(each.launch, sm));
  }
  return role;
}

// Blocks that wait have no room. So none enter where nothing can leave: an SM, or for clusters a
// GPC. Of a launch that is placed at once some have; and one behind another may.
bool EachGpc::is_quiet(const int32_t sm) const {
  const auto is_there = [](const Entering& each) { return each.from == 0; };
  const auto own = std::ranges::find_if(asked_.entering, is_there);
  if (own == asked_.entering.end() || demands_[own->launch].at_once) return false;
  if (std::ranges::count_if(asked_.entering, is_there) > 1) return false;
  const auto may_leave = [&](const int32_t each) {
    return std::ranges::any_of(
        asked_.leaving, [&](const int32_t launch) { return resident_.on_sm[each][launch] > 0; });
  };
  if (own->together == 1) return !may_leave(sm);
  const auto domain = std::ranges::find_if(device_.cluster_domains, [&](const auto& each) {
    return std::ranges::count(each.tpcs | std::views::join, sm) > 0;
  });
  return std::ranges::none_of(domain->tpcs | std::views::join, may_leave);
}

// Wherever in its range the last place of each launch is. `prices`: to begin with.
bool EachGpc::finds_room_in_ranges(Prices prices) {
  choose_exact();
  try {
    if (is_proved(prices)) return true;
  } catch (const TooManyWays&) {
    if (asked_.is_one_place() || effort_.is_spent()) return false;
  }
  return !asked_.is_one_place() && finds_room_in_halves(widest(prices), prices);
}

bool EachGpc::finds_room_in_halves(const size_t launch, const Prices& prices) {
  const PlaceRange whole = asked_.places[launch];
  const int32_t middle = places_.middle(asked_.coming[launch].launch, whole);
  asked_.places[launch] = {whole.first, middle};
  bool found = finds_room_in_ranges(prices);
  asked_.places[launch] = {middle + 1, whole.last};
  found = found && finds_room_in_ranges(prices);
  asked_.places[launch] = whole;
  return found;
}

size_t EachGpc::widest(const Prices& prices) const {
  std::vector<double> widths;
  for (size_t k = 0; k < asked_.places.size(); ++k) {
    const auto& [first, last] = asked_.places[k];
    widths.push_back((last - first) * (kLeastPrice + std::abs(prices[k])));
  }
  return std::ranges::max_element(widths) - widths.begin();
}

// Of clusters, at one level.
void EachGpc::choose_exact() {
  asked_.exact.clear();
  for (size_t k = 0; k < asked_.coming.size() && asked_.exact.size() < kMostExact; ++k) {
    const auto [launch, waits] = asked_.coming[k];
    if (places_.way(launch) == Way::single || (waits && demands_[launch].at_once)) continue;
    if (places_.is_one_level(launch, asked_.places[k])) asked_.exact.push_back(k);
  }
}

bool EachGpc::is_proved(Prices& prices) {
  effort_.spend(kLooksOfSm * device_.spec.sms);
  if (known_->sms.are_many() || known_->looked.size() > kMostLooked) known_->forget();
  std::vector<std::vector<Part>> parts;
  std::vector<Gpc> gpcs;
  for (const ClusterDomain& domain : device_.cluster_domains) {
    parts.push_back(known_->sms.parts_of(domain));
    Gpc& gpc = gpcs.emplace_back();
    for (const Part& part : parts.back()) gpc.shares.push_back(part.shares);
  }
  const std::optional<Allowance>& of_shares = unless_shares_fit(gpcs, prices);
  if (!of_shares) return true;
  prices = of_shares->prices;
  if (are_limited() && known_->of_shares != &*of_shares) known_->columns.clear();
  known_->of_shares = &*of_shares;
  const Allowance* allowance = &*of_shares;
  for (const Detail detail : details()) {
    for (size_t domain = 0; domain < gpcs.size(); ++domain) look_at(domain, detail, gpcs[domain]);
    const bool is_end = asked_.is_one_place() && detail == details().back();
    const auto [known, is_new] = known_->looked.try_emplace({gpcs, asked_.is_one_place()});
    Looked& looked = known->second;
    const Allowance& before = *allowance;
    allowance = &looked.allowance;
    if (!is_new && looked.result == Looked::Result::proves) return true;
    if (!is_new && looked.result == Looked::Result::at_too_many) throw TooManyWays{};
    if (!is_new && !is_end) continue;
    const bool is_rough =
        detail == Detail::levels && asked_.exact.size() > 1 && !asked_.is_one_place();
    if (is_rough && known_->in_vain > kMostInVain &&
        asked_.count_places() > kTimesWider * known_->widest) {
      throw TooManyWays{};
    }
    known_->in_vain += is_rough ? 1 : 0;
    const auto columns = unless_columns_fit(gpcs, before, looked);
    if (looked.result == Looked::Result::proves) {
      if (is_rough) {
        known_->in_vain = 0;
        known_->widest = std::max(known_->widest, asked_.count_places());
      }
      return true;
    }
    if (!is_end) continue;
    const auto found = too_little_room(columns, total(), wanted(), looked.allowance, effort_);
    if (!found) {
      looked.result = Looked::Result::proves;
      return true;
    }
    doubtful_.push_back(known_->sms.history(parts, *found));
  }
  return false;
}

// Wherever in a range places are, shares and columns may be the same. So they are looked at once.
const std::optional<Allowance>& EachGpc::unless_shares_fit(const std::vector<Gpc>& gpcs,
                                                           const Prices& first) {
  const auto known = known_->by_shares.find(gpcs);
  if (known != known_->by_shares.end()) return known->second;
  auto found = known_->market.unless_surely_fits(gpcs, total(), wanted(), first);
  return known_->by_shares.emplace(gpcs, std::move(found)).first->second;
}

// The small GPCs first: what their columns cost more than the cheapest way, others may not.
std::vector<const Columns*> EachGpc::unless_columns_fit(const std::vector<Gpc>& gpcs,
                                                        const Allowance& before, Looked& looked) {
  std::vector<size_t> order(gpcs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](const size_t k) { return gpcs[k].shares.size(); });
  std::vector<const Columns*> found(gpcs.size());
  double excess = before.excess;
  for (const size_t domain : order) {
    const double cheapest = before.cheapest[domain];
    const Columns& columns = columns_of(gpcs[domain], before, cheapest + excess);
    excess -= std::max(0.0, cheapest_column(columns, before.prices).cost - cheapest);
    if (excess < 0) {
      looked.result = Looked::Result::proves;
      return {};
    }
    found[domain] = &columns;
  }
  auto after = unless_surely_fits(found, total(), wanted(), before.prices);
  looked.result = after ? Looked::Result::in_vain : Looked::Result::proves;
  // Columns are known by its address: so it does not change.
  if (after && looked.allowance.cheapest.empty()) looked.allowance = std::move(*after);
  return found;
}

// Blocks, or clusters, of the last launch.
int32_t EachGpc::wanted() const {
  return launches_[asked_.last].blocks / demands_[asked_.last].cluster;
}

std::vector<EachGpc::Detail> EachGpc::details() const {
  if (asked_.exact.empty()) return {Detail::blocks};
  if (!asked_.is_one_place()) return {Detail::blocks, Detail::levels};
  return {Detail::blocks, Detail::levels, Detail::all};
}

// Where one launch comes, few columns serve many places. With more, few are cheap enough.
bool EachGpc::are_limited() const { return asked_.coming.size() > 1; }

const Columns& EachGpc::columns_of(const Gpc& gpc, const Allowance& allowance,
                                   const double most_cost) {
  Wanted sought{.most = total().blocks, .most_room = wanted(), .prices = allowance.prices};
  if (are_limited()) sought.most_cost = most_cost;
  sought.most_looks = most_looks(gpc);
  const auto [at, is_new] = known_->columns.try_emplace(
      {are_limited() ? &allowance : nullptr, gpc, asked_.is_one_place()}, Known::UpToCost{});
  Known::UpToCost& known = at->second;
  if (is_new || known.most_cost < sought.most_cost) {
    known.most_cost = -std::numeric_limits<double>::infinity();
    const int64_t before = effort_.left();
    known.columns = columns(places_, asked_, gpc, sought, effort_);
    known.most_cost = sought.most_cost;
    if (asked_.is_one_place()) {
      ++known_->of_place;
      known_->looks_of_place += before - effort_.left();
    }
  }
  return known.columns;
}

// To look closely in wide ranges, or at many launches, takes long, and rules out little.
int64_t EachGpc::most_looks(const Gpc& gpc) const {
  const bool is_fast = gpc.levels.empty() && asked_.coming.size() <= 2;
  if (is_fast || asked_.is_one_place()) return std::numeric_limits<int64_t>::max();
  const int64_t places = asked_.count_places();
  const int64_t rough = std::clamp(places * kRoughLooksOfPlace, kRoughLooks, kMostRoughLooks);
  if (known_->of_place == 0) return rough;
  const int64_t of_each = known_->looks_of_place / known_->of_place;
  return std::max(rough, std::min(places * of_each, kMostLooksForPlaces));
}

// Those that come have all their blocks. Of those that wait there may be fewer.
Total EachGpc::total() const {
  Total found;
  for (size_t k = 0; k < asked_.coming.size(); ++k) {
    found.blocks[k] = static_cast<int16_t>(launches_[asked_.coming[k].launch].blocks);
    found.is_exact[k] = !asked_.coming[k].waits;
  }
  for (const Entering& each : asked_.entering) {
    found.blocks[each.place] = static_cast<int16_t>(each.most);
  }
  return found;
}

void EachGpc::look_at(const size_t domain, const Detail detail, Gpc& gpc) const {
  gpc.levels.clear();
  gpc.exactly = detail == Detail::all;
  if (detail == Detail::blocks) return;
  for (const size_t stage : asked_.exact) {
    const int32_t launch = asked_.coming[stage].launch;
    const auto& [first, last] = asked_.places[stage];
    gpc.levels.push_back({.parts = places_.parts(launch),
                          .in_tpcs = places_.way(launch) == Way::whole_tpcs,
                          .least_passes = places_.passes(first, launch, domain),
                          .most_passes = places_.passes(last, launch, domain)});
  }
}

}  // namespace tbsched
