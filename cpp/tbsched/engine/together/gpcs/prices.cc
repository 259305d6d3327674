#include "tbsched/engine/together/gpcs/prices.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace tbsched {
namespace {

constexpr int32_t kRounds = 100;
constexpr int32_t kRoundsToGain = 5;  // or the goal is set nearer
constexpr double kLeastGoal = 0.02;   // of what is missing
constexpr double kMargin = 1e-6;      // what rounding may add
constexpr int64_t kOffersOfLook = 50;

void add(Bought& sum, const Bought& other, const double times) {
  sum.cost += times * other.cost;
  for (size_t k = 0; k < kMostCounted; ++k) sum.blocks[k] += times * other.blocks[k];
}

constexpr Bought kNothing = {.cost = std::numeric_limits<double>::infinity(), .blocks = {}};

// Prices go up where too much is bought, with the step of Polyak for a goal that comes nearer where
// it is not reached. Where less may be bought no price is negative. `cheapest`: of each GPC.
std::optional<Allowance> raise_prices(
    const std::function<std::vector<Bought>(const Prices&)>& cheapest, const Total& total,
    const int32_t wanted, const Prices& first) {
  Prices prices = first;
  Allowance best;
  int32_t last_gain = 0;
  double goal = 0;  // of how much less may be missing
  for (int32_t round = 0; round < kRounds; ++round) {
    Bought found;
    Allowance here{.prices = prices, .excess = 0, .cheapest = {}};
    for (const Bought& gpc : cheapest(prices)) {
      add(found, gpc, 1);
      here.cheapest.push_back(gpc.cost);
    }
    double bound = found.cost;
    Prices excess = {};
    double square = 0;
    for (size_t k = 0; k < kMostCounted; ++k) {
      bound -= prices[k] * total.blocks[k];
      excess[k] = found.blocks[k] - total.blocks[k];
      if (!total.is_exact[k] && prices[k] == 0) excess[k] = std::max(0.0, excess[k]);
      square += excess[k] * excess[k];
    }
    const double missing = wanted - 1 + kMargin - bound;
    if (missing < 0) return std::nullopt;
    here.excess = missing;
    if (here.excess < best.excess) {
      best = std::move(here);
      last_gain = round;
      if (goal == 0) goal = best.excess + 1;
    } else if (round - last_gain == kRoundsToGain) {
      goal /= 2;
      last_gain = round;
      if (goal < kLeastGoal * best.excess) break;
    }
    if (square == 0) break;
    const double step = (missing - best.excess + goal) / square;
    for (size_t k = 0; k < kMostCounted; ++k) {
      prices[k] += step * excess[k];
      if (!total.is_exact[k]) prices[k] = std::max(0.0, prices[k]);
    }
  }
  return best;
}

// Of those that differ from the others in one number alone, those that may be cheapest: the lower
// hull of what they cost without that number.
template <typename Offer>
std::vector<Offer> hull(std::vector<Offer> all, const size_t launch, const bool adds_up) {
  const auto others = [&](const Offer& offer) {
    Prices found = offer.blocks;
    found[launch] = adds_up ? 0 : offer.room;
    return found;
  };
  const auto is_above = [&](const Offer& low, const Offer& middle, const Offer& high) {
    const double part =
        (middle.blocks[launch] - low.blocks[launch]) / (high.blocks[launch] - low.blocks[launch]);
    return middle.room >= low.room + part * (high.room - low.room);
  };
  std::ranges::sort(all, [&](const Offer& one, const Offer& other) {
    return std::tuple(others(one), one.blocks[launch]) <
           std::tuple(others(other), other.blocks[launch]);
  });
  std::vector<Offer> found;
  size_t first = 0;  // of those that are alike
  for (const Offer& offer : all) {
    if (!found.empty() && others(found.back()) != others(offer)) first = found.size();
    while (found.size() >= first + 2 && is_above(found[found.size() - 2], found.back(), offer)) {
      found.pop_back();
    }
    found.push_back(offer);
  }
  return found;
}

// For each, once.
template <typename Key, typename Call>
std::vector<Bought> of_each(const std::vector<Key>& keys, const Call& call) {
  std::map<Key, Bought> known;
  std::vector<Bought> found;
  for (const Key& key : keys) {
    const auto [at, is_new] = known.try_emplace(key);
    if (is_new) at->second = call(key);
    found.push_back(at->second);
  }
  return found;
}

}  // namespace

Bought cheapest_column(const Columns& columns, const Prices& prices) {
  Bought found = kNothing;
  for (const auto& [blocks, column] : columns) {
    const double cost = column.room + cost_of(blocks, prices);
    if (cost >= found.cost) continue;
    found.cost = cost;
    std::ranges::copy(blocks, found.blocks.begin());
  }
  return found;
}

std::optional<Allowance> unless_surely_fits(const std::vector<const Columns*>& gpcs,
                                            const Total& total, const int32_t wanted,
                                            const Prices& first) {
  const auto cheapest = [&](const Prices& prices) {
    return of_each(gpcs,
                   [&](const Columns* const columns) { return cheapest_column(*columns, prices); });
  };
  return raise_prices(cheapest, total, wanted, first);
}

bool Market::is_sum() const {
  return places_.way(asked_.last) == Way::single || places_.parts(asked_.last) == 1;
}

std::optional<Allowance> Market::unless_surely_fits(const std::vector<Gpc>& gpcs,
                                                    const Total& total, const int32_t wanted,
                                                    const Prices& first) {
  std::vector<Counts> counts;
  for (const Gpc& gpc : gpcs) {
    Counts& own = counts.emplace_back();
    for (const Shares* const shares : gpc.shares) ++own[&offers_of(*shares)];
  }
  const auto cheapest = [&](const Prices& prices) {
    return of_each(counts, [&](const Counts& gpc) { return cheapest_of(gpc, prices, wanted); });
  };
  return raise_prices(cheapest, total, wanted, first);
}

const Market::Offers& Market::offers_of(const Shares& shares) {
  const auto [at, is_new] = offers_.try_emplace(&shares);
  if (is_new) at->second = found_offers(shares);
  return at->second;
}

Market::Offers Market::found_offers(const Shares& shares) const {
  std::map<BlocksOfEach, int32_t> rooms;
  Offers found;
  for (const auto& [share, least] : shares) {
    const auto [at, is_new] = rooms.try_emplace(share.blocks, least.room);
    at->second = std::min(at->second, least.room);
    found.most_room = std::max(found.most_room, least.room);
  }
  for (const auto& [blocks, room] : rooms) {
    Offer& offer = found.all.emplace_back(Offer{{}, static_cast<double>(room)});
    std::ranges::copy(blocks, offer.blocks.begin());
  }
  for (size_t launch = 0; launch < kMostCounted; ++launch) {
    found.all = hull(std::move(found.all), launch, is_sum());
  }
  return found;
}

// Clusters that need several parts have no sum of room. So for each number of them that may fit,
// or range of such numbers, the parts have little room, and that has a price, too.
Bought Market::cheapest_of(const Counts& shares, const Prices& prices, const int32_t wanted) const {
  if (is_sum()) {
    return cheapest_of(shares, prices, 1, std::numeric_limits<double>::infinity());
  }
  const int32_t parts = places_.parts(asked_.last);
  int32_t all_room = 0;
  for (const auto& [each, count] : shares) all_room += count * each->most_room;
  const int32_t most = std::min(wanted, all_room / parts);
  Bought found = cheapest_of(shares, prices, 0, 0);
  found.cost += most;
  for (int32_t first = 0; first < most;) {
    const int32_t next = std::min(most, first + 1 + first / 4);
    Bought best = {.cost = -std::numeric_limits<double>::infinity(), .blocks = {}};
    const bool in_tpcs = places_.way(asked_.last) == Way::whole_tpcs;
    const double cap = in_tpcs ? next : std::numeric_limits<double>::infinity();
    for (const double price : {0.5, 1.0, 2.0}) {
      const double of_room = price / parts;
      Bought own = cheapest_of(shares, prices, of_room, cap);
      own.cost += first - of_room * (next * parts - 1);
      if (own.cost > best.cost) best = own;
    }
    if (best.cost < found.cost) found = best;
    first = next;
  }
  return found;
}

// Where room has a price, up to so much of it.
Bought Market::cheapest_of(const Counts& shares, const Prices& prices, const double of_room,
                           const double cap) const {
  Bought found;
  for (const auto& [each, count] : shares) {
    effort_.spend(1 + std::ssize(each->all) / kOffersOfLook);
    double least = std::numeric_limits<double>::infinity();
    const Offer* best = nullptr;
    for (const Offer& offer : each->all) {
      double cost = of_room == 0 ? 0 : of_room * std::min(offer.room, cap);
      for (size_t k = 0; k < kMostCounted; ++k) cost += prices[k] * offer.blocks[k];
      if (cost >= least) continue;
      least = cost;
      best = &offer;
    }
    add(found, best == nullptr ? kNothing : Bought{.cost = least, .blocks = best->blocks}, count);
  }
  return found;
}

}  // namespace tbsched
