// Where an operation runs, asked of the driver: CUPTI's records of it may come too late, or never.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/capture/cupti.h"
#include "launcher/capture/operations.h"

namespace tbsched::capture {

struct Surroundings {
  uint32_t context = 0;
  uint32_t null_stream = 0;
  uint32_t stream = 0;
  bool is_blocking = false;  // with the null stream
  int32_t priority = 0;
  uint32_t green_sms = 0;  // number of SMs of its green context; 0: it has none
  uint32_t device = 0;
  std::string name = {};  // of the device
  int32_t major = 0;
  int32_t minor = 0;
  int32_t sms = 0;
};

// None: the driver does not say.
std::optional<Surroundings> surroundings_of(const Cupti& cupti, const Operation& operation,
                                            CUcontext context);

}  // namespace tbsched::capture
