// An optional value that few holders need: while unset, it takes the room of a pointer.
#pragma once

#include <memory>
#include <utility>

namespace tbsched {

// Copies are deep.
template <typename Value>
class Rare {
 public:
  Rare() = default;
  Rare(const Rare& other)
      : value_(other.value_ ? std::make_unique<Value>(*other.value_) : nullptr) {}
  Rare(Rare&&) noexcept = default;
  Rare& operator=(Rare other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }
  ~Rare() = default;

  explicit operator bool() const { return value_ != nullptr; }
  const Value& operator*() const { return *value_; }
  const Value* operator->() const { return value_.get(); }
  Value& operator*() { return *value_; }
  Value* operator->() { return value_.get(); }

  // Sets the value to one that is constructed from these arguments.
  template <typename... Arguments>
  void emplace(Arguments&&... arguments) {
    value_ = std::make_unique<Value>(std::forward<Arguments>(arguments)...);
  }

 private:
  std::unique_ptr<Value> value_;
};

}  // namespace tbsched
