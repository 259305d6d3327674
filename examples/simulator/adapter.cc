#include "adapter.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "h200.h"
#include "tbsched/sim/block_scheduler.h"
#ifdef DEVICE_FILES
#include "tbsched/hardware/device_file.h"
#endif

namespace {

// Returns the device of a name or path.
tbsched::DeviceSpec device_of(const std::string& device) {
  if (device.empty()) return h200();
#ifdef DEVICE_FILES
  const std::string file = device.ends_with(".toml") ? device : DEVICE_FILES "/" + device + ".toml";
  return tbsched::read_device(file, DEVICE_FILES);
#else
  throw std::invalid_argument("device: " + device + ": built without toml++, knows an H200 alone");
#endif
}

tbsched::DeviceSpec spec_of(const Adapter::Options& options) {
  tbsched::DeviceSpec spec = device_of(options.device);
  if (options.board.empty()) return spec;
  const tbsched::DeviceSpec board = device_of(options.board);
  if (board.sms != spec.sms || board.sms_per_tpc != spec.sms_per_tpc) {
    throw std::invalid_argument("board: " + options.board + " has " + std::to_string(board.sms) +
                                " SMs, " + spec.name + " has " + std::to_string(spec.sms));
  }
  spec.gpcs = board.gpcs;
  spec.sm_preference = board.sm_preference;
  return spec;
}

}  // namespace

// The scheduler, and the blocks that run.
class Adapter::Blocks final : public tbsched::Observer {
 public:
  Blocks(Start start, const tbsched::DeviceSpec& spec, const std::string& policy)
      : model_(spec, policy.empty() ? spec.policy : policy), start_(std::move(start)) {}

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
  const tbsched::Launch launch{
      .blocks = kernel.blocks,
      .threads = kernel.threads,
      .registers = kernel.registers,
      .shared_memory = kernel.shared_memory,
      .carveout = kernel.carveout < 0 ? std::nullopt : std::optional<int32_t>(kernel.carveout),
      .cluster = kernel.cluster,
      .priority = kernel.priority};
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

Adapter::Adapter(Start start, const Options& options)
    : blocks_(std::make_unique<Blocks>(std::move(start), spec_of(options), options.policy)) {}
Adapter::~Adapter() = default;
int Adapter::sms() const { return blocks_->sms(); }
void Adapter::launch(const int number, const Kernel& kernel) { blocks_->launch(number, kernel); }
void Adapter::distribute() { blocks_->distribute(); }
void Adapter::leave(const int sm, const int slot) { blocks_->leave(sm, slot); }
