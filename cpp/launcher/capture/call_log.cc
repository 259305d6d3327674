#include "launcher/capture/call_log.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace tbsched::capture {
namespace {

constexpr size_t kNotesBefore = 4096;  // a log has room for so many from the beginning

std::atomic<uint64_t> logs_made = 0;

// The log of this thread, and whose it is. It needs no destructor: a thread may call the driver
// while it destroys what is thread_local.
struct Own {
  uint64_t identity = 0;
  ThreadLog* log = nullptr;
  bool thread_ends = false;

  void give_back() {
    if (log != nullptr) log->has_ended = true;
    identity = 0;
    log = nullptr;
  }
};
constinit thread_local Own own;

// Gives the log back when the thread ends. Calls that the thread makes later take one for
// themselves.
struct GivesBack {
  bool is_used = false;

  ~GivesBack() {
    own.thread_ends = true;
    own.give_back();
  }
};
thread_local GivesBack gives_back;

// Returns whether a capture of a stream into a graph has ended with such a result: also if the
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
  for (auto* const each : {&notes, &taken_notes}) each->reserve(kNotesBefore);
  for (auto* const each : {&words, &taken_words}) each->reserve(kNotesBefore);
}

CallLog::CallLog(const Modules& modules)
    : identity_(++logs_made), launched_(modules), graphs_(launched_) {}

ThreadLog& CallLog::own_log() {
  if (own.identity == identity_) return *own.log;
  const std::lock_guard lock(mutex_);
  auto free = std::ranges::find_if(logs_, [](const auto& each) { return each->has_ended.load(); });
  if (free == logs_.end()) free = logs_.insert(free, std::make_unique<ThreadLog>());
  ThreadLog& log = **free;
  const std::lock_guard log_lock(log.mutex);
  log.has_ended = false;
  log.is_open = false;
  log.open.system = static_cast<int32_t>(syscall(SYS_gettid));
  log.open.thread = static_cast<uint32_t>(pthread_self());
  if (own.log != nullptr) own.log->has_ended = true;
  if (!own.thread_ends) gives_back.is_used = true;  // which lets its destructor run
  own.log = &log;
  own.identity = identity_;
  return log;
}

const Function& CallLog::function_of(ThreadLog& log, const Shape& shape, const bool is_loaded) {
  ThreadLog::Known& known = log.known[(shape.function >> 4) % log.known.size()];
  const uint64_t generation = launched_.generation();
  const bool is_it = known.handle == shape.function && known.generation == generation;
  if (is_it && (known.function->kernel != nullptr || !is_loaded)) return *known.function;
  known = {shape.function, generation, &launched_.find(shape.function, shape.symbol, is_loaded)};
  return *known.function;
}

void CallLog::add_arguments(ThreadLog& log, Note& note, const Function& function,
                            const Shape& shape) {
  note.function = &function;
  note.first_word = log.words.size();
  note.words = add_words(log.words, function, shape);
}

void CallLog::enter(const Operation& operation, const uint64_t now_ns) {
  ThreadLog& log = own_log();
  const bool is_noted = issues(operation.what) && !is_capturing();
  const bool is_launch = operation.what == What::kLaunch && operation.shape.symbol != nullptr;
  const Function* const function =
      is_noted && is_launch ? &function_of(log, operation.shape, false) : nullptr;
  const int32_t carveout = function != nullptr ? carveout_of(operation.shape) : -1;
  std::shared_ptr<const GraphLaunch> graph;
  if (is_noted && operation.what == What::kGraph) graph = graphs_.launch(operation.executable);
  const std::lock_guard lock(log.mutex);
  log.open.function = operation.function;
  log.open.call = operation.call;
  log.open.begin_ns = now_ns;
  log.open.number = count_++;
  log.is_open = true;
  log.launched = nullptr;
  if (!is_noted) return;
  Note& note = log.notes.emplace_back(Note{.kind = Note::Kind::kIssued,
                                           .order = log.open.number,
                                           .by = log.open,
                                           .operation = operation,
                                           .graph = std::move(graph)});
  if (function == nullptr) return;
  note.launches_before = (*function->launches)++;
  add_arguments(log, note, *function, operation.shape);
  note.operation.shape.carveout = carveout;
  if (function->kernel == nullptr) log.launched = function;
}

void CallLog::exit(const Operation& operation, const CUresult result) {
  note_exit(own_log(), operation, result);
  if (own.thread_ends) own.give_back();
}

void CallLog::note_exit(ThreadLog& log, const Operation& operation, const CUresult result) {
  const bool succeeded = result == CUDA_SUCCESS;
  const bool was_loaded_by_it =
      succeeded && log.launched != nullptr && operation.shape.symbol != nullptr;
  const Function* const function =
      was_loaded_by_it ? &function_of(log, operation.shape, true) : nullptr;
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
    add_arguments(log, add(Note::Kind::kLoaded), *function, operation.shape);
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
  const auto found = carveouts_.find(shape.function);
  return found != carveouts_.end() ? found->second : -1;
}

CallLog::Taken CallLog::take() {
  Taken taken;
  const std::lock_guard lock(mutex_);
  for (const auto& each : logs_) {
    each->taken_notes.clear();
    each->taken_words.clear();
  }
  // All at once: a note that is taken has none before it that is not.
  std::vector<std::unique_lock<std::mutex>> locks;
  for (const auto& each : logs_) locks.emplace_back(each->mutex);
  for (const auto& each : logs_) {
    std::swap(each->notes, each->taken_notes);
    std::swap(each->words, each->taken_words);
    if (each->is_open) taken.open.push_back(each->open);
    // Another thread may have the number of one that has ended.
    if (!each->has_ended) taken.last[each->open.system] = each->open.number;
  }
  locks.clear();
  for (const auto& each : logs_) {
    const std::span<const Word> words = each->taken_words;
    for (const Note& note : each->taken_notes) {
      taken.notes.push_back({&note, words.subspan(note.first_word, note.words)});
    }
  }
  if (logs_.size() > 1) {
    std::ranges::sort(taken.notes, {}, [](const Taken::Row& row) { return row.note->order; });
  }
  return taken;
}

}  // namespace tbsched::capture
