#include "adapter_c.h"

#include <deque>
#include <memory>
#include <stdexcept>
#include <string>

#include "adapter.h"

namespace {

thread_local std::string why;

// Returns what the call returns, or `refused` if it throws.
template <typename Call, typename Result>
Result guarded(const Call& call, const Result refused) {
  try {
    return call();
  } catch (const std::exception& error) {
    why = error.what();
    return refused;
  }
}

}  // namespace

// Blocks that start wait here until they are asked for. Slots are numbers that are not used again.
struct tbsched_adapter {
  explicit tbsched_adapter(const Adapter::Options& options)
      : adapter(
            [this](const int sm, const int kernel, const int block) {
              started.push_back({sm, slots, kernel, block});
              return slots++;
            },
            options) {}

  std::deque<tbsched_block> started;
  int slots = 0;
  Adapter adapter;
};

tbsched_adapter* tbsched_new(const char* policy, const char* device, const char* board) {
  return guarded(
      [&] {
        const Adapter::Options options{policy, device, board};
        return std::make_unique<tbsched_adapter>(options).release();
      },
      static_cast<tbsched_adapter*>(nullptr));
}

void tbsched_free(tbsched_adapter* adapter) { const std::unique_ptr<tbsched_adapter> end(adapter); }

int tbsched_sms(const tbsched_adapter* adapter) { return adapter->adapter.sms(); }

int tbsched_launch(tbsched_adapter* adapter, const int number, const tbsched_kernel* kernel) {
  const Adapter::Kernel asked{kernel->blocks,        kernel->threads, kernel->registers,
                              kernel->shared_memory, kernel->cluster, kernel->priority,
                              kernel->carveout};
  return guarded([&] { return adapter->adapter.launch(number, asked), 0; }, -1);
}

int tbsched_distribute(tbsched_adapter* adapter) {
  return guarded([&] { return adapter->adapter.distribute(), 0; }, -1);
}

int tbsched_next(tbsched_adapter* adapter, tbsched_block* block) {
  if (adapter->started.empty()) return 0;
  *block = adapter->started.front();
  adapter->started.pop_front();
  return 1;
}

int tbsched_leave(tbsched_adapter* adapter, const int sm, const int slot) {
  return guarded([&] { return adapter->adapter.leave(sm, slot), 0; }, -1);
}

const char* tbsched_why() { return why.c_str(); }
