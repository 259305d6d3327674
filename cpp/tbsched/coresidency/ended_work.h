// A proof that a launch finds room once all work that ends has ended, whatever that work left
// behind: configurations of SMs, gaps in shared memory, and turns of the processing blocks.
//
// A block is stuck only if each SM is full of blocks that stay. What they left behind lasts only as
// long as some block stays on the SM, since an idle SM is configured anew. So the proof looks for
// the most SMs that the staying blocks can fill together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tbsched/policy/model.h"
#include "tbsched/program/event.h"

namespace tbsched {

struct EndedWork {
  // First those that stay, in the order in which they arrive: the blocks of one are resident before
  // those of the next. Then those that come and end.
  std::vector<Launch> launches;
  size_t staying = 0;
  // configured_by[k]: launches that may have configured an SM before the first block of launch k.
  // beside[k]: launches that may be on an SM when blocks of launch k come. Where launches pass each
  // other, all may. Staying launches are among them if these arrive in any order.
  std::vector<std::vector<int32_t>> configured_by;
  std::vector<std::vector<int32_t>> beside;
  // on_sm[sm][k]: how many blocks of staying launch k each SM has, of the first ones, if that is
  // known; empty: of none. All else had ended before the first of them arrived, and nothing came
  // between them.
  std::vector<std::vector<int32_t>> on_sm = {};
};

// Returns whether the last staying launch is proved to find room for all its blocks.
bool finds_room_after(const Model& model, const EndedWork& work);

}  // namespace tbsched
