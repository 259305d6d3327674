// How the programs of the sixth set begin and end.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

// Waits until the file exists that HANGS_GO names. Nothing of CUDA is called before. A program that
// ends by itself says so.
inline void take_turn() {
  if (const char* go = std::getenv("HANGS_GO"))
    while (access(go, F_OK) != 0) usleep(5000);
  std::atexit([] { std::puts("ended"); });
}
