// The places that a launch takes one after the other, on a policy that takes the SM with the most
// room first. How far a launch has come in this order says what it has taken on each SM, whatever
// the others have.
#pragma once

#include <cstdint>
#include <vector>

#include "tbsched/engine/together/demands.h"
#include "tbsched/policy/model.h"

namespace tbsched {

// How blocks of a launch choose SMs. Of clusters a part of each is in a TPC, or on an SM.
enum class Way : uint8_t { single, whole_tpcs, balanced, other };

// A range of places, both ends included.
struct PlaceRange {
  int32_t first = 0;
  int32_t last = 0;
};

// LaunchPlaces are sorted by level: for single blocks the room that the SM has, the most first, and
// of SMs with as much the one that is preferred. For clusters idle TPCs are the first level; at
// each level the domains that may take some get a cluster each, in turn, pass by pass.
class LaunchPlaces {
 public:
  // Both outlive it.
  LaunchPlaces(const Model& model, const Demands& demands);

  Way way(const int32_t launch) const { return ways_[launch]; }
  // The last place of all.
  PlaceRange all(int32_t launch) const;
  bool is_one_level(int32_t launch, const PlaceRange& range) const;
  // The last place of the first half, or near that, where a level ends.
  int32_t middle(int32_t launch, const PlaceRange& range) const;
  // SMs, or TPCs, that a cluster takes of its domain; 1 of single blocks.
  int32_t parts(int32_t launch) const;

  // Of single blocks, whether the SM comes no later than the one of this place, if it has as much
  // room.
  bool is_preferred(const int32_t place, const int32_t launch, const int32_t sm) const {
    return device_.rank_of_sm[sm] <= place % width_[launch];
  }
  int32_t level(const int32_t place, const int32_t launch) const { return place / width_[launch]; }
  // How many places up to this one an SM has that has so much room, and is so preferred.
  int32_t up_to(const int32_t place, const int32_t launch, const bool preferred,
                const int32_t room) const {
    return up_to_level(level(place, launch) - (preferred ? 0 : 1), launch, room, false);
  }
  // Of an SM, or TPC: how many are at levels before that of the place, or up to it.
  int32_t before_level(const int32_t place, const int32_t launch, const int32_t room,
                       const bool idle) const {
    return up_to_level(level(place, launch) - 1, launch, room, idle);
  }
  int32_t through_level(const int32_t place, const int32_t launch, const int32_t room,
                        const bool idle) const {
    return up_to_level(level(place, launch), launch, room, idle);
  }
  // Of an idle SM, or TPC.
  int32_t most_room(const int32_t launch) const { return demands_[launch].blocks_per_sm; }
  // At which level is the next place of an SM, or TPC, that has so much room.
  int32_t next_level(const int32_t launch, const int32_t room, const bool idle) const {
    const bool has_idle = ways_[launch] == Way::whole_tpcs;
    return has_idle && idle ? 0 : demands_[launch].blocks_per_sm - room + (has_idle ? 1 : 0);
  }
  // How many passes of the last level a domain has taken part in.
  int32_t passes(int32_t place, int32_t launch, size_t domain) const;

 private:
  int32_t up_to_level(int32_t level, int32_t launch, int32_t room, bool idle) const;

  const Device& device_;
  const Demands& demands_;
  std::vector<Way> ways_;
  std::vector<int32_t> width_;  // places at a level
  // Of a launch of clusters those domains that may take some, one after the other, and how many.
  std::vector<std::vector<int32_t>> number_of_domain_;
  std::vector<int32_t> domains_;
};

}  // namespace tbsched
