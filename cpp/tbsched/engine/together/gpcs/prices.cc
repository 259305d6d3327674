#include "tbsched/engine/together/gpcs/prices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

namespace tbsched {
namespace {

constexpr int32_t kRounds = 100;
constexpr double kMargin = 1e-6;  // what rounding may add
constexpr int64_t kOffersOfLook = 50;

using Prices = std::array<double, kMostComing>;

// Of some parts, or all.
struct Cheapest {
  double cost = 0;
  Prices blocks = {};

  void add(const Cheapest& other, const double times) {
    cost += times * other.cost;
    for (size_t k = 0; k < kMostComing; ++k) blocks[k] += times * other.blocks[k];
  }
};
constexpr Cheapest kNothing = {.cost = std::numeric_limits<double>::infinity(), .blocks = {}};

// Prices go up where too much is bought, with the step of Polyak. Where less may be bought no price
// is negative.
bool surely_fits(const std::function<Cheapest(const Prices&)>& cheapest_of, const Total& total,
                 const int32_t wanted) {
  Prices prices = {};
  for (int32_t round = 0; round < kRounds; ++round) {
    const Cheapest found = cheapest_of(prices);
    double bound = found.cost;
    Prices excess = {};
    double square = 0;
    for (size_t k = 0; k < kMostComing; ++k) {
      bound -= prices[k] * total.blocks[k];
      excess[k] = found.blocks[k] - total.blocks[k];
      if (k >= total.exact && prices[k] == 0) excess[k] = std::max(0.0, excess[k]);
      square += excess[k] * excess[k];
    }
    if (bound > wanted - 1 + kMargin) return true;
    if (square == 0) return false;
    const double step = (wanted - bound) / square;
    for (size_t k = 0; k < kMostComing; ++k) {
      prices[k] += step * excess[k];
      if (k >= total.exact) prices[k] = std::max(0.0, prices[k]);
    }
  }
  return false;
}

Cheapest cheapest_column(const Columns& columns, const Prices& prices) {
  Cheapest found = kNothing;
  for (const auto& [blocks, column] : columns) {
    double cost = column.room;
    for (size_t k = 0; k < kMostComing; ++k) cost += prices[k] * blocks_of(blocks, k);
    if (cost >= found.cost) continue;
    found.cost = cost;
    for (size_t k = 0; k < kMostComing; ++k) found.blocks[k] = blocks_of(blocks, k);
  }
  return found;
}

// SM by SM, or TPC by TPC.
class SmMarket {
 public:
  SmMarket(const LaunchPlaces& places, const int32_t last, const std::vector<Gpc>& gpcs,
           const int32_t wanted, Effort& effort)
      : way_(places.way(last)), parts_(places.parts(last)), wanted_(wanted), effort_(effort) {
    for (const Gpc& gpc : gpcs) {
      Counts counts;
      for (const Shares* const shares : gpc.shares) {
        ++counts[shares];
        const auto [at, is_new] = offers_.try_emplace(shares);
        if (is_new) at->second = offers_of(*shares);
      }
      ++gpcs_[std::move(counts)];
    }
  }

  Cheapest cheapest(const Prices& prices) const {
    Cheapest found;
    for (const auto& [shares, count] : gpcs_) found.add(cheapest_of(shares, prices), count);
    return found;
  }

 private:
  struct Offer {
    Prices blocks;
    double room;
  };
  struct Offers {
    std::vector<Offer> all;
    int32_t most_room = 0;
  };
  using Counts = std::map<const Shares*, int32_t>;

  static Offers offers_of(const Shares& shares) {
    std::map<BlocksOfEach, int32_t> least;
    Offers found;
    for (const auto& [share, how] : shares) {
      const auto [at, is_new] = least.try_emplace(share.blocks, how.room);
      at->second = std::min(at->second, how.room);
      found.most_room = std::max(found.most_room, how.room);
    }
    for (const auto& [blocks, room] : least) {
      Offer& offer = found.all.emplace_back(Offer{{}, static_cast<double>(room)});
      std::ranges::copy(blocks, offer.blocks.begin());
    }
    return found;
  }

  // Clusters that need several parts have no sum of room. So for each number of them that may fit,
  // or range of such numbers, the parts have little room, and that has a price, too.
  Cheapest cheapest_of(const Counts& shares, const Prices& prices) const {
    const bool is_sum = way_ == Way::single || parts_ == 1;
    if (is_sum) return cheapest_of(shares, prices, 1, std::numeric_limits<double>::infinity());
    int32_t all_room = 0;
    for (const auto& [each, count] : shares) all_room += count * offers_.at(each).most_room;
    const int32_t most = std::min(wanted_, all_room / parts_);
    Cheapest found = cheapest_of(shares, prices, 0, 0);
    found.cost += most;
    for (int32_t first = 0; first < most;) {
      const int32_t next = std::min(most, first + 1 + first / 4);
      Cheapest best = {.cost = -std::numeric_limits<double>::infinity(), .blocks = {}};
      const double cap = way_ == Way::whole_tpcs ? next : std::numeric_limits<double>::infinity();
      for (const double price : {0.5, 1.0, 2.0}) {
        const double of_room = price / parts_;
        Cheapest own = cheapest_of(shares, prices, of_room, cap);
        own.cost += first - of_room * (next * parts_ - 1);
        if (own.cost > best.cost) best = own;
      }
      if (best.cost < found.cost) found = best;
      first = next;
    }
    return found;
  }

  // Where room has a price, up to so much of it.
  Cheapest cheapest_of(const Counts& shares, const Prices& prices, const double of_room,
                       const double cap) const {
    Cheapest found;
    for (const auto& [each, count] : shares) {
      const std::vector<Offer>& offers = offers_.at(each).all;
      effort_.spend(1 + std::ssize(offers) / kOffersOfLook);
      double least = std::numeric_limits<double>::infinity();
      const Offer* best = nullptr;
      for (const Offer& offer : offers) {
        double cost = of_room == 0 ? 0 : of_room * std::min(offer.room, cap);
        for (size_t k = 0; k < kMostComing; ++k) cost += prices[k] * offer.blocks[k];
        if (cost >= least) continue;
        least = cost;
        best = &offer;
      }
      found.add(best == nullptr ? kNothing : Cheapest{.cost = least, .blocks = best->blocks},
                count);
    }
    return found;
  }

  const Way way_;
  const int32_t parts_;  // that a cluster of the last launch needs
  const int32_t wanted_;
  Effort& effort_;
  std::map<Counts, int32_t> gpcs_;
  std::map<const Shares*, Offers> offers_;
};

}  // namespace

bool surely_fits(const std::vector<const Columns*>& gpcs, const Total& total,
                 const int32_t wanted) {
  std::map<const Columns*, int32_t> counts;
  for (const Columns* const columns : gpcs) ++counts[columns];
  const auto cheapest = [&](const Prices& prices) {
    Cheapest found;
    for (const auto& [columns, count] : counts) found.add(cheapest_column(*columns, prices), count);
    return found;
  };
  return surely_fits(cheapest, total, wanted);
}

bool surely_fits(const LaunchPlaces& places, const int32_t last, const std::vector<Gpc>& gpcs,
                 const Total& total, const int32_t wanted, Effort& effort) {
  const SmMarket market(places, last, gpcs, wanted, effort);
  return surely_fits([&](const Prices& prices) { return market.cheapest(prices); }, total, wanted);
}

}  // namespace tbsched
