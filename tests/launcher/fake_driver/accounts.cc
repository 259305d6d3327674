#include "accounts.h"

#include <unistd.h>

#include <csignal>

namespace fake {

Accounts& Accounts::get() {
  static Accounts accounts;
  return accounts;
}

CUresult Accounts::enter(const std::string& call) {
  const std::scoped_lock lock(mutex_);
  ++calls_[""];
  if (++calls_[call] == interrupts_at_ && call == interrupts_) kill(getpid(), SIGINT);
  if (fails_at_ == 0 || (!fails_.empty() && fails_ != call)) return CUDA_SUCCESS;
  ++matching_;
  if (matching_ < fails_at_ || (matching_ > fails_at_ && !for_good_)) return CUDA_SUCCESS;
  failed_ = call;
  return code_;
}

void Accounts::fail(const std::string& call, const int64_t at, const CUresult code,
                    const bool for_good) {
  const std::scoped_lock lock(mutex_);
  fails_ = call;
  fails_at_ = at;
  code_ = code;
  for_good_ = for_good;
  calls_.clear();
  matching_ = 0;
  failed_.clear();
}

void Accounts::interrupt(const std::string& call, const int64_t at) {
  const std::scoped_lock lock(mutex_);
  interrupts_ = call;
  interrupts_at_ = at;
  calls_.clear();
}

std::string Accounts::failed() const {
  const std::scoped_lock lock(mutex_);
  return failed_;
}

int64_t Accounts::calls(const std::string& call) const {
  const std::scoped_lock lock(mutex_);
  const auto found = calls_.find(call);
  return found == calls_.end() ? 0 : found->second;
}

void Accounts::give(const std::string& kind, const void* const what) {
  const std::scoped_lock lock(mutex_);
  given_[kind].insert(what);
}

bool Accounts::take_back(const std::string& kind, const void* const what) {
  const std::scoped_lock lock(mutex_);
  auto& given = given_[kind];
  const auto found = given.find(what);
  if (found == given.end()) return false;
  given.erase(found);
  return true;
}

bool Accounts::gave(const std::string& kind, const void* const what) const {
  const std::scoped_lock lock(mutex_);
  const auto given = given_.find(kind);
  return given != given_.end() && given->second.contains(what);
}

int64_t Accounts::live(const std::string& kind) const {
  const std::scoped_lock lock(mutex_);
  const auto given = given_.find(kind);
  return given == given_.end() ? 0 : static_cast<int64_t>(given->second.size());
}

}  // namespace fake
