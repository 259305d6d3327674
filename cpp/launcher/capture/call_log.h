// What threads of the program call, between two looks of the writer.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "launcher/capture/operations.h"

namespace tbsched::capture {

// A call that a thread is in.
struct OpenCall {
  CUpti_CallbackId function = 0;
  uint32_t call = 0;
  uint32_t thread = 0;  // as CUPTI's records have it
  int32_t system = 0;   // the number that the operating system gives the thread
  uint64_t begin_ns = 0;
  uint64_t number = 0;  // notes before it
};

// A note: an operation that a call is about to issue, or what the return of a call says.
struct Note {
  enum class Kind : uint8_t { kIssued, kFailed, kWaited, kHappened };
  Kind kind;
  OpenCall by;
  Operation operation;
  const std::string* name = nullptr;  // of a launched kernel; lives as long as the log
};

// Notes are in the order of the calls. While a stream is captured into a graph, operations are not
// noted: most are then parts of the graph, and nothing runs. Thread-safe.
class CallLog {
 public:
  struct Taken {
    std::vector<Note> notes;
    std::vector<OpenCall> open;  // calls that threads are in now
  };

  // A call begins: it is open, and what it issues is noted.
  void enter(const Operation& operation, uint64_t now_ns);

  // A call returns. A failed one issued nothing; one that waited says that what it waited for has
  // ended, and one that asked, if it succeeded, that its event has happened.
  void exit(const Operation& operation, bool succeeded);

  void set_carveout(const SetCarveout& given);

  // Returns the notes since the last call, and the calls that are open.
  Taken take();

 private:
  std::mutex mutex_;
  std::vector<Note> notes_;
  std::unordered_map<int32_t, OpenCall> open_;  // by thread
  std::unordered_map<uint64_t, int32_t> carveouts_;
  std::unordered_set<std::string> names_;  // their addresses stay
  std::unordered_map<const char*, const std::string*> known_names_;
  uint64_t count_ = 0;
  int captures_ = 0;  // of streams into graphs that have begun and not ended
};

}  // namespace tbsched::capture
