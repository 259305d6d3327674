#include "bindings/device_spec.h"

#include <pybind11/stl.h>

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tbsched/hardware/check.h"

namespace py = pybind11;

namespace tbsched {
namespace {

// Returns an integer in digits. Python refuses to write integers of thousands of digits: such ones
// are described.
std::string in_words(const py::handle integer) {
  const auto bits = integer.attr("bit_length")().cast<int64_t>();
  if (bits > 512) return "an integer of " + std::to_string(bits) + " bits";
  return py::str(integer).cast<std::string>();
}

// Reads an attribute, a flag, into the member of its field.
void read(const Field&, const py::handle value, bool& member) { member = value.cast<bool>(); }

// Reads an integer into the member of its field; refuses one out of range.
template <std::integral Member>
void read(const Field& field, const py::handle value, Member& member) {
  int overflow = 0;
  const int64_t number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (number == -1 && PyErr_Occurred()) throw py::error_already_set();
  if (overflow != 0 || !field.range.holds(number)) {
    refuse_outside(field, in_words(value));
  }
  member = static_cast<Member>(number);
}

// Reads a string into the member of its field.
void read(const Field&, const py::handle value, std::string& member) {
  const auto text =
      py::reinterpret_steal<py::bytes>(PyUnicode_AsEncodedString(value.ptr(), "utf-8", "replace"));
  if (!text) throw py::error_already_set();
  member = text;
}

// Reads the name of a layout into the member of its field; refuses an unknown one.
void read(const Field& field, const py::handle value, Layout& member) {
  std::string name;
  read(field, value, name);
  member = layout_named(field, name);
}

// Reads a list into the member of its field.
template <typename Item>
void read(const Field& field, const py::handle value, std::vector<Item>& member) {
  for (const py::handle item : value) read(field, item, member.emplace_back());
}

}  // namespace

DeviceSpec spec_of(const py::object& device) {
  DeviceSpec spec;
  const py::object mechanisms = device.attr("mechanisms");
  for_each_field(spec, [&](const Field& field, auto& member) {
    const py::object& holder = field.section == "mechanisms" ? mechanisms : device;
    read(field, holder.attr(py::str(field.name)), member);
  });
  return spec;
}

void bind_device_spec(py::module_& module) {
  module.def(
      "check", [](const py::object& spec) { check(spec_of(spec)); }, py::arg("spec"),
      "Refuses a device that makes no sense.");
  module.def(
      "check_documented",
      [](const py::object& spec, const std::vector<std::string>& measured) {
        check_documented(spec_of(spec), {measured.begin(), measured.end()});
      },
      py::arg("spec"), py::arg("measured"),
      "Refuses what NVIDIA documents otherwise, but for the fields measured (section.name).");
}

}  // namespace tbsched
