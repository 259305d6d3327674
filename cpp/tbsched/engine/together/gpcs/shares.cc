#include "tbsched/engine/together/gpcs/shares.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace tbsched {
namespace {

constexpr int64_t kMostLooksOfRange = 20'000;
constexpr int64_t kSharesOfLook = 4;
constexpr Barred kAllBarred = (1U << kMostCounted) - 1;

}  // namespace

// The shares from one stage on.
class AllShares::Explorer {
 public:
  Explorer(AllShares& all, const size_t stage, const std::vector<ShareOfSm>& sms)
      : all_(all),
        places_(all.places_),
        asked_(all.asked_),
        behaviours_(all.behaviours_),
        stage_(stage),
        sms_(sms),
        exact_(asked_.exact_at(stage)) {}

  Shares run() {
    each_prospect();
    return std::move(found_);
  }

 private:
  bool is_last() const { return asked_.is_last(stage_); }
  const Ready& ready(const size_t sm) const { return behaviours_.ready(turns_[sm].prospect.ready); }

  // Whatever leaves just before the launch comes.
  void each_prospect() {
    if (turns_.size() == sms_.size()) {
      all_.spend(1);
      if (is_last()) {
        end();
      } else {
        place();
      }
      return;
    }
    for (const Prospect& prospect : behaviours_.prospects(sms_[turns_.size()].outlook)) {
      turns_.push_back({prospect});
      each_prospect();
      turns_.pop_back();
    }
  }

  std::vector<int32_t> rooms() const {
    std::vector<int32_t> found;
    for (size_t sm = 0; sm < sms_.size(); ++sm) found.push_back(ready(sm).room);
    return found;
  }

  void place() {
    const Comer& comer = asked_.coming[stage_];
    // It waits for room for all of its blocks.
    if (comer.waits && all_.demands_[comer.launch].at_once) {
      take(std::vector<int32_t>(sms_.size()));
      return;
    }
    switch (places_.way(comer.launch)) {
      case Way::single:
        place_single();
        break;
      case Way::whole_tpcs:
        place_in_tpc();
        break;
      case Way::balanced:
        place_balanced();
        break;
      case Way::other:
        throw TooManyWays{};
    }
  }

  // All places up to the first of the range, and no more than up to its last.
  void place_single() {
    const int32_t launch = asked_.launch_at(stage_);
    const PlaceRange& range = asked_.places[stage_];
    std::vector<PlaceRange> counts;
    for (size_t sm = 0; sm < sms_.size(); ++sm) {
      const int32_t room = ready(sm).room;
      const uint32_t preferred = sms_[sm].preferred;
      counts.push_back({places_.up_to(range.first, launch, (preferred & 1U) != 0, room),
                        places_.up_to(range.last, launch, (preferred & 2U) != 0, room)});
    }
    each_count(counts, {}, [&](const std::vector<int32_t>& taken) { take(taken); });
  }

  void place_in_tpc() {
    const int32_t launch = asked_.launch_at(stage_);
    const PlaceRange& range = asked_.places[stage_];
    const int32_t room = std::ranges::min(rooms());
    bool idle = true;
    for (size_t sm = 0; sm < sms_.size(); ++sm) idle = idle && ready(sm).idle;
    const int32_t before = places_.before_level(range.first, launch, room, idle);
    const int32_t through = places_.through_level(range.last, launch, room, idle);
    const int32_t least = exact_ || places_.parts(launch) > 1 ? 0 : before;
    for (int32_t taken = least; taken <= through; ++taken) {
      note(before, through - before, taken);
      note_ends(launch, room, taken, idle);
      level_.takes_idle = idle && taken > 0;
      level_.is_like_idle = !idle && room == places_.most_room(launch);
      take(std::vector<int32_t>(sms_.size(), taken), taken < before ? 1 : 0);
    }
  }

  void place_balanced() {
    const int32_t launch = asked_.launch_at(stage_);
    const PlaceRange& range = asked_.places[stage_];
    const int32_t most_missing = places_.parts(launch) - 1;
    std::vector<int32_t> before_on;
    std::vector<PlaceRange> counts;
    int32_t before = 0;
    int32_t through = 0;
    const std::vector<int32_t> own = rooms();
    for (const int32_t room : own) {
      before_on.push_back(places_.before_level(range.first, launch, room, false));
      counts.push_back({std::max(0, before_on.back() - most_missing),
                        places_.through_level(range.last, launch, room, false)});
      before += before_on.back();
      through += counts.back().last;
    }
    each_count(counts, {}, [&](const std::vector<int32_t>& taken) {
      int32_t missing = 0;
      for (size_t k = 0; k < taken.size(); ++k) {
        missing += std::max(0, before_on[k] - taken[k]);
      }
      if (missing > most_missing) return;
      note(before, through - before, std::accumulate(taken.begin(), taken.end(), 0));
      for (size_t k = 0; k < taken.size(); ++k) note_ends(launch, own[k], taken[k], false);
      take(taken, missing);
    });
  }

  void note(const int32_t before, const int32_t at, const int32_t taken) {
    level_ = {};
    level_.before = static_cast<int16_t>(before);
    level_.at = static_cast<int16_t>(at);
    level_.taken = static_cast<int16_t>(taken);
  }

  // Of an SM, or TPC.
  void note_ends(const int32_t launch, const int32_t room, const int32_t taken, const bool idle) {
    const auto next = [&](const int32_t number) {
      return static_cast<int16_t>(places_.next_level(launch, room - number, idle && number == 0));
    };
    if (taken < room) level_.first_left = std::min(level_.first_left, next(taken));
    if (taken > 0) level_.last_taken = std::max(level_.last_taken, next(taken - 1));
  }

  template <typename Call>
  void each_count(const std::vector<PlaceRange>& counts, const std::vector<int32_t>& chosen,
                  const Call& call) {
    if (chosen.size() == counts.size()) {
      call(chosen);
      return;
    }
    const PlaceRange& own = counts[chosen.size()];
    for (int32_t count = own.first; count <= own.last; ++count) {
      std::vector<int32_t> next = chosen;
      next.push_back(count);
      each_count(counts, next, call);
    }
  }

  // So many blocks on each SM; and then whatever happens next.
  void take(const std::vector<int32_t>& taken, const int32_t missing = 0) {
    for (size_t sm = 0; sm < taken.size(); ++sm) turns_[sm].taken = taken[sm];
    const Shares& next = all_.from(stage_ + 1, all_.after(sms_, turns_));
    const auto sum = static_cast<int16_t>(std::accumulate(taken.begin(), taken.end(), 0));
    all_.spend(1 + std::ssize(next) / kSharesOfLook);
    for (const auto& [share, least] : next) {
      Share whole = share;
      if (!count_entered(whole)) continue;
      if (exact_) whole.exact[*exact_] = level_;
      whole.missing[stage_] = static_cast<int16_t>(missing);
      whole.blocks[stage_] = static_cast<int16_t>(whole.blocks[stage_] + sum);
      // Where some came it was not barred, though they may find no room when they have left: then
      // it is the turn of another processing block.
      if (sum > 0) whole.barred = static_cast<Barred>(whole.barred & ~bit_of(stage_));
      keep(whole, least.room, &least);
    }
  }

  // Returns whether clusters can have entered so.
  bool count_entered(Share& share) const {
    Barred barred = 0;
    for (const LeastRoom::Turn& turn : turns_) barred |= turn.prospect.barred;
    share.barred &= barred;
    for (const Entering& each : asked_.entering) {
      int32_t blocks = 0;
      for (const auto& [prospect, taken] : turns_) {
        const int32_t own = prospect.entered[each.place] * each.on_tpc;
        blocks = each.in_tpcs() ? std::max(blocks, own) : blocks + own;
      }
      if (is_barred(barred, each.place) && blocks > 0) return false;
      int16_t& sum = share.blocks[each.place];
      sum = static_cast<int16_t>(sum + blocks);
    }
    return true;
  }

  void end() {
    Share share;
    share.barred = kAllBarred;
    if (count_entered(share)) keep(share, all_.room_of(rooms()), nullptr);
  }

  void keep(const Share& share, const int32_t room, const LeastRoom* const then) {
    const auto [at, is_new] = found_.try_emplace(share);
    if (!is_new && room >= at->second.room) return;
    at->second = {room, turns_, then, {}};
  }

  AllShares& all_;
  const LaunchPlaces& places_;
  const Asked& asked_;
  Behaviours& behaviours_;
  const size_t stage_;
  const std::vector<ShareOfSm>& sms_;
  const std::optional<size_t> exact_;
  LevelShare level_;  // of those that are found next
  std::vector<LeastRoom::Turn> turns_;
  Shares found_;
};

const Shares& AllShares::of(const std::vector<ShareOfSm>& sms) {
  looks_ = 0;
  return from(0, sms);
}

void AllShares::forget() {
  known_.clear();
  count_ = 0;
}

// What the shares depend on.
std::vector<int32_t> AllShares::key(const size_t stage, const std::vector<ShareOfSm>& sms) const {
  std::vector<int32_t> found = {static_cast<int32_t>(stage)};
  for (size_t k = stage; k < asked_.coming.size(); ++k) {
    const int32_t launch = asked_.coming[k].launch;
    found.push_back(places_.level(asked_.places[k].first, launch));
    found.push_back(places_.level(asked_.places[k].last, launch));
  }
  for (size_t k = 0; k < asked_.exact.size(); ++k) {
    if (asked_.exact[k] >= stage)
      found.push_back(static_cast<int32_t>(k * kMostCounted + asked_.exact[k]));
  }
  found.push_back(-1);
  for (const ShareOfSm& sm : sms) {
    found.push_back(sm.outlook);
    found.push_back(static_cast<int32_t>(sm.preferred));
  }
  return found;
}

// Whether what a launch takes of one SM depends on another one.
bool AllShares::are_tied(const size_t stage) const {
  return std::any_of(
      asked_.coming.begin() + static_cast<std::ptrdiff_t>(stage), asked_.coming.end(),
      [&](const Comer& comer) { return places_.way(comer.launch) == Way::whole_tpcs; });
}

// For the last launch: so much room on each SM.
int32_t AllShares::room_of(const std::vector<int32_t>& sms) const {
  if (places_.way(asked_.last) == Way::whole_tpcs) return std::ranges::min(sms);
  return std::accumulate(sms.begin(), sms.end(), 0);
}

void AllShares::spend(const int64_t looks) {
  effort_.spend(looks);
  looks_ += looks;
  if (looks_ > kMostLooksOfRange && !asked_.is_one_place()) throw TooManyWays{};
}

// None: clusters cannot have entered so.
std::optional<Share> AllShares::of_both(const Share& one, const Share& other) const {
  Share found = one;
  found.barred = one.barred | other.barred;
  for (size_t k = 0; k < kMostCounted; ++k) {
    found.blocks[k] = static_cast<int16_t>(one.blocks[k] + other.blocks[k]);
    found.missing[k] = static_cast<int16_t>(one.missing[k] + other.missing[k]);
  }
  // Of whole TPCs those that enter: what came is not counted here, since it would tie the SMs.
  for (const Entering& each : asked_.entering) {
    if (!each.in_tpcs()) continue;
    found.blocks[each.place] = std::max(one.blocks[each.place], other.blocks[each.place]);
    if (is_barred(found.barred, each.place) && found.blocks[each.place] > 0) return {};
  }
  for (size_t k = 0; k < kMostExact; ++k) {
    found.exact[k] = tbsched::of_both(one.exact[k], other.exact[k]);
  }
  return found;
}

Shares AllShares::joined(const size_t stage, const std::vector<ShareOfSm>& sms) {
  Shares found;
  for (const auto& [share, least] : from(stage, {sms.front()})) {
    found[share] = {least.room, {}, nullptr, {&least}};
  }
  for (auto sm = sms.begin() + 1; sm != sms.end(); ++sm) {
    const Shares& own = from(stage, {*sm});
    Shares next;
    for (const auto& [share, least] : found) {
      spend(1 + std::ssize(own) / kSharesOfLook);
      for (const auto& [other, least_of_other] : own) {
        std::optional<Share> both = of_both(share, other);
        if (!both) continue;
        const int32_t room = room_of({least.room, least_of_other.room});
        const auto [at, is_new] = next.try_emplace(*both);
        if (!is_new && room >= at->second.room) continue;
        at->second = {room, {}, nullptr, least.of_each};
        at->second.of_each.push_back(&least_of_other);
      }
    }
    found = std::move(next);
  }
  return found;
}

const Shares& AllShares::from(const size_t stage, const std::vector<ShareOfSm>& sms) {
  std::vector<int32_t> own = key(stage, sms);
  const auto known = known_.find(own);
  if (known != known_.end()) return known->second;
  const bool is_one = sms.size() == 1 || are_tied(stage);
  Shares found = is_one ? Explorer(*this, stage, sms).run() : joined(stage, sms);
  count_ += found.size();
  return known_.emplace(std::move(own), std::move(found)).first->second;
}

std::vector<size_t> AllShares::order_after(const std::vector<ShareOfSm>& sms,
                                           const std::vector<LeastRoom::Turn>& turns) const {
  std::vector<size_t> order(sms.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto next = [&](const size_t sm) {
    const Ready& ready = behaviours_.ready(turns[sm].prospect.ready);
    return ShareOfSm{ready.then[turns[sm].taken], sms[sm].preferred >> 2U};
  };
  std::ranges::stable_sort(order, {}, next);
  return order;
}

std::vector<ShareOfSm> AllShares::after(const std::vector<ShareOfSm>& sms,
                                        const std::vector<LeastRoom::Turn>& turns) const {
  std::vector<ShareOfSm> found;
  for (size_t sm = 0; sm < sms.size(); ++sm) {
    const Ready& ready = behaviours_.ready(turns[sm].prospect.ready);
    found.push_back({ready.then[turns[sm].taken], sms[sm].preferred >> 2U});
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace tbsched
