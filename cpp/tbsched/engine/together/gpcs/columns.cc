#include "tbsched/engine/together/gpcs/columns.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include "tbsched/engine/together/gpcs/flat_map.h"
#include "tbsched/hardware/sm/units.h"

namespace tbsched {
namespace {

constexpr size_t kMostPartials = 200'000;
constexpr size_t kMostChoices = 8'000'000;
constexpr size_t kPartInRanges = 2;  // of these
constexpr int64_t kSumsOfLook = 4;
constexpr int64_t kSumsAtOnce = 1'000;  // of which effort is told
constexpr int32_t kMostTakings = 60;    // of several launches together

// What has been taken of the first SMs, or TPCs, of a GPC.
struct PartialBlocks {
  BlocksOfEach blocks = {};
  int16_t left_out = 0;       // see room_of
  BlocksOfEach entered = {};  // of clusters that waited and take whole TPCs, the most of one TPC
  std::array<int8_t, kMostCounted> missing = {};  // of each launch, less than its cluster has
  // TPCs from which clusters that waited are barred, up to one more than may be.
  std::array<int8_t, kMostCounted> barred = {};
};
template <size_t kExact>
struct Partial : PartialBlocks {
  std::array<LevelPartial, kExact> exact = {};
};
template <>
struct Partial<0> : PartialBlocks {  // smaller: an array of none is not
  static constexpr std::array<LevelPartial, 0> exact = {};
};

// A share, and what matters of it. Of those that are alike the one with the least room.
struct Offered {
  Share share;
  const Shares::value_type* own;

  int32_t room() const { return own->second.room; }
};

struct PricedOffer {
  double cost;
  const Offered* offered;
};

// The same, the cheapest first: for each price of room, and where it is left out.
struct Offers {
  std::vector<Offered> all;
  std::vector<std::vector<PricedOffer>> kept;
  std::vector<PricedOffer> left_out;
};

// The share of an SM, or TPC, and which one is before that.
struct Choice {
  int32_t before;
  const Shares::value_type* share;
};

struct BestPartial {
  int32_t room;
  int32_t choice;
};

// Places that some SMs, or TPCs, may take.
struct Taken {
  int32_t least = 0;
  int32_t most = 0;
};

// Clusters that waited and take whole TPCs: if more of the GPC bar them, none has entered.
struct InTpcs {
  Entering entering;
  int32_t most_barred;
};

template <size_t kExact>
class Finder {
 public:
  Finder(const LaunchPlaces& places, const Asked& asked, const Gpc& gpc, const Wanted& wanted,
         Effort& effort)
      : places_(places),
        asked_(asked),
        gpc_(gpc),
        wanted_(wanted),
        effort_(effort),
        parts_of_last_(places.parts(asked.last)),
        leaves_out_(places.way(asked.last) == Way::whole_tpcs ? parts_of_last_ - 1 : 0),
        is_one_place_(asked.is_one_place()) {
    const auto tpcs = static_cast<int32_t>(gpc.shares.size());
    for (const Entering& each : asked.entering) {
      if (each.in_tpcs()) enter_tpcs_.push_back({each, tpcs - places.parts(each.launch)});
    }
    for (size_t k = 0; k < asked.coming.size(); ++k) {
      const int32_t launch = asked.coming[k].launch;
      most_missing_[k] = places.way(launch) == Way::single ? 0 : places.parts(launch) - 1;
    }
    for (auto& behind : taken_behind_) behind.resize(gpc.shares.size() + 1);
    for (size_t k = gpc.shares.size(); k-- > 0;) {
      for (size_t each = 0; each < kExact; ++each) {
        Taken own = {.least = std::numeric_limits<int32_t>::max(), .most = 0};
        for (const auto& [share, least] : *gpc.shares[k]) {
          most_before_[each] = std::max<int32_t>(most_before_[each], share.exact[each].before);
          own.least = std::min<int32_t>(own.least, share.exact[each].taken);
          own.most = std::max<int32_t>(own.most, share.exact[each].taken);
        }
        const Taken& behind = taken_behind_[each][k + 1];
        taken_behind_[each][k] = {behind.least + own.least, behind.most + own.most};
      }
    }
  }

  Columns run() {
    int32_t all = 1;
    for (size_t k = 0; k < kExact; ++k) {
      int32_t most = gpc_.levels[k].most_crowded(most_before_[k]);
      if (most >= 0 && k > 0 && all * (most + 1) > (gpc_.exactly ? kMostTakings : 1)) {
        most = LevelTaking::kAny;
      }
      all *= std::max(1, most + 1);
      ways_to_take_[k] = gpc_.levels[k].takings(most);
    }
    costs_behind_ = least_costs_behind();
    each_taking<0>();
    spend();
    return std::move(found_);
  }

 private:
  using State = Partial<kExact>;
  using States = FlatMap<State, BestPartial>;

  template <size_t kNext>
  void each_taking() {
    if constexpr (kNext == kExact) {
      look();
    } else {
      for (const LevelTaking& taking : ways_to_take_[kNext]) {
        takings_[kNext] = taking;
        each_taking<kNext + 1>();
      }
    }
  }

  void look() {
    choices_.clear();
    States states;
    states.try_emplace(State{}, {0, -1});
    for (size_t k = 0; k < gpc_.shares.size(); ++k) {
      const Offers& offers = offered_by(*gpc_.shares[k]);
      States next;
      for (const auto& [state, best] : states) {
        add_each(state, best, offers, k, next);
        if (sums_ >= kSumsAtOnce) spend();
        if (are_too_many(next)) throw TooManyWays{};
      }
      states = std::move(next);
    }
    for (const auto& [state, best] : states) {
      if (may_end(state)) keep(state, best);
    }
  }

  bool are_too_many(const States& states) const {
    const size_t part = is_one_place_ ? 1 : kPartInRanges;
    return states.size() > kMostPartials / part || choices_.size() > kMostChoices / part;
  }

  // With each share of the next SM, or TPC, that may be cheap enough.
  void add_each(const State& state, const BestPartial& best, const Offers& offers,
                const size_t number, States& next) {
    ++sums_;
    const double blocks = cost_of(state.blocks, wanted_.prices);
    const auto each = [&](const std::vector<PricedOffer>& offered, const int32_t left_out) {
      const double most = wanted_.most_cost - blocks - room_price(left_out) * best.room -
                          costs_behind_[left_out][number + 1];
      for (const auto& [cost, own] : offered) {
        if (cost > most) break;
        ++sums_;
        add(state, best, *own, number, left_out, next);
      }
    };
    each(offers.kept[state.left_out], state.left_out);
    if (state.left_out < leaves_out_) each(offers.left_out, state.left_out + 1);
  }

  // That does not depend on how many clusters crowd.
  const Offers& offered_by(const Shares& shares) {
    std::array<bool, kExact> any = {};
    for (size_t k = 0; k < kExact; ++k) any[k] = takings_[k].clusters == LevelTaking::kAny;
    const auto [at, is_new] = offered_.try_emplace({&shares, any});
    Offers& offers = at->second;
    if (!is_new) return offers;
    std::map<Share, const Shares::value_type*> found;
    for (const auto& each : shares) {
      const auto [known, is_first] = found.try_emplace(what_matters(each.first), &each);
      if (!is_first && each.second.room < known->second->second.room) known->second = &each;
    }
    for (const auto& [share, own] : found) offers.all.push_back({share, own});
    const auto priced = [&](const double price) {
      std::vector<PricedOffer> all;
      for (const Offered& each : offers.all) all.push_back({share_cost(*each.own, price), &each});
      std::ranges::sort(all, {}, &PricedOffer::cost);
      return all;
    };
    for (int32_t left_out = 0; left_out <= leaves_out_; ++left_out) {
      offers.kept.push_back(priced(room_price(left_out)));
    }
    offers.left_out = priced(0);
    return offers;
  }

  Share what_matters(const Share& share) const {
    Share found = {.blocks = share.blocks, .missing = {}, .exact = {}, .barred = 0};
    for (size_t k = 0; k < asked_.coming.size(); ++k) {
      if (most_missing_[k] > 0 && !is_known(k)) found.missing[k] = share.missing[k];
    }
    for (size_t k = 0; k < kExact; ++k) {
      found.exact[k] = gpc_.levels[k].what_matters(share.exact[k], takings_[k]);
    }
    if (!enter_tpcs_.empty()) found.barred = share.barred;
    return found;
  }

  void spend() {
    const int64_t looks = sums_ * static_cast<int64_t>(2 + kExact) / kSumsOfLook;
    sums_ = 0;
    effort_.spend(looks);
    looks_ += looks;
    if (looks_ > wanted_.most_looks) throw TooManyWays{};
  }

  // A place that is left for clusters of the last launch costs so much at least, if so many TPCs
  // are left out. See room_of: a rest of places costs nothing.
  double room_price(const int32_t left_out) const { return 1.0 / (parts_of_last_ - left_out); }
  double share_cost(const Shares::value_type& own, const double room_price) const {
    return cost_of(own.first.blocks, wanted_.prices) + room_price * own.second.room;
  }
  std::vector<std::vector<double>> least_costs_behind() const {
    std::vector<std::vector<double>> found(leaves_out_ + 1);
    for (int32_t left_out = leaves_out_; left_out >= 0; --left_out) {
      std::vector<double>& own = found[left_out];
      own.resize(gpc_.shares.size() + 1, room_price(left_out) - 1);
      for (size_t k = gpc_.shares.size(); k-- > 0;) {
        double kept = std::numeric_limits<double>::infinity();
        double not_kept = kept;
        for (const auto& each : *gpc_.shares[k]) {
          kept = std::min(kept, share_cost(each, room_price(left_out)));
          not_kept = std::min(not_kept, share_cost(each, 0));
        }
        own[k] = own[k + 1] + kept;
        if (left_out == leaves_out_) continue;
        own[k] = std::min(own[k], found[left_out + 1][k + 1] + not_kept);
      }
    }
    return found;
  }

  // `left_out`: then, with this one or without it.
  void add(const State& state, const BestPartial& best, const Offered& offered, const size_t number,
           const int32_t left_out, States& next) {
    const Share& share = offered.share;
    const BlocksOfEach blocks = sum(state.blocks, share.blocks);
    if (!is_within(blocks, wanted_.most) || !may_take_all(state, share, number)) return;
    const bool is_left_out = left_out > state.left_out;
    if (is_left_out && offered.room() <= room_of(left_out, best.room)) return;
    State then = state;
    then.blocks = blocks;
    then.left_out = static_cast<int16_t>(left_out);
    if (!add_missing(share, then) || !add_entered(share, then)) return;
    const int32_t room = best.room + (is_left_out ? 0 : offered.room());
    if (room_of(left_out, room) >= wanted_.most_room) return;
    each_exact<0>(share, then, [&](const State& own) {
      const auto [there, is_new] = next.try_emplace(own, {room, 0});
      if (!is_new && there.room <= room) return;
      there = {room, static_cast<int32_t>(choices_.size())};
      choices_.push_back({best.choice, offered.own});
    });
  }

  // Whether so many clusters can be taken, where that is given.
  bool may_take_all(const State& state, const Share& share, const size_t number) const {
    for (size_t k = 0; k < kExact; ++k) {
      if (takings_[k].clusters < 0) continue;
      const auto& [least, most] = taken_behind_[k][number + 1];
      const int32_t needed = takings_[k].clusters * gpc_.levels[k].parts;
      const int32_t taken = state.exact[k].taken + share.exact[k].taken;
      if (taken + most < needed || taken + least > needed) return false;
    }
    return true;
  }

  bool add_missing(const Share& share, State& state) const {
    for (size_t k = 0; k < asked_.coming.size(); ++k) {
      if (most_missing_[k] == 0 || is_known(k)) continue;
      const int32_t missing = state.missing[k] + share.missing[k];
      if (missing > most_missing_[k]) return false;
      state.missing[k] = static_cast<int8_t>(missing);
    }
    return true;
  }

  // A cluster has no more than one block on an SM, and enters where so many TPCs have room at once.
  bool add_entered(const Share& share, State& state) const {
    for (const auto& [each, most_barred] : enter_tpcs_) {
      int16_t& most = state.entered[each.place];
      most = std::max<int16_t>(most, static_cast<int16_t>(share.blocks[each.place] / each.on_tpc));
      if (most * each.together > each.most) return false;
      int8_t& barred = state.barred[each.place];
      if (is_barred(share.barred, each.place) && barred <= most_barred) ++barred;
      if (barred > most_barred && most > 0) return false;
    }
    return true;
  }

  // Of an exact launch more is known than what is missing.
  bool is_known(const size_t stage) const {
    const auto exact = asked_.exact_at(stage);
    return exact && *exact < kExact && takings_[*exact].clusters != LevelTaking::kAny;
  }

  template <size_t kNext, typename Call>
  void each_exact(const Share& share, State& state, const Call& call) const {
    if constexpr (kNext == kExact) {
      call(state);
    } else {
      std::array<LevelPartial, 2> found;
      const LevelPartial before = state.exact[kNext];
      const size_t ways = gpc_.levels[kNext].after(before, share.exact[kNext], takings_[kNext],
                                                   gpc_.exactly, found);
      for (size_t way = 0; way < ways; ++way) {
        state.exact[kNext] = found[way];
        each_exact<kNext + 1>(share, state, call);
      }
      state.exact[kNext] = before;
    }
  }

  bool may_end(const State& state) const {
    for (size_t k = 0; k < kExact; ++k) {
      if (!gpc_.levels[k].may_end(state.exact[k], takings_[k])) return false;
    }
    return true;
  }

  void keep(const State& state, const BestPartial& best) {
    const int32_t room = room_of(state.left_out, best.room);
    const BlocksOfEach blocks = whole_clusters(state);
    if (room >= wanted_.most_room || !is_within(blocks, wanted_.most)) return;
    const auto [column, is_new] = found_.try_emplace(blocks, {});
    if (is_new || room < column.room) column = {room, shares_to(best.choice)};
  }

  std::vector<const Shares::value_type*> shares_to(const int32_t choice) const {
    std::vector<const Shares::value_type*> found;
    for (int32_t at = choice; at >= 0; at = choices_[at].before) {
      found.push_back(choices_[at].share);
    }
    std::ranges::reverse(found);
    return found;
  }

  // A cluster of the last launch takes a place of each of some TPCs, say p. With k TPCs left out,
  // each cluster has p - k places on the others at least. So no more clusters fit than these have
  // places for. And just so many do if those are left out that have more places than that.
  int32_t room_of(const int32_t left_out, const int32_t places) const {
    return places / (parts_of_last_ - left_out);
  }

  // Of those that wait no fewer have come, and whole clusters: of each no more than one block on an
  // SM, where they take whole TPCs.
  BlocksOfEach whole_clusters(const State& state) const {
    BlocksOfEach blocks = state.blocks;
    for (const Entering& each : asked_.entering) {
      int16_t& own = blocks[each.place];
      const int32_t clusters =
          std::max<int32_t>(ceil_div(int32_t{own}, each.together), state.entered[each.place]);
      own = static_cast<int16_t>(clusters * each.together);
    }
    return blocks;
  }

  const LaunchPlaces& places_;
  const Asked& asked_;
  const Gpc& gpc_;
  const Wanted& wanted_;
  Effort& effort_;
  const int32_t parts_of_last_;
  const int32_t leaves_out_;  // TPCs at most
  const bool is_one_place_;
  std::vector<InTpcs> enter_tpcs_;
  std::array<int32_t, kMostCounted> most_missing_ = {};
  std::array<int32_t, kExact> most_before_ = {};              // of one SM, or TPC
  std::array<std::vector<Taken>, kExact> taken_behind_ = {};  // by those from each one on
  std::array<std::vector<LevelTaking>, kExact> ways_to_take_ = {};
  std::array<LevelTaking, kExact> takings_ = {};
  std::map<std::pair<const Shares*, std::array<bool, kExact>>, Offers> offered_;
  // Of each SM, or TPC, and those behind it, at least; by how many are left out before.
  std::vector<std::vector<double>> costs_behind_;
  int64_t sums_ = 0;  // since effort was told of them
  int64_t looks_ = 0;
  std::vector<Choice> choices_;
  Columns found_;
};

}  // namespace

bool is_within(const BlocksOfEach& blocks, const BlocksOfEach& most) {
  bool found = true;
  for (size_t k = 0; k < kMostCounted; ++k) found = found && blocks[k] <= most[k];
  return found;
}

BlocksOfEach sum(const BlocksOfEach& one, const BlocksOfEach& other) {
  BlocksOfEach found;
  for (size_t k = 0; k < kMostCounted; ++k) found[k] = static_cast<int16_t>(one[k] + other[k]);
  return found;
}

double cost_of(const BlocksOfEach& blocks, const Prices& prices) {
  double found = 0;
  for (size_t k = 0; k < kMostCounted; ++k) found += prices[k] * blocks[k];
  return found;
}

Columns columns(const LaunchPlaces& places, const Asked& asked, const Gpc& gpc,
                const Wanted& wanted, Effort& effort) {
  if (std::ranges::any_of(gpc.shares, &Shares::empty)) return {};
  switch (gpc.levels.size()) {
    case 0:
      return Finder<0>(places, asked, gpc, wanted, effort).run();
    case 1:
      return Finder<1>(places, asked, gpc, wanted, effort).run();
    case 2:
      return Finder<2>(places, asked, gpc, wanted, effort).run();
    default:
      return Finder<kMostExact>(places, asked, gpc, wanted, effort).run();
  }
}

}  // namespace tbsched
