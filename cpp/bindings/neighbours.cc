#include "bindings/neighbours.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>

namespace py = pybind11;

namespace tbsched {
namespace {

// Returns a number per resource; refuses another count of numbers.
PerResource to_resources(const std::vector<double>& given) {
  PerResource numbers{};
  if (given.size() != numbers.size()) {
    throw std::invalid_argument("kernels: a number for each of " + std::to_string(numbers.size()) +
                                " resources is needed; got " + std::to_string(given.size()));
  }
  std::ranges::copy(given, numbers.begin());
  return numbers;
}

// Returns what each kernel needs of each resource.
std::vector<Needs> to_needs(const GivenNeeds& given) {
  std::vector<Needs> kernels;
  for (const auto& [shares, waits] : given) {
    kernels.push_back({to_resources(shares), to_resources(waits)});
  }
  return kernels;
}

// Contents of SMs, and the number of SMs with these contents.
using GivenSms = std::vector<std::pair<SmContents, int32_t>>;

// Returns the contents of SMs as Contention takes them.
std::vector<EqualSms> to_alike(const GivenSms& given) {
  std::vector<EqualSms> alike;
  for (const auto& [contents, sms] : given) alike.push_back({contents, sms});
  return alike;
}

// Returns, for each mixture, how many times as long its blocks take as without any other block.
std::vector<std::vector<double>> times_in_python(const GivenNeeds& kernels, const int32_t sms,
                                                 const std::vector<GivenSms>& alone,
                                                 const std::vector<GivenSms>& mixtures) {
  Contention contention(to_needs(kernels), {}, sms);
  for (size_t kernel = 0; kernel < alone.size(); ++kernel) {
    contention.correct_for_own_blocks(static_cast<int32_t>(kernel), to_alike(alone[kernel]));
  }
  std::vector<std::vector<double>> times;
  for (const GivenSms& mixture : mixtures) times.push_back(contention.times(to_alike(mixture)));
  return times;
}

}  // namespace

std::optional<Neighbours> to_neighbours(const GivenNeighbours& given) {
  if (!given) return std::nullopt;
  return Neighbours{to_needs(*given), {}};
}

void bind_neighbours(py::module_& module) {
  py::list inside, outside;
  for (const std::string_view name : kInsideNames) inside.append(name);
  for (const std::string_view name : kOutsideNames) outside.append(name);
  module.attr("INSIDE_RESOURCES") = py::tuple(inside);
  module.attr("OUTSIDE_RESOURCES") = py::tuple(outside);
  module.def(
      "contention_times", &times_in_python, py::arg("kernels"), py::arg("sms"), py::arg("alone"),
      py::arg("mixtures"),
      "For each mixture, which is a list of (what an SM holds: pairs of a kernel and how "
      "many blocks, kernels ascending; number of such SMs): how many times as long blocks "
      "take as with nobody beside them, for all that is held, in that order. `alone` has the "
      "mixture in which each kernel was measured.");
}

}  // namespace tbsched
