// Names that a caller gave, for messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tbsched {

// Returns the text in quotes, on one line: whatever is not printable ASCII is escaped, and a long
// text is cut.
inline std::string quoted(const std::string_view text) {
  constexpr std::size_t kMost = 200;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string found = "'";
  for (const char each : text.substr(0, kMost)) {
    if (each >= ' ' && each <= '~') {
      found += each;
    } else {
      const auto byte = static_cast<unsigned char>(each);
      found.append("\\x").append({kDigits[byte / 16], kDigits[byte % 16]});
    }
  }
  return found + (text.size() > kMost ? "'..." : "'");
}

}  // namespace tbsched
