// A bound of the room that is left for the last launch, whatever the others take, from prices.
//
// With any prices for their blocks, what is cheapest in each part by itself, room and blocks
// together, costs no more than any parts that add up. Less the price of all blocks that is a bound
// of the room: Lagrangian duality.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "tbsched/engine/together/gpcs/columns.h"
#include "tbsched/engine/together/gpcs/places.h"
#include "tbsched/engine/together/gpcs/shares.h"

namespace tbsched {

// So many blocks of each launch, or at most so many.
struct Total {
  BlocksOfEach blocks = {};
  std::array<bool, kMostCounted> is_exact = {};
};

// Of ways that leave too little room, if there are any: with these prices no GPC costs more than
// the cheapest way there, and `excess`.
struct Allowance {
  Prices prices = {};
  double excess = std::numeric_limits<double>::infinity();
  std::vector<double> cheapest;  // of each GPC
};

// What some parts take, and what that costs.
struct Bought {
  double cost = 0;
  Prices blocks = {};
};

Bought cheapest_column(const Columns& columns, const Prices& prices);

// Nothing: at least `wanted` blocks, or clusters, of the last launch find room, whatever columns
// add up to so many blocks. `first`: prices to begin with.
std::optional<Allowance> unless_surely_fits(const std::vector<const Columns*>& gpcs,
                                            const Total& total, int32_t wanted,
                                            const Prices& first);

// The same, whatever shares of SMs, or TPCs, do: that is less exact, and needs no columns.
class Market {
 public:
  // All outlive it.
  Market(const LaunchPlaces& places, const Asked& asked, Effort& effort)
      : places_(places), asked_(asked), effort_(effort) {}

  // Throws TooManyWays.
  std::optional<Allowance> unless_surely_fits(const std::vector<Gpc>& gpcs, const Total& total,
                                              int32_t wanted, const Prices& first);
  // Before shares are forgotten.
  void forget() { offers_.clear(); }

 private:
  struct Offer {
    Prices blocks;
    double room;
  };
  struct Offers {
    std::vector<Offer> all;
    int32_t most_room = 0;
  };
  using Counts = std::map<const Offers*, int32_t>;

  bool is_sum() const;
  const Offers& offers_of(const Shares& shares);
  Offers found_offers(const Shares& shares) const;
  Bought cheapest_of(const Counts& shares, const Prices& prices, int32_t wanted) const;
  Bought cheapest_of(const Counts& shares, const Prices& prices, double of_room, double cap) const;

  const LaunchPlaces& places_;
  const Asked& asked_;
  Effort& effort_;
  std::map<const Shares*, Offers> offers_;
};

}  // namespace tbsched
