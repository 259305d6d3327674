// How clusters of a launch took the places of a GPC up to one level, and what says that they did.
//
// They took all places before that level. Of the level they took some, in order, if they came so
// far. A TPC has no more than one place of each cluster. So it may have more places before the
// level than clusters have come until then: it is in every cluster, keeps some of these places, and
// crowds the others.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tbsched {

// Levels.
constexpr int16_t kNoneLeft = std::numeric_limits<int16_t>::max();
constexpr int16_t kNoneTaken = -1;

// Of an SM, or TPC: places before the level, at that level, and those that the launch took.
struct LevelShare {
  int16_t before = 0;
  int16_t at = 0;
  int16_t taken = 0;
  // The levels of the first place that was left, and of the last one that was taken; whether a
  // TPC was idle and is taken, and whether it has the room of an idle one and is not.
  int16_t first_left = kNoneLeft;
  int16_t last_taken = kNoneTaken;
  bool takes_idle = false;
  bool is_like_idle = false;

  auto operator<=>(const LevelShare&) const = default;
};
// Of two SMs.
LevelShare of_both(const LevelShare& one, const LevelShare& other);

// How far the launch came, and how many clusters it has if one TPC crowds others. To look at each
// number of these takes long: so they are looked at together, too, of which less is known.
struct LevelTaking {
  static constexpr int32_t kNotCrowded = -1;
  static constexpr int32_t kAny = -2;

  bool at_level = false;
  int32_t clusters = kNotCrowded;
};

// What the first SMs, or TPCs, of a GPC have.
struct LevelPartial {
  int16_t taken = 0;
  int16_t got = 0;         // places at the level
  int16_t left = 0;        // of these, up to the parts of a cluster
  int16_t skipped = 0;     // places, though others behind got one
  int16_t most = 0;        // places before the level on one TPC
  int16_t most_taken = 0;  // of one TPC, where that matters
  // See is_in_order. What is behind `tie` is counted only to know more at the end.
  int16_t first_left = kNoneLeft;
  int16_t first_left_like_idle = kNoneLeft;
  int16_t last_taken = kNoneTaken;
  int16_t tie = kNoneLeft;  // the level where those like idle leave a place, and a later one not
  int16_t idle = 0;         // TPCs that were idle and are taken
  int16_t like_idle = 0;    // that have as much room and were not
  int16_t like_idle_before = 0;  // of these, before the first one that leaves first_left_like_idle
  // Where a TPC crowds others: sums of min(places, n) over TPCs. So many clusters fit if that is at
  // least n times the TPCs of one.
  int16_t before_for_one_more = 0;
  int16_t all_for_one_more = 0;
  int16_t for_least_passes = 0;
  int16_t for_most_passes = 0;
  bool is_over = false;      // it gets no more of the level
  bool is_tie_open = false;  // a later TPC must have been idle
};

// Of one launch in one GPC.
struct LevelOfGpc {
  int32_t parts = 1;     // TPCs, or SMs, of a cluster
  bool in_tpcs = false;  // whole ones
  // In how many passes of the level the GPC takes part, if it has room.
  int32_t least_passes = 0;
  int32_t most_passes = 0;

  auto operator<=>(const LevelOfGpc&) const = default;

  // The most clusters that one TPC may crowd, if it has so many places before the level; or
  // kNotCrowded.
  int32_t most_crowded(int32_t most_before) const;
  // All ways to look at it; with so many clusters, if that is not any number, or without a crowd.
  std::vector<LevelTaking> takings(int32_t most_crowded) const;
  // What of a share matters then: the same for any given number of clusters.
  LevelShare what_matters(const LevelShare& share, const LevelTaking& taking) const;
  // What the launch can have after one more SM, or TPC; returns how many of these there are.
  // `exactly`: so that more is known at the end.
  size_t after(const LevelPartial& partial, const LevelShare& share, const LevelTaking& taking,
               bool exactly, std::array<LevelPartial, 2>& found) const;
  bool may_end(const LevelPartial& partial, const LevelTaking& taking) const;

 private:
  bool add(LevelPartial& partial, const LevelShare& share, const LevelTaking& taking,
           bool exactly) const;
  bool is_in_order(LevelPartial& partial, const LevelShare& share, const LevelTaking& taking,
                   bool exactly) const;
  bool may_have_tie(const LevelPartial& partial) const;
  bool may_end_crowded(const LevelPartial& partial, const LevelTaking& taking) const;
};

}  // namespace tbsched
