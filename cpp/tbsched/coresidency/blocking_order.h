// The order in which waiting launches hold up others.
#pragma once

#include <cstddef>
#include <vector>

#include "tbsched/coresidency/demands.h"
#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"

namespace tbsched {

class BlockingOrder {
 public:
  // The arguments outlive it.
  BlockingOrder(const Model& model, const std::vector<Launch>& launches, const Demands& demands)
      : model_(model), launches_(launches), demands_(demands) {}

  // Returns whether `launch`, which arrives later, must wait as long as `waiting` does. A more
  // urgent launch need not. If launches are held up on their own SMs only, one that shares none
  // need not.
  bool holds_up(size_t waiting, size_t launch) const;

 private:
  // Returns whether two launches, while they wait, reserve an SM in common.
  bool share_sms(size_t first, size_t second) const;

  const Model& model_;
  const std::vector<Launch>& launches_;
  const Demands& demands_;
};

}  // namespace tbsched
