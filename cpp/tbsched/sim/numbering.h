// Numbers of launches, copies and memsets, and the operation of each.
#pragma once

#include <cstdint>
#include <vector>

namespace tbsched {

// The numbers of the first launch, transfer and hidden launch that an event issues.
struct EventNumbers {
  int32_t launch = 0;
  int32_t transfer = 0;
  int32_t hidden = 0;  // a relay of a graph, or a kernel of the driver
};

// Hidden launches are numbered behind those of the sequence.
class Numbering {
 public:
  Numbering() = default;
  Numbering(const int32_t launches, const int32_t hidden, const int32_t transfers)
      : launches_(launches), launch_(launches + hidden, -1), transfer_(transfers) {}

  // Returns how many launches are not hidden.
  int32_t launches() const { return launches_; }
  // Returns the number, among all launches, of the hidden launch of this index.
  int32_t number_of_hidden(const int32_t hidden) const { return launches_ + hidden; }
  // Returns the operation of a launch; -1: it has not been issued.
  int32_t operation_of(const int32_t launch) const { return launch_[launch]; }
  int32_t operation_of_transfer(const int32_t transfer) const { return transfer_[transfer]; }
  void set(const int32_t launch, const int32_t operation) { launch_[launch] = operation; }
  void set_transfer(const int32_t transfer, const int32_t operation) {
    transfer_[transfer] = operation;
  }

 private:
  int32_t launches_ = 0;
  std::vector<int32_t> launch_;    // operations, by launch
  std::vector<int32_t> transfer_;  // operations, by copy, memset or host function
};

}  // namespace tbsched
