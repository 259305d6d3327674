#include "launcher/capture/call_log.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace tbsched::capture {
namespace {

constexpr size_t kReservedNotes = 4096;   // for which a new log has room
constexpr size_t kReservedBytes = 65536;  // of arguments, likewise

std::atomic<uint64_t> logs_made = 0;

// The log of a thread, and the identity of the CallLog that it is part of. It needs no destructor:
// a thread may call the driver while it destroys what is thread_local.
struct LogOfThread {
  uint64_t identity = 0;
  ThreadLog* log = nullptr;
  bool thread_ends = false;

  // Lets another thread take the log.
  void release() {
    if (log != nullptr) log->has_ended = true;
    identity = 0;
    log = nullptr;
  }
};
constinit thread_local LogOfThread current;

// Releases the log of a thread that ends. A call that the thread makes later takes a log for itself
// alone.
struct ReleasesAtThreadEnd {
  bool is_used = false;

  ~ReleasesAtThreadEnd() {
    current.thread_ends = true;
    current.release();
  }
};
thread_local ReleasesAtThreadEnd releases_at_thread_end;

// Returns whether the capture of a stream into a graph has ended with this result: also if the
// graph cannot be made, but not if the call was not one that may end it.
bool ends_capture(const CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_ILLEGAL_STATE:  // the stream is not captured
    case CUDA_ERROR_STREAM_CAPTURE_UNMATCHED:
    case CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD:
      return false;
    default:
      return true;
  }
}

}  // namespace

ThreadLog::ThreadLog() {
  for (auto* const each : {&notes, &taken_notes}) each->reserve(kReservedNotes);
  for (auto* const each : {&arguments, &taken_arguments}) each->reserve(kReservedBytes);
}

CallLog::CallLog(const Modules& modules)
    : identity_(++logs_made), launched_(modules), graphs_(launched_) {}

ThreadLog& CallLog::log_of_this_thread() {
  if (current.identity == identity_) return *current.log;
  const std::lock_guard lock(mutex_);
  auto free = std::ranges::find_if(logs_, [](const auto& each) { return each->has_ended.load(); });
  if (free == logs_.end()) free = logs_.insert(free, std::make_unique<ThreadLog>());
  ThreadLog& log = **free;
  const std::lock_guard log_lock(log.mutex);
  log.has_ended = false;
  log.is_open = false;
  log.open.os_thread = static_cast<int32_t>(syscall(SYS_gettid));
  log.open.thread = static_cast<uint32_t>(pthread_self());
  if (current.log != nullptr) current.log->has_ended = true;
  if (!current.thread_ends) releases_at_thread_end.is_used = true;  // which lets its destructor run
  current.log = &log;
  current.identity = identity_;
  return log;
}

const Function& CallLog::function_of(ThreadLog& log, const Shape& shape, const bool is_loaded) {
  ThreadLog::CachedFunction& cached = log.cached[(shape.function >> 4) % log.cached.size()];
  const uint64_t generation = launched_.generation();
  const bool is_hit = cached.handle == shape.function && cached.generation == generation;
  if (is_hit && (cached.function->kernel != nullptr || !is_loaded)) return *cached.function;
  cached = {shape.function, generation, &launched_.find(shape.function, shape.symbol, is_loaded)};
  return *cached.function;
}

void CallLog::set_function(ThreadLog& log, Note& note, const Function& function,
                           const Shape& shape) {
  note.function = &function;
  note.first_byte = log.arguments.size();
  note.bytes = add_arguments(log.arguments, function, shape);
}

void CallLog::enter(const Operation& operation, const uint64_t now_ns) {
  ThreadLog& log = log_of_this_thread();
  const bool is_noted = issues(operation.what) && !is_capturing();
  const bool is_launch = operation.what == What::kLaunch && operation.shape.symbol != nullptr;
  const Function* const function =
      is_noted && is_launch ? &function_of(log, operation.shape, false) : nullptr;
  const int32_t carveout = function != nullptr ? carveout_of(operation.shape) : -1;
  std::shared_ptr<const GraphLaunch> graph;
  if (is_noted && operation.what == What::kGraph)
    graph = graphs_.count_launch(operation.executable);
  const std::lock_guard lock(log.mutex);
  log.open.function = operation.function;
  log.open.call = operation.call;
  log.open.begin_ns = now_ns;
  log.open.order = count_++;
  log.is_open = true;
  log.unloaded = nullptr;
  if (!is_noted) return;
  Note& note = log.notes.emplace_back(Note{.kind = Note::Kind::kIssued,
                                           .order = log.open.order,
                                           .by = log.open,
                                           .operation = operation,
                                           .graph = std::move(graph)});
  if (function == nullptr) return;
  note.launches_before = (*function->launches)++;
  set_function(log, note, *function, operation.shape);
  note.operation.shape.carveout = carveout;
  if (function->kernel == nullptr) log.unloaded = function;
}

void CallLog::exit(const Operation& operation, const CUresult result) {
  note_result(log_of_this_thread(), operation, result);
  if (current.thread_ends) current.release();
}

void CallLog::note_result(ThreadLog& log, const Operation& operation, const CUresult result) {
  const bool succeeded = result == CUDA_SUCCESS;
  const bool has_loaded = succeeded && log.unloaded != nullptr && operation.shape.symbol != nullptr;
  const Function* const function = has_loaded ? &function_of(log, operation.shape, true) : nullptr;
  const std::lock_guard lock(log.mutex);
  if (!std::exchange(log.is_open, false)) return;
  const auto add = [&](const Note::Kind kind) -> Note& {
    return log.notes.emplace_back(
        Note{.kind = kind, .order = count_++, .by = log.open, .operation = operation});
  };
  if (issues(operation.what) && !succeeded) add(Note::Kind::kFailed);
  if (operation.what == What::kEndCapture && ends_capture(result)) {
    int open = captures_;
    while (open > 0 && !captures_.compare_exchange_weak(open, open - 1)) {
    }
  }
  if (!succeeded) return;
  if (function != nullptr) {
    set_function(log, add(Note::Kind::kLoaded), *function, operation.shape);
  }
  if (operation.what == What::kBeginCapture) ++captures_;
  if (operation.what == What::kQuery) add(Note::Kind::kHappened);
  if (operation.what == What::kSynchronize) {
    add(operation.event != 0 ? Note::Kind::kHappened : Note::Kind::kWaited);
  }
}

void CallLog::set_carveout(const SetCarveout& given) {
  if (given.function == 0) return;
  const std::lock_guard lock(mutex_);
  carveouts_[given.function] = given.carveout;
  has_carveouts_ = true;
}

int32_t CallLog::carveout_of(const Shape& shape) {
  if (!has_carveouts_.load(std::memory_order_relaxed)) return -1;
  const std::lock_guard lock(mutex_);
  const auto carveout = carveouts_.find(shape.function);
  return carveout != carveouts_.end() ? carveout->second : -1;
}

CallLog::Taken CallLog::take() {
  Taken taken;
  const std::lock_guard lock(mutex_);
  for (const auto& each : logs_) {
    each->taken_notes.clear();
    each->taken_arguments.clear();
  }
  // All at once: a note that is taken has none before it that is not.
  std::vector<std::unique_lock<std::mutex>> locks;
  for (const auto& each : logs_) locks.emplace_back(each->mutex);
  for (const auto& each : logs_) {
    std::swap(each->notes, each->taken_notes);
    std::swap(each->arguments, each->taken_arguments);
    if (each->is_open) taken.open.push_back(each->open);
    // Another thread may have the number of one that has ended.
    if (!each->has_ended) taken.last_order[each->open.os_thread] = each->open.order;
  }
  locks.clear();
  for (const auto& each : logs_) {
    const std::span<const std::byte> arguments = each->taken_arguments;
    for (const Note& note : each->taken_notes) {
      taken.notes.push_back({&note, arguments.subspan(note.first_byte, note.bytes)});
    }
  }
  if (logs_.size() > 1) {
    std::ranges::sort(taken.notes, {}, [](const Taken::Row& row) { return row.note->order; });
  }
  return taken;
}

}  // namespace tbsched::capture
