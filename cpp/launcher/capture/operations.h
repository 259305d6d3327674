// Operations that calls of the driver issue, and the host's waits for them, from CUPTI's callbacks.
#pragma once

#include <cupti.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "launcher/capture/cupti.h"

namespace tbsched::capture {

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
  kOther  // a call that issues nothing and may wait for the GPU
};

// Sizes of a launch.
struct Shape {
  const char* symbol = nullptr;  // its name, which CUPTI keeps
  std::array<uint32_t, 3> grid{};
  std::array<uint32_t, 3> block{};
  std::array<uint32_t, 3> cluster{};  // zeros: none is asked for
  uint32_t dynamic_shared_memory = 0;
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

struct Operation {
  What what = What::kOther;
  CUpti_CallbackId function = 0;
  uint32_t call = 0;  // correlation
  uint32_t context = 0;
  uint32_t stream = 0;
  bool has_stream = false;
  bool is_null_stream = false;  // the legacy default stream, which waits for others
  bool is_new_stream = false;   // this thread has not used it lately
  CUstream handle = nullptr;    // of the stream
  uint64_t bytes = 0;
  uint64_t event = 0;       // the driver's handle
  uint64_t executable = 0;  // of a graph that is launched: the driver's handle
  Shape shape;
};

void take_attribute(Shape& shape, CUlaunchAttributeID id, const CUlaunchAttributeValue& value);

// Returns the buffer of a launch's arguments; empty: they are given one by one.
std::span<const std::byte> buffer_of(void* const* extra);

// Callbacks that `operation_of` takes.
std::span<const CUpti_CallbackId> operation_callbacks(const Cupti& cupti);

// Returns whether such a call issues an operation.
bool issues(What what);

// Returns what a call is about to do, or, if it has returned, what it has done. Of a call that has
// returned and issued something, only which one it was, and a launch's shape. `asks`: CUPTI may be
// asked for the number of a stream; without it, a stream that is not known yet has none.
Operation operation_of(const Cupti& cupti, CUpti_CallbackId id, const CUpti_CallbackData& data,
                       bool asks);

// A stream or a context was destroyed: others may get their handles.
void forget_streams();

// A carveout that a call sets for a function; of other attributes `function` is 0.
struct SetCarveout {
  uint64_t function = 0;
  int32_t carveout = -1;
};
SetCarveout carveout_of(CUpti_CallbackId id, const CUpti_CallbackData& data);

}  // namespace tbsched::capture
