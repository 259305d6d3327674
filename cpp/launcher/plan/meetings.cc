#include "launcher/plan/meetings.h"

#include <algorithm>

namespace tbsched::cuda {
namespace {

// Zeroing them takes some microseconds, and is rarely necessary where there are many.
constexpr size_t kFewestPoints = 1024;

}  // namespace

std::set<size_t> in_groups(const Groups& groups) {
  std::set<size_t> found;
  for (const std::vector<size_t>& group : groups) found.insert(group.begin(), group.end());
  return found;
}

MeetingPoint* MeetingPoints::fresh(const size_t count) {
  const bool is_new = points_.reserve(std::max(count, kFewestPoints));
  if (is_new || points_.size() - next_ < count) {
    points_.write(std::vector<MeetingPoint>(points_.size()));
    next_ = 0;
  }
  MeetingPoint* const first = points_.at(next_);
  next_ += count;
  return first;
}

}  // namespace tbsched::cuda
