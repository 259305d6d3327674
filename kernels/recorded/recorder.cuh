// Records which lines of memory each warp of a kernel reads and writes, in order.
//
// A kernel takes a recorder, and reads and writes through it. With the form `plain` it makes the
// same loads and stores as if nothing were recorded, and no others.
#pragma once

#include <cstddef>
#include <cstdint>

namespace recorded {

enum class Form : int {
  plain,     // nothing is recorded
  placed,    // the SM of each block
  counted,   // how many events each warp has
  recorded,  // the events
};

// There is an event for each line of 128 bytes that an instruction of a warp touches, and for each
// barrier.
// same_instruction: one more line of the load or store before it.
enum class Kind : uint64_t { load, store, same_instruction, barrier };
using Event = unsigned long long;  // line | sectors << 40 | kind << 44
constexpr uint64_t kLineBytes = 128;
constexpr uint64_t kSectorBytes = 32;
constexpr int kSectorShift = 40;
constexpr int kKindShift = 44;

// Where a kernel records.
struct Tape {
  uint64_t arena;              // address from which lines are counted
  unsigned long long* places;  // by warp: its events so far, or the index of its next event
  Event* events;               // of all warps, one after the other
  int32_t* sms;                // by block
};

template <Form form>
class Recorder {
 public:
  // Records the SM of the block, if that is asked for. The grid has one dimension.
  __device__ explicit Recorder(const Tape& tape) : tape_(tape) {
    if constexpr (form == Form::placed) {
      int32_t sm = 0;
      asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
      if (threadIdx.x == 0) tape_.sms[blockIdx.x] = sm;
    }
  }

  // Loads a value, and records that.
  template <typename Value>
  __device__ Value load(const Value* const address) const {
    note(address, sizeof(Value), Kind::load);
    return read(address);
  }

  // Stores a value, and records that.
  template <typename Value>
  __device__ void store(Value* const address, const Value value) const {
    note(address, sizeof(Value), Kind::store);
    write(address, value);
  }

  // Waits for all threads of the block, and records that.
  __device__ void meet() const {
    if constexpr (form == Form::counted || form == Form::recorded) {
      const uint32_t leader = __ffs(__activemask()) - 1;
      if (threadIdx.x % 32 == leader) append(static_cast<uint64_t>(Kind::barrier) << kKindShift);
    }
    __syncthreads();
  }

 private:
  // Each loads or stores one value. Volatile, so that all forms make the same accesses in the same
  // order.
  __device__ static float read(const float* const address) {
    float value;
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(address) : "memory");
    return value;
  }
  __device__ static int32_t read(const int32_t* const address) {
    int32_t value;
    asm volatile("ld.global.s32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
  }
  __device__ static uint4 read(const uint4* const address) {
    uint4 value;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(address)
                 : "memory");
    return value;
  }
  __device__ static void write(float* const address, const float value) {
    asm volatile("st.global.f32 [%0], %1;" ::"l"(address), "f"(value) : "memory");
  }
  __device__ static void write(int32_t* const address, const int32_t value) {
    asm volatile("st.global.s32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
  }

  // Records the lines that the active lanes of a warp access, one event per line, by its sectors.
  __device__ void note(const void* const address, const uint32_t bytes, const Kind kind) const {
    if constexpr (form == Form::counted || form == Form::recorded) {
      const uint32_t active = __activemask();
      const uint32_t lane = threadIdx.x % 32;
      const uint64_t at = reinterpret_cast<uint64_t>(address) - tape_.arena;
      const unsigned long long line = at / kLineBytes;
      const uint32_t first = at % kLineBytes / kSectorBytes;
      const uint32_t last = (at % kLineBytes + bytes - 1) / kSectorBytes;
      const uint32_t own_sectors = ((2U << last) - 1) & ~((1U << first) - 1);
      const uint32_t leader = __ffs(active) - 1;
      Kind now = kind;
      for (uint32_t remaining = active; remaining != 0;) {
        const unsigned long long leader_line = __shfl_sync(active, line, __ffs(remaining) - 1);
        const bool same = line == leader_line;
        const uint64_t sectors = __reduce_or_sync(active, same ? own_sectors : 0U);
        remaining &= ~__ballot_sync(active, same);
        if (lane == leader) {
          append(leader_line | sectors << kSectorShift | static_cast<uint64_t>(now) << kKindShift);
        }
        now = Kind::same_instruction;
      }
      __syncwarp(active);
    }
  }

  // Adds an event to those of the warp, or counts it.
  __device__ void append(const Event event) const {
    const uint32_t warps = (blockDim.x + 31) / 32;
    const size_t warp = size_t{blockIdx.x} * warps + threadIdx.x / 32;
    const unsigned long long place = atomicAdd(&tape_.places[warp], 1ULL);
    if constexpr (form == Form::recorded) tape_.events[place] = event;
  }

  Tape tape_;
};

}  // namespace recorded
