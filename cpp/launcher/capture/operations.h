// What a call of the driver issues or waits for, from CUPTI's callback.
#pragma once

#include <cupti.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "launcher/capture/cupti.h"

namespace tbsched::capture {

// What a call does.
enum class What : uint8_t {
  kLaunch,
  kCopy,
  kMemset,
  kGraph,
  kRecord,        // of an event
  kWait,          // of a stream for an event
  kWaitValue,     // of a stream for a value in memory
  kWriteValue,    // by a stream
  kHostFunction,  // in a stream
  kSynchronize,   // of the host, with a stream, an event or a context
  kQuery,         // by the host, whether an event has happened
  kBeginCapture,  // of a stream, into a graph
  kEndCapture,
  kOther  // nothing that is noted; the call may wait for the GPU
};

// How a kernel is launched.
struct Shape {
  const char* symbol = nullptr;  // the linker's name, which CUPTI keeps; null: unknown
  std::array<uint32_t, 3> grid{};
  std::array<uint32_t, 3> block{};
  std::array<uint32_t, 3> cluster{};   // zeros: none is asked for
  uint32_t dynamic_shared_memory = 0;  // bytes
  int32_t priority = 0;
  int32_t carveout = -1;  // percent; -1: the launch asks for none
  bool has_priority = false;
  bool cooperative = false;
  bool programmatic = false;
  uint64_t function = 0;  // the driver's handle
  // As long as the call lasts: a pointer to each argument, or one buffer of all.
  void* const* arguments = nullptr;
  std::span<const std::byte> buffer = {};
};

// A call of the driver and what it issues.
struct Operation {
  What what = What::kOther;
  CUpti_CallbackId function = 0;
  uint32_t call = 0;  // CUPTI's correlation number
  uint32_t context = 0;
  uint32_t stream = 0;  // CUPTI's number; with has_stream only
  bool has_stream = false;
  bool is_null_stream = false;  // the legacy default stream, which waits for others
  bool is_new_stream = false;   // this thread has not used it lately
  CUstream handle = nullptr;    // of the stream
  uint64_t bytes = 0;           // of a copy or memset; 0: unknown
  uint64_t address = 0;         // of what is written, or of the value awaited; 0: unknown
  uint64_t source = 0;          // address from which a copy reads; 0: unknown
  uint64_t event = 0;           // the driver's handle; 0: none
  bool has_timing = false;      // of a record: the event was made with timing
  uint64_t executable = 0;      // of a graph that is launched: the driver's handle
  Shape shape;
};

// Sets what an attribute of a launch says; ignores attributes that are not in Shape.
void set_attribute(Shape& shape, CUlaunchAttributeID id, const CUlaunchAttributeValue& value);

// Returns the buffer of a launch's arguments; empty: the arguments are given one by one.
std::span<const std::byte> argument_buffer(void* const* extra);

// Returns the callbacks that operation_of() can handle.
std::span<const CUpti_CallbackId> operation_callbacks(const Cupti& cupti);

// Returns whether such a call issues an operation.
bool issues(What what);

// Returns what a call is about to do, or, if it has returned, what it has done. Of a call that has
// returned and issued something, it says only which call it was, and a launch's shape.
// `may_query_stream`: CUPTI may be asked for the number of a stream; else a stream that is not
// known yet has none.
Operation operation_of(const Cupti& cupti, CUpti_CallbackId id, const CUpti_CallbackData& data,
                       bool may_query_stream);

// Forgets the numbers of streams, as a stream or a context was destroyed: another may get its
// handle.
void forget_streams();

// A shared memory carveout that a call sets for a function.
struct SetCarveout {
  uint64_t function = 0;  // the driver's handle; 0: the call sets none
  int32_t carveout = -1;  // percent; -1: the driver chooses
};

// Returns the carveout that a call sets, if it does.
SetCarveout carveout_of(CUpti_CallbackId id, const CUpti_CallbackData& data);

}  // namespace tbsched::capture
