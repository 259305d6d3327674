// A bank: its open row, and its waiting requests.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/sm_sim/dram/timing.h"

namespace tbsched::sm_sim {

struct Request {
  uint64_t access;  // its number at the controller
  int64_t arrived;
  int64_t number;  // in order of arrival at the controller
  int64_t row;
  int32_t column;
  bool write;
};

class Bank {
 public:
  static constexpr size_t kNone = ~size_t{0};

  BankTiming timing;

  bool idle() const { return requests_.empty(); }
  int64_t open() const { return open_; }  // -1: no row
  bool fresh() const { return fresh_; }   // the open row has not been read or written yet
  const Request& oldest() const { return requests_.front(); }
  // Returns the oldest request for the open row, or kNone.
  size_t hit() const { return hit_; }
  const Request& at(const size_t place) const { return requests_[place]; }

  void add(const Request& request) {
    if (hit_ == kNone && request.row == open_) hit_ = requests_.size();
    requests_.push_back(request);
  }

  void activate(const int64_t row) {
    open_ = row;
    fresh_ = true;
    sent_.reset();
    prefetched_ = 0;
    find_hit(0);
  }

  void precharge() {
    open_ = -1;
    hit_ = kNone;
  }

  // Removes the hit, which has been served.
  Request take_hit(const int64_t cycle) {
    const Request request = requests_[hit_];
    requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(hit_));
    send(request.column, cycle);
    find_hit(hit_);
    return request;
  }

  // Returns whether a column of the open row was read or written since the row was opened.
  bool sent(const int32_t column) const { return sent_[static_cast<size_t>(column)]; }
  int32_t prefetched() const { return prefetched_; }
  // Returns the cycle of the last read or write.
  int64_t served() const { return served_; }
  void prefetch(const int32_t column, const int64_t cycle) {
    send(column, cycle);
    ++prefetched_;
  }

 private:
  void send(const int32_t column, const int64_t cycle) {
    served_ = cycle;
    sent_.set(static_cast<size_t>(column));
    fresh_ = false;
  }

  void find_hit(const size_t from) {
    for (hit_ = from; hit_ < requests_.size(); ++hit_) {
      if (requests_[hit_].row == open_) return;
    }
    hit_ = kNone;
  }

  std::vector<Request> requests_;
  std::bitset<512> sent_;
  int64_t open_ = -1;
  int64_t served_ = -1;
  size_t hit_ = kNone;
  int32_t prefetched_ = 0;
  bool fresh_ = false;
};

}  // namespace tbsched::sm_sim
