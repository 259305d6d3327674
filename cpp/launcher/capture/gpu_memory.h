// Whether memory of the GPU to which unfinished kernels have addresses changes.
#pragma once

#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "launcher/capture/cupti.h"

namespace tbsched::capture {

// Memory that was read several times, and how its words of 4 bytes have changed from one time to
// the next.
struct ReadRange {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  int64_t counted = 0;   // words with three values or more that only grew, or only shrank
  int64_t renewed = 0;   // words with another value after each change, three or more
  int64_t returned = 0;  // words that had an earlier value again
  int64_t once = 0;      // words that have changed once
  // Addresses of the first of the counted and of the renewed words.
  std::vector<int64_t> counted_at;
  std::vector<int64_t> renewed_at;
};

// What several reads of memory say.
struct MemoryReads {
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  size_t reads = 0;
  std::vector<ReadRange> ranges;
};

// Compares the given words of 4 bytes of a range, as they were at each time, and counts in it how
// they have changed.
void count_changes(ReadRange& range, std::span<const std::span<const uint32_t>> reads);

// Copies memory of the GPU to the host at intervals, while told to, in a thread of its own: a call
// of the driver may never return while a program hangs. Writes nothing to memory of the program.
// Thread-safe.
class GpuMemory {
 public:
  // An address in memory of a GPU, as a kernel in a context has it.
  struct Address {
    uint32_t context = 0;  // CUPTI's number
    uint64_t address = 0;

    auto operator<=>(const Address&) const = default;
  };

  // The memory is read each `interval_ns`, and later at longer intervals.
  GpuMemory(const Cupti& cupti, uint64_t interval_ns) : cupti_(cupti), interval_ns_(interval_ns) {}

  // Makes a stream and memory for the copies in a context, once. Call it before the program has
  // issued anything in the context: later on, it might wait for the program's work.
  void prepare(CUcontext context, uint32_t context_id);
  // Uses a context, which is about to be destroyed, no longer.
  void forget(CUcontext context);

  // Starts to read memory at these addresses; goes on if it does so already.
  void begin(const std::function<std::vector<Address>()>& addresses);
  // Stops to read, and forgets what was read.
  void end();
  // Returns what the last reads say; it has no ranges if there are too few, or none since the
  // previous call.
  MemoryReads take_reads();

  // Ends the thread; leaves it alone if it does not return from the driver soon.
  void stop();

  // Returns whether the calling thread is that of a GpuMemory: the program does not make its calls.
  static bool is_this_thread();
  // Returns the thread's id of the operating system; 0: there is none.
  int32_t thread_id() const { return thread_id_; }
  // Returns whether a stream is that of the copies, by CUPTI's numbers.
  bool has_stream(uint32_t context, uint32_t stream);

 private:
  struct Context;
  struct Driver;

  // Thread: reads at intervals while told to.
  void read_until_stopped();
  // Returns the memory to read at some addresses, by ascending address.
  std::vector<ReadRange> find_ranges(Context& context, std::span<const Address> addresses);
  // Copies the ranges to the host. Returns whether all copies have ended.
  bool copy_ranges(Context& context);
  // Waits for the copies in a context. Returns whether they have ended before a time limit.
  bool wait_for_copies(Context& context);
  // Keeps what was copied as the latest read.
  void keep_read(const Context& context);
  // Returns what the reads that are kept say.
  MemoryReads compare_reads() const;

  const Cupti& cupti_;
  const uint64_t interval_ns_;
  std::atomic<uint32_t> last_prepared_ = 0;  // context
  std::mutex mutex_;                         // guards what follows
  std::condition_variable wakes_;
  std::vector<std::unique_ptr<Context>> contexts_;
  std::vector<Address> addresses_;
  bool is_reading_ = false;
  uint64_t series_ = 0;  // counts the calls of begin() that began
  MemoryReads reads_;    // for take_reads()
  bool is_stopped_ = false;
  bool is_in_driver_ = false;  // the thread
  bool has_ended_ = false;     // the thread
  std::thread thread_;
  std::atomic<int32_t> thread_id_ = 0;

  // Used by the thread alone.
  struct Read {
    uint64_t at_ns;
    std::vector<uint32_t> words;  // of all ranges, one after the other
  };
  std::vector<ReadRange> ranges_;
  std::deque<Read> kept_;  // the latest ones
};

}  // namespace tbsched::capture
