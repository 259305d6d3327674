#include "adapter.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "h200.h"
#include "tbsched/sim/block_scheduler.h"

// The scheduler, and the blocks that run.
class Adapter::Blocks final : public tbsched::Observer {
 public:
  explicit Blocks(Start start) : model_(h200()), start_(std::move(start)) {}

  int32_t sms() const { return model_.device().spec.sms; }
  void launch(int32_t number, const Kernel& kernel);
  void distribute() { scheduler_.place(*this); }
  void leave(int32_t sm, int32_t slot);

 private:
  struct Running {
    int32_t launch;
    tbsched::Footprint footprint;
  };

  void on_place(const tbsched::PlacedBlocks& placed) override;

  const tbsched::Model model_;
  tbsched::BlockScheduler scheduler_{model_, {}};
  Start start_;
  std::vector<int32_t> kernels_;                            // of each launch of the scheduler
  std::map<std::pair<int32_t, int32_t>, Running> running_;  // by SM and slot
};

void Adapter::Blocks::launch(const int32_t number, const Kernel& kernel) {
  const tbsched::Launch launch{.blocks = kernel.blocks,
                               .threads = kernel.threads,
                               .registers = kernel.registers,
                               .shared_memory = kernel.shared_memory};
  scheduler_.enqueue(scheduler_.add(launch, tbsched::BlockScheduler::Leaving::one_by_one));
  kernels_.push_back(number);
}

void Adapter::Blocks::on_place(const tbsched::PlacedBlocks& placed) {
  for (size_t k = 0; k < placed.sms.size(); ++k) {
    const int32_t block = placed.first_block + static_cast<int32_t>(k);
    const int32_t slot = start_(placed.sms[k], kernels_[placed.launch], block);
    running_.insert({{placed.sms[k], slot}, {placed.launch, placed.footprints[k]}});
  }
}

void Adapter::Blocks::leave(const int32_t sm, const int32_t slot) {
  const auto block = running_.extract({sm, slot});
  if (block.empty()) throw std::invalid_argument("leave: no block runs in that slot");
  scheduler_.leave(block.mapped().launch, block.mapped().footprint);
}

Adapter::Adapter(Start start) : blocks_(std::make_unique<Blocks>(std::move(start))) {}
Adapter::~Adapter() = default;
int Adapter::sms() const { return blocks_->sms(); }
void Adapter::launch(const int number, const Kernel& kernel) { blocks_->launch(number, kernel); }
void Adapter::distribute() { blocks_->distribute(); }
void Adapter::leave(const int sm, const int slot) { blocks_->leave(sm, slot); }
