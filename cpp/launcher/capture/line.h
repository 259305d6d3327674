// A line of JSON, written at the end of a text.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tbsched::capture {

// Has at least one member. The destructor ends the line.
class Line {
 public:
  explicit Line(std::string& out) : out_(out) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { out_ += "}\n"; }

  template <std::integral Value>
  Line& add(const std::string_view key, const Value value) {
    begin(key);
    if constexpr (std::same_as<Value, bool>) {
      out_ += value ? "true" : "false";
    } else {
      number(value);
    }
    return *this;
  }

  Line& add(const std::string_view key, const std::string_view text) {
    begin(key);
    out_ += '"';
    for (const char each : text) escape(each);
    out_ += '"';
    return *this;
  }

  Line& add(const std::string_view key, const std::span<const int64_t> values) {
    begin(key);
    out_ += '[';
    bool is_next = false;
    for (const int64_t value : values) {
      if (std::exchange(is_next, true)) out_ += ',';
      number(value);
    }
    out_ += ']';
    return *this;
  }

  // Members that were formatted before, without braces.
  Line& add_members(const std::string_view members) {
    separate();
    out_ += members;
    return *this;
  }

 private:
  void separate() {
    out_ += is_first_ ? '{' : ',';
    is_first_ = false;
  }

  void begin(const std::string_view key) {
    separate();
    out_ += '"';
    out_ += key;
    out_ += "\":";
  }

  template <std::integral Value>
  void number(const Value value) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out_.append(digits.data(), end);
  }

  void escape(const char each) {
    constexpr std::string_view hex = "0123456789abcdef";
    const auto code = static_cast<unsigned char>(each);
    if (each == '"' || each == '\\') {
      (out_ += '\\') += each;
    } else if (code < 0x20) {
      ((out_ += "\\u00") += hex[code >> 4]) += hex[code & 15];
    } else {
      out_ += each;
    }
  }

  std::string& out_;
  bool is_first_ = true;
};

}  // namespace tbsched::capture
