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

// Appends one line of JSON, an object, to a text. At least one member must be added; the destructor
// ends the line.
class Line {
 public:
  explicit Line(std::string& out) : out_(out) {}
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;
  ~Line() { out_ += "}\n"; }

  template <std::integral Value>
  Line& add(const std::string_view key, const Value value) {
    begin_member(key);
    if constexpr (std::same_as<Value, bool>) {
      out_ += value ? "true" : "false";
    } else {
      write_number(value);
    }
    return *this;
  }

  Line& add(const std::string_view key, const std::string_view text) {
    begin_member(key);
    out_ += '"';
    for (const char character : text) write_escaped(character);
    out_ += '"';
    return *this;
  }

  Line& add(const std::string_view key, const std::span<const int64_t> values) {
    begin_member(key);
    out_ += '[';
    bool has_any = false;
    for (const int64_t value : values) {
      if (std::exchange(has_any, true)) out_ += ',';
      write_number(value);
    }
    out_ += ']';
    return *this;
  }

  // Adds members that were formatted before, without braces.
  Line& add_members(const std::string_view members) {
    separate();
    out_ += members;
    return *this;
  }

 private:
  // Writes what is before a member: the opening brace, or a comma.
  void separate() {
    out_ += is_first_ ? '{' : ',';
    is_first_ = false;
  }

  void begin_member(const std::string_view key) {
    separate();
    out_ += '"';
    out_ += key;
    out_ += "\":";
  }

  template <std::integral Value>
  void write_number(const Value value) {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    out_.append(digits.data(), end);
  }

  // Writes a character of a string.
  void write_escaped(const char character) {
    constexpr std::string_view hex = "0123456789abcdef";
    const auto code = static_cast<unsigned char>(character);
    if (character == '"' || character == '\\') {
      (out_ += '\\') += character;
    } else if (code < 0x20) {
      ((out_ += "\\u00") += hex[code >> 4]) += hex[code & 15];
    } else {
      out_ += character;
    }
  }

  std::string& out_;
  bool is_first_ = true;
};

}  // namespace tbsched::capture
