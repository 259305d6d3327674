#include "tbsched/hardware/device_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tbsched/hardware/check.h"
#include "tbsched/program/refuse.h"

namespace tbsched {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kProvenances = {"paper", "vendor", "measured", "assumed"};
constexpr int64_t kMaxRangeBound = 1'000'000;  // of [start, stop, step]

// The values of a file by path ("limits.warps_per_sm"), and the paths of measured ones.
struct Rows {
  std::map<std::string, const toml::node*> values;
  std::set<std::string> measured;
};

// Refuses a value that has not the type which its field needs, such as "an integer".
[[noreturn]] void refuse_type(const Field& field, const char* const type, const toml::node& value) {
  std::ostringstream message;
  message << field.path() << ": " << type << " is needed, got ";
  value.visit([&](const auto& node) { message << node; });
  refuse(message.str());
}

// Returns a value as a list; refuses another one, which has not the type `what`.
const toml::array& list(const Field& field, const char* const what, const toml::node& value) {
  if (const toml::array* const items = value.as_array()) return *items;
  refuse_type(field, what, value);
}

// Returns a value as a string; refuses another one.
std::string text(const Field& field, const toml::node& value) {
  if (const auto* const string = value.as_string()) return string->get();
  refuse_type(field, "a string", value);
}

// Reads a value of a file into the member of a field. Refuses a value that is no flag.
void read(const Field& field, const toml::node& value, bool& member) {
  const auto* const flag = value.as_boolean();
  if (flag == nullptr) refuse_type(field, "true or false", value);
  member = flag->get();
}

// Reads an integer into the member of a field. Refuses another value, and one out of range.
template <std::integral Member>
void read(const Field& field, const toml::node& value, Member& member) {
  const auto* const number = value.as_integer();
  if (number == nullptr) refuse_type(field, "an integer", value);
  if (!field.range.holds(number->get())) refuse_outside(field, std::to_string(number->get()));
  member = static_cast<Member>(number->get());
}

// Reads a text into the member of a field. Refuses another value.
void read(const Field& field, const toml::node& value, std::string& member) {
  member = text(field, value);
}

// Reads the name of a layout into the member of a field. Refuses another value.
void read(const Field& field, const toml::node& value, Layout& member) {
  member = layout_named(field, text(field, value));
}

// Appends the numbers of rows of [start, stop, step], as Python's range gives them.
void read_ranges(const Field& field, const toml::node& value, std::vector<int32_t>& member) {
  constexpr const char* kWhat = "a list of [start, stop, step]";
  const Field part{field.section, field.name, Range{-kMaxRangeBound, kMaxRangeBound}};
  for (const toml::node& row : list(field, kWhat, value)) {
    std::vector<int32_t> parts;
    for (const toml::node& item : list(field, "a list", row))
      read(part, item, parts.emplace_back());
    if (parts.size() != 3 || parts[2] == 0) refuse_type(field, kWhat, value);
    for (int32_t i = parts[0]; parts[2] > 0 ? i < parts[1] : i > parts[1]; i += parts[2]) {
      if (std::cmp_equal(member.size(), ranges::sms.high)) {
        refuse(field.path() + ": the rows have more than " + std::to_string(ranges::sms.high) +
               " SMs, the most of a device");
      }
      member.push_back(i);
    }
  }
}

// Reads a list into the member of a field. Refuses another value.
template <typename Item>
void read(const Field& field, const toml::node& value, std::vector<Item>& member) {
  member.clear();
  if constexpr (std::same_as<Item, int32_t>) {
    if (field.as_ranges) return read_ranges(field, value, member);
  }
  for (const toml::node& item : list(field, "a list", value)) {
    read(field, item, member.emplace_back());
  }
}

// Adds the value of a row to `rows`. Refuses a row without a provenance and a source.
void add_row(const std::string& path, const toml::node& row, Rows& rows) {
  const toml::table* const cells = row.as_table();
  if (cells == nullptr || cells->size() != 3 || !cells->contains("value") ||
      !cells->contains("provenance") || !cells->contains("source")) {
    refuse(path + ": { value, provenance, source } is needed");
  }
  const auto kind = cells->get("provenance")->value<std::string>();
  if (!kind || std::ranges::find(kProvenances, *kind) == kProvenances.end()) {
    refuse(path + ": provenance " + (kind ? "'" + *kind + "' " : "") +
           "is not one of paper, vendor, measured, assumed");
  }
  if (!cells->get("source")->is_string()) refuse(path + ".source: a string is needed");
  if (*kind == "measured") rows.measured.insert(path);
  rows.values[path] = cells->get("value");
}

// Returns the rows of a file; refuses sections and keys that no device has.
Rows rows_of(const toml::table& data) {
  std::set<std::string, std::less<>> sections;
  std::set<std::string, std::less<>> paths;
  const DeviceSpec none;
  for_each_field(none, [&](const Field& field, const auto&) {
    sections.emplace(field.section);
    paths.insert(field.path());
  });
  Rows rows;
  for (const auto& [section, keys] : data) {
    if (section == "extends" || section == "checked") continue;
    if (!keys.is_table() || section.str().empty() || !sections.contains(section.str())) {
      refuse("unknown key '" + std::string(section) + "'");
    }
    for (const auto& [key, row] : *keys.as_table()) {
      const std::string path = std::string(section) + "." + std::string(key);
      if (!paths.contains(path)) refuse("unknown key '" + path + "'");
      add_row(path, row, rows);
    }
  }
  return rows;
}

// Returns the contents of a file; refuses one that is not there or is not TOML.
toml::table load(const fs::path& file) {
  if (!fs::is_regular_file(file)) refuse("no file");
  try {
    return toml::parse_file(file.string());
  } catch (const toml::parse_error& error) {
    refuse(std::string("not TOML: ") + error.what());
  }
}

// Reads the device of a file, after those that it extends. `extending`: the files that extend this
// one, none of which it may extend.
DeviceSpec read_device(const fs::path& file, const fs::path& devices,
                       std::set<fs::path> extending) try {
  const toml::table data = load(file);
  std::optional<DeviceSpec> parent;
  if (const toml::node* const extends = data.get("extends")) {
    const auto* const name = extends->as_string();
    if (name == nullptr) refuse("extends: a string is needed");
    if (!extending.insert(fs::canonical(file)).second) refuse("extends itself");
    const bool is_file = name->get().ends_with(".toml");
    parent =
        read_device(is_file ? file.parent_path() / name->get() : devices / (name->get() + ".toml"),
                    devices, std::move(extending));
  }
  if (const toml::node* const checked = data.get("checked")) {
    if (!parent) refuse("checked: nothing is inherited: there is no extends");
    if (!checked->is_string()) refuse("checked: a string is needed");
  }
  const Rows rows = rows_of(data);
  DeviceSpec spec = parent.value_or(DeviceSpec{});
  for_each_field(spec, [&](const Field& field, auto& member) {
    if (const auto row = rows.values.find(field.path()); row != rows.values.end()) {
      read(field, *row->second, member);
    } else if (!parent && field.required && !field.section.empty()) {
      refuse("'" + field.path() + "' is missing");
    }
  });
  spec.name = file.stem().string();
  check(spec);
  check_documented(spec, rows.measured);
  return spec;
} catch (const std::invalid_argument& error) {
  throw std::invalid_argument(file.string() + ": " + error.what());
}

}  // namespace

DeviceSpec read_device(const fs::path& file, const fs::path& devices) {
  return read_device(file, devices, std::set<fs::path>{});
}

}  // namespace tbsched
