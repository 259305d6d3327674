// One capture at a time in a process.
#pragma once

#include <string>

namespace tbsched::capture {

// Starts recording into a file: `path`, or, if it exists, another one with the number of this
// process in its name. Returns its path. `from_the_beginning`: nothing has used CUDA before. Throws
// std::runtime_error if a capture is running, there is no CUPTI, another profiler uses it, or the
// file cannot be written.
std::string start(const std::string& path, bool from_the_beginning);

// Records the rest and closes the file. Does nothing if no capture is running, or if the process
// was forked from one that captures. `waits`: waits for the GPU's work.
void stop(bool waits);

}  // namespace tbsched::capture
