#include "tbsched/sm_sim/workload.h"

#include <stdexcept>
#include <string>

namespace tbsched::sm_sim {
namespace {

// Throws std::invalid_argument that names the field and what is wrong with it.
[[noreturn]] void refuse_workload(const std::string& what) {
  throw std::invalid_argument("workload." + what);
}

// Throws std::invalid_argument if a row is not valid. `first`: it is the first row of its warp.
void check_row(const Workload& workload, const size_t row, const bool first) {
  const std::string where = "row " + std::to_string(row);
  const uint8_t access = workload.access[row];
  if (access > static_cast<uint8_t>(Access::barrier)) {
    refuse_workload("access: " + where + " has " + std::to_string(access) + ", outside 0..4");
  }
  if (workload.address[row] >> 60 != 0) refuse_workload("address: " + where + " is 2^60 or more");
  const bool accesses = access < static_cast<uint8_t>(Access::none);
  if (accesses && !workload.sectors.empty() && workload.sectors[row] == 0) {
    refuse_workload("sectors: " + where + " has none");
  }
  if (workload.compute[row] < 0) refuse_workload("compute: " + where + " is negative");
  if (access == static_cast<uint8_t>(Access::none) && workload.compute[row] == 0) {
    refuse_workload("compute: " + where + " has neither an access nor instructions that compute");
  }
  if (access != static_cast<uint8_t>(Access::same_instruction)) return;
  if (first || workload.access[row - 1] >= static_cast<uint8_t>(Access::none)) {
    refuse_workload("access: " + where + " goes with an access before it; there is none");
  }
  if (workload.compute[row] != 0) refuse_workload("compute: " + where + " must be 0");
}

}  // namespace

void check(const Workload& workload) {
  if (workload.warps_per_block < 1) refuse_workload("warps_per_block: it must be positive");
  if (workload.blocks_per_core < 1) refuse_workload("blocks_per_core: it must be positive");
  if (workload.rows.empty() || workload.warps() % workload.warps_per_block != 0) {
    refuse_workload("rows: the number of warps is no multiple of warps_per_block");
  }
  const size_t rows = workload.compute.size();
  if (workload.access.size() != rows || workload.address.size() != rows) {
    refuse_workload("rows: compute, access and address differ in length");
  }
  if (!workload.sectors.empty() && workload.sectors.size() != rows) {
    refuse_workload("rows: compute and sectors differ in length");
  }
  if (workload.rows.front() != 0 || workload.rows.back() != static_cast<int64_t>(rows)) {
    refuse_workload("rows: they do not begin with 0 and end with the number of rows");
  }
  for (size_t warp = 0; warp + 1 < workload.rows.size(); ++warp) {
    const int64_t begin = workload.rows[warp], end = workload.rows[warp + 1];
    if (begin >= end || end > static_cast<int64_t>(rows)) {
      refuse_workload("rows: warp " + std::to_string(warp) + " has none");
    }
    for (int64_t row = begin; row < end; ++row) {
      check_row(workload, static_cast<size_t>(row), row == begin);
    }
  }
}

}  // namespace tbsched::sm_sim
