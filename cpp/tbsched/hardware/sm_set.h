// A set of SMs of one device.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tbsched {

// A set only grows, or becomes empty, so equal sets have equal words.
class SmSet {
 public:
  void add(const int32_t sm) {
    if (word_of(sm) >= words_.size()) words_.resize(word_of(sm) + 1);
    words_[word_of(sm)] |= bit_of(sm);
  }
  void add(const SmSet& others) {
    if (words_.size() < others.words_.size()) words_.resize(others.words_.size());
    for (size_t k = 0; k < others.words_.size(); ++k) words_[k] |= others.words_[k];
  }
  void clear() { words_.clear(); }

  bool empty() const { return words_.empty(); }
  int32_t size() const {
    int32_t sms = 0;
    for (const uint64_t word : words_) sms += std::popcount(word);
    return sms;
  }
  bool has(const int32_t sm) const {
    return word_of(sm) < words_.size() && (words_[word_of(sm)] & bit_of(sm)) != 0;
  }
  // Returns whether the two sets have an SM in common.
  bool intersects(const SmSet& other) const {
    const size_t words = std::min(words_.size(), other.words_.size());
    for (size_t k = 0; k < words; ++k) {
      if ((words_[k] & other.words_[k]) != 0) return true;
    }
    return false;
  }
  bool is_within(const SmSet& other) const {
    if (words_.size() > other.words_.size()) return false;
    for (size_t k = 0; k < words_.size(); ++k) {
      if ((words_[k] & ~other.words_[k]) != 0) return false;
    }
    return true;
  }

  bool operator==(const SmSet&) const = default;

 private:
  static constexpr int32_t kBits = 64;  // of a word

  static size_t word_of(const int32_t sm) { return static_cast<size_t>(sm / kBits); }
  static uint64_t bit_of(const int32_t sm) { return uint64_t{1} << (sm % kBits); }

  std::vector<uint64_t> words_;
};

}  // namespace tbsched
