// Prints what C++ reads from device files, a line of JSON each.
//
//   read_devices FOLDER FILE...
#include <concepts>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tbsched/hardware/device_file.h"

namespace {

void print(const std::string& text) {
  std::cout << '"';
  for (const char character : text) {
    std::cout << (character == '"' || character == '\\' ? "\\" : "") << character;
  }
  std::cout << '"';
}
void print(const bool flag) { std::cout << (flag ? "true" : "false"); }
void print(const tbsched::Layout layout) {
  print(std::string(tbsched::kLayoutNames[static_cast<size_t>(layout)]));
}
template <std::integral Number>
void print(const Number number) {
  std::cout << number;
}
template <typename Item>
void print(const std::vector<Item>& items) {
  const char* separator = "[";
  for (const Item& item : items) {
    std::cout << separator;
    print(item);
    separator = ",";
  }
  std::cout << (items.empty() ? "[]" : "]");
}

void print_fields(const tbsched::DeviceSpec& spec) {
  const char* separator = "{";
  tbsched::for_each_field(spec, [&](const tbsched::Field& field, const auto& member) {
    std::cout << separator;
    print(field.path());
    std::cout << ":";
    print(member);
    separator = ",";
  });
  std::cout << "}\n";
}

}  // namespace

int main(const int arguments, const char* const* const words) {
  for (int number = 2; number < arguments; ++number) {
    try {
      print_fields(tbsched::read_device(words[number], words[1]));
    } catch (const std::invalid_argument& error) {
      print(std::string(error.what()));
      std::cout << '\n';
    }
  }
}
