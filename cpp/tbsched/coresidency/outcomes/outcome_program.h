// An integer program over outcomes of SMs: how many units of each group have which outcome, so that
// each arriving launch has all of its blocks, and the last one finds too little room. If it has no
// solution, the last launch finds room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "tbsched/coresidency/outcomes/places.h"
#include "tbsched/coresidency/outcomes/query.h"
#include "tbsched/coresidency/outcomes/sm_outcomes.h"

namespace tbsched {

struct OutcomeProgram {
  // Units of one domain that have the same outcomes: a group of the program.
  struct Group {
    int32_t domain;
    size_t outcomes;                          // index into `outcomes`
    std::vector<std::vector<int32_t>> units;  // their SMs
    // Ranks of these SMs in the order of preference, and their places in the domain, unit by unit.
    std::vector<int32_t> ranks;
    std::vector<int32_t> positions;
  };
  // The arrival of a launch.
  struct Stage {
    Way way;
    int32_t blocks;     // of the launch
    int32_t parts;      // SMs or TPCs of a cluster
    int32_t on_part;    // blocks on each part
    int32_t most_room;  // most blocks on an SM
    bool waits;         // some of its blocks find no room when it arrives
    bool waits_whole;   // it takes no SM while it waits
  };

  std::vector<const SmOutcomes*> outcomes;
  std::vector<Group> groups;
  std::vector<Stage> stages;  // including the last launch's
  std::vector<WaitingLaunch> entering;
};

// The answers of a solver: not solved; no solution; or a solution: for each group pairs (outcome,
// number of units).
struct NotSolved {};
struct NoSolution {};
using Counts = std::vector<std::vector<std::pair<int32_t, int32_t>>>;
using Solution = std::variant<NotSolved, NoSolution, Counts>;
using Solver = std::function<Solution(const OutcomeProgram&)>;

}  // namespace tbsched
