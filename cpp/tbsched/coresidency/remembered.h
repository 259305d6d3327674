// A cache of answers, for programs that must decide when they launch.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

#include "tbsched/coresidency/question.h"
#include "tbsched/policy/model.h"

namespace tbsched {

class RememberedCoresidency {
 public:
  // The model outlives it. When it has `max_answers`, it forgets all of them.
  explicit RememberedCoresidency(const Model& model, size_t max_answers = 4096)
      : model_(model), max_answers_(max_answers) {}

  // Returns what coresident() answers without a solver, and remembers it. Thread-safe. An answer
  // that question.seconds cut off is not remembered.
  TogetherAnswer ask(const TogetherQuestion& question);

 private:
  const Model& model_;
  const size_t max_answers_;
  std::mutex mutex_;
  std::unordered_map<std::string, TogetherAnswer> answers_;
};

}  // namespace tbsched
