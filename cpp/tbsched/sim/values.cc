#include "tbsched/sim/values.h"

#include <algorithm>
#include <iterator>

namespace tbsched {

int64_t Values::value_of(const std::string& name) const {
  const auto known = values_.find(name);
  return known == values_.end() ? 0 : known->second;
}

std::vector<int32_t> Values::write(const int32_t operation) {
  const Request& request = requests_.at(operation);
  values_[request.name] = request.value;
  const auto goes_on = [&](const int32_t waiting) {
    const Request& wanted = requests_.at(waiting);
    return wanted.name == request.name && wanted.value <= request.value;
  };
  std::vector<int32_t> over;
  std::ranges::copy_if(waiting_, std::back_inserter(over), goes_on);
  std::erase_if(waiting_, goes_on);
  return over;
}

bool Values::wait(const int32_t operation) {
  const Request& request = requests_.at(operation);
  if (value_of(request.name) >= request.value) return true;
  waiting_.push_back(operation);
  return false;
}

std::optional<Values::Awaited> Values::awaited() const {
  if (waiting_.empty()) return std::nullopt;
  const Request& request = requests_.at(waiting_.front());
  return Awaited{request.name, request.value, value_of(request.name)};
}

}  // namespace tbsched
