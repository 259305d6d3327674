#include "tbsched/coresidency/question.h"

#include <utility>

namespace tbsched {

std::vector<bool> awaited_by(const TogetherQuestion& question, const std::vector<int32_t>& group) {
  std::vector<bool> awaited(question.launches.size());
  for (const int32_t launch : group) awaited[launch] = true;
  for (bool changed = true; std::exchange(changed, false);) {
    for (const auto& [first, second] : question.after) {
      if (awaited[second] && !awaited[first]) awaited[first] = changed = true;
    }
  }
  return awaited;
}

}  // namespace tbsched
