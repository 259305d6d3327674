// The queue of events: in order of ticks, and of arrival within a tick.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

namespace tbsched::sm_sim {

enum class EventKind : uint8_t {
  issue,       // core `to` has a slot
  fill,        // core `to` receives a line
  written,     // a line that core `to` wrote has been taken
  request,     // slice `to` receives a read of core `from`
  write,       // slice `to` receives a written line of core `from`
  serve,       // slice `to` serves its queue again
  reply,       // slice `from` sends a line to core `to`
  controller,  // controller `to` may send a command
  data,        // controller `to` has read the data of access `line`
};

struct Event {
  int64_t tick;
  uint64_t line = 0;
  int32_t to = 0;
  int32_t from = 0;
  EventKind what;
  uint8_t sectors = 1;  // sectors of the line, a bit each
};

// A wheel of buckets, one per tick, for the near future, and a heap for later events. Most events
// are near, so adding and taking one takes constant time.
class EventQueue {
 public:
  EventQueue() : buckets_(kBuckets) {}

  // Not before the tick of the last taken event.
  void push(const Event& event) {
    if (event.tick - now_ < kBuckets) {
      put(event);
    } else {
      later_.push({event, pushed_++});
    }
  }

  // Returns whether there was an event to take.
  bool pop(Event& event) {
    std::vector<Event>* bucket = &buckets_[place(now_)];
    if (taken_ == bucket->size()) {
      bucket->clear();
      used_[place(now_) / kBits] &= ~(uint64_t{1} << place(now_) % kBits);
      taken_ = 0;
      if (!advance()) return false;
      bucket = &buckets_[place(now_)];
    }
    event = (*bucket)[taken_++];
    return true;
  }

 private:
  static constexpr int64_t kBuckets = 4096;
  static constexpr int64_t kBits = 64;

  struct Later {
    Event event;
    int64_t number;

    bool operator<(const Later& other) const {  // inverted: the top of a heap is the greatest
      return event.tick != other.event.tick ? event.tick > other.event.tick : number > other.number;
    }
  };

  static size_t place(const int64_t tick) { return static_cast<size_t>(tick % kBuckets); }

  void put(const Event& event) {
    const size_t at = place(event.tick);
    buckets_[at].push_back(event);
    used_[at / kBits] |= uint64_t{1} << at % kBits;
  }

  // Advances to the next tick with an event.
  bool advance() {
    const int64_t distance = to_next_bucket();
    if (distance < kBuckets) {
      now_ += distance;
    } else if (!later_.empty()) {
      now_ = later_.top().event.tick;
    } else {
      return false;
    }
    // Before any later event enters the same buckets, so the order of arrival is kept.
    while (!later_.empty() && later_.top().event.tick - now_ < kBuckets) {
      put(later_.top().event);
      later_.pop();
    }
    return true;
  }

  int64_t to_next_bucket() const {
    const size_t begin = place(now_);
    for (size_t step = 0; step <= used_.size(); ++step) {
      const size_t word = (begin / kBits + step) % used_.size();
      uint64_t bits = used_[word];
      if (step == 0) bits &= ~uint64_t{0} << begin % kBits;
      if (step == used_.size()) bits &= (uint64_t{1} << begin % kBits) - 1;
      if (bits != 0) {
        const int64_t found = static_cast<int64_t>(word) * kBits + std::countr_zero(bits);
        return (found - static_cast<int64_t>(begin) + kBuckets) % kBuckets;
      }
    }
    return kBuckets;
  }

  std::vector<std::vector<Event>> buckets_;
  std::array<uint64_t, kBuckets / kBits> used_{};
  std::priority_queue<Later> later_;
  int64_t now_ = 0;
  int64_t pushed_ = 0;
  size_t taken_ = 0;
};

}  // namespace tbsched::sm_sim
