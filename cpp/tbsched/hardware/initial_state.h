// What an idle device may still remember: where block numbering starts.
#pragma once

#include <cstdint>

namespace tbsched {

struct InitialState {
  int32_t first_gpc = 0;
  int32_t first_singleton = 0;  // index among the singleton TPCs
};

}  // namespace tbsched
