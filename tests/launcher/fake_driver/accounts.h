// What the fake driver has given out, and the calls that are to go wrong.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace fake {

class Accounts {
 public:
  static Accounts& get();

  // Every call begins with it. What it returns, unless that is success, the call returns at once.
  CUresult enter(const std::string& call);
  // The so many-th call from now on fails; with a name, of those of that name. `for_good`: and all
  // such calls after it.
  void fail(const std::string& call, int64_t at, CUresult code, bool for_good);
  // In the so many-th such call Ctrl-C reaches the process.
  void interrupt(const std::string& call, int64_t at);
  std::string failed() const;                    // the last call that was made to fail
  int64_t calls(const std::string& call) const;  // since fail() or interrupt(); "": all

  void give(const std::string& kind, const void* what);
  // False: it was not given out, or has been taken back already.
  bool take_back(const std::string& kind, const void* what);
  // It has not been taken back.
  bool gave(const std::string& kind, const void* what) const;
  int64_t live(const std::string& kind) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::multiset<const void*>> given_;
  std::string fails_;
  std::string failed_;
  int64_t fails_at_ = 0;
  int64_t matching_ = 0;
  std::string interrupts_;
  int64_t interrupts_at_ = 0;
  std::map<std::string, int64_t> calls_;
  CUresult code_ = CUDA_SUCCESS;
  bool for_good_ = false;
};

}  // namespace fake
