#include "tbsched/coresidency/blocking_order.h"

#include "tbsched/policy/launch_order.h"

namespace tbsched {

bool BlockingOrder::is_behind(const size_t waiting, const size_t launch) const {
  const LaunchOrder& order = model_.order();
  const DeviceSpec& spec = model_.device().spec;
  const bool passes =
      order.by_priority && rank_of(launches_[launch], spec) < rank_of(launches_[waiting], spec);
  return order.head_of_line && !passes && (!order.on_own_sms || share_sms(waiting, launch));
}

bool BlockingOrder::share_sms(const size_t one, const size_t other) const {
  for (int32_t sm = 0; sm < model_.device().spec.sms; ++sm) {
    if (demands_.holds(one, sm) && demands_.holds(other, sm)) return true;
  }
  return false;
}

}  // namespace tbsched
