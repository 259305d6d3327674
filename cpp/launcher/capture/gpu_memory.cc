#include "launcher/capture/gpu_memory.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "launcher/capture/driver.h"

namespace tbsched::capture {
namespace {

constexpr size_t kMaxRanges = 16;
constexpr uint64_t kBytesBefore = 4 << 10;  // read before an address, and from it on
constexpr uint64_t kBytesAfter = 60 << 10;
constexpr uint64_t kMaxReadBytes = 1 << 20;  // read in all
constexpr size_t kMaxContexts = 8;
constexpr size_t kMaxReads = 8;             // kept
constexpr size_t kMinReads = 4;             // that say something
constexpr uint64_t kLaterIntervals = 3;     // each later read comes after so many intervals
constexpr size_t kMaxChangedAddresses = 8;  // of changed words of a kind in a range
constexpr std::chrono::milliseconds kCopyLimit{500};
constexpr std::chrono::milliseconds kCopyPoll{1};
constexpr std::chrono::milliseconds kStopLimit{200};

thread_local bool is_reading_thread = false;

}  // namespace

// Functions of the driver; null: it has none of that name.
struct GpuMemory::Driver {
  decltype(&cuCtxPushCurrent) push = driver_function<decltype(push)>("cuCtxPushCurrent_v2");
  decltype(&cuCtxPopCurrent) pop = driver_function<decltype(pop)>("cuCtxPopCurrent_v2");
  decltype(&cuStreamCreate) create_stream =
      driver_function<decltype(create_stream)>("cuStreamCreate");
  decltype(&cuStreamQuery) query = driver_function<decltype(query)>("cuStreamQuery");
  decltype(&cuMemHostAlloc) allocate = driver_function<decltype(allocate)>("cuMemHostAlloc");
  decltype(&cuPointerGetAttributes) attributes =
      driver_function<decltype(attributes)>("cuPointerGetAttributes");
  decltype(&cuMemcpyDtoHAsync) copy = driver_function<decltype(copy)>("cuMemcpyDtoHAsync_v2");
  decltype(&cuThreadExchangeStreamCaptureMode) exchange_mode =
      driver_function<decltype(exchange_mode)>("cuThreadExchangeStreamCaptureMode");

  bool is_whole() const {
    return push != nullptr && pop != nullptr && create_stream != nullptr && query != nullptr &&
           allocate != nullptr && attributes != nullptr && copy != nullptr &&
           exchange_mode != nullptr;
  }

  static const Driver& instance() {
    static const Driver driver;
    return driver;
  }
};

// A context in which memory can be read. Its stream is used, and so takes a channel of a copy
// engine, only while a program hangs.
struct GpuMemory::Context {
  CUcontext handle = nullptr;
  uint32_t id = 0;  // CUPTI's
  uint32_t device = 0;
  CUstream stream = nullptr;
  uint32_t stream_id = 0;  // CUPTI's
  void* copied = nullptr;  // kMaxReadBytes of pinned memory; null: the context cannot be used
  bool is_copying = false;
};

void count_changes(ReadRange& range, const std::span<const std::span<const uint32_t>> reads) {
  for (size_t index = 0; index < reads.front().size(); ++index) {
    std::array<uint32_t, kMaxReads> values;  // after each change
    size_t count = 0;
    for (const auto& read : reads) {
      if (count == 0 || values[count - 1] != read[index]) values[count++] = read[index];
    }
    if (count == 1) continue;
    const auto begin = values.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    const bool only_grows_or_shrinks =
        std::is_sorted(begin, end) || std::is_sorted(begin, end, std::greater());
    const auto keep_address = [&](std::vector<int64_t>& addresses) {
      if (addresses.size() == kMaxChangedAddresses) return;
      addresses.push_back(static_cast<int64_t>(range.begin + sizeof(uint32_t) * index));
    };
    if (count == 2) {
      ++range.once;
      continue;
    }
    if (only_grows_or_shrinks) {
      ++range.counted;
      keep_address(range.counted_at);
      continue;
    }
    std::sort(begin, end);
    if (std::adjacent_find(begin, end) != end) {
      ++range.returned;
    } else {
      ++range.renewed;
      keep_address(range.renewed_at);
    }
  }
}

void GpuMemory::prepare(const CUcontext context, const uint32_t context_id) {
  if (context == nullptr || last_prepared_.load(std::memory_order_relaxed) == context_id) return;
  const Driver& driver = Driver::instance();
  {
    const std::lock_guard lock(mutex_);
    const bool is_known =
        std::ranges::any_of(contexts_, [&](const auto& each) { return each->id == context_id; });
    last_prepared_ = context_id;
    if (is_known || contexts_.size() == kMaxContexts || !driver.is_whole()) return;
    contexts_.push_back(std::make_unique<Context>());
    contexts_.back()->id = context_id;
  }
  // Another thread may be capturing a stream, which would forbid to allocate.
  auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUcontext before = nullptr;
  if (driver.exchange_mode(&mode) != CUDA_SUCCESS) return;
  if (driver.push(context) == CUDA_SUCCESS) {
    Context made{.handle = context, .id = context_id};
    if (driver.create_stream(&made.stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
        cupti_.device_id(context, &made.device) == CUPTI_SUCCESS &&
        cupti_.stream_id(context, made.stream, 0, &made.stream_id) == CUPTI_SUCCESS &&
        driver.allocate(&made.copied, kMaxReadBytes, CU_MEMHOSTALLOC_PORTABLE) == CUDA_SUCCESS) {
      const std::lock_guard lock(mutex_);
      for (const auto& each : contexts_) {
        if (each->id == context_id) *each = made;
      }
    }
    driver.pop(&before);
  }
  driver.exchange_mode(&mode);
}

void GpuMemory::forget(const CUcontext context) {
  std::unique_lock lock(mutex_);
  const auto found =
      std::ranges::find_if(contexts_, [&](const auto& each) { return each->handle == context; });
  if (found == contexts_.end()) return;
  (*found)->handle = nullptr;
  is_reading_ = false;
  wakes_.wait_for(lock, kStopLimit, [this] { return !is_in_driver_; });
}

void GpuMemory::begin(const std::function<std::vector<Address>()>& addresses) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(is_reading_, true)) return;
  addresses_ = addresses();
  reads_ = {};
  ++series_;
  if (!thread_.joinable() && !is_stopped_) {
    thread_ = std::thread(&GpuMemory::read_until_stopped, this);
  }
  wakes_.notify_all();
}

void GpuMemory::end() {
  const std::lock_guard lock(mutex_);
  is_reading_ = false;
  reads_ = {};
}

MemoryReads GpuMemory::take_reads() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reads_, {});
}

void GpuMemory::stop() {
  std::unique_lock lock(mutex_);
  is_stopped_ = true;
  wakes_.notify_all();
  if (!thread_.joinable()) return;
  const bool has_ended = wakes_.wait_for(lock, kStopLimit, [this] { return has_ended_; });
  lock.unlock();
  has_ended ? thread_.join() : thread_.detach();
}

bool GpuMemory::is_this_thread() { return is_reading_thread; }

bool GpuMemory::has_stream(const uint32_t context, const uint32_t stream) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(contexts_, [&](const auto& each) {
    return each->copied != nullptr && each->id == context && each->stream_id == stream;
  });
}

void GpuMemory::read_until_stopped() {
  is_reading_thread = true;
  thread_id_ = static_cast<int32_t>(syscall(SYS_gettid));
  auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  Driver::instance().exchange_mode(&mode);
  uint64_t series = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wakes_.wait(lock, [this] { return is_stopped_ || is_reading_; });
    if (is_stopped_) break;
    const bool is_new = std::exchange(series, series_) != series_;
    const auto addresses = addresses_;
    // The memory of one context, that of the first kernel.
    const auto found = std::ranges::find_if(contexts_, [&](const auto& each) {
      return !addresses.empty() && each->id == addresses.front().context &&
             each->handle != nullptr && each->copied != nullptr;
    });
    Context* const context = found == contexts_.end() ? nullptr : found->get();
    if (context != nullptr) {
      const CUcontext handle = context->handle;
      is_in_driver_ = true;
      lock.unlock();
      CUcontext before = nullptr;
      if (Driver::instance().push(handle) == CUDA_SUCCESS) {
        if (is_new) {
          kept_.clear();
          ranges_ = find_ranges(*context, addresses);
        }
        if (!ranges_.empty() && copy_ranges(*context)) keep_read(*context);
        Driver::instance().pop(&before);
      }
      MemoryReads reads = kept_.size() < kMinReads ? MemoryReads() : compare_reads();
      lock.lock();
      is_in_driver_ = false;
      wakes_.notify_all();
      if (is_reading_ && series == series_) reads_ = std::move(reads);
    }
    const std::chrono::nanoseconds pause(interval_ns_ *
                                         (kept_.size() < kMaxReads ? 1 : kLaterIntervals));
    wakes_.wait_for(lock, pause, [&] { return is_stopped_ || series != series_; });
  }
  has_ended_ = true;
  wakes_.notify_all();
}

std::vector<ReadRange> GpuMemory::find_ranges(Context& context,
                                              const std::span<const Address> addresses) {
  std::vector<ReadRange> ranges;
  for (const Address& each : addresses) {
    if (each.context != context.id || ranges.size() == kMaxRanges) continue;
    CUmemorytype type{};
    unsigned is_managed = 0;
    int device = -1;
    CUdeviceptr begin = 0;
    size_t bytes = 0;
    std::array names = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                        CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    std::array<void*, names.size()> values = {&type, &is_managed, &device, &begin, &bytes};
    if (Driver::instance().attributes(names.size(), names.data(), values.data(), each.address) !=
        CUDA_SUCCESS) {
      continue;
    }
    // A copy of managed memory would move it, and one of another GPU's may wait for that.
    if (type != CU_MEMORYTYPE_DEVICE || is_managed != 0 || begin == 0 ||
        device != static_cast<int>(context.device)) {
      continue;
    }
    const uint64_t end = begin + bytes;
    const uint64_t first =
        std::max<uint64_t>(begin, each.address - std::min(each.address, kBytesBefore));
    const uint64_t aligned = (first + 3) / 4 * 4;
    const uint64_t last = std::min(end, each.address + kBytesAfter) / 4 * 4;
    if (aligned >= last) continue;
    ranges.push_back({.begin = aligned, .bytes = last - aligned});
  }
  std::ranges::sort(ranges, {}, &ReadRange::begin);
  std::vector<ReadRange> merged;
  uint64_t total = 0;
  for (const ReadRange& each : ranges) {
    if (!merged.empty() && each.begin < merged.back().begin + merged.back().bytes) {
      ReadRange& before = merged.back();
      const uint64_t end = std::max(before.begin + before.bytes, each.begin + each.bytes);
      total += end - before.begin - before.bytes;
      before.bytes = end - before.begin;
    } else {
      merged.push_back(each);
      total += each.bytes;
    }
    if (total > kMaxReadBytes) {
      merged.pop_back();
      break;
    }
  }
  return merged;
}

bool GpuMemory::copy_ranges(Context& context) {
  if (context.is_copying && !wait_for_copies(context)) return false;
  auto* to = static_cast<std::byte*>(context.copied);
  context.is_copying = true;
  for (const ReadRange& each : ranges_) {
    if (Driver::instance().copy(to, each.begin, each.bytes, context.stream) != CUDA_SUCCESS) {
      ranges_.clear();  // the memory is there no longer
      return false;
    }
    to += each.bytes;
  }
  return wait_for_copies(context);
}

bool GpuMemory::wait_for_copies(Context& context) {
  const auto limit = std::chrono::steady_clock::now() + kCopyLimit;
  CUresult result = CUDA_ERROR_NOT_READY;
  while ((result = Driver::instance().query(context.stream)) == CUDA_ERROR_NOT_READY) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::unique_lock lock(mutex_);
    wakes_.wait_for(lock, kCopyPoll, [this] { return is_stopped_; });
    if (is_stopped_) return false;
  }
  context.is_copying = false;
  return result == CUDA_SUCCESS;
}

void GpuMemory::keep_read(const Context& context) {
  uint64_t bytes = 0;
  for (const ReadRange& each : ranges_) bytes += each.bytes;
  Read read{.at_ns = 0, .words = std::vector<uint32_t>(bytes / sizeof(uint32_t))};
  cupti_.timestamp(&read.at_ns);
  std::memcpy(read.words.data(), context.copied, bytes);
  if (kept_.size() == kMaxReads) kept_.pop_front();
  kept_.push_back(std::move(read));
}

MemoryReads GpuMemory::compare_reads() const {
  MemoryReads reads{.first_ns = kept_.front().at_ns,
                    .last_ns = kept_.back().at_ns,
                    .reads = kept_.size(),
                    .ranges = ranges_};
  size_t first = 0;  // word
  for (ReadRange& range : reads.ranges) {
    std::vector<std::span<const uint32_t>> words;
    for (const Read& each : kept_) {
      words.push_back(std::span(each.words).subspan(first, range.bytes / sizeof(uint32_t)));
    }
    count_changes(range, words);
    first += range.bytes / sizeof(uint32_t);
  }
  return reads;
}

}  // namespace tbsched::capture
