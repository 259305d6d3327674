#include "adapter.h"

#include <stdexcept>

void Adapter::launch(const int32_t kernel, const tbsched::Launch& launch) {
  scheduler_.enqueue(scheduler_.add(launch, tbsched::BlockScheduler::Leaving::one_by_one));
  kernels_.push_back(kernel);
}

void Adapter::on_place(const tbsched::PlacedBlocks& placed) {
  for (size_t k = 0; k < placed.sms.size(); ++k) {
    const int32_t block = placed.first_block + static_cast<int32_t>(k);
    const int32_t slot = start_(placed.sms[k], kernels_[placed.launch], block);
    running_.insert({{placed.sms[k], slot}, {placed.launch, placed.footprints[k]}});
  }
}

void Adapter::leave(const int32_t sm, const int32_t slot) {
  const auto block = running_.extract({sm, slot});
  if (block.empty()) throw std::invalid_argument("leave: no block runs in that slot");
  scheduler_.leave(block.mapped().launch, block.mapped().footprint);
}
