#include "tbsched/engine/together/gpcs/shares.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace tbsched {
namespace {

constexpr size_t kMostTakings = 300'000;

class Explorer {
 public:
  Explorer(const LaunchPlaces& places, const Asked& asked, const std::span<const ShareOfSm> sms,
           SmStates& known, Effort& effort)
      : places_(places), asked_(asked), sms_(sms), known_(known), effort_(effort) {}

  Shares run() {
    std::vector<int32_t> states;
    for (const ShareOfSm& each : sms_) states.push_back(each.state);
    arrive(0, states);
    return std::move(found_);
  }

 private:
  bool is_last(const size_t stage) const { return stage == asked_.coming.size(); }
  int16_t& entered() { return share_.blocks[asked_.coming.size()]; }

  void arrive(const size_t stage, const std::vector<int32_t>& states) {
    if (is_last(stage) && !asked_.leave_before_last) {
      end(states);
      return;
    }
    each_of_all(stage, states, {});
  }

  // Whatever leaves just before a launch comes.
  void each_of_all(const size_t stage, const std::vector<int32_t>& states,
                   const std::vector<int32_t>& after) {
    const size_t sm = after.size();
    if (sm == states.size()) {
      if (is_last(stage)) {
        end(after);
      } else {
        place(stage, after);
      }
      return;
    }
    const bool may_enter = sms_[sm].takes.back() && !(stage == 0 && sms_[sm].is_quiet);
    const int32_t waiting = may_enter ? asked_.waiting : -1;
    const std::vector<Reached>& all = known_.reached(states[sm], waiting, asked_.most_enter);
    const size_t acts = acts_.size();
    for (const int32_t way : distinct(states[sm], all, sm, stage)) {
      note_moves(all, way, stage, sm);
      std::vector<int32_t> next = after;
      next.push_back(all[way].state);
      if (asked_.waiting >= 0) entered() += static_cast<int16_t>(all[way].entered);
      each_of_all(stage, states, next);
      if (asked_.waiting >= 0) entered() -= static_cast<int16_t>(all[way].entered);
      acts_.resize(acts);
    }
  }

  void note_moves(const std::vector<Reached>& all, const int32_t way, const size_t stage,
                  const size_t sm) {
    if (all[way].before < 0) return;
    note_moves(all, all[way].before, stage, sm);
    const auto& [launch, kind, enters] = all[way].move;
    acts_.push_back({.what = enters ? Act::What::enters : Act::What::leaves,
                     .before = static_cast<int16_t>(stage),
                     .sm = static_cast<int16_t>(sm),
                     .launch = static_cast<int16_t>(launch),
                     .which = static_cast<int16_t>(kind)});
  }

  // Of those that are alike in what matters one each. Of an SM that no later launch takes that is
  // the room for this one; at the end, the room for the last one; and if nothing leaves any more,
  // the room for one launch before, and then for the last.
  const std::vector<int32_t>& distinct(const int32_t state, const std::vector<Reached>& all,
                                       const size_t sm, const size_t stage) {
    const auto [at, is_new] = distinct_.try_emplace({state, sm, stage});
    if (is_new) at->second = find_distinct(all, sm, stage);
    return at->second;
  }

  std::vector<int32_t> find_distinct(const std::vector<Reached>& all, const size_t sm,
                                     const size_t stage) {
    if (!may_be_taken(sm, stage)) return {0};
    std::vector<int32_t> found;
    int32_t least = std::numeric_limits<int32_t>::max();
    std::set<std::vector<int32_t>> known;
    const bool is_end = stage + 1 == asked_.coming.size() && !asked_.leave_before_last;
    const bool is_alike = !is_last(stage) && (is_end || !may_be_taken(sm, stage + 1));
    for (int32_t k = 0; std::cmp_less(k, all.size()); ++k) {
      effort_.spend(1);
      if (is_last(stage)) {
        const int32_t own = room(all[k].state, sm, stage);
        if (own >= least) continue;
        least = own;
      }
      if (is_alike && !known.insert(rooms_after(all[k].state, sm, stage)).second) continue;
      found.push_back(k);
    }
    return found;
  }

  // By a launch from this one on.
  bool may_be_taken(const size_t sm, const size_t stage) const {
    for (size_t k = stage; k <= asked_.coming.size(); ++k) {
      if (sms_[sm].takes[k]) return true;
    }
    return false;
  }

  std::vector<int32_t> rooms_after(int32_t state, const size_t sm, const size_t stage) {
    std::vector<int32_t> rooms = {known_.idle(state) ? 1 : 0};
    for (int32_t left = room(state, sm, stage); left >= 0; --left) {
      effort_.spend(1);
      rooms.push_back(room(state, sm, stage + 1));
      if (left > 0) state = known_.with_one_more(state, asked_.coming[stage]);
    }
    return rooms;
  }

  int32_t room(const int32_t state, const size_t sm, const size_t stage) {
    if (!sms_[sm].takes[stage]) return 0;
    return known_.room(state, is_last(stage) ? asked_.last : asked_.coming[stage]);
  }

  std::vector<int32_t> rooms(const std::vector<int32_t>& states, const size_t stage) {
    std::vector<int32_t> found;
    for (size_t sm = 0; sm < states.size(); ++sm) found.push_back(room(states[sm], sm, stage));
    return found;
  }

  void place(const size_t stage, const std::vector<int32_t>& states) {
    const int32_t launch = asked_.coming[stage];
    switch (places_.way(launch)) {
      case Way::single:
        place_single(stage, states);
        break;
      case Way::whole_tpcs:
        place_in_tpc(stage, states);
        break;
      case Way::balanced:
        place_balanced(stage, states);
        break;
      case Way::other:
        throw TooManyWays{};
    }
  }

  // All places up to the first of the range, and no more than up to its last.
  void place_single(const size_t stage, const std::vector<int32_t>& states) {
    const int32_t launch = asked_.coming[stage];
    const PlaceRange& range = asked_.places[stage];
    const std::vector<int32_t> own = rooms(states, stage);
    std::vector<PlaceRange> counts;
    for (size_t k = 0; k < states.size(); ++k) {
      counts.push_back({places_.up_to(range.first, launch, sms_[k].sm, own[k]),
                        places_.up_to(range.last, launch, sms_[k].sm, own[k])});
    }
    each_count(counts, {}, [&](const std::vector<int32_t>& taken) { take(stage, states, taken); });
  }

  void place_in_tpc(const size_t stage, const std::vector<int32_t>& states) {
    const int32_t launch = asked_.coming[stage];
    const PlaceRange& range = asked_.places[stage];
    const int32_t room = std::ranges::min(rooms(states, stage));
    const bool idle =
        std::ranges::all_of(states, [&](const int32_t state) { return known_.idle(state); });
    const int32_t before = places_.before_level(range.first, launch, room, idle);
    const int32_t through = places_.through_level(range.last, launch, room, idle);
    const bool is_exact = std::cmp_equal(stage, asked_.exact);
    const int32_t least = is_exact || places_.parts(launch) > 1 ? 0 : before;
    for (int32_t taken = least; taken <= through; ++taken) {
      if (is_exact) {
        note(before, through - before, taken);
        note_ends(launch, room, taken, idle);
        share_.takes_idle = idle && taken > 0;
        share_.is_like_idle = !idle && room == places_.most_room(launch);
      }
      share_.missing[stage] = taken < before ? 1 : 0;
      take(stage, states, std::vector<int32_t>(states.size(), taken));
    }
    share_.missing[stage] = 0;
    if (is_exact) note(0, 0, 0);
  }

  void place_balanced(const size_t stage, const std::vector<int32_t>& states) {
    const int32_t launch = asked_.coming[stage];
    const PlaceRange& range = asked_.places[stage];
    const int32_t most_missing = places_.parts(launch) - 1;
    std::vector<int32_t> before_on;
    std::vector<PlaceRange> counts;
    int32_t before = 0;
    int32_t through = 0;
    const std::vector<int32_t> own = rooms(states, stage);
    for (const int32_t room : own) {
      before_on.push_back(places_.before_level(range.first, launch, room, false));
      counts.push_back({std::max(0, before_on.back() - most_missing),
                        places_.through_level(range.last, launch, room, false)});
      before += before_on.back();
      through += counts.back().last;
    }
    const bool is_exact = std::cmp_equal(stage, asked_.exact);
    each_count(counts, {}, [&](const std::vector<int32_t>& taken) {
      int32_t missing = 0;
      for (size_t k = 0; k < taken.size(); ++k) {
        missing += std::max(0, before_on[k] - taken[k]);
      }
      if (missing > most_missing) return;
      if (is_exact) {
        note(before, through - before, std::accumulate(taken.begin(), taken.end(), 0));
        for (size_t k = 0; k < taken.size(); ++k) note_ends(launch, own[k], taken[k], false);
      }
      share_.missing[stage] = static_cast<int16_t>(missing);
      take(stage, states, taken);
    });
    share_.missing[stage] = 0;
    if (is_exact) note(0, 0, 0);
  }

  void note(const int32_t before, const int32_t at, const int32_t taken) {
    share_.before = static_cast<int16_t>(before);
    share_.at = static_cast<int16_t>(at);
    share_.taken = static_cast<int16_t>(taken);
    share_.first_left = kNoneLeft;
    share_.last_taken = kNoneTaken;
    share_.takes_idle = false;
    share_.is_like_idle = false;
  }

  // Of an SM, or TPC.
  void note_ends(const int32_t launch, const int32_t room, const int32_t taken, const bool idle) {
    const auto next = [&](const int32_t number) {
      return static_cast<int16_t>(places_.next_level(launch, room - number, idle && number == 0));
    };
    if (taken < room) share_.first_left = std::min(share_.first_left, next(taken));
    if (taken > 0) share_.last_taken = std::max(share_.last_taken, next(taken - 1));
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

  void take(const size_t stage, const std::vector<int32_t>& states,
            const std::vector<int32_t>& taken) {
    effort_.spend(1);
    if (++takings_ > (asked_.is_one_place() ? kMostTakings : kMostTakings / 16)) {
      throw TooManyWays{};
    }
    const size_t acts = acts_.size();
    std::vector<int32_t> next = states;
    for (size_t sm = 0; sm < next.size(); ++sm) {
      for (int32_t k = 0; k < taken[sm]; ++k) {
        next[sm] = known_.with_one_more(next[sm], asked_.coming[stage]);
      }
      if (taken[sm] == 0) continue;
      acts_.push_back({.what = Act::What::comes,
                       .before = static_cast<int16_t>(stage),
                       .sm = static_cast<int16_t>(sm),
                       .launch = static_cast<int16_t>(asked_.coming[stage]),
                       .which = static_cast<int16_t>(taken[sm])});
    }
    const int32_t sum = std::accumulate(taken.begin(), taken.end(), 0);
    share_.blocks[stage] = static_cast<int16_t>(sum);
    arrive(stage + 1, next);
    share_.blocks[stage] = 0;
    acts_.resize(acts);
  }

  void end(const std::vector<int32_t>& states) {
    effort_.spend(1);
    const std::vector<int32_t> own = rooms(states, asked_.coming.size());
    const int32_t room = places_.way(asked_.last) == Way::whole_tpcs
                             ? std::ranges::min(own)
                             : std::accumulate(own.begin(), own.end(), 0);
    const auto [at, is_new] = found_.try_emplace(share_, room, acts_);
    if (!is_new && room < at->second.room) at->second = {room, acts_};
  }

  const LaunchPlaces& places_;
  const Asked& asked_;
  const std::span<const ShareOfSm> sms_;
  SmStates& known_;
  Effort& effort_;
  Share share_;
  std::vector<Act> acts_;
  Shares found_;
  // Of an SM in a state, at a stage.
  std::map<std::tuple<int32_t, size_t, size_t>, std::vector<int32_t>> distinct_;
  size_t takings_ = 0;
};

}  // namespace

Shares shares(const LaunchPlaces& places, const Asked& asked, const std::span<const ShareOfSm> sms,
              SmStates& known, Effort& effort) {
  return Explorer(places, asked, sms, known, effort).run();
}

}  // namespace tbsched
