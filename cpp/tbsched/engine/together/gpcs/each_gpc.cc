#include "tbsched/engine/together/gpcs/each_gpc.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "tbsched/engine/together/gpcs/sums.h"
#include "tbsched/hardware/gpu/clusters.h"

namespace tbsched {
namespace {

constexpr int32_t kMostBlocks = std::numeric_limits<int16_t>::max();  // that shares count

}  // namespace

// What matters of an SM.
struct EachGpc::SmKey {
  Multiset blocks;              // that are there
  std::vector<bool> takes;      // blocks of those that come
  std::vector<bool> is_before;  // the places where they may end, if as much room

  auto operator<=>(const SmKey&) const = default;
};

EachGpc::EachGpc(const Model& model, const std::vector<Launch>& launches, const Demands& demands,
                 const std::vector<int32_t>& group, const Resident& resident,
                 const Arrived& arrived, Effort& effort, const std::function<void()>& interrupted)
    : device_(model.device()),
      launches_(launches),
      demands_(demands),
      resident_(resident),
      arrived_(arrived),
      effort_(effort),
      interrupted_(interrupted),
      places_(model, demands) {
  for (int32_t launch = 0; std::cmp_less(launch, launches.size()); ++launch) {
    if (std::ranges::find(group, launch) == group.end()) asked_.leaving.push_back(launch);
  }
}

bool EachGpc::finds_room(const std::vector<int32_t>& coming, const int32_t last) {
  const auto is_there = [&](const int32_t launch) { return resident_.is_there[launch]; };
  const auto has_places = [&](const int32_t launch) { return places_.way(launch) != Way::other; };
  const auto is_counted = [&](const int32_t launch) {
    return launches_[launch].blocks <= kMostBlocks;
  };
  if (!std::ranges::all_of(asked_.leaving, is_there) || coming.size() > kMostComing ||
      !std::ranges::all_of(coming, has_places) || !has_places(last) ||
      !std::ranges::all_of(coming, is_counted) ||
      device_.spec.sms * device_.spec.blocks_per_sm > kMostBlocks) {
    return false;
  }
  asked_.coming = coming;
  asked_.last = last;
  asked_.leave_before_last = !only_gains(device_, demands_[last]);
  try {
    return finds_room_with(Gaps::counted);
  } catch (const GapsMatter&) {
    return finds_room_with(Gaps::looked_at);
  }
}

bool EachGpc::finds_room_with(const Gaps gaps) {
  asked_.places.clear();
  for (const int32_t launch : asked_.coming) asked_.places.push_back(places_.all(launch));
  sms_.clear();
  for (const Multiset& blocks : resident_.on_sm) {
    OneSm& sm = sms_.emplace_back(device_, demands_.all(), gaps);
    for (const int32_t launch : arrived_.order) {
      for (int32_t block = 0; block < blocks[launch]; ++block) sm.commit(launch);
    }
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
  BlocksOfEach blocks = {};
  for (size_t k = 0; k < asked_.coming.size(); ++k) {
    blocks[k] = static_cast<int16_t>(launches_[asked_.coming[k]].blocks);
  }
  KnownShares known_shares;
  std::map<Gpc, Columns> known;
  std::vector<std::vector<Part>> parts;
  std::vector<const Columns*> gpcs;
  for (size_t domain = 0; domain < device_.cluster_domains.size(); ++domain) {
    parts.push_back(parts_of(device_.cluster_domains[domain], known_shares));
    const auto [at, is_new] = known.try_emplace(gpc_of(domain, parts.back()));
    if (is_new) at->second = columns(places_, asked_, at->first, blocks, wanted, effort_);
    gpcs.push_back(&at->second);
  }
  if (surely_fits(gpcs, blocks, wanted)) return true;
  if (!asked_.is_one_place()) return false;
  const auto found = too_little_room(gpcs, blocks, wanted);
  if (found) doubt(parts, *found);
  return !found;
}

bool EachGpc::goes_to(const int32_t launch, const ClusterDomain& domain) const {
  return demands_[launch].cluster == 1 || takes_clusters(domain, demands_[launch], device_.spec);
}

bool EachGpc::by_tpc() const {
  const auto takes_tpcs = [&](const int32_t launch) {
    return places_.way(launch) == Way::whole_tpcs;
  };
  return takes_tpcs(asked_.last) || std::ranges::any_of(asked_.coming, takes_tpcs);
}

EachGpc::SmKey EachGpc::key_of(const int32_t sm, const ClusterDomain& domain) const {
  SmKey key{.blocks = resident_.on_sm[sm], .takes = {}, .is_before = {}};
  const auto takes = [&](const int32_t launch) {
    return goes_to(launch, domain) && demands_[launch].may_use(sm);
  };
  for (size_t k = 0; k < asked_.coming.size(); ++k) {
    const int32_t launch = asked_.coming[k];
    key.takes.push_back(takes(launch));
    if (places_.way(launch) != Way::single) continue;
    for (const int32_t place : {asked_.places[k].first, asked_.places[k].last}) {
      key.is_before.push_back(places_.is_preferred(place, launch, sm));
    }
  }
  key.takes.push_back(takes(asked_.last));
  return key;
}

// In which order the SMs of a TPC are does not matter.
EachGpc::Part EachGpc::part_of(std::vector<int32_t> sms, const ClusterDomain& domain,
                               KnownShares& known) {
  std::ranges::sort(sms, {}, [&](const int32_t sm) { return key_of(sm, domain); });
  std::vector<SmKey> keys;
  for (const int32_t sm : sms) keys.push_back(key_of(sm, domain));
  const auto [at, is_new] = known.try_emplace(keys);
  if (is_new) {
    std::vector<ShareOfSm> own;
    for (size_t k = 0; k < sms.size(); ++k) own.push_back({sms[k], &sms_[sms[k]], keys[k].takes});
    at->second = shares(places_, asked_, own, effort_);
  }
  return {&at->second, std::move(sms)};
}

std::vector<EachGpc::Part> EachGpc::parts_of(const ClusterDomain& domain, KnownShares& known) {
  std::vector<Part> parts;
  for (const std::vector<int32_t>& tpc : domain.tpcs) {
    if (by_tpc()) {
      parts.push_back(part_of(tpc, domain, known));
      continue;
    }
    for (const int32_t sm : tpc) parts.push_back(part_of({sm}, domain, known));
  }
  return parts;
}

Gpc EachGpc::gpc_of(const size_t domain, const std::vector<Part>& parts) const {
  Gpc gpc{.shares = {},
          .takes_last = goes_to(asked_.last, device_.cluster_domains[domain]),
          .least_passes = 0,
          .most_passes = 0};
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
  std::vector<Arrival> history;
  for (const int32_t launch : asked_.coming) history.push_back({{}, launch});
  history.push_back({{}, asked_.last});
  for (Arrival& arrival : history) arrival.leaving.resize(arrived_.order.size());
  for (size_t k = 0; k < parts.size(); ++k) {
    int32_t at = columns[k]->choice;
    for (size_t part = parts[k].size(); part-- > 0;) {
      const Choice& choice = (*columns[k]->choices)[at];
      for (const Gone& gone : choice.share->second) {
        add(gone, parts[k][part].sms[gone.sm], history);
      }
      at = choice.before;
    }
  }
  for (Arrival& arrival : history) {
    for (std::vector<int32_t>& blocks : arrival.leaving) std::ranges::sort(blocks);
  }
  doubtful_.push_back(std::move(history));
}

void EachGpc::add(const Gone& gone, const int32_t sm, std::vector<Arrival>& history) const {
  const size_t place = std::ranges::find(arrived_.order, gone.launch) - arrived_.order.begin();
  const std::vector<int32_t>& sms = arrived_.sms[place];
  int32_t left = gone.number;
  for (size_t block = 0; block < sms.size(); ++block) {
    if (sms[block] != sm || left-- > 0) continue;
    history[gone.before].leaving[place].push_back(static_cast<int32_t>(block));
    return;
  }
}

}  // namespace tbsched
