// Location of a line: controller, bank, row and column.
#pragma once

#include <bit>
#include <cstdint>

#include "tbsched/sm_sim/config.h"

namespace tbsched::sm_sim {

// A line is an address divided by the size of a line. Each controller numbers its lines (local
// lines) from 0 on, and their parts, each of which is one access of the DRAM.
class AddressMap {
 public:
  explicit AddressMap(const Config& config)
      : controllers_(static_cast<uint64_t>(config.controllers)),
        interleave_lines_(static_cast<uint64_t>(config.channel_interleave / config.line_bytes)),
        part_shift_(
            std::countr_zero(static_cast<uint32_t>(config.line_sectors / config.l2_fetch_sectors))),
        part_sectors_(config.l2_fetch_sectors),
        run_accesses_(static_cast<uint64_t>(config.bank_interleave / config.access_bytes())),
        runs_per_row_(static_cast<uint64_t>(config.row_bytes / config.bank_interleave)),
        banks_(static_cast<uint64_t>(config.banks)),
        hashed_(config.hash_banks != 0) {}

  // Returns the controller that a line belongs to.
  int32_t controller_of(const uint64_t line) const {
    return static_cast<int32_t>(line / interleave_lines_ % controllers_);
  }

  // Returns a line's number at its controller.
  uint64_t local_line_of(const uint64_t line) const {
    return line / (interleave_lines_ * controllers_) * interleave_lines_ + line % interleave_lines_;
  }

  // Returns the line that has the number `local` at a controller.
  uint64_t global_line_of(const int32_t controller, const uint64_t local) const {
    return (local / interleave_lines_ * controllers_ + static_cast<uint64_t>(controller)) *
               interleave_lines_ +
           local % interleave_lines_;
  }

  // Returns the first access for a local line; there is one for each of its parts.
  uint64_t first_access(const uint64_t local) const { return local << part_shift_; }
  // Returns the number of parts of a line.
  uint64_t parts() const { return uint64_t{1} << part_shift_; }
  // Returns the sectors that an access transfers.
  uint8_t sectors_of(const uint64_t access) const {
    const auto part = static_cast<int32_t>(access & (parts() - 1));
    return static_cast<uint8_t>(((1 << part_sectors_) - 1) << part * part_sectors_);
  }
  // Returns the local line of an access.
  uint64_t local_line_of_access(const uint64_t access) const { return access >> part_shift_; }

  struct Location {
    int32_t bank;
    int32_t column;
    int64_t row;
  };

  // Returns where the data of an access is. Runs of accesses go to one bank after the other; a row
  // holds runs_per_row_ of them.
  Location location_of(const uint64_t access) const {
    const uint64_t run = access / run_accesses_ / banks_;
    const uint64_t row = run / runs_per_row_;
    return {static_cast<int32_t>((access / run_accesses_ + bank_shift(row)) % banks_),
            static_cast<int32_t>(run % runs_per_row_ * run_accesses_ + access % run_accesses_),
            static_cast<int64_t>(row)};
  }

  // Returns the access whose data is there: the inverse of location_of().
  uint64_t access_at(const Location& location) const {
    const auto row = static_cast<uint64_t>(location.row);
    const auto column = static_cast<uint64_t>(location.column);
    const uint64_t bank =
        (static_cast<uint64_t>(location.bank) + banks_ - bank_shift(row)) % banks_;
    return ((row * runs_per_row_ + column / run_accesses_) * banks_ + bank) * run_accesses_ +
           column % run_accesses_;
  }

 private:
  // Returns by how many banks the row is shifted.
  uint64_t bank_shift(const uint64_t row) const {
    return hashed_ ? (row ^ row / banks_ ^ row / banks_ / banks_) % banks_ : 0;
  }

  uint64_t controllers_;
  uint64_t interleave_lines_;
  int part_shift_;  // a line has 2 to this power parts
  int32_t part_sectors_;
  uint64_t run_accesses_;  // accesses that go to one bank in a row
  uint64_t runs_per_row_;
  uint64_t banks_;
  bool hashed_;
};

}  // namespace tbsched::sm_sim
