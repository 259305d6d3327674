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
#include "launcher/capture/host_memory.h"
#include "launcher/capture/host_threads.h"
#include "launcher/capture/issued.h"
#include "launcher/capture/line.h"
#include "launcher/capture/modules.h"
#include "launcher/capture/surroundings.h"

namespace tbsched::capture {

// Not thread-safe.
class Recorder {
 public:
  // Times are relative to `started_ns`.
  Recorder(const Cupti& cupti, const Modules& modules, uint64_t started_ns)
      : cupti_(cupti), modules_(modules), started_ns_(started_ns) {}

  void header();
  void activity(const CUpti_Activity& record);
  void lost(size_t records);
  // Notes that callbacks, or the threads that write, failed: what they would have noted is missing.
  void failed(size_t times, std::string_view why);
  void end(uint64_t at_ns);

  // Notes data from callbacks.
  void attributes(uint32_t call, bool programmatic, bool has_priority, int32_t priority);
  void graph_launch(uint32_t call, uint32_t executable, uint32_t context, uint32_t stream);
  void edge(uint64_t node, uint64_t dependency);
  void clone(uint64_t node, uint64_t original);
  // Notes a stream, its context and its device, each once.
  void surroundings(const Surroundings& given);
  // Notes a callback that took long.
  void own_callback(uint64_t start_ns, uint64_t end_ns);

  // Notes what has not ended. Call look() before: memory may have come and gone since.
  void look() { addresses_.forget(); }
  void issued(const Issued::Entry& entry);
  void ended(uint32_t call);
  void open(const OpenCall& open);
  void returned(uint32_t call, uint64_t at_ns);
  // The next line that says that the program runs says whether memory of the host changed to which
  // such an operation has addresses.
  void watch(const Issued::Entry& entry);
  void forget_memory() { memory_.forget(); }
  // `flushing_ns`: since when CUPTI has been asked for its records and has not answered; 0: it has.
  void alive(uint64_t at_ns, uint64_t flushing_ns, const OtherThreads& threads);

  // Returns the lines since the last call.
  std::string take();

 private:
  void kernel(const CUpti_ActivityKernel9& record);
  void copy(const CUpti_ActivityMemcpy5& record);
  void set(const CUpti_ActivityMemset4& record);
  void call(const CUpti_ActivityAPI& record);
  void event(const CUpti_ActivityCudaEvent& record);
  void wait(const CUpti_ActivitySynchronization& record);
  void stream(const CUpti_ActivityStream& record);
  void context(const CUpti_ActivityContext2& record);
  void device(const CUpti_ActivityDevice4& record);
  void overhead(const CUpti_ActivityOverhead2& record);

  // Returns the number of a kernel with the settings that its launches share; a new one is written
  // as a line.
  uint32_t number_of(const CUpti_ActivityKernel9& record);
  // Returns nothing if the function's calls are not recorded.
  std::optional<uint32_t> number_of(CUpti_CallbackDomain domain, CUpti_CallbackId function);
  // Adds the function of a call, its thread, and when it began.
  void add_call(Line& line, const OpenCall& call);
  void add_shape(Line& line, const Shape& shape, const Function* function);
  void add_arguments(Line& line, std::span<const Word> words, bool one_by_one);
  // Writes a graph, once; returns its number.
  uint32_t graph_of(const Graph& graph);
  void add_node(const Graph& graph, const GraphNode& node, uint32_t of, uint32_t number);
  // Returns the kernel of a function; null: unknown.
  const Kernel* kernel_of(const Function* function) const;
  // Writes the code of a kernel, once; returns its number, or nothing if it is not known.
  std::optional<uint32_t> code_of(const Function* function);
  void add_times(Line& line, uint64_t start_ns, uint64_t end_ns) const;
  template <typename Record>
  void add_place(Line& line, const Record& record) const;

  const Cupti& cupti_;
  const Modules& modules_;
  const uint64_t started_ns_;
  std::string text_;
  std::string shape_;  // of a kernel; kept for its memory
  std::unordered_map<std::string, uint32_t> kernels_;
  std::unordered_map<uint64_t, std::optional<uint32_t>> functions_;
  uint32_t function_count_ = 0;
  std::unordered_map<uint32_t, uint32_t> threads_;
  std::unordered_map<const Kernel*, uint32_t> codes_;
  std::unordered_map<uint64_t, uint32_t> graphs_;
  AddressSpace addresses_;
  HostMemory memory_;
  std::set<std::pair<uint32_t, uint32_t>> told_streams_;  // by context
  std::set<uint32_t> told_contexts_;
  uint64_t launches_ = 0;
  uint64_t unfinished_ = 0;
};

}  // namespace tbsched::capture
