#include "tbsched/sim/values.h"

#include <algorithm>
#include <iterator>

namespace tbsched {

int64_t Values::value_of(const std::string& name) const {
  const auto known = values_.find(name);
  return known == values_.end() ? 0 : known->second;
}

std::vector<OperationOfGpu> Values::write(const OperationOfGpu operation) {
  const Request& request = requests_.at(operation);
  values_[request.name] = request.value;
  const auto goes_on = [&](const OperationOfGpu waiting) {
    const Request& wanted = requests_.at(waiting);
    return wanted.name == request.name && wanted.value <= request.value;
  };
  std::vector<OperationOfGpu> over;
  std::ranges::copy_if(waiting_, std::back_inserter(over), goes_on);
  std::erase_if(waiting_, goes_on);
  return over;
}

bool Values::wait(const OperationOfGpu operation) {
  const Request& request = requests_.at(operation);
  if (value_of(request.name) >= request.value) return true;
  waiting_.push_back(operation);
  return false;
}

std::vector<AwaitedValue> Values::awaited() const {
  std::vector<AwaitedValue> found;
  for (const OperationOfGpu waiting : waiting_) {
    const Request& request = requests_.at(waiting);
    found.push_back({waiting.gpu, request.name, request.value, value_of(request.name)});
  }
  return found;
}

}  // namespace tbsched
