// Vectors as read-only arrays of NumPy.
#pragma once

#include <pybind11/numpy.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bindings/signals.h"

namespace tbsched {

// Returns an array that owns the vector's memory, without a copy.
template <typename Value>
pybind11::array_t<Value> to_array(std::vector<Value>&& values) {
  auto owned = std::make_unique<std::vector<Value>>(std::move(values));
  const pybind11::capsule keeper(owned.get(),
                                 [](void* data) { delete static_cast<std::vector<Value>*>(data); });
  const std::vector<Value>& kept = *owned.release();
  pybind11::array_t<Value> array(static_cast<pybind11::ssize_t>(kept.size()), kept.data(), keeper);
  pybind11::detail::array_proxy(array.ptr())->flags &=
      ~pybind11::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}

// Returns one member of each row as an array. Ctrl-C ends it.
template <typename Row, typename Value>
pybind11::array_t<Value> column(const std::vector<Row>& rows, Value Row::* const member) {
  constexpr size_t kRowsBetweenSignals = size_t{1} << 20;
  std::vector<Value> values;
  values.reserve(rows.size());
  while (values.size() < rows.size()) {
    python_signals();
    const auto part = std::span(rows)
                          .subspan(values.size())
                          .first(std::min(kRowsBetweenSignals, rows.size() - values.size()));
    std::ranges::transform(part, std::back_inserter(values), member);
  }
  return to_array(std::move(values));
}

}  // namespace tbsched
