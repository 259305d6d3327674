#include "tbsched/coresidency/packing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace tbsched {
namespace {

constexpr double kZero = 1e-9;
// Limit of rounding errors in a maximum.
constexpr double kRounding = 1e-6;

// The simplex method on a table: a row for each kind, one for the objective, and the right-hand
// sides as the last column. It begins with x = 0. Bland's rule prevents cycles.
class Simplex {
 public:
  Simplex(const std::vector<Multiset>& multisets, const Multiset& stock)
      : rows_(stock.size()), columns_(multisets.size() + rows_), basis_(rows_) {
    table_.assign((rows_ + 1) * (columns_ + 1), 0);
    for (size_t row = 0; row < rows_; ++row) {
      for (size_t k = 0; k < multisets.size(); ++k) at(row, k) = multisets[k][row];
      at(row, multisets.size() + row) = 1;
      at(row, columns_) = stock[row];
    }
    for (size_t k = 0; k < multisets.size(); ++k) at(rows_, k) = -1;
    std::iota(basis_.begin(), basis_.end(), multisets.size());
  }

  double maximum() {
    for (size_t column = entering(); column < columns_; column = entering()) {
      const size_t row = leaving(column);
      if (row == rows_) return std::numeric_limits<double>::infinity();
      pivot(row, column);
    }
    return at(rows_, columns_);
  }

 private:
  double& at(const size_t row, const size_t column) {
    return table_[row * (columns_ + 1) + column];
  }

  size_t entering() {
    size_t column = 0;
    while (column < columns_ && at(rows_, column) > -kZero) ++column;
    return column;
  }

  size_t leaving(const size_t column) {
    size_t best = rows_;
    double least = std::numeric_limits<double>::infinity();
    for (size_t row = 0; row < rows_; ++row) {
      if (at(row, column) <= kZero) continue;
      const double ratio = at(row, columns_) / at(row, column);
      const bool is_first = best < rows_ && ratio < least + kZero && basis_[row] < basis_[best];
      if (ratio < least - kZero || is_first) {
        least = ratio;
        best = row;
      }
    }
    return best;
  }

  void pivot(const size_t row, const size_t column) {
    const double by = at(row, column);
    for (size_t k = 0; k <= columns_; ++k) at(row, k) /= by;
    for (size_t other = 0; other <= rows_; ++other) {
      const double factor = at(other, column);
      if (other == row || factor == 0) continue;
      for (size_t k = 0; k <= columns_; ++k) at(other, k) -= factor * at(row, k);
    }
    basis_[row] = column;
  }

  size_t rows_;
  size_t columns_;
  std::vector<double> table_;
  std::vector<size_t> basis_;
};

}  // namespace

double most_packed(const std::vector<Multiset>& multisets, const Multiset& stock) {
  return multisets.empty() ? 0 : Simplex(multisets, stock).maximum();
}

bool packs_fewer(const double most, const int32_t number) {
  return std::floor(most + kRounding) < number;
}

}  // namespace tbsched
