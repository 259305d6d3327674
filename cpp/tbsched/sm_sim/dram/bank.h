// A bank: its open row, and its waiting requests.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/sm_sim/dram/timing.h"

namespace tbsched::sm_sim {

// An access that waits at its bank.
struct Request {
  uint64_t access;  // number of the access at the controller
  int64_t arrived;  // DRAM cycle
  int64_t order;    // position among all arrivals at the controller
  int64_t row;
  int32_t column;
  bool write;
};

// Times are DRAM cycles.
class Bank {
 public:
  static constexpr size_t kNone = ~size_t{0};

  BankTiming timing;

  bool idle() const { return requests_.empty(); }
  int64_t open_row() const { return open_row_; }  // -1: none
  bool is_row_unused() const {
    return is_row_unused_;
  }  // the open row has not been read or written yet
  const Request& oldest() const { return requests_.front(); }
  // Returns the index of the oldest request for the open row, or kNone.
  size_t hit() const { return hit_; }
  const Request& at(const size_t index) const { return requests_[index]; }

  // Adds a request, which is the youngest.
  void add(const Request& request) {
    if (hit_ == kNone && request.row == open_row_) hit_ = requests_.size();
    requests_.push_back(request);
  }

  // Opens a row.
  void activate(const int64_t row) {
    open_row_ = row;
    is_row_unused_ = true;
    accessed_.reset();
    prefetched_ = 0;
    find_hit(0);
  }

  // Closes the row.
  void precharge() {
    open_row_ = -1;
    hit_ = kNone;
  }

  // Removes the request at hit(), which is served in `cycle`, and returns it.
  Request take_hit(const int64_t cycle) {
    const Request request = requests_[hit_];
    requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(hit_));
    access(request.column, cycle);
    find_hit(hit_);
    return request;
  }

  // Returns whether a column of the open row was read or written since the row was opened.
  bool was_accessed(const int32_t column) const { return accessed_[static_cast<size_t>(column)]; }
  // Returns how many columns were prefetched since the row was opened.
  int32_t prefetched() const { return prefetched_; }
  // Returns the cycle of the last read or write; -1: none.
  int64_t last_access() const { return last_access_; }
  // Notes that a column is prefetched.
  void prefetch(const int32_t column, const int64_t cycle) {
    access(column, cycle);
    ++prefetched_;
  }

 private:
  // Notes that a column of the open row is read or written.
  void access(const int32_t column, const int64_t cycle) {
    last_access_ = cycle;
    accessed_.set(static_cast<size_t>(column));
    is_row_unused_ = false;
  }

  // Finds the oldest request for the open row, from an index on.
  void find_hit(const size_t from) {
    for (hit_ = from; hit_ < requests_.size(); ++hit_) {
      if (requests_[hit_].row == open_row_) return;
    }
    hit_ = kNone;
  }

  std::vector<Request> requests_;  // oldest first
  std::bitset<512> accessed_;      // columns of the open row
  int64_t open_row_ = -1;
  int64_t last_access_ = -1;
  size_t hit_ = kNone;
  int32_t prefetched_ = 0;
  bool is_row_unused_ = false;
};

}  // namespace tbsched::sm_sim
