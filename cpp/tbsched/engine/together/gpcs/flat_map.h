// Values by key, which lie side by side in memory: there are many, and all are gone through.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace tbsched {

// Keys are equal if their bytes are.
template <typename Key, typename Value>
class FlatMap {
  static_assert(std::has_unique_object_representations_v<Key>);

 public:
  using value_type = std::pair<Key, Value>;

  // What is there under the key, or the value, which is there then; and whether it is new. It
  // remains until there are more.
  std::pair<Value&, bool> try_emplace(const Key& key, const Value& value) {
    if (entries_.size() >= slots_.size() / 2) grow();
    const uint32_t hash = hash_of(key);
    const size_t slot = slot_of(key, hash);
    if (slots_[slot].number != kNone) return {entries_[slots_[slot].number].second, false};
    slots_[slot] = {hash, static_cast<uint32_t>(entries_.size())};
    entries_.emplace_back(key, value);
    return {entries_.back().second, true};
  }

  const Value* find(const Key& key) const {
    if (entries_.empty()) return nullptr;
    const uint32_t number = slots_[slot_of(key, hash_of(key))].number;
    return number == kNone ? nullptr : &entries_[number].second;
  }

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  // In the order in which they came.
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kFirstSlots = 64;
  static constexpr uint64_t kFactor = 0x517cc1b727220a95;
  struct Slot {
    uint32_t hash = 0;
    uint32_t number = kNone;
  };

  // Word by word, as by FxHash: for so few bytes that is faster than std::hash.
  static uint32_t hash_of(const Key& key) {
    std::array<uint64_t, (sizeof(Key) + 7) / 8> words = {};
    std::memcpy(words.data(), &key, sizeof(Key));
    uint64_t hash = 0;
    for (const uint64_t word : words) hash = (std::rotl(hash, 5) ^ word) * kFactor;
    return static_cast<uint32_t>(hash >> 32U);
  }

  static bool is_same(const Key& one, const Key& other) {
    return std::memcmp(&one, &other, sizeof(Key)) == 0;
  }

  // Where the key is, or would be: half of the slots are free.
  size_t slot_of(const Key& key, const uint32_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = hash & mask;
    while (slots_[slot].number != kNone) {
      if (slots_[slot].hash == hash && is_same(entries_[slots_[slot].number].first, key)) break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  void grow() {
    const std::vector<Slot> before = std::move(slots_);
    slots_.assign(std::max(kFirstSlots, 4 * before.size()), Slot{});
    const size_t mask = slots_.size() - 1;
    for (const Slot& each : before) {
      if (each.number == kNone) continue;
      size_t slot = each.hash & mask;
      while (slots_[slot].number != kNone) slot = (slot + 1) & mask;
      slots_[slot] = each;
    }
  }

  std::vector<value_type> entries_;
  std::vector<Slot> slots_;
};

}  // namespace tbsched
