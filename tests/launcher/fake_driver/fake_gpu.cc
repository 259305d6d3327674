#include "fake_gpu.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fake {

void FakeGpu::set(const std::string& key, const int64_t value) {
  const std::scoped_lock lock(mutex_);
  settings_[key] = value;
}

int64_t FakeGpu::setting(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  return settings_[key];
}

void FakeGpu::count(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  ++settings_[key];
}

CUresult FakeGpu::launch(const Function& function, const CUlaunchConfig& config,
                         const ProbeArguments& arguments) {
  std::unique_lock lock(mutex_);
  ++settings_["launches"];
  if (const int64_t error = std::exchange(settings_["fail_launch"], 0); error != 0) {
    return static_cast<CUresult>(error);
  }
  int64_t& local_memory = settings_["local_memory"];
  local_memory = std::max<int64_t>(local_memory, function.local);
  const int64_t most_local = settings_["blocking_local"];
  if (most_local != 0 && function.local >= most_local) {
    idle_.wait(lock, [this] { return grids_.empty(); });
  }
  const FakeStream& stream = at(config.hStream);
  Grids after = before(stream);
  Grid& grid = grids_.emplace_back();
  grid.arguments = arguments;
  grid.blocks = config.gridDimX;
  grid.warps = static_cast<int>((config.blockDimX + 31) / 32);
  grid.block = {1, grid.warps, grid.warps * 32 * ((function.registers + 7) / 8 * 8),
                static_cast<int>(config.sharedMemBytes) + 1024};
  grid.stream = &stream;
  grid.number = ++grids_launched_;
  grid.after = std::move(after);
  return CUDA_SUCCESS;
}

bool FakeGpu::busy(const CUstream stream) {
  const std::scoped_lock lock(mutex_);
  return std::ranges::any_of(grids_, [&](const Grid& grid) { return grid.stream == &at(stream); });
}

CUresult FakeGpu::record(FakeEvent& event, const CUstream stream) {
  const std::scoped_lock lock(mutex_);
  event.recorded = before(at(stream));
  return static_cast<CUresult>(std::exchange(settings_["fail_record"], 0));
}

CUresult FakeGpu::wait(const CUstream stream, const FakeEvent& event) {
  const std::scoped_lock lock(mutex_);
  at(stream).waits_for.insert(event.recorded.begin(), event.recorded.end());
  return static_cast<CUresult>(std::exchange(settings_["fail_wait"], 0));
}

CUresult FakeGpu::make_event() {
  const std::scoped_lock lock(mutex_);
  ++settings_["events"];
  return static_cast<CUresult>(std::exchange(settings_["fail_event"], 0));
}

Grids FakeGpu::before(const FakeStream& stream) const {
  Grids found = stream.waits_for;
  for (const Grid& grid : grids_) {
    const bool through_legacy = (&stream == &legacy_ && grid.stream->blocking) ||
                                (grid.stream == &legacy_ && stream.blocking);
    if (grid.stream == &stream || through_legacy) found.insert(grid.number);
  }
  return found;
}

bool FakeGpu::ready(const Grid& grid) const {
  return std::ranges::none_of(grids_,
                              [&](const Grid& other) { return grid.after.contains(other.number); });
}

void FakeGpu::step() {
  const std::scoped_lock lock(mutex_);
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    block = advance(*block) ? std::next(block) : blocks_.erase(block);
  }
  grids_.remove_if([](const Grid& grid) { return grid.gone == grid.blocks; });
  if (grids_.empty()) idle_.notify_all();
  place();
}

bool FakeGpu::advance(Block& block) {
  BlockRecord& record = *block.record;
  const uint64_t now = now_ns();
  if (block.publish != 0 && now >= block.publish) {
    publish(record.started);
    block.publish = 0;
  }
  const ProbeArguments& arguments = block.grid->arguments;
  const Waiting& waiting = arguments.waiting;
  const bool told = __atomic_load_n(arguments.release, __ATOMIC_ACQUIRE) == arguments.run;
  const auto index = static_cast<size_t>(&record - arguments.records);
  const uint64_t ticks = arguments.ticks != nullptr ? arguments.ticks[index] : arguments.same_ticks;
  const uint64_t stayed = (now >> waiting.tick_bits) - (block.start >> waiting.tick_bits);
  if (block.end == 0 && block.publish == 0 && (told || stayed >= ticks)) {
    block.end = last_end_ = now;
    record.end_ns = now;
    record.end_smid = static_cast<uint32_t>(block.sm + settings_["moved"]);
    publish(record.ended);
  }
  if (block.end == 0 || now - block.end < waiting.linger_ns) return true;
  sms_[static_cast<size_t>(block.sm)].add(block.grid->block, -1);
  ++block.grid->gone;
  return false;
}

void FakeGpu::place() {
  if (settings_["mute"] != 0) return;
  std::vector<Grid*> order;
  for (Grid& grid : grids_) order.push_back(&grid);
  std::ranges::stable_sort(order, {}, [](const Grid* grid) { return grid->stream->priority; });
  for (Grid* const grid : order) {
    if (!ready(*grid)) continue;
    while (grid->next < grid->blocks) {
      if (!place_next(*grid)) return;
    }
  }
}

bool FakeGpu::place_next(Grid& grid) {
  int best = -1;
  for (int sm = 0; sm < static_cast<int>(sms_.size()); ++sm) {
    const Size& size = sms_[static_cast<size_t>(sm)];
    if (!size.with_fits(grid.block)) continue;
    if (best < 0 || size.blocks < sms_[static_cast<size_t>(best)].blocks) best = sm;
  }
  if (best < 0) return false;
  sms_[static_cast<size_t>(best)].add(grid.block, 1);
  const size_t index = grid.next++;
  Block& block = blocks_.emplace_back();
  block = {&grid, &grid.arguments.records[index], best, now_ns(), 0, 0};
  if (settings_["doubtful"] != 0 && last_end_ != 0)
    block.start = last_end_ + tbsched::cuda::kLingerNs / 8 * 5;
  block.publish = now_ns() + static_cast<uint64_t>(settings_["seen_late_us"]) * 1000;
  block.record->start_ns = block.start;
  block.record->smid = static_cast<uint32_t>(best);
  if (grid.arguments.warp_slots != nullptr) {
    for (int warp = 0; warp < grid.warps; ++warp) {
      grid.arguments
          .warp_slots[index * static_cast<size_t>(grid.warps) + static_cast<size_t>(warp)] = warp;
    }
  }
  return true;
}

}  // namespace fake
