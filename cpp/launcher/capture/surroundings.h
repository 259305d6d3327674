// The stream, context and device in which an operation runs. The driver is asked: CUPTI's records
// of them may come too late, or never.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/capture/cupti.h"
#include "launcher/capture/operations.h"

namespace tbsched::capture {

struct Surroundings {
  uint32_t context = 0;  // CUPTI's numbers
  uint32_t null_stream = 0;
  uint32_t stream = 0;
  bool is_blocking = false;  // the stream waits for the null stream, and that for it
  int32_t priority = 0;
  uint32_t green_sms = 0;  // number of SMs of its green context; 0: it has none
  uint32_t device = 0;
  std::string name = {};  // of the device
  int32_t major = 0;      // of the compute capability
  int32_t minor = 0;
  int32_t sms = 0;  // of the device
};

// Returns the surroundings of an operation that has a stream; none: the driver does not say.
std::optional<Surroundings> surroundings_of(const Cupti& cupti, const Operation& operation,
                                            CUcontext context);

}  // namespace tbsched::capture
