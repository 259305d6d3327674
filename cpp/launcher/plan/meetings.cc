#include "launcher/plan/meetings.h"

#include <algorithm>

namespace tbsched::cuda {
namespace {

// Points that are zeroed at once. That takes some microseconds, and is rarely necessary if there
// are many.
constexpr size_t kMinPoints = 1024;

}  // namespace

std::set<size_t> launches_in_groups(const Groups& groups) {
  std::set<size_t> launches;
  for (const std::vector<size_t>& group : groups) launches.insert(group.begin(), group.end());
  return launches;
}

MeetingPoint* MeetingPoints::take_unused(const size_t count) {
  const bool is_new = points_.reserve(std::max(count, kMinPoints));
  if (is_new || points_.size() - next_ < count) {
    points_.write(std::vector<MeetingPoint>(points_.size()));
    next_ = 0;
  }
  MeetingPoint* const first = points_.at(next_);
  next_ += count;
  return first;
}

}  // namespace tbsched::cuda
