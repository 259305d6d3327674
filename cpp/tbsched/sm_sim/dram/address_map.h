// Location of a line: controller, bank, row and column.
#pragma once

#include <bit>
#include <cstdint>

#include "tbsched/sm_sim/config.h"

namespace tbsched::sm_sim {

// Line numbers are addresses divided by the size of a line. A controller numbers its own lines, and
// its accesses, which are parts of lines.
class AddressMap {
 public:
  explicit AddressMap(const Config& config)
      : controllers_(static_cast<uint64_t>(config.controllers)),
        interleave_(static_cast<uint64_t>(config.channel_interleave / config.line_bytes)),
        part_shift_(
            std::countr_zero(static_cast<uint32_t>(config.line_sectors / config.l2_fetch_sectors))),
        part_sectors_(config.l2_fetch_sectors),
        run_(static_cast<uint64_t>(config.bank_interleave / config.access_bytes())),
        runs_(static_cast<uint64_t>(config.row_bytes / config.bank_interleave)),
        banks_(static_cast<uint64_t>(config.banks)),
        hashed_(config.hash_banks != 0) {}

  int32_t controller_of(const uint64_t line) const {
    return static_cast<int32_t>(line / interleave_ % controllers_);
  }

  uint64_t own_of(const uint64_t line) const {
    return line / (interleave_ * controllers_) * interleave_ + line % interleave_;
  }

  uint64_t line_of(const int32_t controller, const uint64_t own) const {
    return (own / interleave_ * controllers_ + static_cast<uint64_t>(controller)) * interleave_ +
           own % interleave_;
  }

  // Returns the first access for a line of the controller; there is one for each of its parts.
  uint64_t first_access(const uint64_t own) const { return own << part_shift_; }
  uint64_t parts() const { return uint64_t{1} << part_shift_; }
  // Returns the sectors in a part of a line.
  uint8_t sectors_of(const uint64_t access) const {
    const auto part = static_cast<int32_t>(access & (parts() - 1));
    return static_cast<uint8_t>(((1 << part_sectors_) - 1) << part * part_sectors_);
  }
  uint64_t own_of_access(const uint64_t access) const { return access >> part_shift_; }

  struct Place {
    int32_t bank;
    int32_t column;
    int64_t row;
  };

  // Runs of accesses go to one bank after the other; a row holds runs_ of them.
  Place place_of(const uint64_t access) const {
    const uint64_t run = access / run_ / banks_;
    const uint64_t row = run / runs_;
    return {static_cast<int32_t>((access / run_ + shift(row)) % banks_),
            static_cast<int32_t>(run % runs_ * run_ + access % run_), static_cast<int64_t>(row)};
  }

  uint64_t access_at(const Place& place) const {
    const auto row = static_cast<uint64_t>(place.row);
    const auto column = static_cast<uint64_t>(place.column);
    const uint64_t bank = (static_cast<uint64_t>(place.bank) + banks_ - shift(row)) % banks_;
    return ((row * runs_ + column / run_) * banks_ + bank) * run_ + column % run_;
  }

 private:
  // Returns by how many banks the row is shifted.
  uint64_t shift(const uint64_t row) const {
    return hashed_ ? (row ^ row / banks_ ^ row / banks_ / banks_) % banks_ : 0;
  }

  uint64_t controllers_;
  uint64_t interleave_;
  int part_shift_;  // a line has 2 to this power parts
  int32_t part_sectors_;
  uint64_t run_;
  uint64_t runs_;
  uint64_t banks_;
  bool hashed_;
};

}  // namespace tbsched::sm_sim
