#include "launcher/capture/session.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "launcher/capture/arguments.h"
#include "launcher/capture/buffers.h"
#include "launcher/capture/call_log.h"
#include "launcher/capture/callbacks.h"
#include "launcher/capture/cupti.h"
#include "launcher/capture/functions.h"
#include "launcher/capture/gpu_memory.h"
#include "launcher/capture/graphs.h"
#include "launcher/capture/host_threads.h"
#include "launcher/capture/issued.h"
#include "launcher/capture/modules.h"
#include "launcher/capture/output.h"
#include "launcher/capture/recorder.h"

namespace tbsched::capture {
namespace {

// A callback that takes longer is reported: it delays the program.
constexpr uint64_t kLongCallbackNs = 10'000;
// Interval between writes. A killed process loses the records of one interval, and those in a
// buffer that was not full.
constexpr std::chrono::milliseconds kWriteInterval{250};
// Age from which on an operation is written that has not ended: its end has had time to come.
constexpr uint64_t kUnfinishedAgeNs = 500'000'000;
// Interval between lines that say that the program still runs while something has not ended.
constexpr uint64_t kAliveIntervalNs = 1'000'000'000;
// Seconds without news after which `tbsched capture` looks why a program hangs; it sets this
// variable for programs that it starts.
constexpr char kHangAfterVariable[] = "TBSCHED_HANG_AFTER";
// Memory of the GPU is read from such a part of this time on, and so often in it.
constexpr uint64_t kReadAfterPart = 8;
constexpr uint64_t kReadsPerTime = 10;
// The shortest time between two reads.
constexpr uint64_t kMinReadIntervalNs = 20'000'000;
// Calls of the capture itself of which records may still come.
constexpr size_t kMaxOwnCalls = 4096;
// Attempts to subscribe, over half a second in which another profiler may release CUPTI.
constexpr int kMaxSubscribeAttempts = 50;
constexpr std::chrono::milliseconds kSubscribeInterval{10};

constexpr std::array kWorkActivities = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                        CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
                                        CUPTI_ACTIVITY_KIND_OVERHEAD};
constexpr std::array kHostActivities = {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                        CUPTI_ACTIVITY_KIND_CUDA_EVENT};
// Existing devices and contexts are recorded too.
constexpr std::array kObjectActivities = {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT,
                                          CUPTI_ACTIVITY_KIND_STREAM};

// A buffer that CUPTI has returned, to be read.
struct Filled {
  uint8_t* bytes;
  size_t size;  // bytes
  size_t used;  // bytes with records
};

// Calls a function of a library that the process has loaded; does nothing if it has not. None of
// these libraries is linked.
void call_if_loaded(const char* const library, const char* const function) {
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (loaded == nullptr) return;
  using Function = int (*)();
  const auto called = reinterpret_cast<Function>(dlsym(loaded, function));
  if (called != nullptr) called();
  dlclose(loaded);
}

// Counts what was thrown in callbacks and in the threads of the session, out of which nothing may
// be thrown. Thread-safe.
class Failures {
 public:
  // Calls `action`, and counts what it throws. Returns whether it has thrown nothing.
  template <typename Action>
  bool run(const Action& action) noexcept {
    try {
      action();
      return true;
    } catch (const std::exception& error) {
      add(error.what());
    } catch (...) {
      add("unknown");
    }
    return false;
  }

  size_t count() const { return count_; }
  // Returns why the first one failed. No other thread may add any.
  std::string_view why() const { return why_.data(); }

 private:
  void add(const char* const why) {
    if (count_++ == 0) std::snprintf(why_.data(), why_.size(), "%s", why);
  }

  std::atomic<size_t> count_ = 0;
  std::array<char, 256> why_{};
};

// Waits until the GPU has done the program's work: by the driver and by the runtime, as
// torch.profiler handles calls of the runtime alone.
void wait_for_gpu() {
  call_if_loaded("libcuda.so.1", "cuCtxSynchronize");
  for (const char* const runtime : {"libcudart.so.13", "libcudart.so.12"})
    call_if_loaded(runtime, "cudaDeviceSynchronize");
}

// A kernel, copy or memset that has ended.
struct EndedWork {
  uint32_t call;  // that issued it
  bool is_node;   // of a graph
};

// Returns the work that a record says to have ended; none: the record is of something else.
std::optional<EndedWork> ended_work(const CUpti_Activity& record) {
  const auto of = [](const auto& work) -> std::optional<EndedWork> {
    if (work.end == 0) return std::nullopt;
    return EndedWork{work.correlationId, work.graphNodeId != 0};
  };
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return of(reinterpret_cast<const CUpti_ActivityKernel9&>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return of(reinterpret_cast<const CUpti_ActivityMemcpy5&>(record));
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return of(reinterpret_cast<const CUpti_ActivityMemset4&>(record));
    default:
      return std::nullopt;
  }
}

// Returns the number of the call that a record is of, if it is of a kind that calls of the capture
// itself have; 0: another kind.
uint32_t call_of(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return reinterpret_cast<const CUpti_ActivityMemcpy5&>(record).correlationId;
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return reinterpret_cast<const CUpti_ActivityAPI&>(record).correlationId;
    default:
      return 0;
  }
}

// Returns whether lines say something new of the program. Other lines are written while it hangs.
bool has_news(std::string_view lines) {
  constexpr std::array<std::string_view, 3> kNoNews = {R"({"alive":)", R"({"overhead":)",
                                                       R"({"gpu_memory":)"};
  while (!lines.empty()) {
    const auto begins = [&](const std::string_view each) { return lines.starts_with(each); };
    if (std::ranges::none_of(kNoNews, begins)) return true;
    lines.remove_prefix(std::min(lines.find('\n'), lines.size() - 1) + 1);
  }
  return false;
}

// Returns the time without news after which it is asked why the program hangs, ns; 0: never.
uint64_t hang_after_ns() {
  const char* const setting = std::getenv(kHangAfterVariable);
  const double seconds = setting != nullptr ? std::atof(setting) : 0;
  return seconds > 0 && seconds < 1e9 ? static_cast<uint64_t>(seconds * 1e9) : 0;
}

constexpr char kTakenAtTheStart[] =
    "another profiler uses CUPTI in this process, such as Nsight Systems; only one can: run the "
    "program without it";
constexpr char kTakenNow[] =
    "another profiler uses CUPTI in this process; only one can. If that is torch.profiler: set "
    "TEARDOWN_CUPTI=1 in the environment before the program starts, or it keeps CUPTI after its "
    "block; or capture before its first block; or run `tbsched capture -o FILE -- PROGRAM` with no "
    "torch.profiler in it";

// The callbacks of CUPTI, of which a process can have one subscriber.
class Subscription {
 public:
  // Throws std::runtime_error if another profiler has subscribed and does not give up.
  Subscription(const Cupti& cupti, const CUpti_CallbackFunc callback, void* const argument,
               const bool from_the_beginning)
      : cupti_(cupti) {
    const auto subscribe = [&] { return cupti_.subscribe(&handle_, callback, argument); };
    constexpr auto kTaken = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    CUptiResult result = subscribe();
    // With TEARDOWN_CUPTI=1, torch.profiler gives CUPTI up as a call of the runtime after its
    // block ends.
    for (int attempts = 0;
         result == kTaken && !from_the_beginning && attempts < kMaxSubscribeAttempts; ++attempts) {
      wait_for_gpu();
      std::this_thread::sleep_for(kSubscribeInterval);
      result = subscribe();
    }
    if (result == kTaken)
      throw std::runtime_error(from_the_beginning ? kTakenAtTheStart : kTakenNow);
    cupti_.check(result, "cuptiSubscribe");
  }
  ~Subscription() { cupti_.unsubscribe(handle_); }
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  CUpti_SubscriberHandle handle() const { return handle_; }

 private:
  const Cupti& cupti_;
  CUpti_SubscriberHandle handle_ = nullptr;
};

// One capture: two threads, the callbacks and the file.
class Session {
 public:
  // Subscribes to CUPTI, creates the file and writes the header. Throws std::runtime_error.
  Session(const std::string& path, bool from_the_beginning);

  // Starts recording. Throws if CUPTI refuses; then nothing is left on.
  void begin();
  // Records the rest and writes the last line. `waits`: waits for the GPU's work.
  void end(bool waits);

  // Returns false in a process that was forked from the one that captures.
  bool is_of_this_process() const { return getpid() == process_; }
  const std::string& path() const { return output_.path(); }

  // Hands a buffer to the writer. Called by threads of CUPTI or of the program, so it takes no
  // time.
  void add_buffer(const Filled& buffer);
  // Handles one callback, and records it if it took long.
  void handle(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);
  // Notes a call that the capture itself makes in a thread of its own.
  void note_own_call(CUpti_CallbackDomain domain, const void* data);
  Failures& failures() { return failures_; }

 private:
  // Starts the writer and the flusher with all signals blocked: these are for the program's own
  // threads.
  void start_threads();
  // Stops both threads, and waits for their ends.
  void stop_threads();
  // Enables the callbacks and all records. Throws std::runtime_error if CUPTI refuses.
  void enable_cupti();
  // Disables the records of the GPU, and the callbacks.
  void disable_cupti();
  // Returns the time of CUPTI's clock, ns.
  uint64_t timestamp() const;
  // Thread: reads buffers as they come, and writes lines every kWriteInterval.
  void write_until_stopped();
  // Thread: asks CUPTI every kWriteInterval for the records that are complete. While the driver
  // loads code behind a kernel that never ends, CUPTI does not return; the other thread writes
  // nevertheless what was issued.
  void flush_until_stopped();
  // Reads notes of calls and the buffers, and gives these back.
  void read_buffers();
  // Formats what was issued, or called, some time ago and has not ended.
  void write_unfinished();
  // Returns the busy and sleeping threads among those that have been in no call of CUDA since the
  // previous comparison.
  OtherThreads compare_other_threads(uint64_t now_ns);
  // Lets memory of the GPU be read in the context of a call that begins, but no longer in one that
  // is about to be destroyed.
  void prepare_gpu_memory(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);
  // Reads memory of the GPU while nothing is new, and formats what was read.
  void watch_gpu_memory(uint64_t now_ns);
  // Returns the addresses that unfinished launches have of memory that may be of a GPU.
  std::vector<GpuMemory::Address> gpu_addresses();
  // Returns whether a record is of a call, or of a stream, of the capture itself.
  bool is_own(const CUpti_Activity& record);
  // Writes all formatted lines to the file.
  void write_lines();

  const pid_t process_ = getpid();
  const Cupti cupti_;
  std::optional<Subscription> subscription_;
  Output output_;
  const uint64_t started_ns_;
  const bool from_the_beginning_;
  const uint64_t hang_after_ns_;         // 0: memory of the GPU is not read
  std::optional<GpuMemory> gpu_memory_;  // none: it is not read
  uint64_t news_ns_ = 0;                 // when the last line with news was written
  std::mutex own_calls_mutex_;
  std::set<uint32_t> own_calls_;  // correlation numbers
  Modules modules_;
  CallLog calls_;
  Failures failures_;
  // Used by the writer alone, so no thread of the program waits for them.
  Recorder recorder_;
  Issued issued_;
  std::vector<OpenCall> open_;  // calls that threads were in at the last read_buffers()
  std::unordered_map<int32_t, uint64_t> last_order_;           // of the last call, by thread id
  std::unordered_map<int32_t, uint64_t> previous_last_order_;  // at the previous comparison
  HostThreads threads_;
  // By thread id, the call that a line says it is in.
  std::unordered_map<int32_t, uint32_t> written_calls_;
  uint64_t alive_written_ns_ = 0;          // time of the last line that says so
  std::atomic<uint64_t> flushing_ns_ = 0;  // since when CUPTI has been asked; 0: it has answered
  std::mutex mutex_;                       // guards what follows
  std::condition_variable wakes_;
  Recorder callback_recorder_;  // of callbacks
  std::vector<Filled> filled_;  // by CUPTI, not read yet
  bool is_stopped_ = false;
  std::thread writer_;
  std::thread flusher_;
  std::atomic<int32_t> writer_thread_id_ = 0;  // thread ids of the operating system
  std::atomic<int32_t> flusher_thread_id_ = 0;
};

// CUPTI's callbacks for buffers have no argument of ours.
std::atomic<Session*> running = nullptr;
std::mutex starts_and_stops;

// Sessions are never freed: a thread of CUPTI may be about to return a buffer to one that ended.
std::vector<std::unique_ptr<Session>>& sessions() {
  static auto& kept = *new std::vector<std::unique_ptr<Session>>();
  return kept;
}

// Returns the buffers of all sessions, made at the first call.
Buffers& buffers() {
  static auto& kept = *new Buffers();
  return kept;
}

// Gives CUPTI a buffer; none if there is no memory: CUPTI then drops records, and counts them.
void CUPTIAPI on_buffer_requested(uint8_t** const buffer, size_t* const size,
                                  size_t* const max_records) {
  Buffers::Buffer taken{};
  Session* const session = running;
  const auto take = [&] { taken = buffers().take(); };
  if (session != nullptr) {
    session->failures().run(take);
  } else {
    Failures().run(take);
  }
  *buffer = taken.bytes;
  *size = taken.size;
  *max_records = taken.records;
}

// Hands a buffer with records to the session. Gives it back unread if no session runs, or in a
// forked process.
void CUPTIAPI on_buffer_completed(CUcontext, uint32_t, uint8_t* const buffer, const size_t size,
                                  const size_t used) {
  Session* const session = running;
  if (session != nullptr && session->is_of_this_process()) {
    session->failures().run([&] { session->add_buffer({buffer, size, used}); });
  } else {
    Failures().run([&] { buffers().give_back(buffer, size); });
  }
}

// Hands a callback to its session, unless the session makes the call itself.
void CUPTIAPI on_callback(void* const session, const CUpti_CallbackDomain domain,
                          const CUpti_CallbackId id, const void* const data) {
  thread_local bool is_inside = false;  // a callback may call the driver itself
  auto* const of_session = static_cast<Session*>(session);
  if (GpuMemory::is_this_thread()) return of_session->note_own_call(domain, data);
  if (is_inside || !of_session->is_of_this_process()) return;
  is_inside = true;
  of_session->failures().run([&] { of_session->handle(domain, id, data); });
  is_inside = false;
}

Session::Session(const std::string& path, const bool from_the_beginning)
    : cupti_(load_cupti()),
      subscription_(std::in_place, cupti_, on_callback, this, from_the_beginning),
      output_(Output::open(path)),  // no file is created if another profiler has subscribed
      started_ns_(timestamp()),
      from_the_beginning_(from_the_beginning),
      hang_after_ns_(from_the_beginning ? hang_after_ns() : 0),
      news_ns_(started_ns_),
      modules_(from_the_beginning),
      calls_(modules_),
      recorder_(cupti_, modules_, started_ns_),
      callback_recorder_(cupti_, modules_, started_ns_) {
  if (hang_after_ns_ > 0) {
    gpu_memory_.emplace(cupti_, std::max(hang_after_ns_ / kReadsPerTime, kMinReadIntervalNs));
  }
  recorder_.write_header(gpu_memory_.has_value());
  write_lines();
}

uint64_t Session::timestamp() const {
  uint64_t now_ns = 0;
  cupti_.check(cupti_.timestamp(&now_ns), "cuptiGetTimestamp");
  return now_ns;
}

void Session::begin() {
  try {
    enable_cupti();
    start_threads();
  } catch (...) {
    stop_threads();
    disable_cupti();
    throw;
  }
}

void Session::start_threads() {
  sigset_t all;  // signals are for the program's own threads
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    writer_ = std::thread(&Session::write_until_stopped, this);
    flusher_ = std::thread(&Session::flush_until_stopped, this);
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Session::stop_threads() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  wakes_.notify_all();
  for (std::thread* const each : {&writer_, &flusher_}) {
    if (each->joinable()) each->join();
  }
}

void Session::enable_cupti() {
  buffers();
  cupti_.check(cupti_.register_callbacks(on_buffer_requested, on_buffer_completed),
               "cuptiActivityRegisterCallbacks");
  forget_streams();  // nobody saw which were destroyed since an earlier session
  enable_callbacks(cupti_, subscription_->handle());
  cupti_.check(cupti_.enable_all_sync_records(0), "cuptiActivityEnableAllSyncRecords");
  for (const auto kind : kObjectActivities) {
    cupti_.check(cupti_.enable_and_dump(kind), "cuptiActivityEnableAndDump");
  }
  for (const auto kind : kHostActivities) cupti_.check(cupti_.enable(kind), "cuptiActivityEnable");
  for (const auto kind : kWorkActivities) cupti_.check(cupti_.enable(kind), "cuptiActivityEnable");
  record_calls(cupti_, from_the_beginning_);
  // The first flush takes longer. While CUDA begins, there is nothing to flush.
  if (!from_the_beginning_) cupti_.flush_all(0);
}

void Session::disable_cupti() {
  for (const auto kind : kWorkActivities) cupti_.disable(kind);
  for (const auto kind : kObjectActivities) cupti_.disable(kind);
  subscription_.reset();
}

void Session::end(const bool waits) {
  stop_threads();
  if (gpu_memory_) gpu_memory_->stop();
  const uint64_t now_ns = timestamp();
  stop_recording_calls(cupti_);
  for (const auto kind : kHostActivities) cupti_.disable(kind);
  if (waits) wait_for_gpu();
  cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  disable_cupti();
  size_t dropped = 0;
  const bool is_known = cupti_.dropped_records(nullptr, 0, &dropped) == CUPTI_SUCCESS;
  read_buffers();
  if (is_known && dropped > 0) recorder_.write_lost(dropped);
  if (failures_.count() > 0) recorder_.write_failures(failures_.count(), failures_.why());
  recorder_.write_end(now_ns);
  write_lines();
}

void Session::add_buffer(const Filled& buffer) {
  {
    const std::lock_guard lock(mutex_);
    filled_.push_back(buffer);
  }
  wakes_.notify_all();
}

void Session::handle(const CUpti_CallbackDomain domain, const CUpti_CallbackId id,
                     const void* const data) {
  const auto with_recorder = [this](const auto& use) {
    const std::lock_guard lock(mutex_);
    use(callback_recorder_);
  };
  // A returning call takes no time here, unless it has made a graph.
  const bool is_short =
      domain == CUPTI_CB_DOMAIN_DRIVER_API && !reads_graph(id) &&
      static_cast<const CUpti_CallbackData*>(data)->callbackSite == CUPTI_API_EXIT;
  uint64_t begin_ns = 0;
  if (!is_short) cupti_.timestamp(&begin_ns);
  if (gpu_memory_) prepare_gpu_memory(domain, id, data);
  handle_callback(cupti_, domain, id, data, modules_, calls_, begin_ns, with_recorder);
  if (is_short) return;
  uint64_t end_ns = 0;
  cupti_.timestamp(&end_ns);
  if (end_ns - begin_ns <= kLongCallbackNs) return;
  with_recorder([&](Recorder& recorder) { recorder.write_slow_callback(begin_ns, end_ns); });
}

void Session::prepare_gpu_memory(const CUpti_CallbackDomain domain, const CUpti_CallbackId id,
                                 const void* const data) {
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    if (call.callbackSite == CUPTI_API_ENTER) gpu_memory_->prepare(call.context, call.contextUid);
  } else if (id == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
    gpu_memory_->forget(static_cast<const CUpti_ResourceData*>(data)->context);
  }
}

void Session::note_own_call(const CUpti_CallbackDomain domain, const void* const data) {
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  failures_.run([&] {
    const std::lock_guard lock(own_calls_mutex_);
    own_calls_.insert(static_cast<const CUpti_CallbackData*>(data)->correlationId);
    if (own_calls_.size() > kMaxOwnCalls) own_calls_.erase(own_calls_.begin());
  });
}

bool Session::is_own(const CUpti_Activity& record) {
  if (record.kind == CUPTI_ACTIVITY_KIND_STREAM) {
    const auto& stream = reinterpret_cast<const CUpti_ActivityStream&>(record);
    return gpu_memory_->has_stream(stream.contextId, stream.streamId);
  }
  if (record.kind == CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) {
    // Not each function of the driver that waits has a callback, from which its call is known.
    const auto& wait = reinterpret_cast<const CUpti_ActivitySynchronization&>(record);
    if (gpu_memory_->has_stream(wait.contextId, wait.streamId)) return true;
  }
  const uint32_t call = call_of(record);
  if (call == 0) return false;
  const std::lock_guard lock(own_calls_mutex_);
  return own_calls_.contains(call);
}

void Session::write_until_stopped() {
  writer_thread_id_ = static_cast<int32_t>(syscall(SYS_gettid));
  auto next = std::chrono::steady_clock::now() + kWriteInterval;
  std::unique_lock lock(mutex_);
  while (!is_stopped_) {
    wakes_.wait_until(lock, next, [this] { return is_stopped_ || !filled_.empty(); });
    lock.unlock();
    const bool is_time = std::chrono::steady_clock::now() >= next;
    failures_.run([&] {
      read_buffers();
      if (!is_time) return;
      write_unfinished();
      write_lines();
    });
    if (is_time) next = std::chrono::steady_clock::now() + kWriteInterval;
    lock.lock();
  }
}

void Session::flush_until_stopped() {
  flusher_thread_id_ = static_cast<int32_t>(syscall(SYS_gettid));
  std::unique_lock lock(mutex_);
  while (!is_stopped_) {
    wakes_.wait_for(lock, kWriteInterval, [this] { return is_stopped_; });
    if (is_stopped_) return;
    lock.unlock();
    uint64_t now_ns = 0;
    cupti_.timestamp(&now_ns);  // 0 if it fails: nothing in this thread throws
    flushing_ns_ = now_ns;
    cupti_.flush_all(0);
    flushing_ns_ = 0;
    lock.lock();
  }
}

void Session::read_buffers() {
  std::vector<Filled> filled;
  {
    const std::lock_guard lock(mutex_);
    filled.swap(filled_);
  }
  // After the buffers are here: an operation is noted before its record is complete.
  CallLog::Taken taken = calls_.take();
  issued_.apply(taken.notes);
  open_ = std::move(taken.open);
  last_order_ = std::move(taken.last_order);
  for (const Filled& buffer : filled) {
    CUpti_Activity* record = nullptr;
    while (cupti_.next_record(buffer.bytes, buffer.used, &record) == CUPTI_SUCCESS) {
      if (gpu_memory_ && is_own(*record)) continue;
      recorder_.write_activity(*record);
      const auto ended = ended_work(*record);
      if (!ended) continue;
      const bool is_kernel = record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
      ended->is_node ? issued_.end_node(ended->call, is_kernel) : issued_.end(ended->call);
    }
    buffers().give_back(buffer.bytes, buffer.size);
  }
}

void Session::write_unfinished() {
  const uint64_t now_ns = timestamp();
  const uint64_t before_ns = now_ns - kUnfinishedAgeNs;
  recorder_.forget_addresses();
  issued_.end_completed_events();
  for (const uint32_t call : issued_.take_ended()) recorder_.write_ended(call);
  issued_.write_older(before_ns,
                      [this](const Issued::Entry& each) { recorder_.write_issued(each); });
  std::unordered_map<int32_t, uint32_t> long_calls;
  for (const OpenCall& each : open_) {
    if (each.begin_ns >= before_ns) continue;
    long_calls[each.os_thread] = each.call;
    const auto before = written_calls_.find(each.os_thread);
    if (before == written_calls_.end() || before->second != each.call)
      recorder_.write_open_call(each);
  }
  for (const auto& [thread, call] : written_calls_) {
    const auto still = long_calls.find(thread);
    if (still == long_calls.end() || still->second != call) recorder_.write_returned(call, now_ns);
  }
  written_calls_ = std::move(long_calls);
  if (gpu_memory_) watch_gpu_memory(now_ns);
  const bool has_unfinished = !issued_.is_empty() || !written_calls_.empty();
  if (!has_unfinished) recorder_.forget_memory();  // what is watched later may be other memory
  if (!has_unfinished || now_ns - alive_written_ns_ < kAliveIntervalNs) return;
  alive_written_ns_ = now_ns;
  const uint64_t flushing_ns = flushing_ns_;
  issued_.for_each_written([this](const Issued::Entry& each) { recorder_.watch_memory(each); });
  recorder_.write_alive(now_ns, flushing_ns != 0 && flushing_ns < before_ns ? flushing_ns : 0,
                        compare_other_threads(now_ns));
}

void Session::watch_gpu_memory(const uint64_t now_ns) {
  if (issued_.is_empty() || now_ns - news_ns_ < hang_after_ns_ / kReadAfterPart) {
    return gpu_memory_->end();
  }
  gpu_memory_->begin([this] { return gpu_addresses(); });
  recorder_.write_gpu_memory(gpu_memory_->take_reads());
}

std::vector<GpuMemory::Address> Session::gpu_addresses() {
  std::vector<GpuMemory::Address> addresses;
  issued_.for_each_written([&](const Issued::Entry& each) {
    const auto add = [&](const std::span<const Word> words) {
      for (const Word& word : words) {
        const GpuMemory::Address found{each.note.operation.context, word.value};
        if (recorder_.may_be_of_gpu(word) && std::ranges::find(addresses, found) == addresses.end())
          addresses.push_back(found);
      }
    };
    add(words_of(each.arguments, each.note.function));
    if (each.note.graph != nullptr) add(each.note.graph->graph->words);
  });
  return addresses;
}

OtherThreads Session::compare_other_threads(const uint64_t now_ns) {
  std::vector<int32_t> excluded = {writer_thread_id_, flusher_thread_id_};
  if (gpu_memory_) excluded.push_back(gpu_memory_->thread_id());
  for (const OpenCall& each : open_) excluded.push_back(each.os_thread);
  for (const auto& [thread, order] : last_order_) {
    const auto before = previous_last_order_.find(thread);
    if (before == previous_last_order_.end() || before->second != order) excluded.push_back(thread);
  }
  previous_last_order_ = last_order_;
  return threads_.compare(excluded, now_ns);
}

void Session::write_lines() {
  std::string notes;
  {
    const std::lock_guard lock(mutex_);
    notes = callback_recorder_.take_lines();
  }
  const std::string lines = recorder_.take_lines();
  if (gpu_memory_ && (has_news(notes) || has_news(lines))) {
    news_ns_ = timestamp();
    gpu_memory_->end();
  }
  output_.write(notes);
  output_.write(lines);
}

}  // namespace

std::string start(const std::string& path, const bool from_the_beginning) {
  const std::lock_guard lock(starts_and_stops);
  if (running != nullptr) throw std::runtime_error("a capture runs already in this process");
  sessions().push_back(std::make_unique<Session>(path, from_the_beginning));
  Session& session = *sessions().back();
  running = &session;
  try {
    session.begin();
  } catch (...) {
    running = nullptr;
    throw;
  }
  return session.path();
}

void stop(const bool waits) {
  const std::lock_guard lock(starts_and_stops);
  Session* const session = running;
  if (session == nullptr || !session->is_of_this_process()) return;
  session->end(waits);
  running = nullptr;
}

}  // namespace tbsched::capture
