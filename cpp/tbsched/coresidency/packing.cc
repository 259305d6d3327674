#include "tbsched/coresidency/packing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

namespace tbsched {
namespace {

constexpr double kZero = 1e-9;  // smaller coefficients count as zero
// Limit of rounding errors in a maximum.
constexpr double kRounding = 1e-6;

// The simplex method on a table: a row for each kind of element, one for the objective, and the
// right-hand sides as the last column. It begins with x = 0. Bland's rule prevents cycles.
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

  // Returns the maximum of the objective; infinite if there is none.
  double maximum() {
    for (size_t column = entering_column(); column < columns_; column = entering_column()) {
      const size_t row = leaving_row(column);
      if (row == rows_) return std::numeric_limits<double>::infinity();
      pivot(row, column);
    }
    return at(rows_, columns_);
  }

 private:
  double& at(const size_t row, const size_t column) {
    return table_[row * (columns_ + 1) + column];
  }
  double at(const size_t row, const size_t column) const {
    return table_[row * (columns_ + 1) + column];
  }

  // Returns the first column that increases the objective; columns_ at the maximum.
  size_t entering_column() const {
    size_t column = 0;
    while (column < columns_ && at(rows_, column) > -kZero) ++column;
    return column;
  }

  // Returns the row that limits the entering column most; rows_: none does.
  size_t leaving_row(const size_t column) const {
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

  // Brings the column into the basis, in the place of the row's column.
  void pivot(const size_t row, const size_t column) {
    const double pivot_element = at(row, column);
    for (size_t k = 0; k <= columns_; ++k) at(row, k) /= pivot_element;
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
  std::vector<size_t> basis_;  // column of each row
};

}  // namespace

double max_packed(const std::vector<Multiset>& multisets, const Multiset& stock) {
  return multisets.empty() ? 0 : Simplex(multisets, stock).maximum();
}

bool packs_fewer(const double max, const int32_t count) {
  return std::floor(max + kRounding) < count;
}

}  // namespace tbsched
