#include "tbsched/sim/values.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

namespace tbsched {

int64_t Values::value_of(const std::string& name, const int32_t gpu) const {
  for (const auto& [write, order] : written_ | std::views::reverse) {
    const Request& request = requests_.at(write);
    if (write.gpu == gpu && request.name == name) return request.value;
  }
  const auto known = values_.find(name);
  return known == values_.end() ? 0 : known->second;
}

// Removes and returns the waits that a write ends, on the GPUs for which sees_write(gpu) is true.
template <typename SeesWrite>
std::vector<OperationOfGpu> Values::take_met_waits(const Request& written,
                                                   const SeesWrite& sees_write) {
  const auto is_met = [&](const OperationOfGpu waiting) {
    const Request& awaited = requests_.at(waiting);
    return sees_write(waiting.gpu) && awaited.name == written.name &&
           awaited.value <= written.value;
  };
  std::vector<OperationOfGpu> met;
  std::ranges::copy_if(waiting_, std::back_inserter(met), is_met);
  std::erase_if(waiting_, is_met);
  return met;
}

std::vector<OperationOfGpu> Values::write(const OperationOfGpu operation) {
  const Request& request = requests_.at(operation);
  size_t order = request.issued;
  for (const Written& other : written_) {
    if (other.write.gpu == operation.gpu) order = std::max(order, other.order);
  }
  written_.push_back({operation, order});
  return take_met_waits(request, [&](const int32_t gpu) { return gpu == operation.gpu; });
}

std::vector<Notice> Values::publish() {
  std::vector<Written> written = std::exchange(written_, {});
  std::ranges::stable_sort(written, {}, &Written::order);
  std::vector<Notice> over;
  for (const auto& [write, order] : written) {
    const Request& request = requests_.at(write);
    values_[request.name] = request.value;
    const auto is_other = [&](const int32_t gpu) { return gpu != write.gpu; };
    for (const OperationOfGpu wait : take_met_waits(request, is_other))
      over.push_back({write, wait});
  }
  return over;
}

bool Values::wait(const OperationOfGpu operation) {
  const Request& request = requests_.at(operation);
  if (value_of(request.name, operation.gpu) >= request.value) return true;
  waiting_.push_back(operation);
  return false;
}

std::vector<AwaitedValue> Values::awaited() const {
  std::vector<AwaitedValue> values;
  for (const OperationOfGpu waiting : waiting_) {
    const Request& request = requests_.at(waiting);
    const int64_t value = value_of(request.name, waiting.gpu);
    values.push_back({waiting.gpu, request.name, request.value, value});
  }
  return values;
}

}  // namespace tbsched
