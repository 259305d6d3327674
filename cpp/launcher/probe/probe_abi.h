// The interface between the probe kernel and the launcher. Included by both, and by the rehearsal
// driver.
#pragma once

#include <cstdint>

namespace tbsched::cuda {

inline constexpr char kProbeName[] = "tbsched_probe";

// How long a released block stays, so that a block that takes its room starts visibly later than
// its end_ns, however coarse the global timer (32 ns to about 1 us) is.
inline constexpr uint32_t kLingerNs = 4096;

// In mapped host memory, all zero before the launch. A block writes each half at once. While blocks
// run, the host reads only whether a half has been written; the rest is valid when the grid is
// done.
struct alignas(32) BlockRecord {
  uint64_t start_ns;
  uint32_t smid;
  uint32_t started;  // 1, or the ticks for which the block once stood still: more than still_ticks
  uint64_t end_ns;   // when the block was released, or its time was over
  uint32_t end_smid;
  uint32_t ended;  // 1
};
static_assert(sizeof(BlockRecord) == 32);

// How the blocks of a launch wait. Time is counted in ticks of 2^tick_bits ns, since 32 bits take a
// register less.
struct Waiting {
  int32_t tick_bits;
  uint32_t asks_until;  // ticks before its end at which a block stops asking whether to leave
  uint32_t linger_ns;   // how long a block stays after it has announced that it leaves
  // A block reads the time every 130 us or sooner. A block that did not for this many ticks was off
  // its SM: the GPU had turned to another process, whose turns are of 300 us or more.
  uint32_t still_ticks;
};

// Waits until released; 2^31 ticks are longer than any deadline.
inline constexpr Waiting kHeld{
    .tick_bits = 11, .asks_until = 0, .linger_ns = kLingerNs, .still_ticks = 98};

// Waits for a duration.
inline constexpr Waiting kTimed{
    .tick_bits = 5, .asks_until = 1024, .linger_ns = 0, .still_ticks = 6250};

// In device memory, on its own cache line.
struct alignas(128) Relay {
  uint32_t released;  // the last run whose blocks were released
  uint32_t asked;     // the last slot of time in which a block asked the host
};

// Which block asks the host whether to leave: the first one that polls in each slot of 2^ask_bits
// ticks; or the first block of the launch alone, if it stays as long as any other.
inline constexpr uint32_t kFirstBlockAsks = 32;

// A step of a block of a dependent launch, at a number of ticks after its start. Time spent waiting
// does not count.
struct Step {
  enum Kind : uint32_t {
    kNone,     // no step, and none after it
    kTrigger,  // triggers: dependents of the launch may start as far as this block is concerned
    kWait,     // waits for the end of the work before it in the stream
  };
  Kind kind;
  uint32_t ticks;
};

// Where the blocks of some launches meet, in device memory, on its own cache line. All zero before
// the first block arrives.
struct alignas(128) MeetingPoint {
  uint32_t arrived;  // blocks that have arrived
  uint32_t passed;   // blocks that have seen all others arrive
};

struct Meeting {
  MeetingPoint* point;
  uint32_t* met;        // in host memory: 1 as soon as every block has passed
  uint32_t blocks;      // of all launches that meet
  uint32_t wait_ticks;  // how long a block waits for the others at most, at most 2^31; it leaves so
                        // long after it has met them as it would after its start
};

// What a kernel decides for a conditional node in each of its runs: that the node's body runs, but
// not in every `every`-th run; 0: in all.
struct Decision {
  uint64_t handle;  // of the node
  uint32_t every;
};

// Where the kernel of a body of a conditional node writes: the driver launches it again and again
// with the same arguments.
struct Runs {
  uint32_t* record;    // per block, in device memory: the record of its next run
  uint32_t apart;      // records from those of a run to those of the next
  uint32_t decisions;  // how many of these there are
  Decision decides[4];
};

// The bus takes about two questions a microsecond, and delays launches while it is busy with them.
// So blocks poll a relay, and only few polls go on to the host: a block that learns there that
// blocks shall leave notifies the others through the relay.
struct ProbeArguments {
  BlockRecord* records;     // per block
  int32_t* warp_slots;      // per block and warp, row-major; nullptr: not requested
  const uint32_t* release;  // in host memory; equal to `run`: every block leaves
  Relay* relay;
  const uint32_t* ticks;  // in device memory: a block leaves by itself so long after its start, at
                          // most 2^31; null: all after `same_ticks`
  uint32_t same_ticks;
  uint32_t run;            // number of this run; never 0
  uint32_t ask_bits;       // or kFirstBlockAsks
  uint32_t ask_sleep_ns;   // after a poll that went on to the host
  uint32_t look_sleep_ns;  // after any other poll
  Waiting waiting;
  Step steps[2];    // in order of time; of the dependent probe only
  Meeting meeting;  // of the meeting probe only
  Runs runs;        // of the body probe only
};

}  // namespace tbsched::cuda
