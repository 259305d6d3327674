#include "launcher/capture/session.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "launcher/capture/buffers.h"
#include "launcher/capture/call_log.h"
#include "launcher/capture/callbacks.h"
#include "launcher/capture/cupti.h"
#include "launcher/capture/functions.h"
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
constexpr std::chrono::milliseconds kPeriod{250};
// Age from which on an operation is written that has not ended: its end has had time to come.
constexpr uint64_t kOldNs = 500'000'000;
// Interval between lines that say that the program still runs while something has not ended.
constexpr uint64_t kAliveNs = 1'000'000'000;
// Number of calls, over half a second, for which another profiler may take to release CUPTI.
constexpr int kMostCalls = 50;
constexpr std::chrono::milliseconds kBetweenCalls{10};

constexpr std::array kWork = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                              CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_OVERHEAD};
constexpr std::array kHost = {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CUDA_EVENT};
// Existing devices and contexts are recorded too.
constexpr std::array kActivities = {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONTEXT,
                                    CUPTI_ACTIVITY_KIND_STREAM};

// A buffer that CUPTI returned, to be read.
struct Filled {
  uint8_t* bytes;
  size_t size;
  size_t used;
};

// Calls a function of a library that the process has loaded, if it has; none of them is linked.
void call_if_loaded(const char* const library, const char* const function) {
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (loaded == nullptr) return;
  using Function = int (*)();
  const auto called = reinterpret_cast<Function>(dlsym(loaded, function));
  if (called != nullptr) called();
  dlclose(loaded);
}

// What went wrong in callbacks and in the session's threads, from which nothing may be thrown.
// Thread-safe.
class Failures {
 public:
  // Calls `action`. Returns whether it threw nothing.
  template <typename Action>
  bool remember(const Action& action) noexcept {
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

// Waits by the driver and by the runtime: torch.profiler handles calls of the runtime alone.
void wait_for_gpu() {
  call_if_loaded("libcuda.so.1", "cuCtxSynchronize");
  for (const char* const runtime : {"libcudart.so.13", "libcudart.so.12"})
    call_if_loaded(runtime, "cudaDeviceSynchronize");
}

// Work that has ended: its call, and whether it is a node of a graph.
struct Ended {
  uint32_t call;
  bool is_node;
};

// Returns the work that a record says to have ended. None: it is no such record.
std::optional<Ended> ended_by(const CUpti_Activity& record) {
  const auto of = [](const auto& work) -> std::optional<Ended> {
    if (work.end == 0) return std::nullopt;
    return Ended{work.correlationId, work.graphNodeId != 0};
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

constexpr char kTakenAtTheStart[] =
    "another profiler uses CUPTI in this process, such as Nsight Systems; only one can: run the "
    "program without it";
constexpr char kTakenNow[] =
    "another profiler uses CUPTI in this process; only one can. If that is torch.profiler: set "
    "TEARDOWN_CUPTI=1 in the environment before the program starts, or it keeps CUPTI after its "
    "block; or capture before its first block; or run `tbsched capture -o FILE -- PROGRAM` with no "
    "torch.profiler in it";

class Subscription {
 public:
  Subscription(const Cupti& cupti, const CUpti_CallbackFunc callback, void* const argument,
               const bool from_the_beginning)
      : cupti_(cupti) {
    const auto subscribe = [&] { return cupti_.subscribe(&handle_, callback, argument); };
    constexpr auto kTaken = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    CUptiResult result = subscribe();
    // With TEARDOWN_CUPTI=1, torch.profiler gives CUPTI up as a call of the runtime after its
    // block ends.
    for (int calls = 0; result == kTaken && !from_the_beginning && calls < kMostCalls; ++calls) {
      wait_for_gpu();
      std::this_thread::sleep_for(kBetweenCalls);
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

class Session {
 public:
  Session(const std::string& path, bool from_the_beginning);

  void begin();
  void end(bool waits);

  bool is_of_this_process() const { return getpid() == process_; }
  const std::string& path() const { return output_.path(); }

  void take(const Filled& buffer);
  void take(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data);
  Failures& failures() { return failures_; }

 private:
  void start_threads();
  void stop_threads();
  void turn_on();
  void turn_off();
  uint64_t timestamp() const;
  void write_until_stopped();
  void flush_until_stopped();
  void read_buffers();
  void note_unfinished();
  OtherThreads other_threads(uint64_t now_ns);
  void write();

  const pid_t process_ = getpid();
  const Cupti cupti_;
  std::optional<Subscription> subscription_;
  Output output_;
  const uint64_t started_ns_;
  const bool from_the_beginning_;
  Modules modules_;
  CallLog calls_;
  Failures failures_;
  // Used by the writer alone: no thread of the program waits for them.
  Recorder records_;
  Issued issued_;
  std::vector<OpenCall> open_;                       // calls that threads were in
  std::unordered_map<int32_t, uint64_t> last_;       // of each thread the number of its last call
  std::unordered_map<int32_t, uint64_t> told_last_;  // likewise, at the look before
  HostThreads threads_;
  std::unordered_map<int32_t, uint32_t>
      told_;  // of each thread, the call that a line says it is in
  uint64_t told_alive_ns_ = 0;
  std::atomic<uint64_t> flushing_ns_ = 0;  // since when CUPTI has been asked; 0: it has answered
  std::mutex mutex_;                       // of what follows
  std::condition_variable wakes_;
  Recorder notes_;  // of callbacks
  std::vector<Filled> filled_;
  bool is_stopped_ = false;
  std::thread writer_;
  std::thread flusher_;
  std::atomic<int32_t> writer_number_ = 0;  // those that the operating system gives them
  std::atomic<int32_t> flusher_number_ = 0;
};

// CUPTI's callbacks for buffers have no argument of ours.
std::atomic<Session*> running = nullptr;
std::mutex starts_and_stops;

// Sessions are never freed: a thread of CUPTI may be about to return a buffer to one that ended.
std::vector<std::unique_ptr<Session>>& sessions() {
  static auto& kept = *new std::vector<std::unique_ptr<Session>>();
  return kept;
}

Buffers& buffers() {
  static auto& kept = *new Buffers();
  return kept;
}

void CUPTIAPI on_buffer_requested(uint8_t** const buffer, size_t* const size,
                                  size_t* const most_records) {
  Buffers::Buffer taken{};  // nowhere: CUPTI then drops records, and counts them
  Session* const session = running;
  const auto take = [&] { taken = buffers().take(); };
  if (session != nullptr) {
    session->failures().remember(take);
  } else {
    Failures().remember(take);
  }
  *buffer = taken.bytes;
  *size = taken.size;
  *most_records = taken.records;
}

void CUPTIAPI on_buffer_completed(CUcontext, uint32_t, uint8_t* const buffer, const size_t size,
                                  const size_t used) {
  Session* const session = running;
  if (session != nullptr && session->is_of_this_process()) {
    session->failures().remember([&] { session->take({buffer, size, used}); });
  } else {
    Failures().remember([&] { buffers().give_back(buffer, size); });
  }
}

void CUPTIAPI on_callback(void* const session, const CUpti_CallbackDomain domain,
                          const CUpti_CallbackId id, const void* const data) {
  thread_local bool is_inside = false;  // a callback may call the driver itself
  auto* const taker = static_cast<Session*>(session);
  if (is_inside || !taker->is_of_this_process()) return;
  is_inside = true;
  taker->failures().remember([&] { taker->take(domain, id, data); });
  is_inside = false;
}

// Subscribes first, so that no file is created if another profiler is running.
Session::Session(const std::string& path, const bool from_the_beginning)
    : cupti_(load_cupti()),
      subscription_(std::in_place, cupti_, on_callback, this, from_the_beginning),
      output_(Output::open(path)),
      started_ns_(timestamp()),
      from_the_beginning_(from_the_beginning),
      modules_(from_the_beginning),
      calls_(modules_),
      records_(cupti_, modules_, started_ns_),
      notes_(cupti_, modules_, started_ns_) {
  records_.header();
  write();
}

uint64_t Session::timestamp() const {
  uint64_t now_ns = 0;
  cupti_.check(cupti_.timestamp(&now_ns), "cuptiGetTimestamp");
  return now_ns;
}

void Session::begin() {
  try {
    turn_on();
    start_threads();
  } catch (...) {
    stop_threads();
    turn_off();
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

void Session::turn_on() {
  buffers();
  cupti_.check(cupti_.register_callbacks(on_buffer_requested, on_buffer_completed),
               "cuptiActivityRegisterCallbacks");
  forget_streams();  // nobody saw which were destroyed since an earlier session
  enable_callbacks(cupti_, subscription_->handle());
  cupti_.check(cupti_.enable_all_sync_records(0), "cuptiActivityEnableAllSyncRecords");
  for (const auto kind : kActivities) {
    cupti_.check(cupti_.enable_and_dump(kind), "cuptiActivityEnableAndDump");
  }
  for (const auto kind : kHost) cupti_.check(cupti_.enable(kind), "cuptiActivityEnable");
  for (const auto kind : kWork) cupti_.check(cupti_.enable(kind), "cuptiActivityEnable");
  record_calls(cupti_, from_the_beginning_);
  // The first flush takes longer. While CUDA begins, there is nothing to flush.
  if (!from_the_beginning_) cupti_.flush_all(0);
}

void Session::turn_off() {
  for (const auto kind : kWork) cupti_.disable(kind);
  for (const auto kind : kActivities) cupti_.disable(kind);
  subscription_.reset();
}

void Session::end(const bool waits) {
  stop_threads();
  const uint64_t now_ns = timestamp();
  stop_recording_calls(cupti_);
  for (const auto kind : kHost) cupti_.disable(kind);
  if (waits) wait_for_gpu();
  cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  turn_off();
  size_t dropped = 0;
  const bool is_known = cupti_.dropped_records(nullptr, 0, &dropped) == CUPTI_SUCCESS;
  read_buffers();
  if (is_known && dropped > 0) records_.lost(dropped);
  if (failures_.count() > 0) records_.failed(failures_.count(), failures_.why());
  records_.end(now_ns);
  write();
}

// Called by threads of CUPTI or of the program, so it takes no time.
void Session::take(const Filled& buffer) {
  {
    const std::lock_guard lock(mutex_);
    filled_.push_back(buffer);
  }
  wakes_.notify_all();
}

void Session::take(const CUpti_CallbackDomain domain, const CUpti_CallbackId id,
                   const void* const data) {
  const auto with_notes = [this](const auto& use) {
    const std::lock_guard lock(mutex_);
    use(notes_);
  };
  // A returning call takes no time here, unless it has made a graph.
  const bool is_short =
      domain == CUPTI_CB_DOMAIN_DRIVER_API && !reads_graph(id) &&
      static_cast<const CUpti_CallbackData*>(data)->callbackSite == CUPTI_API_EXIT;
  uint64_t begin_ns = 0;
  if (!is_short) cupti_.timestamp(&begin_ns);
  take_callback(cupti_, domain, id, data, modules_, calls_, begin_ns, with_notes);
  if (is_short) return;
  uint64_t end_ns = 0;
  cupti_.timestamp(&end_ns);
  if (end_ns - begin_ns <= kLongCallbackNs) return;
  with_notes([&](Recorder& recorder) { recorder.own_callback(begin_ns, end_ns); });
}

void Session::write_until_stopped() {
  writer_number_ = static_cast<int32_t>(syscall(SYS_gettid));
  auto next = std::chrono::steady_clock::now() + kPeriod;
  std::unique_lock lock(mutex_);
  while (!is_stopped_) {
    wakes_.wait_until(lock, next, [this] { return is_stopped_ || !filled_.empty(); });
    lock.unlock();
    const bool is_time = std::chrono::steady_clock::now() >= next;
    failures_.remember([&] {
      read_buffers();
      if (!is_time) return;
      note_unfinished();
      write();
    });
    if (is_time) next = std::chrono::steady_clock::now() + kPeriod;
    lock.lock();
  }
}

// Asks CUPTI for what is complete. While the driver loads code behind a kernel that never ends, the
// call does not return: what was issued is written nevertheless, by the other thread.
void Session::flush_until_stopped() {
  flusher_number_ = static_cast<int32_t>(syscall(SYS_gettid));
  std::unique_lock lock(mutex_);
  while (!is_stopped_) {
    wakes_.wait_for(lock, kPeriod, [this] { return is_stopped_; });
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
  issued_.take(taken.notes);
  open_ = std::move(taken.open);
  last_ = std::move(taken.last);
  for (const Filled& buffer : filled) {
    CUpti_Activity* record = nullptr;
    while (cupti_.next_record(buffer.bytes, buffer.used, &record) == CUPTI_SUCCESS) {
      records_.activity(*record);
      const auto ended = ended_by(*record);
      if (!ended) continue;
      const bool is_kernel = record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
      ended->is_node ? issued_.node_ended(ended->call, is_kernel) : issued_.ended(ended->call);
    }
    buffers().give_back(buffer.bytes, buffer.size);
  }
}

// Notes what was issued, or called, some time ago and has not ended.
void Session::note_unfinished() {
  const uint64_t now_ns = timestamp();
  const uint64_t before_ns = now_ns - kOldNs;
  records_.look();
  issued_.forget_events();
  for (const uint32_t call : issued_.take_ended()) records_.ended(call);
  issued_.write_older(before_ns, [this](const Issued::Entry& each) { records_.issued(each); });
  std::unordered_map<int32_t, uint32_t> told;
  for (const OpenCall& each : open_) {
    if (each.begin_ns >= before_ns) continue;
    told[each.system] = each.call;
    const auto before = told_.find(each.system);
    if (before == told_.end() || before->second != each.call) records_.open(each);
  }
  for (const auto& [thread, call] : told_) {
    const auto still = told.find(thread);
    if (still == told.end() || still->second != call) records_.returned(call, now_ns);
  }
  told_ = std::move(told);
  const bool waits = !issued_.is_empty() || !told_.empty();
  if (!waits) records_.forget_memory();  // what is watched later may be other memory
  if (!waits || now_ns - told_alive_ns_ < kAliveNs) return;
  told_alive_ns_ = now_ns;
  const uint64_t flushing_ns = flushing_ns_;
  issued_.for_written([this](const Issued::Entry& each) { records_.watch(each); });
  records_.alive(now_ns, flushing_ns != 0 && flushing_ns < before_ns ? flushing_ns : 0,
                 other_threads(now_ns));
}

// Looks at threads that are in no call of CUDA, and have made none since the look before.
OtherThreads Session::other_threads(const uint64_t now_ns) {
  std::vector<int32_t> passed_over = {writer_number_, flusher_number_};
  for (const OpenCall& each : open_) passed_over.push_back(each.system);
  for (const auto& [thread, number] : last_) {
    const auto before = told_last_.find(thread);
    if (before == told_last_.end() || before->second != number) passed_over.push_back(thread);
  }
  told_last_ = last_;
  return threads_.look(passed_over, now_ns);
}

void Session::write() {
  std::string notes;
  {
    const std::lock_guard lock(mutex_);
    notes = notes_.take();
  }
  output_.write(notes);
  output_.write(records_.take());
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
