#include "tbsched/engine/together/gpcs/columns.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "tbsched/hardware/sm/units.h"

namespace tbsched {
namespace {

constexpr size_t kMostPartials = 50'000;
constexpr size_t kMostChoices = 2'000'000;
constexpr int64_t kMostLooksInRanges = 100'000;
constexpr int64_t kStatesOfLook = 10;
constexpr int32_t kAny = -1;

// What has been taken of the first SMs, or TPCs, of a GPC.
struct Partial {
  Blocks blocks = 0;
  uint32_t missing = 0;  // of each launch, 8 bits each: it is less than twice the largest cluster
  // Of the exact launch:
  int16_t taken = 0;
  int16_t at = 0;       // places at the last level, taken or not
  int16_t got = 0;      // of these
  int16_t skipped = 0;  // of these, though others behind got one
  int16_t most = 0;     // places before that level on one TPC
  // Of clusters, see is_in_order.
  int16_t first_left = kNoneLeft;
  int16_t first_left_like_idle = kNoneLeft;
  int16_t last_taken = kNoneTaken;
  bool takes_idle = false;
  bool is_tie = false;
  // Where a TPC crowds others: sums of min(places, n) over TPCs. So many clusters fit if that is at
  // least n times the TPCs of one.
  int16_t before_for_one_more = 0;
  int16_t all_for_one_more = 0;
  int16_t for_least_passes = 0;
  int16_t for_most_passes = 0;

  bool operator==(const Partial&) const = default;
};

struct HashOfPartial {
  size_t operator()(const Partial& state) const {
    uint64_t found = state.blocks * 0x9E3779B97F4A7C15U + state.missing;
    for (const int16_t part :
         {state.taken, state.at, state.got, state.skipped, state.most, state.first_left,
          state.first_left_like_idle, state.last_taken, state.before_for_one_more,
          state.all_for_one_more, state.for_least_passes, state.for_most_passes}) {
      found = (found ^ static_cast<uint16_t>(part)) * 0xD6E8FEB86659FD93U;
      found ^= found >> 32U;
    }
    return found;
  }
};

struct BestPartial {
  int32_t room;
  int32_t choice;
};
using Partials = std::unordered_map<Partial, BestPartial, HashOfPartial>;

// How the exact launch came to its blocks in this GPC. Its clusters took all places before the last
// level. Then they took `at_level` places of that, in order.
//
// A TPC has no more than one place of each cluster. So it may have more places before the last
// level than clusters have come until then: it is in every cluster, keeps some of these places, and
// crowds the others. Where there is one, each number of clusters is looked at; else that does not
// matter.
struct Taking {
  int32_t at_level = 0;
  int32_t clusters = kAny;
};

class Finder {
 public:
  Finder(const LaunchPlaces& places, const Asked& asked, const Gpc& gpc, const BlocksOfEach& most,
         const int32_t most_room, Effort& effort)
      : places_(places),
        asked_(asked),
        gpc_(gpc),
        most_(most),
        most_room_(most_room),
        effort_(effort) {
    const Way way = places.way(asked.last);
    parts_of_last_ = places.parts(asked.last);
    adds_up_ = way == Way::single || way == Way::balanced || parts_of_last_ == 1;
    for (size_t k = 0; k < asked.coming.size(); ++k) {
      const Way own = places.way(asked.coming[k]);
      most_missing_[k] = own == Way::single ? 0 : places.parts(asked.coming[k]) - 1;
    }
    for (const Shares* const shares : gpc.shares) {
      int32_t room = 0;
      int32_t at = 0;
      for (const auto& [share, least] : *shares) {
        room = std::max(room, least.room);
        at = std::max<int32_t>(at, share.at);
        most_before_ = std::max<int32_t>(most_before_, share.before);
      }
      all_room_ += room;
      all_at_ += at;
    }
    if (asked.exact < 0) return;
    const int32_t exact = asked.coming[asked.exact];
    parts_ = places.parts(exact);
    in_tpcs_ = places.way(exact) == Way::whole_tpcs;
  }

  Columns run() {
    if (asked_.exact < 0) {
      look({});
      return std::move(found_);
    }
    for (int32_t at = 0; at <= std::min(all_at_, parts_ * gpc_.most_passes); ++at) {
      look({at, kAny});
      if (!in_tpcs_ || parts_ == 1) continue;
      for (int32_t clusters = 0; clusters < most_before_ + passes(at); ++clusters) {
        look({at, clusters});
      }
    }
    return std::move(found_);
  }

 private:
  // That are over when so many places of the last level are taken.
  int32_t passes(const int32_t at_level) const { return ceil_div(at_level, parts_); }

  // A cluster of the last launch takes one place of each of some TPCs. So if no more than k fit,
  // the TPCs have few places: with no more than k + 1 of each, too few for k + 1 clusters.
  void look(const Taking& taking) {
    if (adds_up_) {
      look(taking, 0, std::numeric_limits<int32_t>::max());
    } else {
      const int32_t most = std::min(most_room_ - 1, all_room_ / parts_of_last_);
      for (int32_t fit = 0; fit <= most; ++fit) look(taking, fit, fit + 1);
    }
  }

  void look(const Taking& taking, const int32_t fit, const int32_t most_each) {
    auto choices = std::make_shared<std::vector<Choice>>();
    Partials states = {{Partial{}, {0, -1}}};
    for (const Shares* const shares : gpc_.shares) {
      Partials next;
      for (const auto& way : *shares) {
        const Share& share = way.first;
        effort_.spend(1 + std::ssize(states) / kStatesOfLook);
        looks_ += std::ssize(states);
        if (is_rough_ && looks_ > kMostLooksInRanges) throw TooManyWays{};
        const int32_t room = std::min(way.second.room, most_each);
        for (const auto& [state, best] : states) {
          Partial then = state;
          if (!add_exact(share, taking, then) || !add(share, then)) continue;
          const int32_t sum = best.room + room;
          const auto [at, is_new] = next.try_emplace(then, BestPartial{sum, 0});
          if (!is_new && at->second.room <= sum) continue;
          at->second = {sum, static_cast<int32_t>(choices->size())};
          choices->push_back({best.choice, &way});
        }
      }
      const size_t part = asked_.is_one_place() ? 1 : 16;
      if (next.size() > kMostPartials / part || choices->size() > kMostChoices / part) {
        throw TooManyWays{};
      }
      states = std::move(next);
    }
    for (const auto& [state, best] : states) {
      if (may_end(state, taking)) keep(state, best, fit, choices);
    }
  }

  // Of all launches. Returns whether they can have taken that.
  bool add(const Share& share, Partial& state) const {
    state.blocks += packed(share.blocks);
    if (!is_within(state.blocks, most_)) return false;
    for (size_t k = 0; k < asked_.coming.size(); ++k) {
      if (std::cmp_equal(k, asked_.exact) || most_missing_[k] == 0) continue;
      const auto missing = static_cast<int32_t>(state.missing >> (8 * k) & 0xFFU);
      if (missing + share.missing[k] > most_missing_[k]) return false;
      state.missing += static_cast<uint32_t>(share.missing[k]) << (8 * k);
    }
    return true;
  }

  // Of the exact launch. Returns whether it can have taken that.
  bool add_exact(const Share& share, const Taking& taking, Partial& state) const {
    if (asked_.exact < 0) return true;
    const bool is_short = taking.clusters != kAny && share.before >= taking.clusters;
    const int32_t before = is_short ? taking.clusters : share.before;
    const int32_t at = is_short ? 0 : share.at;
    if (taking.at_level > 0) {
      const int32_t most = std::min<int32_t>(at, taking.at_level - state.got);
      const int32_t got = share.taken - before;
      if (got < 0 || got > most) return false;
      state.got = static_cast<int16_t>(state.got + got);
      state.skipped = static_cast<int16_t>(state.skipped + most - got);
      if (state.skipped > (in_tpcs_ ? parts_ - 1 : 0)) return false;
    } else {
      if (share.taken > before) return false;
      state.skipped = static_cast<int16_t>(state.skipped + before - share.taken);
      if (state.skipped > parts_ - 1) return false;
    }
    state.taken = static_cast<int16_t>(state.taken + share.taken);
    state.at = static_cast<int16_t>(state.at + at);
    if (in_tpcs_) state.most = std::max(state.most, share.before);
    if (parts_ > 1 && !is_in_order(share, taking, state)) return false;
    if (taking.clusters == kAny) return true;
    const auto count = [](int16_t& sum, const int32_t places, const int32_t clusters) {
      sum = static_cast<int16_t>(sum + std::min(places, std::max(0, clusters)));
    };
    const int32_t clusters = taking.clusters;
    count(state.before_for_one_more, share.before, clusters + 1);
    count(state.all_for_one_more, share.before + share.at, clusters + 1);
    count(state.for_least_passes, share.before, clusters - gpc_.least_passes + 1);
    count(state.for_most_passes, share.before, clusters - gpc_.most_passes);
    return state.taken <= clusters * parts_ && state.before_for_one_more < (clusters + 1) * parts_;
  }

  // Whether places were taken in order. A TPC that is not in every cluster leaves no place before
  // the last one that another TPC took: look at the last cluster that it is not in. Those that are
  // have places before what it leaves, and go on to be chosen before that.
  //
  // An idle TPC skips a level. So where one is taken, one that has as much room and is not idle may
  // leave a place at the same level as a later TPC took.
  bool is_in_order(const Share& share, const Taking& taking, Partial& state) const {
    if (state.first_left <= share.last_taken) return false;
    if (state.first_left_like_idle < share.last_taken) return false;
    if (state.first_left_like_idle == share.last_taken) state.is_tie = true;
    state.last_taken = std::max(state.last_taken, share.last_taken);
    state.takes_idle = state.takes_idle || share.takes_idle;
    const bool is_in_all = in_tpcs_ && share.taken == taking.clusters;
    if (is_in_all) return true;
    if (share.first_left < state.last_taken) return false;
    int16_t& left = share.is_like_idle ? state.first_left_like_idle : state.first_left;
    left = std::min(left, share.first_left);
    return true;
  }

  bool may_end(const Partial& state, const Taking& taking) const {
    if (asked_.exact < 0) return true;
    if (state.taken % parts_ != 0 || state.got < taking.at_level) return false;
    if (state.is_tie && !state.takes_idle) return false;
    const int32_t clusters = state.taken / parts_;
    const int32_t rounds = passes(taking.at_level);
    const bool is_crowded = in_tpcs_ && parts_ > 1 && state.most > clusters - rounds;
    if (taking.clusters == kAny ? is_crowded : !is_crowded || clusters != taking.clusters) {
      return false;
    }
    if (is_crowded) {
      const auto are_found = [&](const int16_t places, const int32_t by) {
        return by <= 0 || places >= by * parts_;
      };
      if (!are_found(state.for_most_passes, clusters - gpc_.most_passes)) return false;
      // More clusters than those came before the last level, so that passes are left.
      const bool may_go_on = clusters < gpc_.least_passes ||
                             are_found(state.for_least_passes, clusters - gpc_.least_passes + 1);
      return !may_go_on || !are_found(state.all_for_one_more, clusters + 1);
    }
    // Before the passes are over it stops only where no cluster fits any more.
    const int32_t left = state.at - state.got + (taking.at_level == 0 ? state.skipped : 0);
    return rounds >= gpc_.least_passes || left < parts_;
  }

  void keep(const Partial& state, const BestPartial& best, const int32_t fit,
            const std::shared_ptr<std::vector<Choice>>& choices) {
    int32_t room = 0;
    if (adds_up_) {
      room = places_.way(asked_.last) == Way::balanced ? best.room / parts_of_last_ : best.room;
    } else {
      if (best.room >= (fit + 1) * parts_of_last_) return;
      room = fit;
    }
    if (room >= most_room_) return;
    const Blocks blocks = whole_clusters(state.blocks);
    if (!is_within(blocks, most_)) return;
    const auto [at, is_new] = found_.try_emplace(blocks, Column{room, choices, best.choice});
    if (!is_new && room < at->second.room) at->second = {room, choices, best.choice};
  }

  // Of the launch that waits no fewer have come, and whole clusters.
  Blocks whole_clusters(const Blocks blocks) const {
    if (asked_.waiting < 0) return blocks;
    const size_t place = asked_.coming.size();
    const int32_t least = blocks_of(blocks, place);
    const int32_t more = ceil_div(least, asked_.enter_together) * asked_.enter_together - least;
    return blocks + (static_cast<Blocks>(more) << (16 * place));
  }

  const LaunchPlaces& places_;
  const Asked& asked_;
  const Gpc& gpc_;
  const BlocksOfEach& most_;
  const int32_t most_room_;
  Effort& effort_;
  int32_t all_room_ = 0;  // at most
  int32_t all_at_ = 0;
  int32_t most_before_ = 0;  // of one SM, or TPC
  int32_t parts_of_last_ = 1;
  bool adds_up_ = true;  // the room of SMs, or TPCs, for the last launch
  std::array<int32_t, kMostComing> most_missing_ = {};
  int32_t parts_ = 1;  // of a cluster of the exact launch
  bool in_tpcs_ = false;
  // Sums of many launches in wide ranges take long, and rule out little.
  const bool is_rough_ = asked_.coming.size() > 2 && !asked_.is_one_place();
  int64_t looks_ = 0;
  Columns found_;
};

}  // namespace

Blocks packed(const BlocksOfEach& blocks) {
  Blocks found = 0;
  for (size_t k = 0; k < kMostComing; ++k) {
    found += static_cast<Blocks>(static_cast<uint16_t>(blocks[k])) << (16 * k);
  }
  return found;
}

bool is_within(const Blocks blocks, const BlocksOfEach& most) {
  for (size_t k = 0; k < kMostComing; ++k) {
    if (blocks_of(blocks, k) > most[k]) return false;
  }
  return true;
}

Columns columns(const LaunchPlaces& places, const Asked& asked, const Gpc& gpc,
                const BlocksOfEach& most, const int32_t most_room, Effort& effort) {
  return Finder(places, asked, gpc, most, most_room, effort).run();
}

}  // namespace tbsched
