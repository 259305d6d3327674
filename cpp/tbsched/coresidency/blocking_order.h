// The order in which waiting launches hold up others.
#pragma once

#include <cstddef>
#include <vector>

#include "tbsched/coresidency/demands.h"
#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"

namespace tbsched {

// Knows whether a waiting launch makes a later one wait, too: on all SMs, or on those that both may
// use. The constructor's arguments outlive it.
class BlockingOrder {
 public:
  BlockingOrder(const Model& model, const std::vector<Launch>& launches, const Demands& demands)
      : model_(model), launches_(launches), demands_(demands) {}

  bool is_behind(size_t waiting, size_t launch) const;

 private:
  bool share_sms(size_t one, size_t other) const;

  const Model& model_;
  const std::vector<Launch>& launches_;
  const Demands& demands_;
};

}  // namespace tbsched
