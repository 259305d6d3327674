#include "adapter.h"

#include <stdexcept>

using tbsched::BlockScheduler;

void Adapter::launch(const int32_t kernel, const tbsched::Launch& launch) {
  scheduler_.enqueue(scheduler_.add(launch, BlockScheduler::Leaving::one_by_one));
  kernels_.push_back(kernel);
}

int32_t Adapter::distribute(const Start& start) {
  int32_t started = 0;
  scheduler_.place({
      .placed =
          [&](const BlockScheduler::Placed& placed) {
            for (size_t k = 0; k < placed.sms.size(); ++k, ++started) {
              const int32_t sm = placed.sms[k];
              const int32_t block = placed.first_block + static_cast<int32_t>(k);
              const int32_t slot = start(sm, kernels_[placed.launch], block);
              running_.insert({{sm, slot}, {placed.launch, placed.footprints[k]}});
            }
          },
  });
  return started;
}

void Adapter::leave(const int32_t sm, const int32_t slot) {
  const auto node = running_.extract({sm, slot});
  if (node.empty()) throw std::invalid_argument("leave: no block runs in that slot");
  scheduler_.leave(node.mapped().launch, node.mapped().footprint);
}
