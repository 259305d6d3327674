// Names that a caller gave, for messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tbsched {

// Returns the text, UTF-8, in quotes and on one line: control characters of ASCII are escaped, and
// a long text is cut between two characters.
inline std::string quoted(const std::string_view text) {
  constexpr std::size_t kMost = 200;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string found = "'";
  std::size_t size = text.size();
  if (size > kMost) {
    size = kMost;
    while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  }
  for (const char each : text.substr(0, size)) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte >= ' ' && byte != 0x7F) {
      found += each;
    } else {
      found.append("\\x").append({kDigits[byte / 16], kDigits[byte % 16]});
    }
  }
  return found + (text.size() > kMost ? "'..." : "'");
}

}  // namespace tbsched
