// For programs that must decide when they launch: questions asked before are answered from memory.
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
  // The model outlives it. With so many answers it forgets them all and begins anew.
  explicit RememberedCoresidency(const Model& model, size_t most_answers = 4096)
      : model_(model), most_answers_(most_answers) {}

  // As coresident(), without a solver; from several threads at once. An answer that
  // question.seconds cut off is not remembered.
  TogetherAnswer ask(const TogetherQuestion& question);

 private:
  const Model& model_;
  const size_t most_answers_;
  std::mutex mutex_;
  std::unordered_map<std::string, TogetherAnswer> answers_;
};

}  // namespace tbsched
