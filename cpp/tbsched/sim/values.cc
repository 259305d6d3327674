#include "tbsched/sim/values.h"

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

namespace tbsched {

int64_t Values::value_of(const std::string& name, const int32_t gpu) const {
  for (const auto& [write, turn] : written_ | std::views::reverse) {
    const Request& request = requests_.at(write);
    if (write.gpu == gpu && request.name == name) return request.value;
  }
  const auto known = values_.find(name);
  return known == values_.end() ? 0 : known->second;
}

// Takes out the waits for a value that was written that are over now, of the GPUs that are wanted.
template <typename Wanted>
std::vector<OperationOfGpu> Values::take_waits(const Request& written, const Wanted& is_wanted) {
  const auto goes_on = [&](const OperationOfGpu waiting) {
    const Request& wanted = requests_.at(waiting);
    return is_wanted(waiting.gpu) && wanted.name == written.name && wanted.value <= written.value;
  };
  std::vector<OperationOfGpu> over;
  std::ranges::copy_if(waiting_, std::back_inserter(over), goes_on);
  std::erase_if(waiting_, goes_on);
  return over;
}

std::vector<OperationOfGpu> Values::write(const OperationOfGpu operation) {
  const Request& request = requests_.at(operation);
  size_t turn = request.issued;
  for (const Written& other : written_) {
    if (other.write.gpu == operation.gpu) turn = std::max(turn, other.turn);
  }
  written_.push_back({operation, turn});
  return take_waits(request, [&](const int32_t gpu) { return gpu == operation.gpu; });
}

std::vector<Notice> Values::publish() {
  std::vector<Written> written = std::exchange(written_, {});
  std::ranges::stable_sort(written, {}, &Written::turn);
  std::vector<Notice> over;
  for (const auto& [write, turn] : written) {
    const Request& request = requests_.at(write);
    values_[request.name] = request.value;
    const auto is_other = [&](const int32_t gpu) { return gpu != write.gpu; };
    for (const OperationOfGpu wait : take_waits(request, is_other)) over.push_back({write, wait});
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
  std::vector<AwaitedValue> found;
  for (const OperationOfGpu waiting : waiting_) {
    const Request& request = requests_.at(waiting);
    const int64_t value = value_of(request.name, waiting.gpu);
    found.push_back({waiting.gpu, request.name, request.value, value});
  }
  return found;
}

}  // namespace tbsched
