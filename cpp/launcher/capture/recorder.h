// Writes CUPTI's records as lines of a capture file. docs/reference/capture-format.md has the
// format.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "launcher/capture/address_space.h"
#include "launcher/capture/cupti.h"
#include "launcher/capture/gpu_memory.h"
#include "launcher/capture/host_memory.h"
#include "launcher/capture/host_threads.h"
#include "launcher/capture/issued.h"
#include "launcher/capture/line.h"
#include "launcher/capture/modules.h"
#include "launcher/capture/surroundings.h"

namespace tbsched::capture {

// Formats lines, and keeps them until take_lines(). Not thread-safe.
class Recorder {
 public:
  // Times are relative to `started_ns`.
  Recorder(const Cupti& cupti, const Modules& modules, uint64_t started_ns)
      : cupti_(cupti), modules_(modules), started_ns_(started_ns) {}

  // Writes the first line: the format, the process and its settings. `reads_gpu_memory`: memory of
  // the GPU is read while nothing is new.
  void write_header(bool reads_gpu_memory);
  // Writes one record of CUPTI; nothing for kinds that the format does not have.
  void write_activity(const CUpti_Activity& record);
  // Writes how many records CUPTI has dropped.
  void write_lost(size_t records);
  // Writes how often callbacks, or the threads that write, failed, and why they first did: what
  // they would have noted is missing.
  void write_failures(size_t times, std::string_view why);
  // Writes the last line: when the capture ended, and how many launches it has.
  void write_end(uint64_t at_ns);

  // Writes attributes of a launch that its record lacks. `priority` counts with `has_priority`
  // only.
  void write_attributes(uint32_t call, bool programmatic, bool has_priority, int32_t priority);
  // Writes that the event that a call records has timing.
  void write_timed(uint32_t call);
  // Writes which executable graph a call launches.
  void write_graph_launch(uint32_t call, uint32_t executable, uint32_t context, uint32_t stream);
  // Writes that a node of a graph depends on another one.
  void write_edge(uint64_t node, uint64_t dependency);
  // Writes that a node of a graph is a copy of another one.
  void write_clone(uint64_t node, uint64_t original);
  // Writes a stream, its context and its device, each once.
  void write_surroundings(const Surroundings& given);
  // Writes how long a callback of the capture took.
  void write_slow_callback(uint64_t start_ns, uint64_t end_ns);

  // Forgets which addresses are of the host: memory may have come and gone. Call it before
  // write_issued() and watch_memory().
  void forget_addresses() { addresses_.forget(); }
  // Writes an operation that was issued and has not ended.
  void write_issued(const Issued::Entry& entry);
  // Writes that the operation of a call has ended.
  void write_ended(uint32_t call);
  // Writes that a thread is in a call that has not returned.
  void write_open_call(const OpenCall& open);
  // Writes that a call has returned by `at_ns`.
  void write_returned(uint32_t call, uint64_t at_ns);
  // Watches the memory of the host to which an operation's arguments point. The next write_alive()
  // reports whether it has changed.
  void watch_memory(const Issued::Entry& entry);
  // Forgets what the watched memory contained.
  void forget_memory() { memory_.forget(); }
  // Returns whether an argument may be an address in memory of a GPU that the host cannot read.
  bool may_be_of_gpu(const Word& word);
  // Writes what several reads of memory of the GPU say; nothing if they say nothing.
  void write_gpu_memory(const MemoryReads& reads);
  // Writes that the program runs at `at_ns` while something has not ended, which watched memory has
  // changed, and which threads are busy. `flushing_ns`: since when CUPTI has been asked for its
  // records and has not answered; 0: it has.
  void write_alive(uint64_t at_ns, uint64_t flushing_ns, const OtherThreads& threads);

  // Returns the lines since the last take_lines().
  std::string take_lines();

 private:
  // Writes an ended kernel, and counts it; counts only, if it had not ended when the process did.
  void write_kernel(const CUpti_ActivityKernel9& record);
  // Writes an ended copy; nothing if it has not ended.
  void write_copy(const CUpti_ActivityMemcpy5& record);
  // Writes an ended memset; nothing if it has not ended.
  void write_memset(const CUpti_ActivityMemset4& record);
  // Writes a call of the driver or the runtime, if its function is recorded.
  void write_call(const CUpti_ActivityAPI& record);
  // Writes where and by which call an event was recorded.
  void write_event(const CUpti_ActivityCudaEvent& record);
  // Writes a wait of the host, or of a stream for an event.
  void write_wait(const CUpti_ActivitySynchronization& record);
  // Writes a stream with its kind and priority.
  void write_stream(const CUpti_ActivityStream& record);
  // Writes a context, and the SMs of a green one.
  void write_context(const CUpti_ActivityContext2& record);
  // Writes a GPU.
  void write_device(const CUpti_ActivityDevice4& record);
  // Writes what the program loads, and what CUPTI does in its calls for the capture.
  void write_overhead(const CUpti_ActivityOverhead2& record);

  // Returns the id of a kernel with the settings that its launches share; writes a line for a new
  // one.
  uint32_t kernel_id_of(const CUpti_ActivityKernel9& record);
  // Returns the id of a function; writes a line for a new one. None: the function's calls are not
  // recorded.
  std::optional<uint32_t> function_id_of(CUpti_CallbackDomain domain, CUpti_CallbackId function);
  // Adds the function of a call, its thread, and when it began.
  void add_call(Line& line, const OpenCall& call);
  // Adds the sizes and attributes of a launch, and what its kernel needs, if that is known.
  void add_shape(Line& line, const Shape& shape, const Function* function);
  // Adds the words of a launch's arguments. `one_by_one`: adds which of those of 8 bytes are
  // addresses of the host. Arguments in one buffer may have addresses that the kernel's code does
  // not use.
  void add_arguments(Line& line, std::span<const Word> words, bool one_by_one);
  // Adds an address, and what memory it is in; nothing if it is 0.
  void add_address(Line& line, std::string_view key, std::string_view memory, uint64_t address);
  // Returns the id of a graph; writes its nodes and edges if it is new.
  uint32_t graph_id_of(const Graph& graph);
  // Writes a node of a graph.
  void write_node(const Graph& graph, const GraphNode& node, uint32_t graph_id, uint32_t index);
  // Returns the kernel of a function; null: unknown. A graph may have been made before its kernels
  // were loaded.
  const Kernel* kernel_of(const Function* function) const;
  // Returns the id of the code of a kernel; writes the code if it is new. None: the code is not
  // kept.
  std::optional<uint32_t> code_id_of(const Function* function);
  // Adds when something began and ended, relative to the start of the capture.
  void add_times(Line& line, uint64_t start_ns, uint64_t end_ns) const;
  // Adds the members that kernels, copies and memsets share: call, times, context, stream, node of
  // a graph.
  template <typename Record>
  void add_location(Line& line, const Record& record) const;

  const Cupti& cupti_;
  const Modules& modules_;
  const uint64_t started_ns_;
  std::string text_;   // the lines
  std::string shape_;  // of a kernel, while it is formatted; kept for its memory
  // Ids by what they stand for.
  std::unordered_map<std::string, uint32_t> kernels_;
  std::unordered_map<uint64_t, std::optional<uint32_t>> functions_;
  uint32_t function_count_ = 0;
  std::unordered_map<uint32_t, uint32_t> threads_;  // by CUPTI's number
  std::unordered_map<const Kernel*, uint32_t> codes_;
  std::unordered_map<uint64_t, uint32_t> graphs_;  // by Graph::number
  AddressSpace addresses_;
  HostMemory memory_;
  std::set<std::pair<uint32_t, uint32_t>> written_streams_;  // context and stream
  std::set<uint32_t> written_contexts_;
  uint64_t launches_ = 0;    // records of kernels
  uint64_t unfinished_ = 0;  // of these, without an end
};

}  // namespace tbsched::capture
