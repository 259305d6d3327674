#include "tbsched/engine/together/gpcs/shares.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace tbsched {
namespace {

constexpr size_t kMostLeft = 5'000;
constexpr size_t kMostTakings = 300'000;
constexpr int64_t kLooksOfTaking = 10;

// An SM after some blocks have left.
struct Left {
  OneSm sm;
  std::vector<std::pair<int32_t, int32_t>> gone;  // launch, number
};

class Explorer {
 public:
  Explorer(const LaunchPlaces& places, const Asked& asked, const std::span<const ShareOfSm> sms,
           Effort& effort)
      : places_(places), asked_(asked), sms_(sms), effort_(effort) {}

  Shares run() {
    std::vector<OneSm> states;
    for (const ShareOfSm& each : sms_) states.push_back(*each.state);
    arrive(0, states);
    return std::move(found_);
  }

 private:
  bool is_last(const size_t stage) const { return stage == asked_.coming.size(); }

  void arrive(const size_t stage, const std::vector<OneSm>& states) {
    if (is_last(stage) && !asked_.leave_before_last) {
      end(states);
      return;
    }
    std::vector<std::vector<Left>> ways;
    for (size_t k = 0; k < states.size(); ++k) {
      ways.push_back(distinct(all_ways(states[k]), k, stage));
    }
    each_of_all(ways, stage, {}, 0);
  }

  void each_of_all(const std::vector<std::vector<Left>>& ways, const size_t stage,
                   const std::vector<OneSm>& states, const size_t sm) {
    if (sm == ways.size()) {
      if (is_last(stage)) {
        end(states);
      } else {
        place(stage, states);
      }
      return;
    }
    for (const Left& way : ways[sm]) {
      for (const auto& [launch, number] : way.gone) {
        gone_.push_back({static_cast<int16_t>(stage), static_cast<int16_t>(sm),
                         static_cast<int16_t>(launch), static_cast<int16_t>(number)});
      }
      std::vector<OneSm> next = states;
      next.push_back(way.sm);
      each_of_all(ways, stage, next, sm + 1);
      gone_.resize(gone_.size() - way.gone.size());
    }
  }

  std::vector<Left> all_ways(const OneSm& sm) const {
    std::vector<Left> found = {{sm, {}}};
    for (const int32_t launch : asked_.leaving) {
      for (const std::vector<int32_t>& alike : sm.alike(launch)) {
        const size_t before = found.size();
        if (before * (alike.size() + 1) > kMostLeft) throw TooManyWays{};
        for (size_t k = 0; k < before; ++k) {
          Left next = found[k];
          effort_.spend(kLooksOfTaking * std::ssize(alike));
          for (const int32_t number : alike) {
            next.sm.leave(launch, number);
            next.gone.emplace_back(launch, number);
            found.push_back(next);
          }
        }
      }
    }
    return found;
  }

  // If nothing leaves any more, what matters of an SM is the room for one launch, and then for the
  // last.
  std::vector<Left> distinct(std::vector<Left> ways, const size_t sm, const size_t stage) const {
    if (stage + 1 != asked_.coming.size() || asked_.leave_before_last) return ways;
    std::set<std::vector<int32_t>> known;
    std::erase_if(ways, [&](const Left& way) {
      std::vector<int32_t> rooms = {way.sm.idle() ? 1 : 0};
      OneSm state = way.sm;
      effort_.spend(kLooksOfTaking);
      for (int32_t left = room(state, sm, stage); left >= 0; --left) {
        rooms.push_back(room(state, sm, stage + 1));
        if (left > 0) state.commit(asked_.coming[stage]);
      }
      return !known.insert(std::move(rooms)).second;
    });
    return ways;
  }

  int32_t room(const OneSm& state, const size_t sm, const size_t stage) const {
    if (!sms_[sm].takes[stage]) return 0;
    return state.room(is_last(stage) ? asked_.last : asked_.coming[stage]);
  }

  std::vector<int32_t> rooms(const std::vector<OneSm>& states, const size_t stage) const {
    std::vector<int32_t> found;
    for (size_t sm = 0; sm < states.size(); ++sm) found.push_back(room(states[sm], sm, stage));
    return found;
  }

  void place(const size_t stage, const std::vector<OneSm>& states) {
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
  void place_single(const size_t stage, const std::vector<OneSm>& states) {
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

  void place_in_tpc(const size_t stage, const std::vector<OneSm>& states) {
    const int32_t launch = asked_.coming[stage];
    const PlaceRange& range = asked_.places[stage];
    const int32_t room = std::ranges::min(rooms(states, stage));
    const bool idle = std::ranges::all_of(states, &OneSm::idle);
    const int32_t before = places_.before_level(range.first, launch, room, idle);
    const int32_t through = places_.through_level(range.last, launch, room, idle);
    const bool is_exact = std::cmp_equal(stage, asked_.exact);
    const int32_t least = is_exact || places_.parts(launch) > 1 ? 0 : before;
    for (int32_t taken = least; taken <= through; ++taken) {
      if (is_exact) note(before, through - before, taken);
      share_.missing[stage] = taken < before ? 1 : 0;
      take(stage, states, std::vector<int32_t>(states.size(), taken));
    }
    share_.missing[stage] = 0;
    if (is_exact) note(0, 0, 0);
  }

  void place_balanced(const size_t stage, const std::vector<OneSm>& states) {
    const int32_t launch = asked_.coming[stage];
    const PlaceRange& range = asked_.places[stage];
    const int32_t most_missing = places_.parts(launch) - 1;
    std::vector<int32_t> before_on;
    std::vector<PlaceRange> counts;
    int32_t before = 0;
    int32_t through = 0;
    for (const int32_t room : rooms(states, stage)) {
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
      if (is_exact) note(before, through - before, std::accumulate(taken.begin(), taken.end(), 0));
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

  void take(const size_t stage, const std::vector<OneSm>& states,
            const std::vector<int32_t>& taken) {
    effort_.spend(kLooksOfTaking);
    if (++takings_ > (asked_.is_one_place() ? kMostTakings : kMostTakings / 16)) {
      throw TooManyWays{};
    }
    std::vector<OneSm> next = states;
    int32_t sum = 0;
    for (size_t sm = 0; sm < next.size(); ++sm) {
      for (int32_t k = 0; k < taken[sm]; ++k) next[sm].commit(asked_.coming[stage]);
      sum += taken[sm];
    }
    share_.blocks[stage] = static_cast<int16_t>(sum);
    arrive(stage + 1, next);
    share_.blocks[stage] = 0;
  }

  void end(const std::vector<OneSm>& states) {
    const std::vector<int32_t> own = rooms(states, asked_.coming.size());
    if (places_.way(asked_.last) != Way::whole_tpcs) {
      share_.room = static_cast<int16_t>(std::accumulate(own.begin(), own.end(), 0));
    } else {
      share_.room = static_cast<int16_t>(std::ranges::min(own));
    }
    found_.try_emplace(share_, gone_);
  }

  const LaunchPlaces& places_;
  const Asked& asked_;
  const std::span<const ShareOfSm> sms_;
  Effort& effort_;
  Share share_;
  std::vector<Gone> gone_;
  Shares found_;
  size_t takings_ = 0;
};

}  // namespace

Shares shares(const LaunchPlaces& places, const Asked& asked, const std::span<const ShareOfSm> sms,
              Effort& effort) {
  return Explorer(places, asked, sms, effort).run();
}

}  // namespace tbsched
