// What GPGPU-Sim's headers and its CUDA runtime get: options, and the priorities of streams.
#pragma once

#include <fstream>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "adapter.h"

class OptionParser;

// Thread IDs of a core: twice as many as threads, as blocks want IDs in one piece.
const unsigned tbsched_thread_ids = 1 << 12;

// Registers the options that begin with -tbsched.
void tbsched_options(OptionParser *parser);
// Whether tbsched distributes the blocks; otherwise GPGPU-Sim does. Known once options are parsed.
bool tbsched_distributes();
// The host makes a stream with a priority.
void tbsched_stream(unsigned stream, int priority);

// Returns the first of `size` consecutive free threads that begin with a warp, or -1. Takes them if
// `occupy`.
template <typename Threads>
int tbsched_threads(Threads &taken, unsigned warp, unsigned threads, unsigned size, bool occupy) {
  unsigned run = 0;
  for (unsigned thread = 0; thread < threads && run < size; ++thread) {
    run = taken.test(thread) || (run == 0 && thread % warp != 0) ? 0 : run + 1;
    if (run < size) continue;
    const unsigned first = thread + 1 - size;
    for (unsigned k = first; occupy && k <= thread; ++k) taken.set(k);
    return static_cast<int>(first);
  }
  return -1;
}
