#include "fake_gpu.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fake {

using tbsched::cuda::Step;

namespace {

constexpr uint64_t kLongestStepNs = 50'000;
constexpr int kDriversChoice = -1;
constexpr int kMostRuns = 1'000'000;  // of a body

// What a block's wait needs, as of one moment.
struct Sm {
  uint64_t now;
  unsigned index;
  BlockRecord* own;

  unsigned block() const { return index; }
  uint32_t ticks(const Waiting& waiting) const {
    return static_cast<uint32_t>(now >> waiting.tick_bits);
  }
  BlockRecord& record(const ProbeArguments&) const { return *own; }
  static uint32_t fresh(const uint32_t& value) { return __atomic_load_n(&value, __ATOMIC_ACQUIRE); }
  static void store(uint32_t& place, const uint32_t value) {
    std::atomic_ref(place).store(value, std::memory_order_release);
  }
  static uint32_t exchange(uint32_t& place, const uint32_t value) {
    return std::atomic_ref(place).exchange(value);
  }
  uint32_t duration(const ProbeArguments& arguments) const {
    return arguments.ticks != nullptr ? arguments.ticks[index] : arguments.same_ticks;
  }
  static uint32_t add_one(uint32_t& place) { return std::atomic_ref(place).fetch_add(1); }
};

// What no working GPU writes.
void spoil(BlockRecord& record, const int64_t how) {
  if (how == 1) record.start_ns = 0;
  if (how == 2) record.start_ns = ~uint64_t{0};
  if (how == 3) record.start_ns = record.end_ns + 1000;
  if (how == 4) record.start_ns -= 10'000'000'000;
  if (how == 5) record.end_ns = 0;
  if (how == 6) record.end_ns += 10'000'000'000;
  if (how == 7) record.smid = record.end_smid = 0xffffffff;
  if (how == 8) record.started = 0;
  if (how == 9) record.started = 0xffffffff;
}

void add_values(const FakeGraph& graph, Values& values) {
  values.insert(graph.values.begin(), graph.values.end());
  for (const auto& node : graph.nodes) {
    if (node->conditional) add_values(*node->conditional->body, values);
  }
}

// Returns the nodes of a graph, each behind those that it waits for.
std::vector<FakeNode*> in_turn(const std::vector<FakeNode*>& nodes) {
  std::vector<FakeNode*> order;
  std::vector<bool> done(nodes.size());
  while (order.size() < nodes.size()) {
    for (FakeNode* const node : nodes) {
      const bool waits =
          std::ranges::any_of(node->after, [&](size_t other) { return !done[other]; });
      if (done[node->number] || waits) continue;
      done[node->number] = true;
      order.push_back(node);
    }
  }
  return order;
}

}  // namespace

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

void FakeGpu::enter_launch(std::unique_lock<std::mutex>& lock, const int needed,
                           const FakeStream& stream) {
  ++settings_["launches"];
  int64_t& local_memory = settings_["local_memory"];
  if (settings_["growing_blocks"] != 0 && needed > local_memory) {
    idle_.wait(lock, [this] { return grids_.empty(); });
  }
  local_memory = std::max<int64_t>(local_memory, needed);
  if (const int64_t depth = settings_["queue_depth"]; depth != 0) {
    idle_.wait(lock, [&] {
      return std::ranges::count(grids_, &stream, [](const Grid& grid) { return grid.stream; }) <
             depth;
    });
  }
}

Grid& FakeGpu::add(const Function& function, const CUlaunchConfig& config,
                   const ProbeArguments& arguments, const FakeStream& stream) {
  Grid& grid = grids_.emplace_back();
  grid.arguments = arguments;
  grid.blocks = config.gridDimX;
  grid.warps = static_cast<int>((config.blockDimX + 31) / 32);
  grid.block = size_of_block(function, static_cast<int>(config.blockDimX),
                             static_cast<int>(config.sharedMemBytes));
  settings_["carveout"] =
      function.attribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, kDriversChoice);
  grid.stream = &stream;
  grid.priority = stream.priority;
  grid.sms = stream.sms;
  grid.number = ++grids_launched_;
  const CUlaunchAttribute* const cooperative =
      attribute_of(config, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  grid.cooperative = cooperative != nullptr && cooperative->value.cooperative != 0;
  if (grids_.size() == 1) launched_.release();
  return grid;
}

CUresult FakeGpu::launch(const Function& function, const CUlaunchConfig& config,
                         const ProbeArguments& arguments) {
  std::unique_lock lock(mutex_);
  const FakeStream& stream = at(config.hStream);
  if (function.context != stream.context) return CUDA_ERROR_INVALID_HANDLE;
  if (!function.allows(config.sharedMemBytes)) return CUDA_ERROR_INVALID_VALUE;
  enter_launch(lock, function.local, stream);
  Waits after = before(stream);
  Grids earlier;
  for (const Grid& other : grids_) {
    if (other.stream == &stream) earlier.insert(other.number);
  }
  Grid& grid = add(function, config, arguments, stream);
  grid.after = std::move(after);
  grid.before = std::move(earlier);
  if (attribute_of(config, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) != nullptr) {
    make_programmatic(grid);
  }
  const CUlaunchAttribute* const completion =
      attribute_of(config, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT);
  if (completion != nullptr) {
    auto* const event = reinterpret_cast<FakeEvent*>(completion->value.launchCompletionEvent.event);
    event->recorded = {.ended = {}, .arrived = {grid.number}};
  }
  return CUDA_SUCCESS;
}

CUresult FakeGpu::launch(FakeExecutable& executable, const CUstream handle) {
  std::unique_lock lock(mutex_);
  FakeStream& stream = at(handle);
  int local_memory = 0;
  std::vector<FakeNode*> nodes;
  for (FakeNode& node : executable.nodes) {
    nodes.push_back(&node);
    if (node.function != nullptr) local_memory = std::max(local_memory, node.function->local);
  }
  enter_launch(lock, local_memory, stream);
  if (!allocate(nodes)) return CUDA_ERROR_INVALID_VALUE;
  Waits after = before(stream);
  after.ended.merge(executable.last_launch);
  executable.last_launch.clear();
  Values values;
  add_values(*executable.made_of, values);
  for (const Grid* const grid : add(nodes, after, stream, values)) {
    executable.last_launch.insert(grid->number);
  }
  return CUDA_SUCCESS;
}

bool FakeGpu::allocate(const std::vector<FakeNode*>& nodes) {
  return std::ranges::all_of(nodes, [&](const FakeNode* const node) {
    return (node->allocates == 0 || allocated_.insert(node->allocates).second) &&
           (node->frees == 0 || allocated_.erase(node->frees) == 1);
  });
}

std::vector<Grid*> FakeGpu::add(const FakeConditional& conditional, const Waits& after,
                                FakeStream& stream, Values& values) {
  std::vector<FakeNode*> body;
  for (const auto& each : conditional.body->nodes) body.push_back(each.get());
  std::vector<Grid*> grids;
  Waits before = after;
  for (int run = 0; values.at(conditional.handle) && (run == 0 || conditional.loops); ++run) {
    if (run > kMostRuns) std::abort();  // it would never end
    for (Grid* const grid : add(body, before, stream, values)) {
      before.ended.insert(grid->number);
      grids.push_back(grid);
    }
  }
  return grids;
}

std::vector<Grid*> FakeGpu::add(const std::vector<FakeNode*>& nodes, const Waits& after,
                                FakeStream& stream, Values& values) {
  std::vector<std::vector<Grid*>> grids(nodes.size());  // none: it is over with what it waits for
  std::vector<Waits> waits(nodes.size());
  for (FakeNode* const node : in_turn(nodes)) {
    Waits& own = waits[node->number];
    own = after;
    for (const size_t other : node->after) {
      for (const Grid* const earlier : grids[other]) own.ended.insert(earlier->number);
      if (grids[other].empty()) own.add(waits[other]);
    }
    if (node->event != nullptr && node->waits) {
      own.add(node->event->recorded);
      stream.waits_for.add(own);
    } else if (node->event != nullptr) {
      node->event->recorded = own;
    } else if (node->conditional) {
      grids[node->number] = add(*node->conditional, own, stream, values);
    } else if (node->function != nullptr) {
      grids[node->number] = {&add_kernel(*node, own, stream)};
      ++node->runs;
      const auto& runs = node->arguments.runs;
      for (uint32_t k = 0; k < runs.decisions; ++k) {
        const auto& [handle, every] = runs.decides[k];
        values.at(handle) = every == 0 || node->runs % every != 0;
      }
    }
  }
  std::vector<Grid*> all;
  for (const auto& own : grids) all.insert(all.end(), own.begin(), own.end());
  return all;
}

Grid& FakeGpu::add_kernel(FakeNode& node, const Waits& after, const FakeStream& stream) {
  node.config.attrs = node.attributes.data();
  node.config.numAttrs = static_cast<unsigned>(node.attributes.size());
  Grid& grid = add(*node.function, node.config, node.arguments, stream);
  grid.after = after;
  grid.sms = node.function->sms;
  const CUlaunchAttribute* const priority = attribute_of(node.config, CU_LAUNCH_ATTRIBUTE_PRIORITY);
  if (priority != nullptr) grid.priority = priority->value.priority;
  return grid;
}

void FakeGpu::add(const MemoryValue& value, const CUstream handle) {
  const std::scoped_lock lock(mutex_);
  const FakeStream& stream = at(handle);
  Waits after = before(stream);
  Grid& grid = grids_.emplace_back();
  grid.value = value;
  grid.after = std::move(after);
  grid.stream = &stream;
  grid.number = ++grids_launched_;
  if (grids_.size() == 1) launched_.release();
}

bool FakeGpu::busy(const CUstream stream) {
  const std::scoped_lock lock(mutex_);
  return std::ranges::any_of(grids_, [&](const Grid& grid) { return grid.stream == &at(stream); });
}

bool FakeGpu::any_runs() {
  const std::scoped_lock lock(mutex_);
  return !grids_.empty();
}

void FakeGpu::record(FakeEvent& event, const CUstream stream) {
  const std::scoped_lock lock(mutex_);
  event.recorded = before(at(stream));
}

void FakeGpu::wait(const CUstream stream, const FakeEvent& event) {
  const std::scoped_lock lock(mutex_);
  at(stream).waits_for.add(event.recorded);
}

void FakeGpu::synchronize() {
  std::unique_lock lock(mutex_);
  Grids awaited;
  for (const Grid& grid : grids_) awaited.insert(grid.number);
  wait_for(lock, awaited);
}

void FakeGpu::synchronize(const CUstream handle) {
  std::unique_lock lock(mutex_);
  const FakeStream* const stream = &at(handle);
  Grids awaited;
  for (const Grid& grid : grids_) {
    const bool counts = grid.stream == stream || (stream == &legacy_ && grid.stream->blocking);
    if (counts) awaited.insert(grid.number);
  }
  wait_for(lock, awaited);
}

void FakeGpu::synchronize(const FakeEvent& event) {
  std::unique_lock lock(mutex_);
  wait_for(lock, event.recorded.ended);
}

void FakeGpu::wait_for(std::unique_lock<std::mutex>& lock, const Grids& awaited) {
  idle_.wait(lock, [&] {
    return std::ranges::none_of(grids_,
                                [&](const Grid& grid) { return awaited.contains(grid.number); });
  });
}

Waits FakeGpu::before(const FakeStream& stream) const {
  Waits found = stream.waits_for;
  for (const Grid& grid : grids_) {
    const bool through_legacy = (&stream == &legacy_ && grid.stream->blocking) ||
                                (grid.stream == &legacy_ && stream.blocking);
    if (grid.stream == &stream || through_legacy) found.ended.insert(grid.number);
  }
  return found;
}

void FakeGpu::make_programmatic(Grid& grid) const {
  for (const uint64_t number : grid.before) grid.after.ended.erase(number);
  if (!grid.before.empty()) grid.primary = *grid.before.rbegin();
}

bool FakeGpu::ready(const Grid& grid) const {
  return std::ranges::none_of(grids_, [&](const Grid& other) {
    return grid.after.ended.contains(other.number) ||
           (grid.after.arrived.contains(other.number) && !ready(other)) ||
           (grid.primary == other.number && other.triggered < other.blocks);
  });
}

void FakeGpu::run(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] { launched_.release(); });
  while (!stop.stop_requested()) {
    step();
    if (any_runs()) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    } else {
      launched_.acquire();
    }
  }
}

void FakeGpu::step() {
  const std::scoped_lock lock(mutex_);
  if (!our_turn()) return;
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    block = advance(*block) ? std::next(block) : blocks_.erase(block);
  }
  for (Grid& grid : grids_) {
    if (grid.value && ready(grid) && grid.value->happen()) grid.value.reset();
  }
  const auto is_over = [](const Grid& grid) { return grid.gone == grid.blocks && !grid.value; };
  if (grids_.remove_if(is_over) != 0) {
    idle_.notify_all();
  }
  place();
}

bool FakeGpu::our_turn() {
  const uint64_t passed = now_ns() - std::exchange(host_, now_ns());
  if (settings_["frozen"] != 0) return false;
  if (settings_["still_from"] <= settings_["launches"] &&
      settings_["launches"] < settings_["still_until"]) {
    return true;
  }
  if (away_ > 0) {
    now_ += passed;
    away_ -= static_cast<int64_t>(passed);
    return false;
  }
  now_ += std::min(passed, kLongestStepNs);
  const auto turn_ns = static_cast<uint64_t>(settings_["turn_us"]) * 1000;
  if (turn_ns != 0 && now_ - turn_began_ >= turn_ns) {
    away_ = settings_["away_us"] * 1000;
    turn_began_ = now_ + static_cast<uint64_t>(away_);
  }
  return away_ <= 0;
}

bool FakeGpu::advance(Block& block) {
  BlockRecord& record = *block.record;
  const ProbeArguments& arguments = block.grid->arguments;
  if (block.publish != 0 && now_ >= block.publish) {
    publish(record.started);
    block.publish = 0;
    block.last_tick = static_cast<uint32_t>(now_ >> arguments.waiting.tick_bits);
  }
  if (block.end == 0 && block.publish == 0 && now_ >= block.next_look) look(block);
  if (block.end == 0 || now_ - block.end < arguments.waiting.linger_ns) return true;
  sms_[static_cast<size_t>(block.sm)].add(block.grid->block, -1);
  trigger(block);
  ++block.grid->gone;
  if (arguments.runs.record != nullptr) {
    arguments.runs.record[block.number] += arguments.runs.apart;
  }
  return false;
}

const Step* FakeGpu::next_step(const Block& block) const {
  const auto& steps = block.grid->arguments.steps;
  if (block.step == std::size(steps)) return nullptr;
  const Step& step = steps[block.step];
  return step.kind == Step::kNone || step.ticks > block.duration ? nullptr : &step;
}

void FakeGpu::look(Block& block) {
  const ProbeArguments& arguments = block.grid->arguments;
  const Sm sm{now_, block.number, block.record};
  if (block.waits) {
    const Grids& before = block.grid->before;
    if (std::ranges::any_of(grids_, [&](const Grid& g) { return before.contains(g.number); })) {
      return;
    }
    block.waits = false;
    block.start_tick += sm.ticks(arguments.waiting) - block.last_tick;
    block.last_tick = sm.ticks(arguments.waiting);
  }
  const bool meets = arguments.meeting.point != nullptr;
  if (meets && settings_["never_meets"] == 0) {
    tbsched::cuda::meet(sm, arguments, block.last_tick, block.end_tick);
  }
  const Step* const step = next_step(block);
  const uint32_t until =
      meets ? block.end_tick : block.start_tick + (step != nullptr ? step->ticks : block.duration);
  const uint32_t sleep_ns = tbsched::cuda::poll(sm, arguments, block.last_tick, until);
  block.next_look = now_ + sleep_ns;
  if (sleep_ns != tbsched::cuda::kLeave) return;
  block.next_look = now_;
  if (static_cast<int32_t>(until - block.last_tick) > 0) ++settings_["told"];
  if (step != nullptr) {
    take(block, *step);
  } else {
    leave(block);
  }
}

void FakeGpu::take(Block& block, const Step& step) {
  ++block.step;
  if (step.kind == Step::kTrigger) trigger(block);
  if (step.kind == Step::kWait) block.waits = true;
}

void FakeGpu::trigger(Block& block) {
  if (!std::exchange(block.triggered, true)) ++block.grid->triggered;
}

void FakeGpu::leave(Block& block) {
  BlockRecord& record = *block.record;
  block.end = last_end_ = now_;
  record.end_ns = now_;
  record.end_smid = static_cast<uint32_t>(block.sm + settings_["moved"]);
  spoil(record, settings_["garbage"]);
  publish(record.ended);
}

void FakeGpu::place() {
  // Blocks of this launch, and of those after it, wait for ever.
  if (settings_["mute"] != 0 && settings_["launches"] >= settings_["mute"]) return;
  std::vector<Grid*> order;
  for (Grid& grid : grids_) order.push_back(&grid);
  std::ranges::stable_sort(order, {}, [](const Grid* grid) { return grid->priority; });
  SmSet free = kAllSms;
  for (Grid* const grid : order) {
    if (!ready(*grid)) continue;
    const SmSet among = grid->sms & free;
    if (!grid->cooperative || all_fit(*grid, among)) {
      for (int sm = 0; grid->next < grid->blocks; place_next(*grid, sm)) {
        sm = best_sm(grid->block, among);
        if (sm < 0) break;
      }
    }
    if (grid->next < grid->blocks) free &= ~grid->sms;
  }
}

int FakeGpu::best_sm(const Size& block, const SmSet among) const {
  int best = -1;
  for (int sm = 0; sm < kSms; ++sm) {
    const Size& size = sms_[static_cast<size_t>(sm)];
    if ((among >> sm & 1) == 0 || !size.with_fits(block)) continue;
    if (best < 0 || size.blocks < sms_[static_cast<size_t>(best)].blocks) best = sm;
  }
  return best;
}

bool FakeGpu::all_fit(const Grid& grid, const SmSet among) const {
  size_t fit = grid.next;
  for (int sm = 0; sm < kSms; ++sm) {
    if ((among >> sm & 1) == 0) continue;
    for (Size size = sms_[static_cast<size_t>(sm)]; size.with_fits(grid.block); ++fit) {
      size.add(grid.block, 1);
    }
  }
  return fit >= grid.blocks;
}

void FakeGpu::place_next(Grid& grid, const int sm) {
  sms_[static_cast<size_t>(sm)].add(grid.block, 1);
  const size_t index = grid.next++;
  Block& block = blocks_.emplace_back();
  const uint32_t* const runs = grid.arguments.runs.record;
  const size_t place = runs != nullptr ? runs[index] : index;
  block = {.grid = &grid,
           .number = static_cast<unsigned>(index),
           .record = &grid.arguments.records[place],
           .sm = sm,
           .start = now_};
  if (settings_["doubtful"] != 0 && last_end_ != 0)
    block.start = last_end_ + tbsched::cuda::kLingerNs / 8 * 5;
  const ProbeArguments& arguments = grid.arguments;
  block.last_tick = static_cast<uint32_t>(block.start >> arguments.waiting.tick_bits);
  block.start_tick = block.last_tick;
  block.duration = arguments.ticks != nullptr ? arguments.ticks[index] : arguments.same_ticks;
  if (arguments.meeting.point != nullptr) {
    Sm::add_one(arguments.meeting.point->arrived);
    block.end_tick = (block.start_tick + arguments.meeting.wait_ticks) & ~tbsched::cuda::kHasPassed;
  }
  block.publish = now_ + static_cast<uint64_t>(settings_["seen_late_us"]) * 1000;
  block.record->start_ns = block.start;
  block.record->smid = static_cast<uint32_t>(sm);
  if (grid.arguments.warp_slots != nullptr) {
    constexpr size_t slots_per_record = sizeof(BlockRecord) / sizeof(int32_t);
    int32_t* const slots = grid.arguments.warp_slots + (place - index) * slots_per_record;
    for (int warp = 0; warp < grid.warps; ++warp) {
      slots[index * static_cast<size_t>(grid.warps) + static_cast<size_t>(warp)] = warp;
    }
  }
}

}  // namespace fake
