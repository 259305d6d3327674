// Names that a caller gave, for messages.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tbsched {

// Returns the text in quotes, on one line: whatever is not printable ASCII is escaped, and a long
// text is cut.
inline std::string quoted(const std::string_view text) {
  constexpr std::size_t kMaxCharacters = 200;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string quote = "'";
  for (const char character : text.substr(0, kMaxCharacters)) {
    if (character >= ' ' && character <= '~') {
      quote += character;
    } else {
      const auto byte = static_cast<unsigned char>(character);
      quote.append("\\x").append({kDigits[byte / 16], kDigits[byte % 16]});
    }
  }
  return quote + (text.size() > kMaxCharacters ? "'..." : "'");
}

}  // namespace tbsched
