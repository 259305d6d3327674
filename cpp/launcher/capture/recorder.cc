#include "launcher/capture/recorder.h"

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "launcher/capture/functions.h"

namespace tbsched::capture {
namespace {

constexpr int kFormatVersion = 1;

// Returns a record as the type that its kind says.
template <typename Record>
const Record& as(const CUpti_Activity& record) {
  return reinterpret_cast<const Record&>(record);
}

// Returns the name of a value that is an index into `names`.
template <size_t count>
std::string_view name_of(const std::array<std::string_view, count>& names, const uint32_t value) {
  return names[value < count ? value : 0];
}

constexpr std::array<std::string_view, 11> kCopies = {"unknown", "h2d", "d2h", "h2a", "a2h", "a2a",
                                                      "a2d",     "d2a", "d2d", "h2h", "p2p"};
constexpr std::array<std::string_view, 8> kMemories = {"unknown",       "pageable",      "pinned",
                                                       "device",        "array",         "managed",
                                                       "device_static", "managed_static"};
constexpr std::array<std::string_view, 5> kWaits = {"unknown", "event", "stream_wait_event",
                                                    "stream", "context"};
// By CUpti_ActivityOverheadKind >> 16; empty: neither loading by the program nor caused by the
// capture.
constexpr std::array<std::string_view, 8> kOverheads = {
    "", "buffer_flush", "instrumentation", "resource", "module", "function", "", "buffer_request"};
// By What.
constexpr std::array<std::string_view, 9> kWhats = {"launch",     "copy",        "memset",
                                                    "graph",      "record",      "wait",
                                                    "wait_value", "write_value", "host_function"};
// By CUgraphNodeType + 1.
constexpr std::array<std::string_view, 15> kNodes = {
    "unknown",        "kernel",     "copy", "memset", "host_function",
    "graph",          "empty",      "wait", "record", "signal_semaphore",
    "wait_semaphore", "allocation", "free", "values", "conditional"};
// By AddressSpace::Kind.
constexpr std::array<std::string_view, 3> kAddressed = {"other", "host", "managed"};
constexpr std::array<std::string_view, 4> kStreams = {"unknown", "default", "non_blocking", "null"};

// Returns the number of hardware queues of a context of this process: the setting of
// CUDA_DEVICE_MAX_CONNECTIONS, or its default.
int hardware_queues() {
  constexpr int kDefault = 8;  // CUDA C++ Programming Guide
  const char* const setting = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const int count = setting != nullptr ? std::atoi(setting) : 0;
  return count > 0 ? count : kDefault;
}

// Returns the C++ name of a kernel; the name itself if it is none of C++.
std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text != nullptr ? text.get() : name;
}

}  // namespace

std::string Recorder::take_lines() { return std::exchange(text_, {}); }

void Recorder::write_header(const bool reads_gpu_memory) {
  uint32_t version = 0;
  cupti_.check(cupti_.get_version(&version), "cuptiGetVersion");
  Line line(text_);
  line.add("tbsched_capture", kFormatVersion)
      .add("started_ns", started_ns_)
      .add("process", getpid())
      .add("cupti", version)
      .add("connections", hardware_queues())
      .add("notes_issued", true)
      .add("notes_flushes", true);
  if (reads_gpu_memory) line.add("reads_gpu_memory", true);
}

void Recorder::write_lost(const size_t records) { Line(text_).add("lost", records); }

void Recorder::write_failures(const size_t times, const std::string_view why) {
  Line(text_).add("capture_failed", times).add("why", why);
}

void Recorder::write_end(const uint64_t at_ns) {
  Line(text_)
      .add("end", at_ns - started_ns_)
      .add("launches", launches_)
      .add("unfinished", unfinished_);
}

void Recorder::write_activity(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return write_kernel(as<CUpti_ActivityKernel9>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return write_copy(as<CUpti_ActivityMemcpy5>(record));
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return write_memset(as<CUpti_ActivityMemset4>(record));
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return write_call(as<CUpti_ActivityAPI>(record));
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return write_event(as<CUpti_ActivityCudaEvent>(record));
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return write_wait(as<CUpti_ActivitySynchronization>(record));
    case CUPTI_ACTIVITY_KIND_STREAM:
      return write_stream(as<CUpti_ActivityStream>(record));
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return write_context(as<CUpti_ActivityContext2>(record));
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return write_device(as<CUpti_ActivityDevice4>(record));
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return write_overhead(as<CUpti_ActivityOverhead2>(record));
    default:
      return;
  }
}

void Recorder::add_times(Line& line, const uint64_t start_ns, const uint64_t end_ns) const {
  const std::array times = {static_cast<int64_t>(start_ns - started_ns_),
                            static_cast<int64_t>(end_ns - started_ns_)};
  line.add("at", times);
}

template <typename Record>
void Recorder::add_location(Line& line, const Record& record) const {
  line.add("call", record.correlationId);
  add_times(line, record.start, record.end);
  line.add("context", record.contextId).add("stream", record.streamId);
  if (record.channelType != CUPTI_CHANNEL_TYPE_INVALID) line.add("channel", record.channelID);
  if (record.graphNodeId != 0) line.add("node", record.graphNodeId).add("graph", record.graphId);
}

void Recorder::write_kernel(const CUpti_ActivityKernel9& record) {
  ++launches_;
  if (record.end == 0) {  // it had not ended when the process did
    ++unfinished_;
    return;
  }
  const uint32_t kernel = kernel_id_of(record);
  Line line(text_);
  line.add("ran", kernel);
  add_location(line, record);
  line.add("configured", record.sharedMemoryExecuted);
}

uint32_t Recorder::kernel_id_of(const CUpti_ActivityKernel9& record) {
  const std::string name = record.name != nullptr ? record.name : "";
  shape_.clear();
  const auto add_extent = [](Line& line, const std::string_view key, const auto x, const auto y,
                             const auto z) { line.add(key, std::array<int64_t, 3>{x, y, z}); };
  {
    Line line(shape_);
    add_extent(line, "grid", record.gridX, record.gridY, record.gridZ);
    add_extent(line, "block", record.blockX, record.blockY, record.blockZ);
    line.add("registers", record.registersPerThread)
        .add("static_shared_memory", record.staticSharedMemory)
        .add("dynamic_shared_memory", record.dynamicSharedMemory);
    // CUPTI's own number is 0, whatever the kernel uses.
    const auto local_memory =
        modules_.local_memory(name, record.registersPerThread, record.staticSharedMemory);
    if (local_memory) line.add("local_memory", *local_memory);
    if (record.clusterX > 0) {
      add_extent(line, "cluster", record.clusterX, record.clusterY, record.clusterZ);
    }
    // 255 is -1, which leaves it to the driver.
    if (record.isSharedMemoryCarveoutRequested != 0 &&
        record.sharedMemoryCarveoutRequested <= 100) {
      line.add("carveout", record.sharedMemoryCarveoutRequested);
    }
    const bool cooperative =
        record.launchType == CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE ||
        record.launchType == CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_MULTI_DEVICE;
    line.add("cooperative", cooperative);
  }
  const size_t members = shape_.size() - 3;  // without braces and newline
  shape_ += name;
  const auto [entry, is_new] = kernels_.try_emplace(shape_, kernels_.size());
  if (is_new) {
    Line(text_)
        .add("kernel", entry->second)
        .add("name", demangled(name))
        .add_members(std::string_view(shape_).substr(1, members));
  }
  return entry->second;
}

void Recorder::write_copy(const CUpti_ActivityMemcpy5& record) {
  if (record.end == 0) return;
  Line line(text_);
  line.add("copy", name_of(kCopies, record.copyKind)).add("bytes", record.bytes);
  line.add("from", name_of(kMemories, record.srcKind));
  line.add("to", name_of(kMemories, record.dstKind));
  line.add("async", (record.flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) != 0);
  add_location(line, record);
}

void Recorder::write_memset(const CUpti_ActivityMemset4& record) {
  if (record.end == 0) return;
  Line line(text_);
  line.add("memset", record.bytes).add("to", name_of(kMemories, record.memoryKind));
  line.add("async", (record.flags & CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC) != 0);
  add_location(line, record);
}

std::optional<uint32_t> Recorder::function_id_of(const CUpti_CallbackDomain domain,
                                                 const CUpti_CallbackId function) {
  const uint64_t key = uint64_t{domain} << 32 | function;
  const auto [entry, is_new] = functions_.try_emplace(key, std::nullopt);
  const char* name = nullptr;
  if (is_new && cupti_.callback_name(domain, function, &name) == CUPTI_SUCCESS && name != nullptr &&
      is_recorded(name)) {
    entry->second = function_count_++;
    Line(text_).add("function", *entry->second).add("name", std::string_view(name));
  }
  return entry->second;
}

void Recorder::write_call(const CUpti_ActivityAPI& record) {
  const bool is_driver = record.kind == CUPTI_ACTIVITY_KIND_DRIVER;
  const std::optional<uint32_t> function = function_id_of(
      is_driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API, record.cbid);
  if (!function) return;
  const uint32_t thread = threads_.try_emplace(record.threadId, threads_.size()).first->second;
  Line line(text_);
  line.add("call", record.correlationId).add("of", *function).add("thread", thread);
  add_times(line, record.start, record.end);
  if (record.returnValue != 0) line.add("failed", record.returnValue);
}

void Recorder::write_event(const CUpti_ActivityCudaEvent& record) {
  Line(text_)
      .add("event", record.eventId)
      .add("call", record.correlationId)
      .add("context", record.contextId)
      .add("stream", record.streamId);
}

void Recorder::write_wait(const CUpti_ActivitySynchronization& record) {
  constexpr auto kNone = static_cast<uint32_t>(CUPTI_SYNCHRONIZATION_INVALID_VALUE);
  Line line(text_);
  line.add("wait", name_of(kWaits, record.type)).add("call", record.correlationId);
  add_times(line, record.start, record.end);
  line.add("context", record.contextId);
  if (record.streamId != kNone) line.add("stream", record.streamId);
  if (record.cudaEventId != kNone) line.add("event", record.cudaEventId);
}

void Recorder::write_stream(const CUpti_ActivityStream& record) {
  Line(text_)
      .add("stream", record.streamId)
      .add("context", record.contextId)
      .add("kind", name_of(kStreams, record.flag))
      .add("priority", static_cast<int32_t>(record.priority));
}

void Recorder::write_context(const CUpti_ActivityContext2& record) {
  Line line(text_);
  line.add("context", record.contextId)
      .add("device", record.deviceId)
      .add("null_stream", record.nullStreamId);
  if (record.isGreenContext != 0) {
    line.add("green", true)
        .add("parent", record.parentContextId)
        .add("sms", record.numMultiprocessors);
  }
}

void Recorder::write_device(const CUpti_ActivityDevice4& record) {
  Line(text_)
      .add("device", record.id)
      .add("name", record.name != nullptr ? record.name : "")
      .add("compute_capability", std::to_string(record.computeCapabilityMajor) + "." +
                                     std::to_string(record.computeCapabilityMinor))
      .add("sms", record.numMultiprocessors);
}

void Recorder::write_surroundings(const Surroundings& given) {
  if (written_contexts_.insert(given.context).second) {
    Line(text_)
        .add("device", given.device)
        .add("name", std::string_view(given.name))
        .add("compute_capability",
             std::string_view(std::to_string(given.major) + "." + std::to_string(given.minor)))
        .add("sms", given.sms);
    Line(text_)
        .add("context", given.context)
        .add("device", given.device)
        .add("null_stream", given.null_stream);
  }
  if (!written_streams_.insert({given.context, given.stream}).second) return;
  const std::string_view kind = given.stream == given.null_stream ? "null"
                                : given.is_blocking               ? "default"
                                                                  : "non_blocking";
  Line line(text_);
  line.add("stream", given.stream)
      .add("context", given.context)
      .add("kind", kind)
      .add("priority", given.priority);
  if (given.green_sms > 0) line.add("green_sms", given.green_sms);
}

void Recorder::write_overhead(const CUpti_ActivityOverhead2& record) {
  const std::string_view name =
      name_of(kOverheads, static_cast<uint32_t>(record.overheadKind) >> 16);
  const bool is_loading = name == "module" || name == "function";
  const bool is_of_the_capture = !name.empty() && !is_loading && record.end != 0;
  if (!is_loading && !is_of_the_capture) return;
  Line line(text_);
  line.add(is_loading ? "loading" : "overhead", name);
  if (is_loading) line.add("call", record.correlationId);
  add_times(line, record.start, record.end);
}

void Recorder::write_slow_callback(const uint64_t start_ns, const uint64_t end_ns) {
  Line line(text_);
  line.add("overhead", "callback");
  add_times(line, start_ns, end_ns);
}

void Recorder::write_attributes(const uint32_t call, const bool programmatic,
                                const bool has_priority, const int32_t priority) {
  Line line(text_);
  line.add("attributes", call).add("programmatic", programmatic);
  if (has_priority) line.add("priority", priority);
}

void Recorder::write_timed(const uint32_t call) { Line(text_).add("timed", call); }

void Recorder::write_graph_launch(const uint32_t call, const uint32_t executable,
                                  const uint32_t context, const uint32_t stream) {
  Line(text_)
      .add("graph_launch", call)
      .add("executable", executable)
      .add("context", context)
      .add("stream", stream);
}

void Recorder::write_edge(const uint64_t node, const uint64_t dependency) {
  const std::array ends = {static_cast<int64_t>(node), static_cast<int64_t>(dependency)};
  Line(text_).add("edge", ends);
}

void Recorder::write_clone(const uint64_t node, const uint64_t original) {
  Line(text_).add("node", node).add("clone_of", original);
}

void Recorder::add_call(Line& line, const OpenCall& call) {
  const char* name = nullptr;
  const bool has_name =
      cupti_.callback_name(CUPTI_CB_DOMAIN_DRIVER_API, call.function, &name) == CUPTI_SUCCESS;
  const uint32_t thread = threads_.try_emplace(call.thread, threads_.size()).first->second;
  line.add("function", std::string_view(has_name && name != nullptr ? name : "unknown"))
      .add("thread", thread)
      .add("system_thread", call.os_thread)
      .add("at", static_cast<int64_t>(call.begin_ns - started_ns_));
}

void Recorder::write_issued(const Issued::Entry& entry) {
  const Operation& operation = entry.note.operation;
  const Function* const function = entry.note.function;
  const std::optional<uint32_t> code = code_id_of(function);
  const GraphLaunch* const launched = entry.note.graph.get();
  const uint32_t graph = launched != nullptr ? graph_id_of(*launched->graph) : 0;
  Line line(text_);
  line.add("issued", operation.call)
      .add("what", name_of(kWhats, static_cast<uint32_t>(operation.what)));
  add_call(line, entry.note.by);
  line.add("context", operation.context).add("stream", operation.stream);
  if (operation.what == What::kLaunch) {
    if (function != nullptr) {
      line.add("name", demangled(function->name)).add("before", entry.note.launches_before);
    }
    add_shape(line, operation.shape, function);
    add_arguments(line, words_of(entry.arguments, function), operation.shape.buffer.empty());
  }
  if (launched != nullptr) {
    line.add("graph", graph).add("changed", launched->is_changed);
    line.add("before", std::vector<int64_t>(launched->before.begin(), launched->before.end()));
  }
  if (code) line.add("code", *code);
  if (operation.bytes != 0) line.add("bytes", operation.bytes);
  add_address(line, "address", "to", operation.address);
  add_address(line, "source", "from", operation.source);
  if (operation.event != 0) line.add("event", operation.event);
  if (operation.has_timing) line.add("timing", true);
}

const Kernel* Recorder::kernel_of(const Function* const function) const {
  if (function == nullptr) return nullptr;
  return function->kernel != nullptr ? function->kernel : modules_.only(function->name);
}

std::optional<uint32_t> Recorder::code_id_of(const Function* const function) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const Kernel* const kernel = kernel_of(function);
  if (kernel == nullptr || kernel->code.empty()) return std::nullopt;
  const auto [entry, is_new] = codes_.try_emplace(kernel, codes_.size());
  if (!is_new) return entry->second;
  std::string digits;
  digits.reserve(2 * kernel->code.size());
  for (const std::byte each : kernel->code) {
    (digits += kDigits[std::to_integer<size_t>(each >> 4)]) +=
        kDigits[std::to_integer<size_t>(each & std::byte{15})];
  }
  Line(text_)
      .add("code", entry->second)
      .add("name", demangled(kernel->usage.name))
      .add("parameters_at", kernel->usage.parameters_at)
      .add("hex", std::string_view(digits));
  return entry->second;
}

void Recorder::add_shape(Line& line, const Shape& shape, const Function* const function) {
  const auto add_extent = [&](const std::string_view key, const std::array<uint32_t, 3>& extent) {
    line.add(key, std::array<int64_t, 3>{extent[0], extent[1], extent[2]});
  };
  add_extent("grid", shape.grid);
  add_extent("block", shape.block);
  line.add("dynamic_shared_memory", shape.dynamic_shared_memory);
  std::array<uint32_t, 3> cluster = shape.cluster;
  if (const Kernel* const kernel = kernel_of(function)) {
    const cuda::KernelUsage& usage = kernel->usage;
    line.add("registers", usage.registers)
        .add("static_shared_memory", usage.static_shared_memory)
        .add("local_memory", usage.local_memory);
    if (cluster[0] == 0 && usage.cluster > 0) {
      cluster = {static_cast<uint32_t>(usage.cluster), 1, 1};
    }
  }
  if (cluster[0] > 0) add_extent("cluster", cluster);
  if (shape.carveout >= 0 && shape.carveout <= 100) line.add("carveout", shape.carveout);
  line.add("cooperative", shape.cooperative).add("programmatic", shape.programmatic);
  if (shape.has_priority) line.add("priority", shape.priority);
}

void Recorder::add_arguments(Line& line, const std::span<const Word> words, const bool one_by_one) {
  std::vector<int64_t> pairs;
  std::vector<int64_t> small;
  std::array<std::vector<int64_t>, 3> offsets;  // by AddressSpace::Kind
  for (const Word& each : words) {
    auto& those = each.may_be_address() ? pairs : small;
    those.push_back(each.offset);
    those.push_back(static_cast<int64_t>(each.value));
    if (!each.may_be_address()) those.push_back(each.size);
    if (!each.may_be_address() || !one_by_one) continue;
    offsets[static_cast<size_t>(addresses_.kind_of(each.value))].push_back(each.offset);
  }
  if (words.empty()) return;
  line.add("arguments", pairs).add("small_arguments", small);
  if (!one_by_one) return;
  line.add("host_arguments", offsets[static_cast<size_t>(AddressSpace::Kind::kHost)])
      .add("managed_arguments", offsets[static_cast<size_t>(AddressSpace::Kind::kManaged)]);
}

void Recorder::add_address(Line& line, const std::string_view key, const std::string_view memory,
                           const uint64_t address) {
  if (address == 0) return;
  line.add(key, static_cast<int64_t>(address))
      .add(memory, name_of(kAddressed, static_cast<uint32_t>(addresses_.kind_of(address))));
}

uint32_t Recorder::graph_id_of(const Graph& graph) {
  const auto [entry, is_new] = graphs_.try_emplace(graph.number, graphs_.size());
  const uint32_t graph_id = entry->second;
  if (!is_new) return graph_id;
  for (uint32_t index = 0; index < graph.nodes.size(); ++index) {
    write_node(graph, graph.nodes[index], graph_id, index);
  }
  std::vector<int64_t> edges;
  std::vector<int64_t> programmatic;
  for (const GraphEdge& each : graph.edges) {
    auto& ends = each.programmatic ? programmatic : edges;
    ends.push_back(each.before);
    ends.push_back(each.after);
  }
  Line line(text_);
  line.add("graph", graph_id)
      .add("executable", graph.executable)
      .add("nodes", graph.nodes.size())
      .add("edges", edges);
  if (!programmatic.empty()) line.add("programmatic_edges", programmatic);
  if (!graph.is_whole) line.add("whole", false);
  return graph_id;
}

void Recorder::write_node(const Graph& graph, const GraphNode& node, const uint32_t graph_id,
                          const uint32_t index) {
  const std::optional<uint32_t> code = code_id_of(node.function);
  Line line(text_);
  line.add("graph_node", index).add("of", graph_id).add("kind", name_of(kNodes, node.type + 1));
  if (node.parent != GraphNode::kNone) line.add("parent", node.parent).add("body", node.body);
  if (!node.is_known) line.add("known", false);
  if (node.event != 0) line.add("event", node.event);
  if (node.waits_for_value) line.add("waits", true);
  if (node.type != CU_GRAPH_NODE_TYPE_KERNEL || !node.is_known) return;
  if (node.function != nullptr) line.add("name", demangled(node.function->name));
  add_shape(line, node.shape, node.function);
  add_arguments(line, std::span(graph.words).subspan(node.first_word, node.words),
                node.has_separate_arguments);
  if (code) line.add("code", *code);
}

void Recorder::write_ended(const uint32_t call) { Line(text_).add("ended", call); }

void Recorder::write_open_call(const OpenCall& open) {
  Line line(text_);
  line.add("inside", open.call);
  add_call(line, open);
}

void Recorder::write_returned(const uint32_t call, const uint64_t at_ns) {
  Line(text_).add("returned", call).add("at", static_cast<int64_t>(at_ns - started_ns_));
}

void Recorder::watch_memory(const Issued::Entry& entry) {
  const auto watch_words = [this](const std::span<const Word> words) {
    for (const Word& each : words) {
      const bool is_address = each.may_be_address();
      if (is_address && addresses_.kind_of(each.value) == AddressSpace::Kind::kHost) {
        memory_.watch(each.value);
      }
    }
  };
  watch_words(words_of(entry.arguments, entry.note.function));
  if (entry.note.graph != nullptr) watch_words(entry.note.graph->graph->words);
}

bool Recorder::may_be_of_gpu(const Word& word) {
  constexpr uint64_t kMinAddress = uint64_t{1} << 32;
  return word.may_be_address() && word.value >= kMinAddress &&
         addresses_.kind_of(word.value) == AddressSpace::Kind::kOther;
}

void Recorder::write_gpu_memory(const MemoryReads& reads) {
  for (const ReadRange& each : reads.ranges) {
    Line line(text_);
    line.add("gpu_memory", static_cast<int64_t>(each.begin))
        .add("bytes", each.bytes)
        .add("reads", reads.reads);
    add_times(line, reads.first_ns, reads.last_ns);
    const auto add = [&line](const std::string_view key, const int64_t count) {
      if (count > 0) line.add(key, count);
    };
    add("counted", each.counted);
    add("renewed", each.renewed);
    add("returned", each.returned);
    add("once", each.once);
    if (!each.counted_at.empty()) line.add("counted_at", each.counted_at);
    if (!each.renewed_at.empty()) line.add("renewed_at", each.renewed_at);
  }
}

void Recorder::write_alive(const uint64_t at_ns, const uint64_t flushing_ns,
                           const OtherThreads& threads) {
  Line line(text_);
  line.add("alive", static_cast<int64_t>(at_ns - started_ns_));
  if (flushing_ns != 0) line.add("flushing", static_cast<int64_t>(flushing_ns - started_ns_));
  const auto add = [&line](const std::string_view key, const std::vector<int64_t>& values) {
    if (!values.empty()) line.add(key, values);
  };
  add("changed", memory_.compare());
  add("busy", threads.busy);
  add("asleep", threads.asleep);
}

}  // namespace tbsched::capture
