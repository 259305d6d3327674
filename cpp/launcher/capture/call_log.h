// What threads of the program call, between two looks of the writer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "launcher/capture/graphs.h"
#include "launcher/capture/launched.h"
#include "launcher/capture/operations.h"
#include "launcher/capture/words.h"

namespace tbsched::capture {

// A call that a thread is in.
struct OpenCall {
  CUpti_CallbackId function = 0;
  uint32_t call = 0;
  uint32_t thread = 0;  // as CUPTI's records have it
  int32_t system = 0;   // the number that the operating system gives the thread
  uint64_t begin_ns = 0;
  uint64_t number = 0;  // of calls and notes, in their order
};

// A note: an operation that a call is about to issue, the kernel of one that was issued, or what
// the return of a call says.
struct Note {
  enum class Kind : uint8_t { kIssued, kLoaded, kFailed, kWaited, kHappened };
  Kind kind;
  uint64_t order = 0;  // of all notes
  OpenCall by;
  Operation operation;
  const Function* function = nullptr;        // of a launch
  uint64_t launches_before = 0;              // of kernels of its name
  std::shared_ptr<const GraphLaunch> graph;  // null: it is not known, or not launched
  size_t first_word = 0;                     // of a launch's arguments
  size_t words = 0;
};

// Notes of one thread. Its own thread and the writer share it, so that no other one waits.
class ThreadLog {
 public:
  ThreadLog();

  std::mutex mutex;
  std::vector<Note> notes;
  std::vector<Word> words;
  OpenCall open;
  bool is_open = false;
  std::atomic<bool> has_ended = false;  // its thread has, or is ending; another one may take it

  // Used by the thread alone: functions that it launched lately.
  struct Known {
    uint64_t handle = 0;
    uint64_t generation = 0;
    const Function* function = nullptr;
  };
  std::array<Known, 64> known;
  const Function* launched = nullptr;  // by the open call, before it was loaded

  // Used by the writer alone: what it took last.
  std::vector<Note> taken_notes;
  std::vector<Word> taken_words;
};

// While a stream is captured into a graph, operations are not noted: most are then parts of the
// graph, and nothing runs. Thread-safe.
class CallLog {
 public:
  struct Taken {
    struct Row {
      const Note* note;
      std::span<const Word> words;
    };
    std::vector<Row> notes;      // in their order; they live until the next ones are taken
    std::vector<OpenCall> open;  // calls that threads are in now
    std::unordered_map<int32_t, uint64_t> last;  // of each thread the number of its last call
  };

  explicit CallLog(const Modules& modules);

  // A call begins: it is open, and what it issues is noted.
  void enter(const Operation& operation, uint64_t now_ns);

  // A call returns. A failed one issued nothing; one that waited says that what it waited for has
  // ended, and one that asked, if it succeeded, that its event has happened.
  void exit(const Operation& operation, CUresult result);

  // Returns whether a stream is captured into a graph.
  bool is_capturing() const { return captures_.load(std::memory_order_relaxed) > 0; }

  void set_carveout(const SetCarveout& given);
  void forget_functions() { launched_.forget(); }
  Graphs& graphs() { return graphs_; }

  // Returns the notes since the last call, and the calls that are open. For one thread.
  Taken take();

 private:
  ThreadLog& own_log();
  void note_exit(ThreadLog& log, const Operation& operation, CUresult result);
  const Function& function_of(ThreadLog& log, const Shape& shape, bool is_loaded);
  int32_t carveout_of(const Shape& shape);
  static void add_arguments(ThreadLog& log, Note& note, const Function& function,
                            const Shape& shape);

  const uint64_t identity_;
  Launched launched_;
  Graphs graphs_;
  std::atomic<uint64_t> count_ = 0;
  std::atomic<int> captures_ = 0;  // of streams into graphs that have begun and not ended
  std::mutex mutex_;               // of what follows
  std::vector<std::unique_ptr<ThreadLog>> logs_;
  std::unordered_map<uint64_t, int32_t> carveouts_;
  std::atomic<bool> has_carveouts_ = false;
};

}  // namespace tbsched::capture
