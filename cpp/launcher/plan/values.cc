#include "launcher/plan/values.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

namespace tbsched::cuda {

void PlannedValue::issue(const Driver& driver) const {
  if (waits) {
    driver.stream_wait_value(stream, device, static_cast<cuuint64_t>(value),
                             CU_STREAM_WAIT_VALUE_GEQ);
  } else {
    driver.stream_write_value(stream, device, static_cast<cuuint64_t>(value),
                              CU_STREAM_WRITE_VALUE_DEFAULT);
  }
}

void end_waits(const std::vector<PlannedValue>& values) {
  for (const PlannedValue& planned : values) {
    std::atomic_ref(*planned.host)
        .store(std::numeric_limits<int64_t>::max(), std::memory_order_release);
  }
}

void ValueMemory::lay_out(std::vector<PlannedValue>& values) {
  if (values.empty()) return;
  const size_t slots = 1 + std::ranges::max_element(values, {}, &PlannedValue::slot)->slot;
  const size_t size = slots * sizeof(int64_t);
  if (!memory_ || memory_->bytes().size() < size) {
    memory_.reset();
    memory_ = std::make_unique<MappedMemory>(driver_, size);
  }
  std::memset(memory_->bytes().data(), 0, size);
  for (PlannedValue& planned : values) {
    planned.host = reinterpret_cast<int64_t*>(memory_->bytes().data()) + planned.slot;
    planned.device = reinterpret_cast<CUdeviceptr>(memory_->on_device(planned.host));
  }
}

}  // namespace tbsched::cuda
