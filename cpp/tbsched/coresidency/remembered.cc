#include "tbsched/coresidency/remembered.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tbsched/coresidency/coresident.h"

namespace tbsched {
namespace {

// The key of a question: everything on which its answer depends, as text.
class Key {
 public:
  explicit Key(const TogetherQuestion& question) {
    add(static_cast<int64_t>(question.launches.size()));
    for (const Launch& launch : question.launches) add(launch);
    add(static_cast<int64_t>(question.groups.size()));
    for (const std::vector<int32_t>& group : question.groups) add(group);
    for (const auto& [first, second] : question.after) {
      add(int64_t{first});
      add(int64_t{second});
    }
    add(question.max_plays);
    add(question.only_to_prove);
  }

  std::string text() && { return std::move(text_); }

 private:
  // Append a value, with the length of what has no fixed one.
  void add(const int64_t value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void add(const std::optional<int32_t> value) {
    add(int64_t{value.has_value()});
    add(int64_t{value.value_or(0)});
  }
  void add(const std::vector<int32_t>& values) {
    add(static_cast<int64_t>(values.size()));
    for (const int32_t value : values) add(int64_t{value});
  }
  void add(const Launch& launch) {
    for (const int32_t value :
         {launch.blocks, launch.threads, launch.registers, launch.shared_memory,
          launch.local_memory, launch.cluster, launch.priority, int32_t{launch.cooperative},
          int32_t{launch.has_runtime}, int32_t{launch.duration_ns.empty()}}) {
      add(int64_t{value});
    }
    add(launch.carveout);
    add(launch.stream);
    add(launch.partition ? launch.partition->sms : std::vector<int32_t>{});
  }

  std::string text_;
};

}  // namespace

TogetherAnswer RememberedCoresidency::ask(const TogetherQuestion& question) {
  std::string key = Key(question).text();
  {
    const std::scoped_lock lock(mutex_);
    const auto known = answers_.find(key);
    if (known != answers_.end()) return known->second;
  }
  const TogetherAnswer answer = coresident(model_, question);
  const bool was_cut_off = answer.verdict == Verdict::undecided && std::isfinite(question.seconds);
  if (was_cut_off) return answer;
  const std::scoped_lock lock(mutex_);
  if (answers_.size() >= max_answers_) answers_.clear();
  answers_.insert_or_assign(std::move(key), answer);
  return answer;
}

}  // namespace tbsched
