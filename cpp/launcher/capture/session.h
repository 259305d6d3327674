// One capture at a time in a process.
#pragma once

#include <string>

namespace tbsched::capture {

// Starts to record into a file: `path`, or where there is one already, another with the number of
// this process in its name. Returns its path. Throws std::runtime_error: a capture runs already,
// there is no CUPTI, another profiler uses it, or the file cannot be written. `from_the_beginning`:
// nothing has used CUDA before.
std::string start(const std::string& path, bool from_the_beginning);

// Records what is left, and ends the file; does nothing where no capture runs, or where the process
// was forked from one that captures. `waits` for what the GPU still does.
void stop(bool waits);

}  // namespace tbsched::capture
