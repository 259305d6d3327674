#include "tbsched/coresidency/blocking_order.h"

#include "tbsched/policy/launch_order.h"

namespace tbsched {

bool BlockingOrder::holds_up(const size_t waiting, const size_t launch) const {
  const LaunchOrder& order = model_.order();
  const DeviceSpec& spec = model_.device().spec;
  const bool is_more_urgent = order.by_priority && urgency_of(launches_[launch], spec) <
                                                       urgency_of(launches_[waiting], spec);
  return order.head_of_line && !is_more_urgent && (!order.on_own_sms || share_sms(waiting, launch));
}

bool BlockingOrder::share_sms(const size_t first, const size_t second) const {
  for (int32_t sm = 0; sm < model_.device().spec.sms; ++sm) {
    if (demands_.reserves(first, sm) && demands_.reserves(second, sm)) return true;
  }
  return false;
}

}  // namespace tbsched
