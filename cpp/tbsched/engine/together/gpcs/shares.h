// What launches take of one SM, or of one TPC, and what is left for another one: in every way in
// which blocks of outsiders may have left before.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tbsched/engine/together/gpcs/asked.h"
#include "tbsched/engine/together/gpcs/effort.h"
#include "tbsched/engine/together/gpcs/levels.h"
#include "tbsched/engine/together/gpcs/places.h"
#include "tbsched/engine/together/gpcs/sm/behaviours.h"

namespace tbsched {

struct Share {
  BlocksOfEach blocks = {};
  // Of clusters: places before its last level that it did not take; of whole TPCs, 1 if any.
  BlocksOfEach missing = {};
  std::array<LevelShare, kMostExact> exact = {};  // of each exact launch
  Barred barred = 0;                              // from the SM, or from one of the TPC

  auto operator<=>(const Share&) const = default;
};

// The least room for the last launch, and a way to get there: of each SM what happened before a
// launch came, how many of its blocks it took, and then the same of the next launch.
struct LeastRoom {
  struct Turn {
    Prospect prospect;
    int32_t taken = 0;
  };
  int32_t room = 0;
  std::vector<Turn> turns;
  const LeastRoom* then = nullptr;  // none: it was the last one
  // Where SMs do not depend on each other, of each by itself; then there is nothing of the above.
  std::vector<const LeastRoom*> of_each;
};
using Shares = std::map<Share, LeastRoom>;

// An SM of a share: its outlook, and for the last launches that come whether it is preferred to the
// first place where that may end, or is it, and the same of the last place: two bits each, the next
// launch in the lowest ones.
struct ShareOfSm {
  int32_t outlook;
  uint32_t preferred;

  auto operator<=>(const ShareOfSm&) const = default;
};

// All shares of one question, kept while the places change. The functions throw TooManyWays.
class AllShares {
 public:
  // All outlive it.
  AllShares(const Demands& demands, const LaunchPlaces& places, const Asked& asked,
            Behaviours& behaviours, Effort& effort)
      : demands_(demands),
        places_(places),
        asked_(asked),
        behaviours_(behaviours),
        effort_(effort) {}

  // Of SMs, in order. They remain until all are forgotten.
  const Shares& of(const std::vector<ShareOfSm>& sms);
  bool are_many() const { return count_ > kMany; }
  void forget();
  // In which order the SMs of a share are after a turn.
  std::vector<size_t> order_after(const std::vector<ShareOfSm>& sms,
                                  const std::vector<LeastRoom::Turn>& turns) const;
  std::vector<ShareOfSm> after(const std::vector<ShareOfSm>& sms,
                               const std::vector<LeastRoom::Turn>& turns) const;

 private:
  class Explorer;
  static constexpr size_t kMany = 2'000'000;

  const Shares& from(size_t stage, const std::vector<ShareOfSm>& sms);
  bool are_tied(size_t stage) const;
  Shares joined(size_t stage, const std::vector<ShareOfSm>& sms);
  std::optional<Share> of_both(const Share& one, const Share& other) const;
  int32_t room_of(const std::vector<int32_t>& sms) const;
  void spend(int64_t looks);
  std::vector<int32_t> key(size_t stage, const std::vector<ShareOfSm>& sms) const;

  const Demands& demands_;
  const LaunchPlaces& places_;
  const Asked& asked_;
  Behaviours& behaviours_;
  Effort& effort_;
  std::map<std::vector<int32_t>, Shares> known_;
  size_t count_ = 0;   // of shares
  int64_t looks_ = 0;  // since SMs were asked about
};

}  // namespace tbsched
