#include "tbsched/engine/together/gpcs/levels.h"

#include <algorithm>

#include "tbsched/hardware/sm/units.h"

namespace tbsched {
namespace {

void add_to(int16_t& sum, const int32_t more) { sum = static_cast<int16_t>(sum + more); }

}  // namespace

LevelShare of_both(const LevelShare& one, const LevelShare& other) {
  LevelShare found = one;
  add_to(found.before, other.before);
  add_to(found.at, other.at);
  add_to(found.taken, other.taken);
  found.first_left = std::min(one.first_left, other.first_left);
  found.last_taken = std::max(one.last_taken, other.last_taken);
  return found;
}

int32_t LevelOfGpc::most_crowded(const int32_t most_before) const {
  return in_tpcs && parts > 1 ? most_before + most_passes - 1 : LevelTaking::kNotCrowded;
}

std::vector<LevelTaking> LevelOfGpc::takings(const int32_t most_crowded) const {
  std::vector<LevelTaking> found;
  for (const bool at_level : {false, true}) {
    found.push_back({at_level, LevelTaking::kNotCrowded});
    if (most_crowded == LevelTaking::kAny) found.push_back({at_level, LevelTaking::kAny});
    for (int32_t clusters = 0; clusters <= most_crowded; ++clusters) {
      found.push_back({at_level, clusters});
    }
  }
  return found;
}

LevelShare LevelOfGpc::what_matters(const LevelShare& share, const LevelTaking& taking) const {
  LevelShare found;
  found.before = share.before;
  found.taken = share.taken;
  if (taking.clusters == LevelTaking::kAny) return found;
  found.at = share.at;
  return parts > 1 ? share : found;
}

// Of the level it gets all places, but some that it skips; or it ends here, or has ended.
size_t LevelOfGpc::after(const LevelPartial& partial, const LevelShare& share,
                         const LevelTaking& taking, const bool exactly,
                         std::array<LevelPartial, 2>& found) const {
  LevelPartial then = partial;
  if (!add(then, share, taking, exactly)) return 0;
  size_t ways = 0;
  const auto add_way = [&](const int32_t skipped) {
    found[ways] = then;
    add_to(found[ways++].skipped, skipped);
  };
  const auto add_end = [&] {
    found[ways] = then;
    found[ways].skipped = 0;
    found[ways++].is_over = true;
  };
  const bool is_short = taking.clusters >= 0 && share.before >= taking.clusters;
  const int32_t at = is_short ? 0 : share.at;
  const int32_t got = share.taken - (is_short ? taking.clusters : share.before);
  const int32_t rest = at - std::max(0, got);
  if (taking.clusters == LevelTaking::kNotCrowded) {
    then.left = static_cast<int16_t>(std::min(parts, then.left + rest));
  }
  if (taking.clusters == LevelTaking::kAny) {
    add_way(0);
  } else if (!taking.at_level) {
    if (got <= 0 && partial.skipped - got < parts) add_way(-got);
  } else if (got >= 0 && got <= at && then.got + got <= parts * most_passes) {
    add_to(then.got, got);
    if (partial.is_over) {
      if (got == 0) add_end();
      return ways;
    }
    if (partial.skipped + rest < (in_tpcs ? parts : 1)) add_way(rest);
    if (got > 0) add_end();
  }
  return ways;
}

// Wherever it ends. Returns whether that can be.
bool LevelOfGpc::add(LevelPartial& partial, const LevelShare& share, const LevelTaking& taking,
                     const bool exactly) const {
  add_to(partial.taken, share.taken);
  if (in_tpcs && parts > 1) partial.most = std::max(partial.most, share.before);
  if (taking.clusters == LevelTaking::kAny) {
    partial.most_taken = std::max(partial.most_taken, share.taken);
    return true;
  }
  if (parts > 1 && !is_in_order(partial, share, taking, exactly)) return false;
  if (taking.clusters == LevelTaking::kNotCrowded) return true;
  const auto count = [&](int16_t& sum, const int32_t places, const int32_t most) {
    const int32_t of_each = std::max(0, most);
    sum = static_cast<int16_t>(std::min(of_each * parts, sum + std::min(places, of_each)));
  };
  const int32_t clusters = taking.clusters;
  count(partial.before_for_one_more, share.before, clusters + 1);
  count(partial.all_for_one_more, share.before + share.at, clusters + 1);
  count(partial.for_least_passes, share.before, clusters - least_passes + 1);
  count(partial.for_most_passes, share.before, clusters - most_passes);
  return partial.taken <= clusters * parts && partial.before_for_one_more < (clusters + 1) * parts;
}

// Whether places were taken in order. A TPC that is not in every cluster leaves no place before
// the last one that another TPC took: look at the last cluster that it is not in. Those that are
// have places before what it leaves, and go on to be chosen before that.
//
// An idle TPC skips a level. So one that has as much room and is not idle may leave a place at the
// same level as a later TPC took: one that was idle, or one before such a one. See may_have_tie.
bool LevelOfGpc::is_in_order(LevelPartial& partial, const LevelShare& share,
                             const LevelTaking& taking, const bool exactly) const {
  if (partial.first_left <= share.last_taken) return false;
  if (partial.first_left_like_idle < share.last_taken) return false;
  if (partial.first_left_like_idle == share.last_taken) {
    partial.is_tie_open = true;
    if (exactly) partial.tie = share.last_taken;
  }
  if (share.takes_idle) partial.is_tie_open = false;
  if (share.takes_idle && exactly) ++partial.idle;
  partial.last_taken = std::max(partial.last_taken, share.last_taken);
  const bool is_in_all = in_tpcs && share.taken == taking.clusters;
  if (!is_in_all) {
    if (share.first_left < partial.last_taken) return false;
    int16_t& left = share.is_like_idle ? partial.first_left_like_idle : partial.first_left;
    if (share.is_like_idle && share.first_left < left) {
      partial.like_idle_before = partial.like_idle;
    }
    left = std::min(left, share.first_left);
  }
  if (share.is_like_idle && exactly) ++partial.like_idle;
  return true;
}

// One that leaves a place where a later TPC took one had none of the first clusters, and then a
// place of each. So those had better places: of an idle TPC, or of one that is like it and before.
bool LevelOfGpc::may_have_tie(const LevelPartial& partial) const {
  if (partial.is_tie_open) return false;
  if (partial.tie == kNoneLeft) return true;
  const int32_t first_clusters = partial.taken / parts - (partial.tie - 1);
  return first_clusters * parts <= partial.idle + partial.like_idle_before;
}

bool LevelOfGpc::may_end(const LevelPartial& partial, const LevelTaking& taking) const {
  if (partial.taken % parts != 0) return false;
  const int32_t clusters = partial.taken / parts;
  if (taking.clusters == LevelTaking::kAny) {
    return partial.most_taken <= clusters &&
           partial.most > clusters - (taking.at_level ? most_passes : 0);
  }
  if (taking.at_level && partial.got == 0) return false;
  if (!may_have_tie(partial)) return false;
  const int32_t rounds = ceil_div(int32_t{partial.got}, parts);
  const bool is_crowded = in_tpcs && parts > 1 && partial.most > clusters - rounds;
  if (taking.clusters >= 0) {
    return is_crowded && clusters == taking.clusters && may_end_crowded(partial, taking);
  }
  if (is_crowded) return false;
  // Before the passes are over it stops only where no cluster fits any more.
  const int32_t left = partial.left + (taking.at_level ? 0 : partial.skipped);
  return rounds >= least_passes || left < parts;
}

bool LevelOfGpc::may_end_crowded(const LevelPartial& partial, const LevelTaking& taking) const {
  const int32_t clusters = taking.clusters;
  const auto are_found = [&](const int16_t places, const int32_t by) {
    return by <= 0 || places >= by * parts;
  };
  if (!are_found(partial.for_most_passes, clusters - most_passes)) return false;
  // More clusters than those came before the last level, so that passes are left.
  const bool may_go_on =
      clusters < least_passes || are_found(partial.for_least_passes, clusters - least_passes + 1);
  return !may_go_on || !are_found(partial.all_for_one_more, clusters + 1);
}

}  // namespace tbsched
