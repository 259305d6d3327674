// Outstanding misses: lines on their way, and the waiters of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tbsched::sm_sim {

// `Waiters`: those that wait for a line.
template <typename Waiters>
class Mshrs {
 public:
  struct Entry {
    uint64_t line;
    int64_t since;        // tick of the first miss
    uint8_t sectors = 0;  // those that are on their way
    Waiters waiters{};
  };

  explicit Mshrs(const int32_t max_lines) : max_lines_(static_cast<size_t>(max_lines)) {
    lines_.reserve(max_lines_);
  }

  bool full() const { return lines_.size() >= max_lines_; }
  bool empty() const { return lines_.empty(); }

  // Returns the entry of a line; nullptr: the line is not on its way. Valid until the next
  // non-const call.
  Entry* find(const uint64_t line) {
    for (size_t at = 0; at < lines_.size(); ++at) {
      if (lines_[at] == line) return &entries_[at];
    }
    return nullptr;
  }

  // Adds a line that is not on its way.
  Entry& add(const uint64_t line, const int64_t since) {
    lines_.push_back(line);
    return entries_.emplace_back(Entry{line, since, 0, {}});
  }

  // Removes the entry of a line that has arrived, and returns it.
  Entry take(Entry* const entry) {
    const size_t at = static_cast<size_t>(entry - entries_.data());
    Entry taken = std::move(entries_[at]);
    lines_[at] = lines_.back();
    lines_.pop_back();
    if (at + 1 < entries_.size()) entries_[at] = std::move(entries_.back());
    entries_.pop_back();
    return taken;
  }

 private:
  size_t max_lines_;
  std::vector<uint64_t> lines_;  // as in entries_; contiguous, since they are searched
  std::vector<Entry> entries_;
};

}  // namespace tbsched::sm_sim
