// Blocks that meet: each waits on its SM until all blocks of its group are resident.
//
// An example: a collective has a launch of 24 blocks on each of two GPUs. When the 48th block has
// started, all of them go on.
//
// A group is all launches of a name, on all GPUs. It is complete when each of its blocks has
// started, and then never waits again. A group of which a block never starts waits for ever.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tbsched {

class Meetings {
 public:
  // A launch, by its number on its GPU.
  struct Member {
    int32_t gpu;
    int32_t launch;
  };

  // Adds a launch to the group of this name, and returns the group's index. Call it before any
  // block starts.
  int32_t add(const std::string& name, const Member& member, const int32_t blocks) {
    const auto next = static_cast<int32_t>(groups_.size());
    const int32_t group = group_of_name_.try_emplace(name, next).first->second;
    if (group == next) groups_.emplace_back();
    if (groups_[group].missing == 0) ++incomplete_;
    groups_[group].members.push_back(member);
    groups_[group].missing += blocks;
    return group;
  }
  // Notes that so many more blocks of a group are resident.
  void arrive(const int32_t group, const int32_t blocks) {
    groups_[group].missing -= blocks;
    if (groups_[group].missing > 0) return;
    complete_.push_back(group);
    --incomplete_;
  }
  // Returns whether there is a group of which blocks have not started.
  bool any_incomplete() const { return incomplete_ > 0; }
  // Returns whether blocks of the group have not started, so that the others wait.
  bool waits(const int32_t group) const { return groups_[group].missing > 0; }
  // Returns whether take_complete() has any launches to return.
  bool any_complete() const { return !complete_.empty(); }
  // Returns the launches of the groups that became complete since the last call.
  std::vector<Member> take_complete() {
    std::vector<Member> launches;
    for (const int32_t group : std::exchange(complete_, {})) {
      const std::vector<Member>& members = groups_[group].members;
      launches.insert(launches.end(), members.begin(), members.end());
    }
    return launches;
  }

 private:
  struct Group {
    std::vector<Member> members;
    int64_t missing = 0;  // blocks that have not started
  };

  std::unordered_map<std::string, int32_t> group_of_name_;
  std::vector<Group> groups_;
  std::vector<int32_t> complete_;  // for take_complete()
  int32_t incomplete_ = 0;         // see any_incomplete()
};

}  // namespace tbsched
