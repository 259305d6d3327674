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
  int32_t to = 0;    // number of the component that handles it
  int32_t from = 0;  // number of the component that it comes from
  EventKind kind;
  uint8_t sectors = 1;  // sectors of the line, a bit each
};

// A wheel of buckets, one per tick, for the near future, and a heap for later events. Most events
// are near, so adding and taking one takes constant time.
class EventQueue {
 public:
  EventQueue() : buckets_(kBuckets) {}

  // Adds an event, which is not before the last one that was taken.
  void push(const Event& event) {
    if (event.tick - now_ < kBuckets) {
      add_to_bucket(event);
    } else {
      later_.push({event, pushed_++});
    }
  }

  // Takes the next event. Returns false if there is none.
  bool pop(Event& event) {
    std::vector<Event>* bucket = &buckets_[bucket_of(now_)];
    if (taken_ == bucket->size()) {
      bucket->clear();
      used_[bucket_of(now_) / kWordBits] &= ~(uint64_t{1} << bucket_of(now_) % kWordBits);
      taken_ = 0;
      if (!advance()) return false;
      bucket = &buckets_[bucket_of(now_)];
    }
    event = (*bucket)[taken_++];
    return true;
  }

 private:
  static constexpr int64_t kBuckets = 4096;
  static constexpr int64_t kWordBits = 64;

  struct Later {
    Event event;
    int64_t order;  // of push()

    bool operator<(const Later& other) const {  // inverted: the top of a heap is the greatest
      return event.tick != other.event.tick ? event.tick > other.event.tick : order > other.order;
    }
  };

  // Returns the index of the bucket of a tick.
  static size_t bucket_of(const int64_t tick) { return static_cast<size_t>(tick % kBuckets); }

  // Adds an event of the near future.
  void add_to_bucket(const Event& event) {
    const size_t at = bucket_of(event.tick);
    buckets_[at].push_back(event);
    used_[at / kWordBits] |= uint64_t{1} << at % kWordBits;
  }

  // Advances to the next tick with an event. Returns false if there is none.
  bool advance() {
    const int64_t distance = ticks_to_next_bucket();
    if (distance < kBuckets) {
      now_ += distance;
    } else if (!later_.empty()) {
      now_ = later_.top().event.tick;
    } else {
      return false;
    }
    // Before any later event enters the same buckets, so the order of arrival is kept.
    while (!later_.empty() && later_.top().event.tick - now_ < kBuckets) {
      add_to_bucket(later_.top().event);
      later_.pop();
    }
    return true;
  }

  // Returns how many ticks it is to the first bucket with an event; kBuckets: all are empty.
  int64_t ticks_to_next_bucket() const {
    const size_t begin = bucket_of(now_);
    for (size_t step = 0; step <= used_.size(); ++step) {
      const size_t word = (begin / kWordBits + step) % used_.size();
      uint64_t bits = used_[word];
      if (step == 0) bits &= ~uint64_t{0} << begin % kWordBits;
      if (step == used_.size()) bits &= (uint64_t{1} << begin % kWordBits) - 1;
      if (bits != 0) {
        const int64_t bucket = static_cast<int64_t>(word) * kWordBits + std::countr_zero(bits);
        return (bucket - static_cast<int64_t>(begin) + kBuckets) % kBuckets;
      }
    }
    return kBuckets;
  }

  std::vector<std::vector<Event>> buckets_;            // by tick, modulo kBuckets
  std::array<uint64_t, kBuckets / kWordBits> used_{};  // a bit per bucket: it may have events
  std::priority_queue<Later> later_;
  int64_t now_ = 0;     // tick of the last event that was taken
  int64_t pushed_ = 0;  // events that came into later_
  size_t taken_ = 0;    // events of the current bucket that were taken
};

}  // namespace tbsched::sm_sim
