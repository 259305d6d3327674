// Driver calls that threads of the program make. The writer takes them at intervals.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "launcher/capture/arguments.h"
#include "launcher/capture/graphs.h"
#include "launcher/capture/launched.h"
#include "launcher/capture/operations.h"
#include "launcher/capture/timed_events.h"

namespace tbsched::capture {

// A driver call that a thread has begun and that has not returned.
struct OpenCall {
  CUpti_CallbackId function = 0;
  uint32_t call = 0;      // CUPTI's correlation number
  uint32_t thread = 0;    // as CUPTI's records have it
  int32_t os_thread = 0;  // thread id of the operating system
  uint64_t begin_ns = 0;
  uint64_t order = 0;  // position among all calls and notes
};

// What a call has done, or is about to do.
struct Note {
  enum class Kind : uint8_t {
    kIssued,    // the call is about to issue an operation
    kLoaded,    // the launch has loaded its kernel, which was unknown when it was issued
    kFailed,    // the call has failed: it has issued nothing
    kWaited,    // the host has waited for a stream or a context
    kHappened,  // the host knows that an event has happened
  };
  Kind kind;
  uint64_t order = 0;  // position among all calls and notes
  OpenCall by;
  Operation operation;
  const Function* function = nullptr;        // of a launch
  uint64_t launches_before = 0;              // earlier launches of kernels of its name
  std::shared_ptr<const GraphLaunch> graph;  // null: no graph is launched, or it is not known
  size_t first_byte = 0;                     // index of the first byte of a launch's arguments
  size_t bytes = 0;                          // of its arguments
};

// Notes of one thread. Only that thread and the writer lock it.
class ThreadLog {
 public:
  ThreadLog();

  std::mutex mutex;
  std::vector<Note> notes;
  std::vector<std::byte> arguments;  // of launches
  OpenCall open;
  bool is_open = false;
  std::atomic<bool> has_ended = false;  // its thread is ending: another one may take the log

  // Used by the thread alone: a cache of the functions that it launched lately, by handle.
  struct CachedFunction {
    uint64_t handle = 0;
    uint64_t generation = 0;
    const Function* function = nullptr;
  };
  std::array<CachedFunction, 64> cached;
  const Function* unloaded =
      nullptr;  // function that the open call launches; null: loaded, or none

  // Used by the writer alone: what its last take() has returned.
  std::vector<Note> taken_notes;
  std::vector<std::byte> taken_arguments;
};

// Logs of all threads. While a stream is captured into a graph, operations are not noted: most are
// then parts of the graph, and nothing runs. Thread-safe.
class CallLog {
 public:
  struct Taken {
    struct Row {
      const Note* note;
      std::span<const std::byte> arguments;
    };
    std::vector<Row> notes;      // in their order; they live until the next take()
    std::vector<OpenCall> open;  // calls that threads are in now
    std::unordered_map<int32_t, uint64_t> last_order;  // of the last call, by os_thread
  };

  explicit CallLog(const Modules& modules);

  // Logs that a call begins: it is open, and the operation that it issues is noted.
  void enter(const Operation& operation, uint64_t now_ns);

  // Logs that a call returns, and what its result says: a failed call has issued nothing; what a
  // wait has waited for has ended; the event of a successful query has happened.
  void exit(const Operation& operation, CUresult result);

  // Returns whether a stream is captured into a graph.
  bool is_capturing() const { return captures_.load(std::memory_order_relaxed) > 0; }

  // Keeps the carveout that a call has set for a function; does nothing if `given` is of none.
  void set_carveout(const SetCarveout& given);
  // Forgets which kernels handles belong to, as modules were loaded or unloaded.
  void forget_functions() { launched_.forget(); }
  Graphs& graphs() { return graphs_; }
  TimedEvents& timed_events() { return timed_events_; }

  // Returns the notes since the last take(), and the calls that are open. For one thread.
  Taken take();

 private:
  // Returns the log of the calling thread; gives it one at its first call.
  ThreadLog& log_of_this_thread();
  // Notes what the result of a returning call says.
  void note_result(ThreadLog& log, const Operation& operation, CUresult result);
  // Returns the function that a launch names, from the cache of the thread if possible.
  // `is_loaded`: the driver has loaded its kernel.
  const Function& function_of(ThreadLog& log, const Shape& shape, bool is_loaded);
  // Returns the carveout in percent that the program has set for a launch's function; -1: none.
  int32_t carveout_of(const Shape& shape);
  // Adds the function of a launch and its arguments to a note.
  static void set_function(ThreadLog& log, Note& note, const Function& function,
                           const Shape& shape);

  const uint64_t identity_;  // differs from that of every other log
  LaunchedFunctions launched_;
  Graphs graphs_;
  TimedEvents timed_events_;
  std::atomic<uint64_t> count_ = 0;  // of calls and notes
  std::atomic<int> captures_ = 0;    // of streams into graphs that have begun and not ended
  std::mutex mutex_;                 // guards what follows
  std::vector<std::unique_ptr<ThreadLog>> logs_;
  std::unordered_map<uint64_t, int32_t> carveouts_;  // percent, by the driver's handle
  std::atomic<bool> has_carveouts_ = false;
};

}  // namespace tbsched::capture
